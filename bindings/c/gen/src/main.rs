//! `cargo x gen`: makes `bindings/c/include/rlaunch.h` from `bindings/c/src/`.
//!
//! Run from the repository's root. Its own crate, so that building rlaunch needs no generator.

mod list;

use std::path::Path;

use cbindgen::{Braces, Builder, Config, DocumentationStyle, Language, Style};

/// The modules that say what C sees, in the header's order.
const SOURCES: &[&str] = &[
    "codes",
    "handle",
    "error",
    "world",
    "comm",
    COLLECTIVES,
    "point",
    "request",
    "group",
    "operation",
    "buffer",
];

/// The module that is a list, written out first.
const COLLECTIVES: &str = "collectives";

/// Types that no function names: their numbers are passed as int.
const EXPORTED: [&str; 3] = ["rl_code", "rl_dtype", "rl_op"];

const HEAD: &str = include_str!("head.h");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new("bindings/c");
    let mut config = Config {
        language: Language::C,
        style: Style::Type,
        braces: Braces::SameLine,
        cpp_compat: true,
        header: Some(HEAD.replace("@VERSION@", env!("CARGO_PKG_VERSION"))),
        include_guard: Some("RLAUNCH_H".to_owned()),
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        line_length: 100,
        documentation_style: DocumentationStyle::Doxy,
        ..Config::default()
    };
    config.export.include = EXPORTED.map(str::to_owned).to_vec();
    config.function.sort_by = None;
    let list = std::fs::read_to_string(folder.join("src/collectives.rs"))?;
    let written_out = std::env::temp_dir().join(format!("rlaunch-c-{}.rs", std::process::id()));
    std::fs::write(&written_out, list::written_out(&list)?)?;
    let builder = SOURCES.iter().fold(Builder::new(), |builder, name| {
        builder.with_src(match *name {
            COLLECTIVES => written_out.clone(),
            name => folder.join(format!("src/{name}.rs")),
        })
    });
    let bindings = builder.with_config(config).generate();
    std::fs::remove_file(&written_out)?;
    let bindings = bindings?;
    let mut header = Vec::new();
    bindings.write(&mut header);
    std::fs::write(folder.join("include/rlaunch.h"), tidy(&header)?)?;
    Ok(())
}

/// Comments of one line on one line, and no spaces at the ends of lines.
fn tidy(header: &[u8]) -> Result<String, std::str::Utf8Error> {
    let text = std::str::from_utf8(header)?;
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    let mut at = 0;
    while at + 2 < lines.len() {
        if lines[at].trim_start() == "/**" && lines[at + 2].trim_start() == "*/" {
            let text = lines[at + 1].replacen(" * ", "/** ", 1);
            lines.splice(at..at + 3, [format!("{text} */")]);
        }
        at += 1;
    }
    Ok(lines.join("\n").trim_end().to_owned() + "\n")
}
