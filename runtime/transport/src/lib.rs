//! Bytes between ranks: shared memory and TCP behind one trait
