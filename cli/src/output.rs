//! Rows and reports as text on the standard output.

use crate::escape::{escape, unescape};
use crate::failure::{Failure, Result};
use crate::layout::{Layout, unmark};
use crate::object;
use crate::schema::Format;
use serde::Serialize;
use std::io::{self, Write as _};

#[cfg(test)]
mod tests;

/// Text is handed to the system in pieces of this size; few enough calls, and still in the processor's cache.
const PIECE_BYTES: usize = 64 << 10;

/// The standard output, held by one writer.
pub struct Output {
    out: io::StdoutLock<'static>,
    buffer: Vec<u8>,
}

impl Output {
    /// Takes the standard output.
    pub fn new() -> Self {
        Self { out: io::stdout().lock(), buffer: Vec::with_capacity(2 * PIECE_BYTES) }
    }

    /// Appends what `write` puts in the buffer.
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

    /// Writes what is left.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }

    /// Shows everything so far.
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

/// Output of other people's writers.
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

/// Writes rows of one table as lines of text.
pub struct Printer<'l> {
    layout: &'l Layout,
    /// `"name":` of each named column.
    names: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    field: Vec<u8>,
}

impl<'l> Printer<'l> {
    /// A printer for the rows of a table.
    pub fn new(layout: &'l Layout) -> Self {
        let columns = layout.schema().map_or(&[][..], |schema| &schema.columns);
        Self { layout, names: members_of(columns), texts: Vec::new(), field: Vec::new() }
    }

    /// The row as it went in, and a line end.
    pub fn tsv(&mut self, key: &[u8], value: &[u8], line: &mut Vec<u8>) {
        let Some(schema) = self.layout.schema() else {
            return raw(key, value, line);
        };
        if self.layout.is_plain() {
            line.extend_from_slice(key);
            if let Some(columns) = unmark(value) {
                line.push(b'\t');
                line.extend_from_slice(columns);
            }
            line.push(b'\n');
            return;
        }
        if schema.format == Format::Jsonl {
            self.key_text(key, line);
            line.push(b'\t');
            line.extend_from_slice(value);
            line.push(b'\n');
            return;
        }
        if schema.keeps_whole_rows() {
            line.extend_from_slice(value);
            line.push(b'\n');
            return;
        }
        let texts = self.layout.key_texts_of(key, &mut self.texts);
        if texts.is_empty() {
            return raw(key, value, line);
        }
        let escapes = schema.escapes();
        each_column(self.layout, texts, value, |at, field| {
            if at > 0 {
                line.push(b'\t');
            }
            match field {
                Field::Key(text) if escapes => escape(text, line),
                Field::Key(text) | Field::Other(text) => line.extend_from_slice(text),
            }
        });
        line.push(b'\n');
    }

