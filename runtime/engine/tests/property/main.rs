//! Every collective against a plain reference, over types, operations, counts, worlds, transports
//! and placements of buffers. The data is such that every order of reduction gives the same bits,
//! so results are compared byte for byte, with guard bytes around every buffer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod cover;
mod number;
mod reference;
mod run;
mod sweeps;
