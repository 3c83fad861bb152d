//! Reads the records of a log file. At the first bad record, decides whether a write was not finished there (a torn
//! tail) or the file is damaged. This module does not know what the payloads mean.
//!
//! After a crash, the part that was not synced may be in any state: bytes are missing or zero, or later records are
//! there without earlier ones. So a bad record at offset `o` ends the log without an error, unless something proves
//! that bytes at or past `o` were durable: a durable `known_end` of the caller, or a valid record after `o` whose
//! synced end is past `o`. With such a proof, the bad record is corruption. (Records before `o` prove nothing, because
//! a record's synced end is at most its own offset.)
//!
//! Memory: the reader keeps one chunk, or one record if that is longer. The search for a proof takes two chunks.
//!
//! A reader belongs to one thread.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crc_fast::{CrcAlgorithm, Digest};
use os::sync::Arc;
use os::{Access, Disk, File};

use super::form::{MAX_HEAD_BYTES, RecordHead};
use super::{HEADER_BYTES, Header, KnownEnd, LogError, LogKind, RecordForm, Result};

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where the record starts in the file.
    pub offset: u64,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

/// An unfinished write at the end of a log. The log ends where this write starts, although the file may be longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tear {
    /// Where the unfinished write starts, which is the end of the log.
    pub offset: u64,
    /// What is wrong with the unfinished write.
    pub why: &'static str,
}

/// Returns the records of a file one by one. After an error, each further call returns the same error.
#[derive(Debug)]
pub struct RecordReader {
    file: Arc<dyn File>,
    path: PathBuf,
    /// The header, or `None` if the creation of the file was not finished. Such a file has no records.
    header: Option<Header>,
    /// Only bytes before this offset are read: the caller's `known_end`, or the length of the file if that is less.
    limit: u64,
    known_end: Option<KnownEnd>,
    /// Where the next record starts.
    offset: u64,
    /// See [`RecordReader::proven_end`].
    proven_end: u64,
    window: Window,
    /// How the log ends, once the reader has reached the end.
    log_end: Option<LogEnd>,
}

#[derive(Clone, Debug)]
enum LogEnd {
    Ended,
    Torn(Tear),
    Failed(LogError),
}

/// A part of the file in memory.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The position of `range` in the window, if the window holds the whole range.
    fn find(&self, range: &Range<u64>) -> Option<Range<usize>> {
        let start = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        (end <= self.bytes.len()).then_some(start..end)
    }
}

impl RecordReader {
    /// Opens a log of the given kind. `known_end` is the end of this log that the next log states, or `None` if no
    /// next log exists. Nothing past it is read; if it is durable, all bytes below it must be there and valid.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened or read, ends before a durable `known_end`, or is of another kind. Also
    /// fails if the header is bad, unless the creation of the file was not finished.
    pub fn open(disk: &dyn Disk, path: &Path, kind: LogKind, known_end: Option<KnownEnd>) -> Result<Self> {
        assert!(known_end.is_none_or(|end| end.at >= HEADER_BYTES as u64), "a log ends after its header");
        let file = disk.open(path, Access::Read).map_err(|error| LogError::io("open", path, error))?;
        let file_bytes = file.len().map_err(|error| LogError::io("read the length of", path, error))?;
        let durable_end = known_end.filter(|end| end.is_durable).map(|end| end.at);
        if let Some(end) = durable_end
            && file_bytes < end
        {
            let why = format!("the file ends here, but the log after it says that {end} bytes were durable");
            return Err(LogError::corrupt(path, file_bytes, why));
        }
        let mut reader = Self {
            file,
            path: path.to_owned(),
            header: None,
            limit: known_end.map_or(file_bytes, |end| end.at.min(file_bytes)),
            known_end,
            offset: HEADER_BYTES as u64,
            proven_end: durable_end.unwrap_or(0),
            window: Window::default(),
            log_end: None,
        };
        reader.read_header(file_bytes, kind)?;
        Ok(reader)
    }

    /// Reads the header. Because the header was durable before the first record was written, a bad header means an
    /// unfinished creation only if the file has no records: it is shorter than a header, or exactly as long and with
    /// zeros in place of the checksum.
    fn read_header(&mut self, file_bytes: u64, kind: LogKind) -> Result<()> {
        let mut bytes = [0; HEADER_BYTES];
        let present = file_bytes.min(HEADER_BYTES as u64) as usize;
        read_exactly(&*self.file, &self.path, &mut bytes[..present], 0)?;
        let is_unfinished = present < HEADER_BYTES || (file_bytes == present as u64 && bytes[60..] == [0; 4]);
        let fault = match Header::decode(&bytes) {
            _ if present < HEADER_BYTES => "the file is shorter than its header".into(),
            Ok(header) if header.kind == kind => {
                self.header = Some(header);
                return Ok(());
            }
            Ok(header) => format!("the header says {:?}, expected {kind:?}", header.kind).into(),
            Err(fault) => fault,
        };
        if is_unfinished && self.known_end.is_none() {
            self.log_end = Some(LogEnd::Torn(Tear { offset: 0, why: "the file's creation was not finished" }));
            return Ok(());
        }
        Err(LogError::unreadable(&self.path, 0, fault))
    }

