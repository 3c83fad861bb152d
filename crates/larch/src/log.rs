//! Logs on disk: their records, the write-ahead log of commits, and a disk that closes them while nothing is written. It does
//! not know what becomes of commits.

pub mod record;
pub mod resting;
pub mod wal;
