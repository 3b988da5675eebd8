//! The runtime that a rank links.