    /// The header of the file, or `None` if the creation of the file was not finished. Such a file never had any
    /// content.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the next record starts. If no record follows, this is the end of the log.
    pub fn end(&self) -> u64 {
        self.offset
    }

    /// All bytes below this offset were durable, as proved by `known_end` or by the greatest synced end in the
    /// records read so far. Bytes above it can be read now, but an earlier process may have failed to sync them.
    pub fn proven_end(&self) -> u64 {
        self.proven_end
    }

    /// Searches the whole log for a record which proves that this log was synced, and therefore the previous log,
    /// too: a sync makes the previous log durable first. Returns the proof as text.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn proof_of_sync(&mut self) -> Result<Option<String>> {
        match self.header {
            Some(_) => self.proof_after(HEADER_BYTES as u64),
            None => Ok(None),
        }
    }

    /// The unfinished write at the end of the log, if there is one. Call this after the last record.
    pub fn tear(&self) -> Option<&Tear> {
        match &self.log_end {
            Some(LogEnd::Torn(tear)) => Some(tear),
            _ => None,
        }
    }

    /// The next record, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is corrupt. A torn tail is not an error, see [`RecordReader::tear`].
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        match &self.log_end {
            Some(LogEnd::Ended | LogEnd::Torn(_)) => return Ok(None),
            Some(LogEnd::Failed(error)) => return Err(error.clone()),
            None => {}
        }
        match self.step() {
            Ok(Ok((offset, payload))) => Ok(Some(Record { offset, payload: &self.window.bytes[payload] })),
            Ok(Err(outcome)) => {
                let answer = match &outcome {
                    LogEnd::Failed(error) => Err(error.clone()),
                    LogEnd::Ended | LogEnd::Torn(_) => Ok(None),
                };
                self.log_end = Some(outcome);
                answer
            }
            Err(error) => {
                self.log_end = Some(LogEnd::Failed(error.clone()));
                Err(error)
            }
        }
    }

    /// Looks at the file again, because another process may have appended to it. Then goes on with records that are
    /// new, were unfinished at the last look, or have replaced an unfinished record. After an error, does nothing.
    ///
    /// # Errors
    ///
    /// Fails if the length of the file cannot be read, or is less than what was already read.
    pub fn look_again(&mut self) -> Result<()> {
        if self.header.is_none() || matches!(self.log_end, Some(LogEnd::Failed(_))) {
            return Ok(());
        }
        let file_bytes = self.file.len().map_err(|error| LogError::io("read the length of", &self.path, error))?;
        if file_bytes < self.offset {
            return Err(LogError::corrupt(&self.path, file_bytes, "the file became shorter than what was read of it"));
        }
        // If the last look found a torn record, either it was still being written and may be whole now, or its write
        // failed, and the next record is written in its place after a cut. In both cases the file may be as long as
        // at the last look; in the second, it may also be shorter.
        if file_bytes != self.limit || matches!(self.log_end, Some(LogEnd::Torn(_))) {
            self.limit = file_bytes;
            self.window.bytes.clear();
            self.log_end = None;
        }
        Ok(())
    }

    /// Reads the record at `offset` and moves on to the next one. If no record is left, returns how the log ends.
    fn step(&mut self) -> Result<Result<(u64, Range<usize>), LogEnd>> {
        let offset = self.offset;
        if offset == self.limit {
            return Ok(Err(LogEnd::Ended));
        }
        let why = match self.record_at(offset)? {
            Ok((header, payload)) => {
                self.offset = offset + header.record_bytes;
                self.proven_end = self.proven_end.max(header.synced_end);
                return Ok(Ok((offset, payload)));
            }
            Err(why) => why,
        };
        let proof = match self.known_end {
            Some(end) if end.is_durable => Some(format!("the log after it says that {} bytes were durable", end.at)),
            _ => self.proof_after(offset)?,
        };
        Ok(Err(match proof {
            Some(proof) => LogEnd::Failed(LogError::corrupt(&self.path, offset, format!("{why}, but {proof}"))),
            None => LogEnd::Torn(Tear { offset, why }),
        }))
    }

    /// The header of the record at `offset`, and the position of its payload in the window, or what is wrong with
    /// the record.
    fn record_at(&mut self, offset: u64) -> Result<Result<(RecordHead, Range<usize>), &'static str>> {
        let head_end = (offset + MAX_HEAD_BYTES as u64).min(self.limit);
        let at = self.load(offset..head_end)?;
        let head = match self.form().decode(&self.window.bytes[at], offset, self.limit) {
            Ok(head) => head,
            Err(why) => return Ok(Err(why)),
        };
        let at = self.load(offset..offset + head.record_bytes)?;
        let record = &self.window.bytes[at.clone()];
        if crc_fast::crc32_iscsi(&record[4..]) != head.crc {
            return Ok(Err("a record's checksum does not match"));
        }
        let payload = at.start + head.head_bytes;
        Ok(Ok((head, payload..payload + head.payload_bytes as usize)))
    }

    /// Looks for a proof that bytes after the bad record at `bad` were durable: a valid record after `bad` whose
    /// synced end is past `bad`. Returns the proof as text.
    ///
    /// The search tries every offset at which the form of the records lets a record start. It computes the checksum of
    /// a candidate only if its synced end would be a proof, and so reads the rest of the file only about once, even if
    /// many bytes look like records. A copy of an older record inside a value proves nothing: the synced end of a
    /// full one is before `bad`, and the seal of a lean one does not match at another offset.
    fn proof_after(&mut self, bad: u64) -> Result<Option<String>> {
        let form = self.form();
        let mut offset = bad + form.align_bytes() as u64;
        while offset < self.limit {
            let chunk_end = (offset + CHUNK_BYTES as u64).min(self.limit);
            let at = self.load(offset..chunk_end)?;
            let mut candidates = Vec::new();
            let chunk = &self.window.bytes[at];
            // The last heads of a chunk are whole only if the log ends there.
            let heads_end = if chunk_end == self.limit { chunk.len() } else { chunk.len() - MAX_HEAD_BYTES };
            let mut place = 0;
            while place < heads_end {
                let record = offset + place as u64;
                if let Ok(head) = form.decode(&chunk[place..], record, self.limit)
                    && head.synced_end > bad
                {
                    candidates.push((record, head));
                }
                place += form.align_bytes();
            }
            for (record, head) in candidates {
                if self.crc_of(record + 4..record + head.record_bytes)? == head.crc {
                    let synced_end = head.synced_end;
                    return Ok(Some(format!(
                        "the record at offset {record} says that everything up to {synced_end} was durable"
                    )));
                }
            }
            offset += place as u64;
        }
        Ok(None)
    }

    /// The checksum of a range of the file. Reads in chunks, and leaves `window` unchanged.
    fn crc_of(&self, range: Range<u64>) -> Result<u32> {
        let mut bytes = vec![0; CHUNK_BYTES.min((range.end - range.start) as usize)];
        let mut crc = Digest::new(CrcAlgorithm::Crc32Iscsi);
        let mut offset = range.start;
        while offset < range.end {
            let count = bytes.len().min((range.end - offset) as usize);
            read_exactly(&*self.file, &self.path, &mut bytes[..count], offset)?;
            crc.update(&bytes[..count]);
            offset += count as u64;
        }
        // The crate returns checksums of all widths as u64; this one has 32 bits.
        Ok(crc.finalize() as u32)
    }

    /// Loads `range`, which must not reach past the limit, into the window, and returns its position there.
    fn load(&mut self, range: Range<u64>) -> Result<Range<usize>> {
        if let Some(at) = self.window.find(&range) {
            return Ok(at);
        }
        let length = (range.end - range.start).max(CHUNK_BYTES as u64).min(self.limit - range.start) as usize;
        self.window.bytes.clear();
        self.window.bytes.shrink_to(length.max(CHUNK_BYTES));
        // The length comes from the header of a record, and may be as large as the file.
        let no_memory = |_| LogError::io("read", &self.path, io::ErrorKind::OutOfMemory.into());
        self.window.bytes.try_reserve_exact(length).map_err(no_memory)?;
        self.window.bytes.resize(length, 0);
        self.window.start = range.start;
        read_exactly(&*self.file, &self.path, &mut self.window.bytes, range.start)?;
        Ok(0..(range.end - range.start) as usize)
    }

    fn form(&self) -> RecordForm {
        RecordForm::of(&self.header.expect("a reader without a header has ended at open"))
    }
}

/// Fills `bytes` from `offset` on. The caller has checked that the file has these bytes.
fn read_exactly(file: &dyn File, path: &Path, bytes: &mut [u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset + done as u64;
        match file.read_at(&mut bytes[done..], at).map_err(|error| LogError::io("read", path, error))? {
            0 => return Err(LogError::corrupt(path, at, "the file became shorter while it was read")),
            count => done += count,
        }
    }
    Ok(())
}
