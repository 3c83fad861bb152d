//! A file that is stored in the journal. This module does not know which sheets have the bytes of the file.

use crate::journal::Journal;
use os::File;
use os::sync::{Arc, Mutex};
use std::io::{self, ErrorKind};
use std::ops::Range;

/// How many bytes a reading handle reads at once, because each piece of the file in a sheet costs a request.
const AHEAD_BYTES: u64 = 8 << 20;

/// How many bytes it reads the first time, because it may need only the beginning of the file.
const FIRST_AHEAD_BYTES: u64 = 128 << 10;

/// A file that can grow.
#[derive(Debug)]
pub struct GrownFile {
    journal: Arc<Journal>,
    file: u64,
    ahead: Mutex<Ahead>,
}

/// Bytes that a handle has read ahead. Another handle may write to the file, so they are used only as long as the
/// length of the file is unchanged, and never once this handle itself has written.
#[derive(Debug, Default)]
struct Ahead {
    from: u64,
    bytes: Vec<u8>,
    len: u64,
    is_used: bool,
}

impl GrownFile {
    pub fn new(journal: &Arc<Journal>, file: u64) -> GrownFile {
        let ahead = Mutex::new(Ahead { is_used: true, ..Ahead::default() });
        GrownFile { journal: journal.clone(), file, ahead }
    }

    fn stop_reading_ahead(&self) {
        *self.ahead.lock() = Ahead::default();
    }

    /// Reads a range of the file, from the bytes that were read ahead if they include it.
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut ahead = self.ahead.lock();
        if !ahead.is_used {
            drop(ahead);
            return self.journal.read(self.file, range);
        }
        let len = self.journal.len(self.file);
        let end = range.end.min(len);
        if range.start >= end {
            return Ok(Vec::new());
        }
        let has = ahead.from..ahead.from + ahead.bytes.len() as u64;
        if ahead.len != len || range.start < has.start || end > has.end {
            let (from, is_first) = (range.start, ahead.bytes.is_empty());
            let most = if is_first { FIRST_AHEAD_BYTES } else { AHEAD_BYTES };
            let bytes = self.journal.read(self.file, from..end.max(from + most))?;
            *ahead = Ahead { from, bytes, len, is_used: true };
        }
        let start = (range.start - ahead.from) as usize;
        let bytes = ahead.bytes.get(start..).unwrap_or_default();
        Ok(bytes[..bytes.len().min((end - range.start) as usize)].to_vec())
    }
}

impl File for GrownFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.read(offset..offset.saturating_add(buffer.len() as u64))?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.stop_reading_ahead();
        self.journal.write(self.file, bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.journal.len(self.file);
        self.write_at(bytes, offset)?;
        Ok(offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.journal.sync()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.journal.len(self.file))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.stop_reading_ahead();
        self.journal.set_len(self.file, bytes)
    }

    fn allocate(&self, _bytes: u64) -> io::Result<()> {
        Err(io::Error::new(ErrorKind::Unsupported, "a store keeps no room for later"))
    }

    fn is_direct(&self) -> bool {
        false
    }
}
