//! Logs on disk: their framing, the write-ahead log of commits, and the disk that closes them while nothing is written.

pub mod record;
pub mod resting;
pub mod wal;
