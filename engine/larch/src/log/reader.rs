//! Reads the commits of a log file in order. The module `record` decides where a log ends and what a torn tail is.
//!
//! A record with a valid checksum whose payload is no commit is corruption, even at the end of a log: an unfinished
//! write cannot leave such a record.
//!
//! Not thread safe: one thread at a time uses a reader.

use std::path::Path;

use os::Disk;
use sst::Version;

use super::COMMIT_HEADER_BYTES;
use crate::base::ops::BatchOps;
use crate::base::record::{Header, KnownEnd, LogError, LogKind, Previous, RecordReader, Result, Tear};
use sst::format::varint;

/// One commit.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// The offset at which the record of the commit starts.
    pub offset: u64,
    /// The version of all rows of the commit.
    pub version: Version,
    /// The operations of the commit.
    pub ops: &'a BatchOps,
}

/// Returns the commits of a log file one by one. After an error, it returns the same error again.
#[derive(Debug)]
pub struct LogReader {
    records: RecordReader,
    previous: Option<Previous>,
    has_begun: bool,
    last: Option<Version>,
    ops: BatchOps,
    failed: Option<LogError>,
}

impl LogReader {
    /// Opens a log. `known_end` is this log's end as the next log names it, see [`RecordReader::open`].
    ///
    /// # Errors
    ///
    /// The errors of [`RecordReader::open`]; an error if the first record is damaged.
    pub fn open(disk: &dyn Disk, path: &Path, known_end: Option<KnownEnd>) -> Result<Self> {
        let mut records = RecordReader::open(disk, path, LogKind::WriteAhead, known_end)?;
        let header = records.header().copied();
        let (has_begun, previous) = match header {
            None => (false, None),
            Some(header) if header.has_begin_record() => {
                let previous = read_begin(&mut records)?;
                (previous.is_some(), previous)
            }
            Some(header) => (true, header.previous),
        };
        Ok(Self { records, previous, has_begun, last: None, ops: BatchOps::new(), failed: None })
    }

    /// Whether the log has begun. If not, it has no commits: its creation was not finished, it was prepared but
    /// never used, or its begin record never became durable.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The log that this one continues.
    pub fn previous(&self) -> Option<Previous> {
        self.previous
    }

    /// See [`RecordReader::proof_of_sync`].
    ///
    /// # Errors
    ///
    /// An error if the file cannot be read.
    pub fn proof_of_sync(&mut self) -> Result<Option<String>> {
        self.records.proof_of_sync()
    }

    /// The header of the file; `None` if the creation of the file was not finished, so that it never had a commit.
    pub fn header(&self) -> Option<&Header> {
        self.records.header()
    }

    /// See [`RecordReader::look_again`].
    ///
    /// # Errors
    ///
    /// The errors of [`RecordReader::look_again`].
    pub fn look_again(&mut self) -> Result<()> {
        self.records.look_again()
    }

    /// The next commit; `None` after the last commit.
    ///
    /// # Errors
    ///
    /// An error if the file cannot be read or is corrupt. An unfinished write at its end is no error, see
    /// [`LogReader::tear`].
    pub fn next_commit(&mut self) -> Result<Option<Commit<'_>>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.step() {
            Ok(Some((offset, version))) => Ok(Some(Commit { offset, version, ops: &self.ops })),
            Ok(None) => Ok(None),
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Reads the next commit into `ops`, and returns its offset and version.
    fn step(&mut self) -> Result<Option<(u64, Version)>> {
        let is_lean = self.records.header().is_some_and(Header::has_lean_records);
        let (offset, outcome) = loop {
            match self.records.next_record()? {
                None => return Ok(None),
                // An empty record only proves which bytes are durable.
                Some(record) if record.payload.is_empty() => {}
                Some(record) => break (record.offset, decode(record.payload, is_lean, self.last, &mut self.ops)),
            }
        };
        match outcome {
            Ok(version) => {
                self.last = Some(version);
                Ok(Some((offset, version)))
            }
            Err(why) => Err(LogError::corrupt(self.records.path(), offset, why)),
        }
    }

    /// The path of the log.
    pub fn path(&self) -> &Path {
        self.records.path()
    }

    /// The version of the newest commit that was read.
    #[cfg(test)]
    pub fn last(&self) -> Option<Version> {
        self.last
    }

    /// The offset at which the log ends, after the last commit was read. Once the file is synced, the next log may
    /// name this offset as the end of this log.
    pub fn end(&self) -> u64 {
        self.records.end()
    }

    /// All bytes below this offset are known to have been durable, see [`RecordReader::proven_end`].
    pub fn proven_end(&self) -> u64 {
        self.records.proven_end()
    }

    /// The unfinished write at the end of the log, which the reader ignores; `None` if there is none. Known only
    /// after the last commit was read.
    pub fn tear(&self) -> Option<&Tear> {
        self.records.tear()
    }
}

/// Reads the begin record, which is the log's first; `None` if the log ends before it.
///
/// ```text
/// previous log's number u64 | previous log's end u64
/// ```
fn read_begin(records: &mut RecordReader) -> Result<Option<Previous>> {
    let Some(record) = records.next_record()? else { return Ok(None) };
    let (offset, payload) = (record.offset, record.payload);
    let previous = payload.as_chunks::<8>();
    let previous = match previous {
        ([number, at], []) => {
            let end = KnownEnd { at: u64::from_le_bytes(*at), is_durable: false };
            Some(Previous { number: u64::from_le_bytes(*number), end }).filter(Previous::is_valid)
        }
        _ => None,
    };
    let corrupt = || LogError::corrupt(records.path(), offset, "the first record names no log that this one continues");
    previous.ok_or_else(corrupt).map(Some)
}

/// Decodes a commit that follows commit `last` into `ops`.
fn decode(payload: &[u8], is_lean: bool, last: Option<Version>, ops: &mut BatchOps) -> Result<Version, String> {
    let header = if is_lean { lean_header(payload, last) } else { full_header(payload) };
    let Some((version, count, bytes)) = header else {
        return Err(format!("a record of {} bytes does not begin as a commit", payload.len()));
    };
    if let Some(last) = last
        && version <= last
    {
        return Err(format!("commit {} comes after commit {}", version.0, last.0));
    }
    ops.decode(bytes, count).map_err(|error| format!("commit {}: {error}", version.0))?;
    Ok(version)
}

/// ```text
/// version u64 | op count u32 | ops
/// ```
fn full_header(payload: &[u8]) -> Option<(Version, u32, &[u8])> {
    let (header, ops) = payload.split_first_chunk::<COMMIT_HEADER_BYTES>()?;
    let (version, count) = header.split_first_chunk()?;
    Some((Version(u64::from_le_bytes(*version)), u32::from_le_bytes(*count.first_chunk()?), ops))
}

/// ```text
/// version less `last`, varint | op count varint | ops
/// ```
fn lean_header(payload: &[u8], last: Option<Version>) -> Option<(Version, u32, &[u8])> {
    let mut rest = payload;
    let (step, count) = (varint::take(&mut rest)?, varint::take(&mut rest)?);
    let version = last.map_or(0, |last| last.0).checked_add(step)?;
    Some((Version(version), u32::try_from(count).ok()?, rest))
}
