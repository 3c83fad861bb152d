//! The unit in which memory lies and files are read and written. It does not know what is in either.

/// Unit of direct I/O: offsets, lengths and buffer addresses are multiples of it.
pub const BLOCK_BYTES: usize = 4096;
