//! The unit in which memory is laid out and in which files are read and written. This module does not know what
//! memory or files hold.

/// The unit of direct I/O: offsets, lengths and buffer addresses are multiples of this number.
pub const BLOCK_BYTES: usize = 4096;
