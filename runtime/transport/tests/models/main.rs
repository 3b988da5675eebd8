//! Models of the shared-memory protocols, walked through every interleaving and every reordering that
//! the memory model allows: `cargo test -p rlaunch-transport --features models --test models`
//! (`cargo x check --deep` does it).
//!
//! Each file restates one protocol of `src/shm` with fewer slots and the same order of loads and
//! stores: change both together. Data is a tracked cell, so that a read that is not ordered after its
//! write fails even where the value happens to be right. Each model is also run with one order
//! weakened, which must fail: a model that finds nothing proves nothing.

mod claims;
mod direct;
mod doorbell;
mod exchange;
mod memory;
mod ring;
mod rounds;
