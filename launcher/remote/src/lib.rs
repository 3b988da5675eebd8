//! Carriers: a byte stream to an agent on a host
