//! Reads rows from text, one after another, as the bytes that a table keeps. It does not know where they go.

use crate::args::ScanFormat;
use crate::failure::{Failure, Result};
use crate::input::{Counted, Input, cannot_read};
use crate::layout::{Layout, Row};
use crate::schema::Format;
use std::io::{self, BufRead, BufReader};

mod csv;
mod jsonl;
mod printed;
mod tsv;

#[cfg(test)]
mod tests;

/// Why no next row comes.
#[derive(Debug)]
pub enum Stop {
    /// The input broke.
    Read(io::Error),
    /// The text that begins at this line, counted from 1, is not a row.
    Row(u64, String),
}

/// What some programs put at the beginning of a file of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads a line without its end, which is LF or CRLF; false at the end.
fn read_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Stop> {
    line.clear();
    if source.read_until(b'\n', line).map_err(Stop::Read)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
    Ok(true)
}

/// The number of columns in each row of a CSV or TSV input: the same as in the table, or otherwise as in the first
/// row.
#[derive(Default)]
struct Width(Option<usize>);

impl Width {
    /// Refuses a row with more or fewer columns than the others. A missing or additional column cannot be
    /// distinguished from a mistake in the row's quotes or tabs.
    fn check(&mut self, layout: &Layout, columns: usize) -> Result<(), String> {
        let named = layout.schema().map_or(0, |schema| schema.columns.len());
        let (wanted, of) = match named {
            0 => (*self.0.get_or_insert(columns), "the first row"),
            named => (named, "the header of the table"),
        };
        if columns == wanted {
            return Ok(());
        }
        let advice = match layout.schema().map(|schema| schema.format) {
            Some(Format::Csv) => "put a text with a comma or a line end in quotes",
            _ => "a text of TSV has neither tabs nor line ends",
        };
        Err(format!(
            "the row has {} and {of} {wanted}; correct the row: {advice}",
            crate::size::of(columns as u64, "column")
        ))
    }
}

/// What an input is read from.
type Source = BufReader<Counted>;

/// The rows of one input.
pub struct Rows {
    name: String,
    reader: Reader,
    /// What happens to the rows before an unreadable row; it is the end of a message.
    kept: &'static str,
}

enum Reader {
    Csv(csv::Csv<Source>),
    Tsv(tsv::Tsv<Source>),
    Jsonl(jsonl::Jsonl<Source>),
    Printed(printed::Printed<Source>),
}

impl Rows {
    /// Starts reading; the first row is a header if `header` says so. `kept` ends the message of a failure: it says
    /// what happens to the rows before the failure.
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

    /// Starts reading rows or keys as `scan` prints them in this format. The rest is as of [`Rows::new`].
    pub fn of_printed(input: Input, format: ScanFormat, kept: &'static str) -> Self {
        let reader = Reader::Printed(printed::Printed::new(input.reader, format));
        Self { name: input.name, reader, kept }
    }

    /// Names of the columns; empty without a header.
    pub fn columns(&self) -> &[String] {
        match &self.reader {
            Reader::Csv(csv) => &csv.columns,
            Reader::Tsv(tsv) => &tsv.columns,
            Reader::Jsonl(_) | Reader::Printed(_) => &[],
        }
    }

    /// Reads the next row; false at the end.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool> {
        let next = match &mut self.reader {
            Reader::Csv(csv) => csv.next(layout, row),
            Reader::Tsv(tsv) => tsv.next(layout, row),
            Reader::Jsonl(jsonl) => jsonl.next(layout, row),
            Reader::Printed(printed) => printed.next(layout, row),
        };
        next.map_err(|stop| failure(&self.name, stop, self.kept))
    }

    /// Reads the next line as a key; false at the end. For [`Rows::of_printed`] only.
    pub fn next_key(&mut self, layout: &Layout, key: &mut Vec<u8>) -> Result<bool> {
        let Reader::Printed(printed) = &mut self.reader else { unreachable!("keys are printed") };
        printed.next_key(layout, key).map_err(|stop| failure(&self.name, stop, self.kept))
    }

    /// The row that was read last, as `file:line`.
    pub fn place(&self) -> String {
        let line = match &self.reader {
            Reader::Csv(csv) => csv.line,
            Reader::Tsv(tsv) => tsv.line,
            Reader::Jsonl(jsonl) => jsonl.line,
            Reader::Printed(printed) => printed.line,
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
