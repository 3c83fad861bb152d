//! Reads rows from text, one after the other, and encodes them as the bytes that a table stores. This module does
//! not know what is done with the rows.

use crate::args::TextFormat;
use crate::failure::{CommandFailure, Result};
use crate::input::{Input, Source, cannot_read};
use crate::layout::{Layout, Record, Row};
use crate::schema::Format;
use std::io::{self, BufRead};

mod csv;
mod jsonl;
mod printed;
mod tsv;

#[cfg(test)]
mod tests;

/// Why there is no next row.
#[derive(Debug)]
pub enum Stop {
    /// The input could not be read.
    Read(io::Error),
    /// The text on this line is not a row. Lines are counted from 1.
    Row(u64, String),
}

/// A mark that some programs write at the beginning of a UTF-8 file.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads a line without its end, which is LF or CRLF. Returns false at the end of the input.
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

/// The number of columns that each row of a CSV or TSV input must have. This is the number of columns of the table
/// if the table knows it, and otherwise the number of columns of the first row.
#[derive(Default)]
struct Width(Option<usize>);

impl Width {
    /// Refuses a row that has more or fewer columns than the other rows. The cause may also be a wrong quote or
    /// tab in the row, but this function cannot tell.
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

/// Refuses a first row that has the names of the table's columns. In an input of `load`, rows have no header before
/// them, so the header would become a row.
fn is_no_header(layout: &Layout, record: &impl Record) -> Result<(), String> {
    let Some(schema) = layout.schema().filter(|schema| !schema.columns.is_empty()) else { return Ok(()) };
    let names = schema.columns.iter().map(|name| Some(name.as_bytes()));
    if schema.columns.len() != record.columns() || !names.eq((0..record.columns()).map(|at| record.column(at))) {
        return Ok(());
    }
    Err(format!(
        "this row is the header of the table; leave it out, or say --format csv to load, which takes CSV with a header (if it is a \
         row, say --format {})",
        if schema.format == Format::Csv { "csv, and write the header before it" } else { "tsv" }
    ))
}

/// The rows of one input.
pub struct Rows {
    name: String,
    reader: Reader,
    /// The end of a message, which says what happens to the rows before a row that cannot be read.
    kept: &'static str,
}

enum Reader {
    Csv(csv::Csv<Source>),
    Tsv(tsv::Tsv<Source>),
    Jsonl(jsonl::Jsonl<Source>),
    Printed(Box<printed::Printed<Source>>),
}

impl Rows {
    /// Starts reading. If `header`, the first row is a header. `kept` is the end of an error message, which says
    /// what happens to the rows before a failure.
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

    /// Starts reading rows or keys in the form in which `scan` prints them in this format. `kept` is as in
    /// [`Rows::new`].
    pub fn of_printed(input: Input, format: TextFormat, kept: &'static str) -> Self {
        let reader = Reader::Printed(Box::new(printed::Printed::new(input.reader, format)));
        Self { name: input.name, reader, kept }
    }

    /// The names of the columns. There are none without a header.
    pub fn columns(&self) -> &[String] {
        match &self.reader {
            Reader::Csv(csv) => &csv.columns,
            Reader::Tsv(tsv) => &tsv.columns,
            Reader::Jsonl(_) | Reader::Printed(_) => &[],
        }
    }

    /// Reads the next row. Returns false at the end of the input.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool> {
        let next = match &mut self.reader {
            Reader::Csv(csv) => csv.next(layout, row),
            Reader::Tsv(tsv) => tsv.next(layout, row),
            Reader::Jsonl(jsonl) => jsonl.next(layout, row),
            Reader::Printed(printed) => printed.next(layout, row),
        };
        next.map_err(|stop| failure(&self.name, stop, self.kept))
    }

    /// Reads the next line as a key. Returns false at the end of the input. The rows must have been made by
    /// [`Rows::of_printed`].
    pub fn next_key(&mut self, layout: &Layout, key: &mut Vec<u8>) -> Result<bool> {
        let Reader::Printed(printed) = &mut self.reader else { unreachable!("keys are printed") };
        printed.next_key(layout, key).map_err(|stop| failure(&self.name, stop, self.kept))
    }

    /// The place of the row that was read last, as `file:line`.
    pub fn place(&self) -> String {
        let line = match &self.reader {
            Reader::Csv(csv) => csv.line,
            Reader::Tsv(tsv) => tsv.line,
            Reader::Jsonl(jsonl) => jsonl.line,
            Reader::Printed(printed) => printed.line(),
        };
        format!("{}:{line}", self.name)
    }
}

fn failure(name: &str, stop: Stop, kept: &str) -> CommandFailure {
    match stop {
        Stop::Read(error) => cannot_read(name, &error, kept),
        Stop::Row(line, why) => CommandFailure::Input(format!("{name}:{line}: {why}; {kept}")),
    }
}
