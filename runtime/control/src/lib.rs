//! The gRPC services of the control plane, and the two ends of a connection that is a byte stream.
//!
//! Tensors never travel here, and no rank links this crate: only launcher and agent do.

/// Messages, clients and servers made from `proto/`.
#[allow(
    clippy::all,
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    unreachable_pub,
    missing_docs,
    reason = "generated"
)]
#[rustfmt::skip]
pub mod v1 {
    include!("generated/rlaunch.v1.rs");
}
