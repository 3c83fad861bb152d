//! Prints rows and reports as text on standard output.

use crate::escape::{escape, unescape};
use crate::failure::{Failure, Result};
use crate::layout::Layout;
use crate::object;
use crate::schema::groups::MAX_GROUPS;
use crate::schema::{Format, Schema};
use serde::Serialize;
use std::io::{self, Write as _};

#[cfg(test)]
mod tests;

/// Text is written to standard output in pieces of this size: large enough for few system calls, small enough to
/// stay in the processor's cache.
const PIECE_BYTES: usize = 64 << 10;

/// Standard output, locked for one writer.
pub struct Output {
    out: io::StdoutLock<'static>,
    buffer: Vec<u8>,
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

impl Output {
    /// Locks standard output.
    pub fn new() -> Self {
        Self { out: io::stdout().lock(), buffer: Vec::with_capacity(2 * PIECE_BYTES) }
    }

    /// Lets `write` append to the buffer.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        write(&mut self.buffer);
        if self.buffer.len() < PIECE_BYTES { Ok(()) } else { self.hand_over() }
    }

    /// Appends a line.
    pub fn line(&mut self, text: impl AsRef<str>) -> Result<()> {
        self.write(|buffer| {
            buffer.extend_from_slice(text.as_ref().as_bytes());
            buffer.push(b'\n');
        })
    }

    /// Appends a report as one line of JSON.
    pub fn json(&mut self, report: &impl Serialize) -> Result<()> {
        self.line(serde_json::to_string(report).expect("a report is plain JSON"))
    }

    /// Writes everything that is still in the buffer.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }

    /// Writes everything so far, so that it can be seen.
    pub fn flush(&mut self) -> Result<()> {
        self.hand_over()?;
        self.out.flush().map_err(Failure::Output)
    }

    fn hand_over(&mut self) -> Result<()> {
        self.out.write_all(&self.buffer).map_err(Failure::Output)?;
        self.buffer.clear();
        Ok(())
    }
}

/// For other crates, which write to an [`io::Write`].
impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.out.flush()
    }
}

/// Prints rows of one table as lines of text. A row comes as its key and the parts that were read.
pub struct Printer<'l> {
    layout: &'l Layout,
    /// For each part of a row, its place among the parts that were read, or `None` if it was not read.
    read: Vec<Option<usize>>,
    /// The text `"name":` for each named column.
    names: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    field: Vec<u8>,
}

impl<'l> Printer<'l> {
    /// A printer for whole rows of a table.
    pub fn new(layout: &'l Layout) -> Self {
        Self::of_parts(layout, &Vec::from_iter(0..layout.parts()))
    }

    /// A printer for the parts `parts` of a table's rows. The parts of each row must come in the order of `parts`.
    pub fn of_parts(layout: &'l Layout, parts: &[usize]) -> Self {
        let names = layout.schema().map_or_else(Vec::new, Schema::members);
        let names = names.iter().map(|name| format!("{}:", object::string(name)).into_bytes()).collect();
        let read = (0..layout.parts()).map(|part| parts.iter().position(|read| *read == part)).collect();
        Self { layout, read, names, texts: Vec::new(), field: Vec::new() }
    }

    /// Prints the row in the form in which it was imported, and a line end. If only some parts were read, prints
    /// the key columns and the columns in these parts.
    pub fn tsv<P: AsRef<[u8]>>(&mut self, key: &[u8], parts: &[P], line: &mut Vec<u8>) {
        let Some(schema) = self.layout.schema() else {
            return self.raw(key, parts, line);
        };
        if self.layout.is_plain() {
            line.extend_from_slice(key);
            if let Some(columns) = self.layout.columns_in(parts[0].as_ref()) {
                line.push(b'\t');
                line.extend_from_slice(columns);
            }
            return self.end(line);
        }
        if schema.format == Format::Jsonl {
            self.key_text(key, line);
            line.push(b'\t');
            object(parts, line);
            line.push(b'\n');
            return;
        }
        if schema.keeps_whole_rows() && !self.layout.has_groups() {
            line.extend_from_slice(parts[0].as_ref());
            return self.end(line);
        }
        let Some(texts) = key_texts(self.layout, &self.read, key, &mut self.texts) else {
            return self.raw(key, parts, line);
        };
        let escapes = schema.escapes();
        let mut first = true;
        each_column(self.layout, &self.read, parts, |_, field| {
            if !std::mem::take(&mut first) {
                line.push(b'\t');
            }
            match field {
                Field::Key(place) if escapes => escape(&texts[place], line),
                Field::Key(place) => line.extend_from_slice(&texts[place]),
                Field::Kept(text) => line.extend_from_slice(text),
            }
        });
        self.end(line);
    }

