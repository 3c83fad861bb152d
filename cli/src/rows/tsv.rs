//! Tab-separated rows, which are taken byte for byte: a line is a row, a tab ends a column, and no other byte has a
//! meaning. A line ends in LF or CRLF. A byte order mark at the beginning is no part of the first row.

use super::{BYTE_ORDER_MARK, Stop, Width, is_no_header};
use crate::layout::{Layout, Record, Row};
use std::io::BufRead;

/// A reader of tab-separated rows.
pub struct Tsv<R> {
    source: R,
    /// The names in the header, if there is a header.
    pub columns: Vec<String>,
    /// The line of the last row. Lines are counted from 1.
    pub line: u64,
    text: Vec<u8>,
    ends: Vec<usize>,
    width: Width,
}

impl<R: BufRead> Tsv<R> {
    /// Starts reading. If `header`, reads the header first.
    pub fn new(source: R, header: bool) -> Result<Self, Stop> {
        let (text, ends, width) = (Vec::new(), Vec::new(), Width::default());
        let mut tsv = Self { source, columns: Vec::new(), line: 0, text, ends, width };
        if header {
            tsv.read_line()?;
            tsv.columns = String::from_utf8_lossy(&tsv.text).split('\t').map(str::to_string).collect();
        }
        Ok(tsv)
    }

    /// Reads the next row. Returns false at the end of the input.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool, Stop> {
        if !self.read_line()? {
            return Ok(false);
        }
        if self.line == 1 && self.columns.is_empty() {
            let fields: Vec<Vec<u8>> = self.text.split(|byte| *byte == b'\t').map(<[u8]>::to_vec).collect();
            is_no_header(layout, &fields).map_err(|why| Stop::Row(self.line, why))?;
        }
        if layout.is_plain() {
            let tabs = self.text.iter().filter(|byte| **byte == b'\t').count();
            self.width.check(layout, tabs + 1).map_err(|why| Stop::Row(self.line, why))?;
            layout.encode_line(&self.text, row);
            return Ok(true);
        }
        self.ends.clear();
        self.ends.extend(self.text.iter().enumerate().filter(|(_, byte)| **byte == b'\t').map(|(at, _)| at));
        self.ends.push(self.text.len());
        let line = Line { text: &self.text, ends: &self.ends };
        let fits = self.width.check(layout, line.columns());
        fits.and_then(|()| layout.encode(&line, row)).map_err(|why| Stop::Row(self.line, why))?;
        Ok(true)
    }

    fn read_line(&mut self) -> Result<bool, Stop> {
        if !super::read_line(&mut self.source, &mut self.text)? {
            return Ok(false);
        }
        if self.line == 0 && self.text.starts_with(BYTE_ORDER_MARK) {
            self.text.drain(..BYTE_ORDER_MARK.len());
        }
        self.line += 1;
        Ok(true)
    }
}

/// The text of a line, and the place in the text at which each of its columns ends.
struct Line<'l> {
    text: &'l [u8],
    ends: &'l [usize],
}

impl Record for Line<'_> {
    fn columns(&self) -> usize {
        self.ends.len()
    }

    fn column(&self, at: usize) -> Option<&[u8]> {
        let start = if at == 0 { 0 } else { self.ends.get(at - 1)? + 1 };
        Some(&self.text[start..*self.ends.get(at)?])
    }
}
