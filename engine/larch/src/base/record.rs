//! The records of the write-ahead log and of the manifest. A file is a header followed by records. Besides its
//! payload, a record has a checksum, the id of its log, and a *synced end*: the log was known to be durable up to
//! this offset when the record was written. This module does not know what the payloads mean.
//!
//! ```text
//! file:    header (64 bytes) | record | record | …                 `form` has the bytes of a record
//! ```
//!
//! Invariants:
//! - The synced end in a record is at most the record's own offset, because the writer knew it before it wrote the
//!   record.
//! - The header is durable before the first record is written. So a bad header in a file with records is corruption.
//! - A sync of a log first makes the previous log durable. So if a record states a synced end past the header of its
//!   log, the previous log is durable, too.
//! - The records that a reader returns are a prefix of the appended records, byte for byte. Where bytes are missing,
//!   the reader ends without an error only if nothing proves that these bytes were ever durable. Otherwise it
//!   returns [`LogError::Corrupt`], now and at each further call.
//!
//! Thread safety: one thread appends, and any thread may sync through [`LogFile`]. A reader belongs to one thread.

use std::io;
use std::path::{Path, PathBuf};

use os::sync::Arc;
use sst::format::features::Unreadable;

mod form;
mod header;
mod reader;
mod tail;
mod writer;

pub use form::RecordForm;
pub use header::{BEGIN_RECORD, EDIT_FIELDS, HEADER_BYTES, Header, KnownEnd, LEAN_RECORDS, LogKind, Previous, TIMES};
pub use reader::{RecordReader, Tear};
pub use tail::rewrite_tail;
pub use writer::{EmptyLog, LogFile, RecordWriter};

/// The result of functions on logs and manifests.
pub type Result<T, E = LogError> = std::result::Result<T, E>;

/// What went wrong with a log or a manifest.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// The operating system refused an operation.
    #[error("{}; mend the cause, then try again", os::failure::describe(action, file, source))]
    Io {
        /// What was tried: "read", "append to", "sync", …
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// Bytes that were durable are missing or changed.
    #[error("{} is corrupt at offset {offset}: {why}; restore the database from a backup", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where the damage starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong, and what proves that these bytes were durable.
        why: String,
    },
    /// The file is not damaged, but this release is too old to read it.
    #[error("{} was made by a newer Larch: {what}; open it with that release or a later one", file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// What this release does not know, for example "feature 23" or "edit 40".
        what: String,
    },
}

impl LogError {
    fn io(action: &'static str, file: &Path, source: io::Error) -> Self {
        Self::Io { action, file: file.to_owned(), source: Arc::new(source) }
    }

    /// The error about damage at `offset` of `file`.
    pub fn corrupt(file: &Path, offset: u64, why: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), offset, why: why.into() }
    }

    /// The error about unreadable bytes at `offset` of `file`: damaged, or written by a newer release.
    pub fn unreadable(file: &Path, offset: u64, unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Corrupt(why) => Self::corrupt(file, offset, why),
            Unreadable::Newer(what) => Self::Newer { file: file.to_owned(), what },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