    /// Prints the row as a JSON object, and a line end. If only some parts were read, prints the key columns and
    /// the columns in these parts. For a JSON object, prints the members in these parts.
    pub fn json<P: AsRef<[u8]>>(&mut self, key: &[u8], parts: &[P], line: &mut Vec<u8>) {
        match self.layout.schema() {
            Some(schema) if schema.format == Format::Jsonl => object(parts, line),
            Some(schema) => {
                let Some(texts) = key_texts(self.layout, &self.read, key, &mut self.texts) else {
                    return raw_json(self.layout, key, parts, line);
                };
                line.push(b'{');
                let (names, buffer, escapes) = (&self.names, &mut self.field, schema.escapes());
                let mut first = true;
                each_column(self.layout, &self.read, parts, |at, field| {
                    if !std::mem::take(&mut first) {
                        line.push(b',');
                    }
                    match names.get(at) {
                        Some(name) => line.extend_from_slice(name),
                        None => write!(line, "\"{}\":", at + 1).expect("memory takes every write"),
                    }
                    match field {
                        Field::Kept(text) if escapes && text.contains(&b'\\') => {
                            buffer.clear();
                            let plain: &[u8] = if unescape(text, buffer).is_ok() { buffer } else { text };
                            json_text(plain, line);
                        }
                        Field::Kept(text) => json_text(text, line),
                        Field::Key(place) => json_text(&texts[place], line),
                    }
                });
                line.push(b'}');
            }
            None => return raw_json(self.layout, key, parts, line),
        }
        line.push(b'\n');
    }

    /// Prints the key in the form that `get` takes, and a line end.
    pub fn key(&mut self, key: &[u8], line: &mut Vec<u8>) {
        self.key_text(key, line);
        self.end(line);
    }

    /// Prints the key as a line of JSON: a string, or an array of strings if the key has several columns. A tuple
    /// is printed as the string of its text.
    pub fn key_json(&mut self, key: &[u8], line: &mut Vec<u8>) {
        if let Some(fields) = self.layout.tuple() {
            json_text(fields.show(key).as_bytes(), line);
            return line.push(b'\n');
        }
        match self.layout.key_texts_of(key, &mut self.texts) {
            [] => json_text(&self.layout.key_without_columns(key), line),
            [text] => json_text(text, line),
            texts => {
                for (at, text) in texts.iter().enumerate() {
                    line.push(if at == 0 { b'[' } else { b',' });
                    json_text(text, line);
                }
                line.push(b']');
            }
        }
        line.push(b'\n');
    }

    /// Prints the columns that were read, without those of the key, and a line end.
    pub fn value<P: AsRef<[u8]>>(&mut self, parts: &[P], line: &mut Vec<u8>) {
        match self.layout.schema() {
            Some(schema) if schema.format == Format::Jsonl => object(parts, line),
            Some(_) => {
                let mut first = true;
                each_column(self.layout, &self.read, parts, |at, field| {
                    let Field::Kept(text) = field else { return };
                    if self.layout.in_key(at).is_none() {
                        if !std::mem::take(&mut first) {
                            line.push(b'\t');
                        }
                        line.extend_from_slice(text);
                    }
                });
            }
            None => tabbed(parts, line),
        }
        line.push(b'\n');
    }

    /// Ends a line. Programs that read lines take a CR before the LF as a part of the line end. Therefore, if a
    /// line of TSV ends with a CR, a second CR is appended. With escapes, the CR is printed as `\r`, and nothing is
    /// appended.
    fn end(&self, line: &mut Vec<u8>) {
        if !self.layout.escapes() && line.last() == Some(&b'\r') {
            line.push(b'\r');
        }
        line.push(b'\n');
    }

    fn key_text(&mut self, key: &[u8], line: &mut Vec<u8>) {
        self.layout.key_text(key, &mut self.texts, line);
    }

