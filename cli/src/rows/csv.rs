//! Comma-separated rows: quotes are as in RFC 4180, lines end in LF or CRLF, blank lines are skipped, and a field
//! may contain any bytes.

use super::{Stop, Width, is_no_header};
use crate::layout::{Layout, Record, Row};
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::io::{self, Read};

/// The parser gets these bytes after the source: a line end, for a last line without one, and one more row. If a
/// quote is never closed, the added row becomes part of the quoted field, and [`Csv::next`] reports the mistake;
/// without it, the parser would take everything up to the end of the file as one field. The added row is recognized
/// by where it ends, so a row of the source may have the same text.
const END: &[u8] = b"\n.\n";
/// The size of one read from the source.
const READ_BYTES: usize = 256 << 10;

/// A reader of comma-separated rows.
pub struct Csv<R> {
    reader: Reader<Tail<R>>,
    /// The names in the header, if there is a header.
    pub columns: Vec<String>,
    /// The line on which the last row begins. Lines are counted from 1.
    pub line: u64,
    /// The columns of the last row.
    pub record: ByteRecord,
    width: Width,
    ended: bool,
}

impl<R: Read> Csv<R> {
    /// Starts reading. If `header`, reads the header first.
    pub fn new(source: R, header: bool) -> Result<Self, Stop> {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(READ_BYTES)
            .from_reader(Tail::new(source));
        let (record, width) = (ByteRecord::new(), Width::default());
        let mut csv = Self { reader, columns: Vec::new(), line: 0, record, width, ended: false };
        if header {
            if !csv.read()? {
                return Err(Stop::Row(
                    1,
                    "there is no header, only blank lines; say --no-header or add one".to_string(),
                ));
            }
            csv.columns = csv.record.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        }
        Ok(csv)
    }

    /// Reads the next row. Returns false at the end of the input.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool, Stop> {
        if !self.read()? {
            return Ok(false);
        }
        let is_row =
            if self.line == 1 && self.columns.is_empty() { is_no_header(layout, &self.record) } else { Ok(()) };
        let fits = is_row.and_then(|()| self.width.check(layout, self.record.len()));
        fits.and_then(|()| layout.encode(&self.record, row)).map_err(|why| Stop::Row(self.line, why))?;
        Ok(true)
    }

    /// Reads the columns of the next row. Returns false at the end of the input.
    pub fn read(&mut self) -> Result<bool, Stop> {
        if self.ended {
            return Ok(false);
        }
        let more = self.reader.read_byte_record(&mut self.record).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => Stop::Read(error),
            other => Stop::Row(self.line, format!("the row after this one is no CSV: {other:?}")),
        })?;
        self.line = self.first_line();
        if !more || self.reader.get_ref().is_whole_at(self.reader.position().byte()) {
            let last = self.record.get(self.record.len().wrapping_sub(1)).unwrap_or_default();
            if last.ends_with(b"\n") {
                // The last byte of the input is a line end, but it has not ended this row. Therefore it is inside
                // the row, within quotes.
                self.line += 1;
                let why =
                    "a quote that opens in this row is never closed; close it, or double it if it is part of the text";
                return Err(Stop::Row(self.line, why.to_string()));
            }
            self.ended = true;
            return Ok(false);
        }
        Ok(true)
    }

    /// The line on which the record begins. The parser counts the LF of a CRLF and blank lines as part of the next
    /// row. So this function counts back from the end of the record: it subtracts the line ends inside the fields,
    /// and the LF that follows the record, if there is one.
    fn first_line(&self) -> u64 {
        let end = self.reader.position();
        let inside = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        let after = u64::from(self.reader.get_ref().byte_before(end.byte()) == Some(b'\n'));
        end.line() - inside - after
    }
}

/// A source followed by [`END`]. It keeps the last bytes that it has returned.
struct Tail<R> {
    source: R,
    /// The bytes of [`END`] that are not returned yet; `None` until the end of the source has been read.
    end: Option<&'static [u8]>,
    /// The last byte before `chunk`, if there is one, and then the chunk.
    chunk: Vec<u8>,
    /// The number of bytes that were returned so far.
    given: u64,
}

impl<R: Read> Tail<R> {
    fn new(source: R) -> Self {
        Self { source, end: None, chunk: Vec::with_capacity(READ_BYTES + 1), given: 0 }
    }

    /// Whether the source and [`END`] were returned completely, and `offset` is the end of [`END`].
    fn is_whole_at(&self, offset: u64) -> bool {
        self.end.is_some_and(<[u8]>::is_empty) && offset == self.given
    }

    /// The byte before `offset`. The parser has just reached `offset`.
    fn byte_before(&self, offset: u64) -> Option<u8> {
        let from_end = usize::try_from(self.given - offset).ok()? + 1;
        self.chunk.len().checked_sub(from_end).map(|at| self.chunk[at])
    }
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = match &self.end {
            None => self.source.read(buffer)?,
            Some(_) => 0,
        };
        if read == 0 && !buffer.is_empty() {
            read = self.end.get_or_insert(END).read(buffer)?;
        }
        if read > 0 {
            let before = self.chunk.last().copied();
            self.chunk.clear();
            self.chunk.extend(before);
            self.chunk.extend_from_slice(&buffer[..read]);
            self.given += read as u64;
        }
        Ok(read)
    }
}

impl Record for ByteRecord {
    fn columns(&self) -> usize {
        self.len()
    }

    fn column(&self, at: usize) -> Option<&[u8]> {
        self.get(at)
    }
}
