//! Rows out of text, one after another, as the bytes that a table keeps. It does not know where they go.

use crate::failure::{Failure, Result};
use crate::input::{Counted, Input, cannot_read};
use crate::layout::{Layout, Row};
use crate::schema::Format;
use std::io::{self, BufReader};

mod csv;
mod jsonl;
mod tsv;

#[cfg(test)]
mod tests;

/// Why there is no next row.
#[derive(Debug)]
pub enum Stop {
    /// The input broke.
    Read(io::Error),
    /// The row that begins at this line, from 1, is not a row.
    Row(u64, String),
}

/// What an input is read from.
type Source = BufReader<Counted>;

/// The rows of one input.
pub struct Rows {
    name: String,
    reader: Reader,
    /// What happens to the rows before one that cannot be read, as the end of a message.
    kept: &'static str,
}

enum Reader {
    Csv(csv::Csv<Source>),
    Tsv(tsv::Tsv<Source>),
    Jsonl(jsonl::Jsonl<Source>),
}

impl Rows {
    /// Starts reading; the first row is a header if `header` says so. `kept` ends the message of a failure: what becomes
    /// of the rows before it.
    pub fn new(input: Input, format: Format, header: bool, kept: &'static str) -> Result<Self> {
        let name = input.name;
        let reader = match format {
            Format::Csv => csv::Csv::new(input.reader, header).map(Reader::Csv),
            Format::Tsv => tsv::Tsv::new(input.reader, header).map(Reader::Tsv),
            Format::Jsonl => Ok(Reader::Jsonl(jsonl::Jsonl::new(input.reader))),
        };
        match reader {
            Ok(reader) => Ok(Self { name, reader, kept }),
            Err(stop) => Err(failure(&name, stop, kept)),
        }
    }

    /// Names of the columns; empty without a header.
    pub fn columns(&self) -> &[String] {
        match &self.reader {
            Reader::Csv(csv) => &csv.columns,
            Reader::Tsv(tsv) => &tsv.columns,
            Reader::Jsonl(_) => &[],
        }
    }

    /// Reads the next row; false at the end.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool> {
        let next = match &mut self.reader {
            Reader::Csv(csv) => csv.next(layout, row),
            Reader::Tsv(tsv) => tsv.next(layout, row),
            Reader::Jsonl(jsonl) => jsonl.next(layout, row),
        };
        next.map_err(|stop| failure(&self.name, stop, self.kept))
    }

    /// Reads the next line as a key; false at the end. For rows with a tab between columns only.
    pub fn next_key(&mut self, layout: &Layout, key: &mut Vec<u8>) -> Result<bool> {
        let Reader::Tsv(tsv) = &mut self.reader else { unreachable!("keys are lines") };
        tsv.next_key(layout, key).map_err(|stop| failure(&self.name, stop, self.kept))
    }

    /// The row that was read last, as `file:line`.
    pub fn place(&self) -> String {
        let line = match &self.reader {
            Reader::Csv(csv) => csv.line,
            Reader::Tsv(tsv) => tsv.line,
            Reader::Jsonl(jsonl) => jsonl.line,
        };
        format!("{}:{line}", self.name)
    }
}

fn failure(name: &str, stop: Stop, kept: &str) -> Failure {
    match stop {
        Stop::Read(error) => cannot_read(name, &error, kept),
        Stop::Row(line, why) => Failure::Input(format!("{name}:{line}: {why}; {kept}")),
    }
}