    /// Prints a row of a table without a schema, or a row whose key does not fit the schema.
    fn raw<P: AsRef<[u8]>>(&mut self, key: &[u8], parts: &[P], line: &mut Vec<u8>) {
        self.key_text(key, line);
        for part in parts {
            line.push(b'\t');
            escape(part.as_ref(), line);
        }
        line.push(b'\n');
    }
}

/// A column of a row.
enum Field<'r> {
    /// The column at this place in the key; no part that was read has its text.
    Key(usize),
    /// The text of the column as it is stored, with escapes if the table stores fields with escapes.
    Kept(&'r [u8]),
}

/// Calls `show` for each column of a CSV or TSV row that is in the key or in a part that was read, with its number
/// (counted from 0) and its text.
fn each_column<P: AsRef<[u8]>>(
    layout: &Layout,
    read: &[Option<usize>],
    parts: &[P],
    mut show: impl FnMut(usize, Field<'_>),
) {
    let mut rest = [None; MAX_GROUPS];
    for (rest, part) in rest.iter_mut().zip(parts) {
        *rest = layout.columns_in(part.as_ref());
    }
    for at in 0.. {
        match (layout.part_of(at).and_then(|part| read[part]), layout.in_key(at)) {
            (Some(part), _) => match first_column(&mut rest[part]) {
                Some(text) => show(at, Field::Kept(text)),
                None => break,
            },
            (None, Some(place)) => show(at, Field::Key(place)),
            (None, None) if at < layout.named_columns() => {}
            (None, None) => break,
        }
    }
}

/// Removes the first column and returns it.
fn first_column<'r>(columns: &mut Option<&'r [u8]>) -> Option<&'r [u8]> {
    let all = (*columns)?;
    let tab = all.iter().position(|byte| *byte == b'\t');
    *columns = tab.map(|tab| &all[tab + 1..]);
    Some(&all[..tab.unwrap_or(all.len())])
}

/// The texts of the key columns. If a part that was read contains these texts, the result is empty. Returns `None`
/// if the key is not a key of this table.
fn key_texts<'t>(
    layout: &Layout,
    read: &[Option<usize>],
    key: &[u8],
    texts: &'t mut Vec<Vec<u8>>,
) -> Option<&'t [Vec<u8>]> {
    if read[0].is_some() && layout.schema().is_some_and(Schema::keeps_whole_rows) {
        return Some(&[]);
    }
    let texts = layout.key_texts_of(key, texts);
    if texts.is_empty() { None } else { Some(texts) }
}

/// The members of a JSON row that are in the parts that were read. If there is only one part, it is printed as it
/// was written.
fn object<P: AsRef<[u8]>>(parts: &[P], line: &mut Vec<u8>) {
    if parts.len() == 1 || !object::join(parts, line) {
        tabbed(parts, line);
    }
}

fn tabbed<P: AsRef<[u8]>>(parts: &[P], line: &mut Vec<u8>) {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            line.push(b'\t');
        }
        line.extend_from_slice(part.as_ref());
    }
}

fn raw_json<P: AsRef<[u8]>>(layout: &Layout, key: &[u8], parts: &[P], line: &mut Vec<u8>) {
    line.extend_from_slice(b"{\"key\":");
    match layout.tuple() {
        Some(fields) => json_text(fields.show(key).as_bytes(), line),
        None => json_text(&layout.key_without_columns(key), line),
    }
    match parts {
        [value] => {
            line.extend_from_slice(b",\"value\":");
            json_text(value.as_ref(), line);
        }
        parts => {
            line.extend_from_slice(b",\"values\":[");
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    line.push(b',');
                }
                json_text(part.as_ref(), line);
            }
            line.push(b']');
        }
    }
    line.extend_from_slice(b"}\n");
}

/// Prints bytes as JSON: a string if they are UTF-8, and otherwise `{"hex":"…"}`, which differs from every string.
fn json_text(bytes: &[u8], line: &mut Vec<u8>) {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'"' && *byte != b'\\') {
        line.push(b'"');
        line.extend_from_slice(bytes);
        line.push(b'"');
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::to_writer(line, text).expect("memory takes every write"),
        Err(_) => {
            line.extend_from_slice(b"{\"hex\":\"");
            for byte in bytes {
                write!(line, "{byte:02x}").expect("memory takes every write");
            }
            line.extend_from_slice(b"\"}");
        }
    }
}
