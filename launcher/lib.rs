//! The launcher: from a command line to a job that ends cleanly.

pub mod cli;
