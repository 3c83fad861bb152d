//! Prints rows and reports as text, on standard output or in a file.

use crate::args::TextFormat;
use crate::compressed::Packed;
use crate::escape::{escape, unescape};
use crate::failure::{CommandFailure, Result};
use crate::file_name::FileName;
use crate::keys;
use crate::layout::{Layout, Row};
use crate::new_file::NewFile;
use crate::object;
use crate::rows::BYTE_ORDER_MARK;
use crate::schema::groups::MAX_GROUPS;
use crate::schema::{Format, Schema};
use ::rows::{Declaration, FieldValue};
use serde::Serialize;
use std::io::{self, StdoutLock, Write as _};
use std::path::Path;

#[cfg(test)]
mod tests;

/// Text is written to standard output in pieces of this size: large enough for few system calls, small enough to
/// stay in the processor's cache.
const PIECE_BYTES: usize = 64 << 10;

/// Where text goes: standard output, locked for one writer, or a new file.
pub struct Output {
    out: Out,
    buffer: Vec<u8>,
}

enum Out {
    Stdout(StdoutLock<'static>),
    File(Box<Packed<NewFile>>),
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

impl Output {
    /// Locks standard output.
    pub fn new() -> Self {
        Self::of(Out::Stdout(io::stdout().lock()))
    }

    /// Begins a file, which is compressed if its name says so. The file gets its name in [`Output::close`]. If
    /// `may_replace`, it takes the place of an existing one.
    pub fn to_file(path: &Path, may_replace: bool) -> Result<Self> {
        let compression = FileName::of(path)?.compression;
        Ok(Self::of(Out::File(Box::new(Packed::new(NewFile::create(path, may_replace)?, compression)))))
    }

    fn of(out: Out) -> Self {
        Self { out, buffer: Vec::with_capacity(2 * PIECE_BYTES) }
    }

    /// Whether this is standard output.
    #[cfg(feature = "sql")]
    pub fn is_stdout(&self) -> bool {
        matches!(self.out, Out::Stdout(_))
    }

    /// Lets `write` append to the buffer.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        write(&mut self.buffer);
        if self.buffer.len() < PIECE_BYTES { Ok(()) } else { self.hand_over().map_err(CommandFailure::Output) }
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

    /// Writes everything that is still in the buffer. A file gets its name.
    pub fn finish(self) -> Result<()> {
        self.close().map(drop)
    }

    /// As [`Output::finish`], and returns the length of the file, which is 0 for standard output.
    pub fn close(mut self) -> Result<u64> {
        self.flush()?;
        match self.out {
            Out::Stdout(_) => Ok(0),
            Out::File(file) => file.finish().and_then(NewFile::finish).map_err(CommandFailure::Output),
        }
    }

    /// Writes everything so far, so that it can be seen.
    pub fn flush(&mut self) -> Result<()> {
        io::Write::flush(self).map_err(CommandFailure::Output)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let out: &mut dyn io::Write = match &mut self.out {
            Out::Stdout(out) => out,
            Out::File(file) => file,
        };
        out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// For other crates, which write to an [`io::Write`].
impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES {
            self.hand_over()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hand_over()?;
        match &mut self.out {
            Out::Stdout(out) => out.flush(),
            Out::File(_) => Ok(()),
        }
    }
}

/// Which names a line before the rows has.
#[derive(Clone, Copy, Default)]
pub struct Names<'n> {
    /// Keys alone follow.
    pub keys: bool,
    /// The names of the parts of a raw row; empty if it has only one.
    pub values: &'n [String],
    /// TSV has such a line, too, if the rows were imported from TSV with a header.
    pub of_tsv: bool,
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
    /// The row that was made from the texts of another row, to compare both.
    again: Row,
    has_printed: bool,
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
        let (texts, field, again) = (Vec::new(), Vec::new(), Row::default());
        Self { layout, read, names, texts, field, again, has_printed: false }
    }

    /// Prints the names of the columns, if rows have a line of names before them in this format. CSV has one if the
    /// table has names.
    pub fn header(&mut self, format: TextFormat, shows: Names<'_>, line: &mut Vec<u8>) {
        let Names { keys, values, of_tsv } = shows;
        match format {
            TextFormat::Csv => {
                let shows = |at| self.layout.part_of(at).is_some_and(|part| self.read[part].is_some());
                if let Some(names) = self.layout.header(keys, values, shows) {
                    record(names.iter().map(String::as_bytes), line);
                }
            }
            TextFormat::Tsv if of_tsv && !keys => {
                if let Some(names) = self.layout.schema().and_then(Schema::tsv_header) {
                    self.begin_tsv(names.as_bytes(), line);
                    line.extend_from_slice(names.as_bytes());
                    self.end(line);
                }
            }
            TextFormat::Tsv | TextFormat::Jsonl => {}
        }
    }

    /// Prints a row and a line end.
    pub fn row<P: AsRef<[u8]>>(&mut self, format: TextFormat, key: &[u8], parts: &[P], line: &mut Vec<u8>) {
        match format {
            TextFormat::Csv => self.csv(key, parts, line),
            TextFormat::Tsv if self.has_printed => self.tsv(key, parts, line),
            TextFormat::Tsv => {
                let mut first = Vec::new();
                self.tsv(key, parts, &mut first);
                self.begin_tsv(&first, line);
                line.append(&mut first);
            }
            TextFormat::Jsonl => self.json(key, parts, line),
        }
    }

    /// Begins a text of TSV whose first line begins with `first`. A reader of TSV removes a byte order mark at the
    /// beginning of the text. So if the first line itself begins with such a mark, this function writes a second one.
    fn begin_tsv(&mut self, first: &[u8], line: &mut Vec<u8>) {
        let is_tsv = self.layout.schema().is_some_and(|schema| schema.format == Format::Tsv);
        if is_tsv && !self.has_printed && first.starts_with(BYTE_ORDER_MARK) {
            line.extend_from_slice(BYTE_ORDER_MARK);
        }
        self.has_printed = true;
    }

    /// Prints a key and a line end.
    pub fn row_key(&mut self, format: TextFormat, key: &[u8], line: &mut Vec<u8>) {
        match format {
            TextFormat::Csv => self.key_csv(key, line),
            TextFormat::Tsv => self.key(key, line),
            TextFormat::Jsonl => self.key_json(key, line),
        }
    }

    /// Checks that the row, of which all parts were read, is one that the text of a row can stand for. A program that
    /// does not know how the rows of the table are made may have written another one; its text would be read back
    /// as another row, or as none.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the row.
    pub fn check<P: AsRef<[u8]>>(&mut self, key: &[u8], parts: &[P]) -> Result<(), String> {
        let Some(schema) = self.layout.schema() else { return Ok(()) };
        if self.layout.is_plain() {
            return self.check_plain(schema, key, parts[0].as_ref());
        }
        if schema.format == Format::Jsonl {
            self.field.clear();
            object(parts, &mut self.field);
            if self.field.contains(&b'\n') || self.field.trim_ascii() != self.field {
                return Err("its object is not on one line".to_string());
            }
            let text = std::str::from_utf8(&self.field).map_err(|_| "its object is not UTF-8".to_string())?;
            self.layout.encode_object(text, &mut self.again)?;
        } else {
            let Some(key_texts) = key_texts(self.layout, &self.read, key, &mut self.texts) else {
                return Err(format!("its key is not that of {schema}"));
            };
            let mut fields = Vec::new();
            let mut wrong = None;
            each_column(self.layout, &self.read, parts, |_, field| {
                let mut text = Vec::new();
                match field {
                    Field::Key(place) => text.extend_from_slice(&key_texts[place]),
                    Field::Kept(kept) if schema.escapes() => wrong = wrong.take().or(unescape(kept, &mut text).err()),
                    Field::Kept(kept) => text.extend_from_slice(kept),
                }
                fields.push(text);
            });
            if let Some(why) = wrong {
                return Err(why);
            }
            check_count(schema, fields.len())?;
            self.layout.encode_fields(&fields, &mut self.again)?;
        }
        let is_same =
            self.again.key == key && self.again.parts.iter().zip(parts).all(|(ours, part)| *ours == part.as_ref());
        if is_same { Ok(()) } else { Err("its bytes are not those that this text gives".to_string()) }
    }

    /// As [`Printer::check`], for rows whose bytes are their text.
    fn check_plain(&self, schema: &Schema, key: &[u8], value: &[u8]) -> Result<(), String> {
        let is_text = |byte: &u8| !matches!(byte, b'\n' | b'\t');
        let columns = self.layout.columns_in(value);
        let tabs = columns.map_or(0, |columns| 1 + columns.iter().filter(|byte| **byte == b'\t').count());
        let is_marked_without_need = value.first() == Some(&0) && value.get(1).is_some_and(|second| *second != 0);
        if !key.iter().all(is_text) || value.contains(&b'\n') || is_marked_without_need {
            return Err("a tab or a line end is within a column".to_string());
        }
        check_count(schema, 1 + tabs)
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
                let is_number = |place: Option<usize>| place.is_some_and(|place| schema.key[place].kind.is_numeric());
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
                        Field::Kept(text) => json_value(text, is_number(self.layout.in_key(at)), line),
                        Field::Key(place) => json_value(&texts[place], is_number(Some(place)), line),
                    }
                });
                line.push(b'}');
            }
            None => return raw_json(self.layout, key, parts, line),
        }
        line.push(b'\n');
    }

    /// Prints the row as comma-separated values, and a line end. A raw row has two columns, its key and its value. A
    /// row of JSON lines has the columns of its key and the object.
    pub fn csv<P: AsRef<[u8]>>(&mut self, key: &[u8], parts: &[P], line: &mut Vec<u8>) {
        let start = line.len();
        let mut cells = 0;
        let mut cell = |text: &[u8], line: &mut Vec<u8>| {
            if std::mem::replace(&mut cells, 1) > 0 {
                line.push(b',');
            }
            push_cell(text, line);
        };
        match self.layout.schema() {
            Some(schema) if schema.format != Format::Jsonl => {
                match key_texts(self.layout, &self.read, key, &mut self.texts) {
                    Some(texts) => {
                        let (buffer, escapes) = (&mut self.field, schema.escapes());
                        each_column(self.layout, &self.read, parts, |_, field| match field {
                            Field::Key(place) => cell(&texts[place], line),
                            Field::Kept(text) if escapes && text.contains(&b'\\') => {
                                buffer.clear();
                                unescape(text, buffer).unwrap_or_else(|_| buffer.extend_from_slice(text));
                                cell(buffer, line);
                            }
                            Field::Kept(text) => cell(text, line),
                        });
                    }
                    None => {
                        cell(&self.layout.key_without_columns(key), line);
                        parts.iter().for_each(|part| cell(part.as_ref(), line));
                    }
                }
            }
            schema => {
                key_cells(self.layout, key, &mut self.texts, |text| cell(text, line));
                if schema.is_some() {
                    self.field.clear();
                    object(parts, &mut self.field);
                    cell(&self.field, line);
                } else {
                    parts.iter().for_each(|part| cell(part.as_ref(), line));
                }
            }
        }
        end_record(start, line);
    }

    /// Prints the key as comma-separated values, and a line end: a column for each of its columns.
    pub fn key_csv(&mut self, key: &[u8], line: &mut Vec<u8>) {
        let (start, mut cells) = (line.len(), 0);
        key_cells(self.layout, key, &mut self.texts, |text| {
            if std::mem::replace(&mut cells, 1) > 0 {
                line.push(b',');
            }
            push_cell(text, line);
        });
        end_record(start, line);
    }

    /// Prints the key in the form that `get` takes, and a line end.
    pub fn key(&mut self, key: &[u8], line: &mut Vec<u8>) {
        self.key_text(key, line);
        self.end(line);
    }

    /// Prints the key as a line of JSON: a value, or an array of values if the key has several columns or is a tuple.
    /// Columns that are ordered as numbers are numbers, all others are strings.
    pub fn key_json(&mut self, key: &[u8], line: &mut Vec<u8>) {
        if let Some(fields) = self.layout.tuple() {
            tuple_json(fields, key, line);
            return line.push(b'\n');
        }
        let columns = self.layout.key_columns();
        match self.layout.key_texts_of(key, &mut self.texts) {
            [] => json_text(&self.layout.key_without_columns(key), line),
            [text] => json_value(text, columns[0].kind.is_numeric(), line),
            texts => {
                for (at, (text, column)) in texts.iter().zip(columns).enumerate() {
                    line.push(if at == 0 { b'[' } else { b',' });
                    json_value(text, column.kind.is_numeric(), line);
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
        Some(fields) => tuple_json(fields, key, line),
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

/// The number of columns of a row of CSV or TSV is that of the header, if the table has one.
fn check_count(schema: &Schema, columns: usize) -> Result<(), String> {
    let named = schema.columns.len();
    if named == 0 || columns == named {
        return Ok(());
    }
    Err(format!("it has {} and the header of the table {named}", crate::size::of(columns as u64, "column")))
}

/// Calls `cell` for the text of each column of a key, or for the text of a tuple. Bytes that are no key of the table
/// are a single text.
fn key_cells(layout: &Layout, key: &[u8], texts: &mut Vec<Vec<u8>>, mut cell: impl FnMut(&[u8])) {
    if layout.tuple().is_some() {
        let mut text = Vec::new();
        layout.key_text(key, texts, &mut text);
        return cell(&text);
    }
    match layout.key_texts_of(key, texts) {
        [] => cell(&layout.key_without_columns(key)),
        texts => texts.iter().for_each(|text| cell(text)),
    }
}

/// Appends a line of comma-separated values.
fn record<'c>(cells: impl Iterator<Item = &'c [u8]>, line: &mut Vec<u8>) {
    let start = line.len();
    for (at, text) in cells.enumerate() {
        if at > 0 {
            line.push(b',');
        }
        push_cell(text, line);
    }
    end_record(start, line);
}

/// Ends the record that begins at `start`. A record whose only column is empty gets quotes, because a blank line is no
/// record.
fn end_record(start: usize, line: &mut Vec<u8>) {
    if line.len() == start {
        line.extend_from_slice(b"\"\"");
    }
    line.push(b'\n');
}

/// Appends a column of CSV, in quotes if it needs them. Quotes also keep a reader from taking the first bytes of a file
/// for a byte order mark.
fn push_cell(text: &[u8], line: &mut Vec<u8>) {
    let needs_quotes = text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
    if !needs_quotes && !text.starts_with(BYTE_ORDER_MARK) {
        return line.extend_from_slice(text);
    }
    line.push(b'"');
    for byte in text {
        if *byte == b'"' {
            line.push(b'"');
        }
        line.push(*byte);
    }
    line.push(b'"');
}

/// Prints a tuple as a JSON array of its fields. Bytes that are no such tuple are printed as a string, as
/// [`Layout::key_text`] writes them.
fn tuple_json(fields: &Declaration, key: &[u8], line: &mut Vec<u8>) {
    let Some(values) = keys::tuple_values(fields, key) else {
        return json_text(keys::tuple_text(fields, key).as_bytes(), line);
    };
    for (at, value) in values.iter().enumerate() {
        line.push(if at == 0 { b'[' } else { b',' });
        match value {
            FieldValue::None => line.extend_from_slice(b"null"),
            FieldValue::String(text) => json_text(text.as_bytes(), line),
            FieldValue::Bytes(bytes) => json_hex(bytes, line),
            // JSON has no number that is infinite, and none that is not a number.
            other => {
                let text = other.to_string();
                let is_bool = matches!(other, FieldValue::Bool(_));
                if is_bool { line.extend_from_slice(text.as_bytes()) } else { json_value(text.as_bytes(), true, line) }
            }
        }
    }
    line.push(b']');
}

/// Prints a text as JSON: as a number if `is_number` and the text is a number of JSON, and otherwise as
/// [`json_text`] does. So the text can be read back also if it is a number that JSON writes differently, such as `007`.
fn json_value(text: &[u8], is_number: bool, line: &mut Vec<u8>) {
    if is_number && object::is_number(text) { line.extend_from_slice(text) } else { json_text(text, line) }
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
        Err(_) => json_hex(bytes, line),
    }
}

fn json_hex(bytes: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(b"{\"hex\":\"");
    for byte in bytes {
        write!(line, "{byte:02x}").expect("memory takes every write");
    }
    line.extend_from_slice(b"\"}");
}