    /// The row as a JSON object, and a line end.
    pub fn json(&mut self, key: &[u8], value: &[u8], line: &mut Vec<u8>) {
        match self.layout.schema() {
            Some(schema) if schema.format == Format::Jsonl => line.extend_from_slice(value),
            Some(schema) => {
                let texts: &[Vec<u8>] = if schema.keeps_whole_rows() {
                    &[]
                } else {
                    let texts = self.layout.key_texts_of(key, &mut self.texts);
                    if texts.is_empty() {
                        return raw_json(key, value, line);
                    }
                    texts
                };
                line.push(b'{');
                let (names, buffer, escapes) = (&self.names, &mut self.field, schema.escapes());
                let mut member = |at: usize, field: Field<'_>| {
                    if at > 0 {
                        line.push(b',');
                    }
                    match names.get(at) {
                        Some(name) => line.extend_from_slice(name),
                        None => write!(line, "\"{}\":", at + 1).expect("memory takes every write"),
                    }
                    match field {
                        Field::Other(text) if escapes && text.contains(&b'\\') => {
                            buffer.clear();
                            let plain: &[u8] = if unescape(text, buffer).is_ok() { buffer } else { text };
                            json_text(plain, line);
                        }
                        Field::Key(text) | Field::Other(text) => json_text(text, line),
                    }
                };
                if schema.keeps_whole_rows() {
                    for (at, field) in value.split(|byte| *byte == b'\t').enumerate() {
                        member(at, Field::Other(field));
                    }
                } else {
                    each_column(self.layout, texts, value, member);
                }
                line.push(b'}');
            }
            None => return raw_json(key, value, line),
        }
        line.push(b'\n');
    }

    /// The key as `get` takes it, and a line end.
    pub fn key(&mut self, key: &[u8], line: &mut Vec<u8>) {
        self.key_text(key, line);
        line.push(b'\n');
    }

    /// The key as a line of JSON: a string, or an array of them if it has several columns.
    pub fn key_json(&mut self, key: &[u8], line: &mut Vec<u8>) {
        match self.layout.key_texts_of(key, &mut self.texts) {
            [] => json_text(key, line),
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

    /// The columns beside the key, and a line end.
    pub fn value(&mut self, value: &[u8], line: &mut Vec<u8>) {
        match self.layout.schema() {
            Some(schema) if schema.format != Format::Jsonl && schema.keeps_whole_rows() => {
                let mut first = true;
                for (at, field) in value.split(|byte| *byte == b'\t').enumerate() {
                    if self.layout.in_key(at).is_none() {
                        if !std::mem::take(&mut first) {
                            line.push(b'\t');
                        }
                        line.extend_from_slice(field);
                    }
                }
            }
            Some(schema) if schema.format != Format::Jsonl => {
                line.extend_from_slice(unmark(value).unwrap_or_default());
            }
            _ => line.extend_from_slice(value),
        }
        line.push(b'\n');
    }

    fn key_text(&mut self, key: &[u8], line: &mut Vec<u8>) {
        let texts = self.layout.key_texts_of(key, &mut self.texts);
        if texts.is_empty() {
            line.extend_from_slice(key);
        }
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                line.push(b'\t');
            }
            if self.layout.escapes() {
                escape(text, line);
            } else {
                line.extend_from_slice(text);
            }
        }
    }
}

/// A column of a row: the text of a key column, or another one as it is kept.
enum Field<'r> {
    Key(&'r [u8]),
    Other(&'r [u8]),
}

/// Shows the columns of a row in their order, from 0.
fn each_column(layout: &Layout, texts: &[Vec<u8>], value: &[u8], mut show: impl FnMut(usize, Field<'_>)) {
    let mut others = unmark(value).map(|columns| columns.split(|byte| *byte == b'\t'));
    for at in 0.. {
        match layout.in_key(at) {
            Some(place) => show(at, Field::Key(&texts[place])),
            None => match others.as_mut().and_then(Iterator::next) {
                Some(field) => show(at, Field::Other(field)),
                None => break,
            },
        }
    }
}

/// Names of columns as JSON has them, each once: an empty name or one that came before is replaced by its number.
fn members_of(columns: &[String]) -> Vec<Vec<u8>> {
    let mut taken: Vec<String> = Vec::with_capacity(columns.len());
    for (at, name) in columns.iter().enumerate() {
        let mut name = name.clone();
        if name.is_empty() || taken.contains(&name) {
            name = (at + 1).to_string();
            while taken.contains(&name) || columns.contains(&name) {
                name.push('_');
            }
        }
        taken.push(name);
    }
    taken.iter().map(|name| format!("{}:", object::string(name)).into_bytes()).collect()
}

/// A row of a table without a schema.
fn raw(key: &[u8], value: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(key);
    line.push(b'\t');
    line.extend_from_slice(value);
    line.push(b'\n');
}

fn raw_json(key: &[u8], value: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(b"{\"key\":");
    json_text(key, line);
    line.extend_from_slice(b",\"value\":");
    json_text(value, line);
    line.extend_from_slice(b"}\n");
}

/// Bytes in JSON: a string if they are UTF-8, else `{"hex":"…"}`, which no string of ours can look like.
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
