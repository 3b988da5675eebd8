//! `cargo x gen`: makes `runtime/control/src/generated/` from `runtime/control/proto/`.
//!
//! Run from the repository's root. Its own crate, so that building rlaunch needs neither protoc
//! nor the generator.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proto = Path::new("runtime/control/proto");
    let out = Path::new("runtime/control/src/generated");
    std::fs::create_dir_all(out)?;
    let files = protox::compile(["agent.proto", "worker.proto"], [proto])?;
    tonic_prost_build::configure()
        .out_dir(out)
        .bytes(".")
        .compile_fds(files)?;
    let generated = out.join("rlaunch.v1.rs");
    let text = std::fs::read_to_string(&generated)?;
    std::fs::write(
        &generated,
        format!("// Made by `cargo x gen` from runtime/control/proto.\n{text}"),
    )?;
    Ok(())
}
