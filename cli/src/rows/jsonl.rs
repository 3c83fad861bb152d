//! Each line is a JSON object, which is stored as it is written. Blank lines are skipped.

use super::{BYTE_ORDER_MARK, Stop};
use crate::layout::{Layout, Row};
use std::io::BufRead;

/// A reader of JSON lines.
pub struct Jsonl<R> {
    source: R,
    /// The line of the last row. Lines are counted from 1.
    pub line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Jsonl<R> {
    /// Starts reading.
    pub fn new(source: R) -> Self {
        Self { source, line: 0, text: Vec::new() }
    }

    /// Reads the next row. Returns false at the end of the input.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool, Stop> {
        loop {
            self.text.clear();
            if self.source.read_until(b'\n', &mut self.text).map_err(Stop::Read)? == 0 {
                return Ok(false);
            }
            self.line += 1;
            let text = if self.line == 1 { self.text.strip_prefix(BYTE_ORDER_MARK) } else { None };
            let text = text.unwrap_or(&self.text).trim_ascii();
            if text.is_empty() {
                continue;
            }
            let stop = |why| Stop::Row(self.line, why);
            let text = std::str::from_utf8(text)
                .map_err(|bad| stop(format!("not UTF-8 after {} bytes, and JSON must be", bad.valid_up_to())))?;
            layout.encode_object(text, row).map_err(stop)?;
            return Ok(true);
        }
    }
}
