//! Random bytes from the kernel: names that cannot be guessed, nonces.

/// Blocks only in the first seconds of a machine's life.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += crate::sys::random(&mut bytes[filled..]);
    }
    bytes
}

pub(crate) fn hex<const N: usize>() -> String {
    bytes::<N>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
