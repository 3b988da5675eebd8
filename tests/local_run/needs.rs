//! What the executable asks of a machine before it starts.

use std::process::Command;

/// It starts where there is no libssl, no CUDA and no libibverbs: of shared libraries it needs
/// those of every Linux alone.
#[test]
fn only_the_c_library_is_needed() {
    let output = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_rlaunch"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let allowed = ["linux-vdso", "libgcc_s", "libc.so", "libm.so", "ld-linux"];
    let strange: Vec<&str> = text
        .lines()
        .filter(|line| !allowed.iter().any(|name| line.contains(name)))
        .collect();
    assert!(text.contains("libc.so"), "{text}");
    assert_eq!(strange, [] as [&str; 0]);
}
