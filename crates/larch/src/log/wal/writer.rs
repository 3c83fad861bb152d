//! Appends commits to a log file. It neither syncs nor begins a new log: its owner syncs a log that is long enough, and begins
//! a new one that continues it.
//!
//! Thread safety: it belongs to one thread at a time.

use os::sync::Arc;
use sst::Version;

use super::COMMIT_HEADER_BYTES;
use crate::log::record::{EmptyLog, Header, LogFile, LogKind, Previous, RecordWriter, Result};
use crate::write::batch::BatchOps;

/// Writes a new write-ahead log.
#[derive(Debug)]
pub struct LogWriter {
    records: RecordWriter,
    last: Option<Version>,
}

impl LogWriter {
    /// Begins the log `number` in an empty file, and makes its header durable. `log_id` is random. `previous` is the log that this
    /// one continues, which was synced up to its end.
    ///
    /// # Errors
    ///
    /// As [`EmptyLog::begin`].
    pub fn begin(file: EmptyLog, log_id: u64, number: u64, previous: Option<Previous>) -> Result<Self> {
        let header = Header::new(LogKind::WriteAhead, log_id, number, previous);
        Ok(Self { records: file.begin(&header)?, last: None })
    }

    /// Appends a commit, and returns the end of its record for [`super::SyncPoint::durable`].
    ///
    /// # Errors
    ///
    /// As [`RecordWriter::append`].
    pub fn append_commit(&mut self, version: Version, ops: &BatchOps) -> Result<u64> {
        assert!(self.last.is_none_or(|last| last < version), "commits are appended in version order");
        assert!(ops.is_resolved(), "the caller resolves a batch before it gets a version");
        let mut header = [0; COMMIT_HEADER_BYTES];
        header[..8].copy_from_slice(&version.0.to_le_bytes());
        header[8..].copy_from_slice(&ops.count().to_le_bytes());
        let end = self.records.append(&[&header, ops.bytes()])?;
        self.last = Some(version);
        Ok(end)
    }

    /// The newest commit in this file.
    #[cfg(test)]
    pub fn last(&self) -> Option<Version> {
        self.last
    }

    /// Notes in the log how much of it is durable. It is for a log to which nothing will be written for some time.
    ///
    /// # Errors
    ///
    /// As [`RecordWriter::append`].
    pub fn append_proof(&mut self) -> Result<u64> {
        self.records.append_proof()
    }

    /// Gives the room back that was allocated ahead and is not used.
    ///
    /// # Errors
    ///
    /// As [`RecordWriter::trim`].
    pub fn trim(&mut self) -> Result<()> {
        self.records.trim()
    }

    /// Releases the buffer in which it encodes records.
    pub fn give_back(&mut self) {
        self.records.give_back();
    }

    /// The memory of this buffer, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.records.memory_bytes()
    }

    /// Where the next record will start.
    pub fn end(&self) -> u64 {
        self.records.end()
    }

    /// The file, for a [`super::SyncPoint`].
    pub fn file(&self) -> &Arc<LogFile> {
        self.records.file()
    }
}
