//! Framing shared by the write-ahead log and the manifest: a file is a header and records, every record carries its
//! checksum, its log's id and how much of the log was known to be durable when it was written. It does not know what
//! the payloads mean.
//!
//! ```text
//! file:    header (64 bytes) | record | record | …                 records start at multiples of 8
//! record:  crc u32 | payload bytes u32 | log id u64 | synced end u64 | payload | zeros to a multiple of 8
//!          crc32c of everything after it in the record, padding included
//! ```
//!
//! Invariants:
//! - A record never claims a synced end past its own offset: it was known before the record was written.
//! - The header is durable before the first record is written, so a bad header before records is corruption.
//! - A reader gives a prefix of what was appended, byte for byte. It ends early in silence only where nothing proves that
//!   the missing bytes were ever durable; with such a proof it answers [`LogError::Corrupt`] and stays there.
//!
//! Thread safety: one thread appends, any thread syncs through [`LogFile`]; a reader belongs to one thread.

use std::io;
use std::path::{Path, PathBuf};

use os::sync::Arc;
use sst::format::features::Unreadable;

mod header;
mod reader;
mod writer;

pub use header::{EDIT_FIELDS, HEADER_BYTES, Header, LogKind, Previous};
pub use reader::{RecordReader, Tear};
pub use writer::{LogFile, RecordWriter};

/// Bytes of a record before its payload.
pub const RECORD_HEADER_BYTES: usize = 24;

/// Records start at multiples of this.
pub const RECORD_ALIGN_BYTES: usize = 8;

/// Result of the log layer.
pub type Result<T, E = LogError> = std::result::Result<T, E>;

/// Something about a log file broke.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// The system refused an operation.
    #[error("{}; mend the cause, then try again", os::failure::describe(action, file, source))]
    Io {
        /// What was tried: "read", "append to", "sync", …
        action: &'static str,
        /// Which file.
        file: PathBuf,
        /// The system's words.
        source: Arc<io::Error>,
    },
    /// Bytes that were durable once are not there any more, or are not what was written.
    #[error("{} is corrupt at offset {offset}: {why}; restore the database from a backup", file.display())]
    Corrupt {
        /// Which file.
        file: PathBuf,
        /// Where the first bad thing starts.
        offset: u64,
        /// What is wrong, and how we know that it is not just an unfinished write.
        why: String,
    },
    /// The file is whole, but only a newer release can read it.
    #[error("{} was made by a newer Larch: {what}; open it with that release or a later one", file.display())]
    Newer {
        /// Which file.
        file: PathBuf,
        /// What is not known: "feature 23", "edit 40".
        what: String,
    },
}

impl LogError {
    fn io(action: &'static str, file: &Path, source: io::Error) -> Self {
        Self::Io { action, file: file.to_owned(), source: Arc::new(source) }
    }

    /// Corruption found by whoever reads the payloads.
    pub fn corrupt(file: &Path, offset: u64, why: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), offset, why: why.into() }
    }

    /// What `file` has at `offset` cannot be read.
    pub fn unreadable(file: &Path, offset: u64, unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Corrupt(why) => Self::corrupt(file, offset, why),
            Unreadable::Newer(what) => Self::Newer { file: file.to_owned(), what },
        }
    }
}

/// Length of a record with its header and padding.
fn padded_record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(RECORD_ALIGN_BYTES)
}

#[cfg(test)]
pub(crate) mod tests;
