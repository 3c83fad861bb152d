//! Tab-separated rows, taken byte for byte: a line is a row, a tab ends a column, nothing else means anything. In a raw
//! table what comes before the first tab is the key and what comes after it the value.

use super::Stop;
use crate::layout::{Layout, Record, Row};
use std::io::BufRead;

/// A reader of tab-separated rows.
pub struct Tsv<R> {
    source: R,
    /// Names from the header, if there was one.
    pub columns: Vec<String>,
    /// Line of the row that was read last, from 1.
    pub line: u64,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl<R: BufRead> Tsv<R> {
    /// Reads the header if there is one.
    pub fn new(source: R, header: bool) -> Result<Self, Stop> {
        let mut tsv = Self { source, columns: Vec::new(), line: 0, text: Vec::new(), ends: Vec::new() };
        if header {
            tsv.read_line()?;
            let text = String::from_utf8_lossy(&tsv.text);
            tsv.columns = text.trim_start_matches('\u{feff}').split('\t').map(str::to_string).collect();
        }
        Ok(tsv)
    }

    /// Reads the next row; false at the end.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool, Stop> {
        if !self.read_line()? {
            return Ok(false);
        }
        if layout.schema().is_none() || layout.is_plain() {
            layout.encode_line(&self.text, row).map_err(|why| Stop::Row(self.line, why))?;
            return Ok(true);
        }
        self.ends.clear();
        self.ends.extend(self.text.iter().enumerate().filter(|(_, byte)| **byte == b'\t').map(|(at, _)| at));
        self.ends.push(self.text.len());
        let line = Line { text: &self.text, ends: &self.ends };
        layout.encode(&line, row).map_err(|why| Stop::Row(self.line, why))?;
        Ok(true)
    }

    /// Reads the next line as a key; false at the end.
    pub fn next_key(&mut self, layout: &Layout, key: &mut Vec<u8>) -> Result<bool, Stop> {
        if !self.read_line()? {
            return Ok(false);
        }
        *key = layout.key_from_text(&self.text).map_err(|why| Stop::Row(self.line, why))?;
        Ok(true)
    }

    fn read_line(&mut self) -> Result<bool, Stop> {
        self.text.clear();
        if self.source.read_until(b'\n', &mut self.text).map_err(Stop::Read)? == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
        }
        Ok(true)
    }
}

/// A line and where its columns end.
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
