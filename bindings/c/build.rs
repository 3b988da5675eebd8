//! The linker's part: the library's name for the loader, so that programs find this major version.

fn main() {
    // Only rl_* is exported already: Rust hides the rest of a cdylib with a version script of its
    // own, and a test looks at the result.
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librlaunch.so.{major}");
    println!("cargo::rerun-if-changed=build.rs");
}
