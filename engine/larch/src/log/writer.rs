//! Appends commits to a log file. The owner of the writer syncs the log, decides when it is long enough, and begins
//! the log that continues it.
//!
//! Not thread safe: one thread at a time uses a writer.

use os::Disk;
use os::sync::Arc;
use sst::Version;
use std::path::Path;

use super::COMMIT_HEADER_BYTES;
use crate::base::ops::{CommitOps, EncodedOp};
use crate::base::record::{BEGIN_RECORD, EmptyLog, HEADER_BYTES, Header, LogFile, RecordForm, RecordWriter, Result};
use sst::format::varint;

/// Writes a new write-ahead log.
#[derive(Debug)]
pub struct LogWriter {
    records: RecordWriter,
    /// The offset at which the first commit starts.
    begin_end: u64,
    is_lean: bool,
    last: Option<Version>,
}

impl LogWriter {
    /// Begins a log in an empty file, and makes its header durable. The header names the log that this one continues,
    /// if there is one, which was synced up to its end.
    ///
    /// # Errors
    ///
    /// The errors of [`EmptyLog::begin`].
    pub fn begin(file: EmptyLog, header: &Header) -> Result<Self> {
        let is_lean = header.has_lean_records();
        Ok(Self { records: file.begin(header)?, begin_end: HEADER_BYTES as u64, is_lean, last: None })
    }

    /// Prepares a log in an empty file, and makes `header` durable, which names no other log. It then announces a begin
    /// record. The log begins when [`LogWriter::follow`] writes it.
    ///
    /// # Errors
    ///
    /// The errors of [`EmptyLog::begin`].
    pub fn prepare(file: EmptyLog, header: Header) -> Result<Self> {
        assert!(header.previous.is_none(), "the first record names the previous log");
        Self::begin(file, &Header { features: header.features | BEGIN_RECORD, ..header })
    }

    /// A writer for the log at `path`, which an earlier process has left. The log is durable and ends at `end`. It
    /// takes no more commits, and another log is to continue it.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::go_on`].
    pub fn ended(disk: &dyn Disk, path: &Path, end: u64) -> Result<Self> {
        // The log's id is not known here. Only appended records need it, and none will be appended, so 0 does no
        // harm.
        let records = RecordWriter::go_on(disk, path, RecordForm::full(0), end)?;
        Ok(Self { records, begin_end: end, is_lean: false, last: None })
    }

    /// Begins a prepared log that continues log `number`, whose file is `before` and which takes no more commits.
    /// Waits for no sync: the first sync of this log makes the previous log durable first.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::append`].
    pub fn follow(&mut self, number: u64, before: Arc<LogFile>) -> Result<()> {
        let end = before.appended_end();
        self.records.follow(before);
        self.begin_end = self.records.append(&[&number.to_le_bytes(), &end.to_le_bytes()])?;
        Ok(())
    }

    /// Whether the header or record that names the previous log is durable. If so, the previous log is durable,
    /// too.
    pub fn is_begin_durable(&self) -> bool {
        self.file().synced_end() >= self.begin_end
    }

    /// Appends a commit, and returns the end of its record.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::append`].
    pub fn append_commit(&mut self, version: Version, ops: CommitOps<'_>) -> Result<u64> {
        assert!(self.last.is_none_or(|last| last < version), "commits are appended in version order");
        assert!(ops.is_resolved(), "the caller resolves a batch before it gets a version");
        let mut header = [0; 2 * varint::MAX_BYTES];
        let header_bytes = self.encode_header(version, ops.count(), &mut header);
        let header = &header[..header_bytes];
        let end = match ops {
            CommitOps::One(table, op) => {
                let op = EncodedOp::new(table, op);
                let [head, key, length, rest] = op.parts();
                self.records.append(&[header, head, key, length, rest])?
            }
            CommitOps::Batch(ops) => self.records.append(&[header, ops.bytes()])?,
        };
        self.last = Some(version);
        Ok(end)
    }

    /// Encodes what is before the ops of a commit. Returns how many bytes it takes.
    fn encode_header(&self, version: Version, count: u32, out: &mut [u8; 2 * varint::MAX_BYTES]) -> usize {
        if self.is_lean {
            let at = varint::write(out, version.0 - self.last.map_or(0, |last| last.0));
            return at + varint::write(&mut out[at..], count.into());
        }
        out[..8].copy_from_slice(&version.0.to_le_bytes());
        out[8..COMMIT_HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
        COMMIT_HEADER_BYTES
    }

    /// The version of the newest commit in this log.
    #[cfg(test)]
    pub fn last(&self) -> Option<Version> {
        self.last
    }

    /// If the begin of this log, and with it the previous log, is durable, appends a note that proves it, unless
    /// the last record does so already.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::append`].
    pub fn prove_begin(&mut self) -> Result<()> {
        if self.is_begin_durable() && self.records.stated_end() < self.begin_end {
            self.append_proof().map(|_| ())
        } else {
            Ok(())
        }
    }

    /// After a failed append, removes what was written of the commit from the log, and makes the removal durable.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::mend`].
    pub fn mend(&mut self) -> Result<()> {
        self.records.mend()
    }

    /// Appends a note that proves how much of the log is durable, for a log that gets no commits for some time.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::append`].
    pub fn append_proof(&mut self) -> Result<u64> {
        self.records.append_proof()
    }

    /// Gives back disk space that was allocated ahead and is not used.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordWriter::trim`].
    pub fn trim(&mut self) -> Result<()> {
        self.records.trim()
    }

    /// Frees the buffer in which records are encoded.
    pub fn give_back(&mut self) {
        self.records.give_back();
    }

    /// The memory of the buffer in which records are encoded, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.records.memory_bytes()
    }

    /// The offset at which the next record will start.
    pub fn end(&self) -> u64 {
        self.records.end()
    }

    /// The file, for a [`super::SyncPoint`].
    pub fn file(&self) -> &Arc<LogFile> {
        self.records.file()
    }
}
