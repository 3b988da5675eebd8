//! librlaunch.so: the C API. `include/rlaunch.h` is made from this crate by `cargo x gen`.
//!
//! Thin: check what C cannot (null, kind of handle, codes, ranges, alignment, overlap), call
//! `rlaunch_runtime`, turn its errors into a code and a text. No panic crosses into C. Only `rl_*`
//! is exported.
//!
//! | file | what |
//! |---|---|
//! | `codes`, `error` | numbers of the header; failures |
//! | `handle` | what C holds, and how it is recognised |
//! | `argument`, `form`, `operation` | from C's arguments to the runtime's call |
//! | `collectives` | the collectives: one list, three forms |
//! | `request`, `group` | waiting |
//! | `world`, `comm`, `point`, `buffer` | the rest of the calls |
//!
//! Safety of every exported function: handles are NULL or live objects of this library, which no
//! other thread frees meanwhile; buffers hold as many elements as the counts say; places for results
//! are NULL or may be written to. What can be checked of it is.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]
#![allow(non_camel_case_types, reason = "the types carry their C names")]
#![allow(clippy::missing_safety_doc, reason = "one contract for all, above")]

pub mod buffer;
pub mod codes;
pub mod collectives;
pub mod comm;
pub mod error;
pub mod group;
pub mod handle;
pub mod operation;
pub mod point;
pub mod request;
pub mod world;

mod argument;
mod form;
