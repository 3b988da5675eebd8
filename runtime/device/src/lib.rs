//! Arithmetic on buffers
