//! `cargo x check`: what a reviewer should not have to look for.

mod deep;
mod fuzz;
pub mod generated;
mod layers;
mod tidy;

use crate::sh;

pub fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => {}
        [word] if word == "--deep" => return deep::run(None),
        [word, only] if word == "--deep" => return deep::run(Some(only)),
        [word, ..] => return Err(format!("takes --deep [PART] or nothing, found `{word}`")),
    }
    sh::run(&mut sh::cargo(["fmt", "--all", "--check"]))?;
    layers::check()?;
    tidy::check()?;
    generated::run(&["--check".to_owned()])?;
    sh::run(&mut sh::cargo([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}
