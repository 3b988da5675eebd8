//! How launcher and agent find each other on a fresh byte stream.
//!
//! The bootstrap starts `rlaunch agent --build BUILD`. What the host's rc files print comes first
//! and is dropped, up to [`NOISE_MAX_BYTES`]. Then the agent writes one line,
//! `MAGIC BUILD\n`, and from the next byte on the stream is HTTP/2, the launcher being the client.

/// First word of the agent's line. The leading newline of [`greeting`] makes it stand alone even
/// after an rc file's `echo -n`.
pub const MAGIC: &str = "@rlaunch-agent";

/// First word of a host's line that it can't: `REFUSAL KIND DETAIL…`, of the kinds `machine`,
/// `folder` and `push`.
pub const REFUSAL: &str = "@rlaunch-fail";

/// What rc files may print before the agent speaks.
pub const NOISE_MAX_BYTES: usize = 64 * 1024;

/// The agent's line.
pub fn greeting(build: &str) -> String {
    format!("\n{MAGIC} {build}\n")
}
