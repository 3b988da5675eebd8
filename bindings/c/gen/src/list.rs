//! The list of collectives in `bindings/c/src/collectives.rs`, written out for cbindgen, which does
//! not expand macros.
//!
//! ```text
//! collectives! {
//!     /// What it does.
//!     rl_name, rl_iname, rl_name_init (argument: type, …) => how;
//!     …
//! }
//! ```
//! The three names make three functions; what stands behind `=>` is not C's. A blank line ends each.

const OPENING: &str = "\ncollectives! {\n";

/// All blocking ones, then all started, then all prepared, as plain declarations in Rust.
pub(crate) fn written_out(source: &str) -> Result<String, String> {
    let (_, list) = source
        .split_once(OPENING)
        .ok_or("collectives.rs has no `collectives! {` at the start of a line")?;
    let mut entries = Vec::new();
    for text in list.trim_end().trim_end_matches('}').split("\n\n") {
        if !text.trim().is_empty() {
            entries.push(Entry::parse(text).map_err(|error| format!("{error}: {text}"))?);
        }
    }
    let forms = [Entry::blocking, Entry::started, Entry::prepared];
    let all = forms.iter().flat_map(|form| entries.iter().map(form));
    Ok(format!("//! Written out.\n\n{}", all.collect::<String>()))
}

struct Entry<'s> {
    documentation: Vec<&'s str>,
    names: [&'s str; 3],
    arguments: &'s str,
}

impl<'s> Entry<'s> {
    fn parse(text: &'s str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim);
        let documentation: Vec<&str> = lines.filter(|line| line.starts_with("///")).collect();
        let last = documentation.last().ok_or("nothing says what it does")?;
        let rest = text.rsplit_once(last).map_or("", |(_, rest)| rest);
        let (head, _) = rest.split_once("=>").ok_or("no `=>`")?;
        let (names, arguments) = head.split_once('(').ok_or("no arguments in ( )")?;
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        let names = names.try_into().map_err(|_| "not three names")?;
        let arguments = arguments.trim().strip_suffix(')').ok_or("no `)`")?.trim();
        Ok(Self {
            documentation,
            names,
            arguments,
        })
    }

    fn blocking(&self) -> String {
        declaration(
            &self.documentation.join("\n"),
            self.names[0],
            &[self.arguments],
        )
    }

    fn started(&self) -> String {
        let text = format!(
            "/// As {}, but returns at once, with a request to wait for.",
            self.names[0]
        );
        declaration(&text, self.names[1], &[self.arguments, REQUEST])
    }

    fn prepared(&self) -> String {
        let text = format!(
            "/// Prepares {} to be started by rl_start, many times, on the same buffers.",
            self.names[0]
        );
        declaration(&text, self.names[2], &[self.arguments, REQUEST])
    }
}

const REQUEST: &str = "request: *mut *mut rl_request";

fn declaration(documentation: &str, name: &str, arguments: &[&str]) -> String {
    let arguments = ["comm: *const rl_comm"].iter().chain(arguments);
    let arguments: Vec<&str> = arguments.copied().filter(|one| !one.is_empty()).collect();
    format!(
        "{documentation}\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({}) -> c_int {{ 0 }}\n\n",
        arguments.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_becomes_three_functions() {
        let source = "\ncollectives! {\n    /// Does (it);\n    /// now.\n    rl_a, rl_ia, rl_a_init (\n        \
                      count: u64, root: c_int\n    ) => |comm| f(comm, (count, root));\n}\n";
        let text = written_out(source).unwrap();
        let declared = |line: &str| assert!(text.contains(line), "{line}: {text}");
        declared("/// Does (it);\n/// now.\n#[unsafe(no_mangle)]");
        declared("fn rl_a(comm: *const rl_comm, count: u64, root: c_int) -> c_int");
        declared("/// As rl_a, but");
        declared("fn rl_ia(comm: *const rl_comm, count: u64, root: c_int, request: *mut *mut");
        declared("fn rl_a_init(");
    }

    #[test]
    fn what_is_no_entry_is_told() {
        for (list, expected) in [
            ("    rl_a, rl_ia, rl_a_init () => x;\n", "nothing says"),
            ("    /// A.\n    rl_a, rl_ia () => x;\n", "three names"),
            ("    /// A.\n    rl_a, rl_ia, rl_a_init ();\n", "=>"),
        ] {
            let error = written_out(&format!("\ncollectives! {{\n{list}}}\n")).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
