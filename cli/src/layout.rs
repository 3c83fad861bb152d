//! How the columns of a row are stored as key bytes and value bytes. This module reads no files and prints nothing.
//!
//! ```text
//! key     the key columns, see keys; of a table without a schema that declares the types of its keys, a tuple
//! value   CSV, TSV            the other columns, in their order, tab between them
//!         … a number in key   all columns, tab between them, as they were written
//!         JSON lines          the whole object, as it was written
//!         no schema           whatever was put
//! ```
//!
//! In a table with groups, the value is split into parts, one for each group:
//!
//! ```text
//! part    CSV, TSV            the group's columns that the row has, in their order, tab between them
//!         … a number in key   the first part has the key columns too, each in its place among the others
//!         JSON lines          an object of the group's members, each as it was written, in their order, without spaces
//!                             between them; the first part has those of the key too
//! ```
//!
//! Columns of CSV are stored with escapes (see [`crate::escape`]), and columns of TSV are stored unchanged. Keys
//! and values of raw rows are stored unchanged, and lines of text contain them with escapes. A row with no column
//! beside its key must differ from a row with a single empty column. So the value of the former is empty; and in
//! any other row, a value that would be empty or begin with a zero byte gets one more zero byte in front. The same
//! holds for parts.
//!
//! If a row has a certain column, it also has all columns before it. Therefore the row ends where its parts end,
//! and the number of columns need not be stored.

use crate::escape::{escape, unescape};
use crate::keys::{self, Kind};
use crate::object;
use crate::schema::groups::MAX_GROUPS;
use crate::schema::{Format, KeyColumn, Place, Schema};
use ::rows::Declaration;
use std::borrow::Cow;
use std::collections::BTreeMap;

#[cfg(any(test, feature = "sql"))]
pub mod columns;
pub mod indexed;

#[cfg(test)]
mod tests;

/// Printed in place of a key, in front of bytes that are not a key of the table. No escaped key and no number
/// begins with it, so the result cannot be mistaken for another key.
const NO_KEY: &[u8] = b"\\?";
/// What messages call a tuple that is a key.
pub const KEY: &str = "key of the table";

/// The bytes of a row, in buffers that are reused for the next row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The key, in the form in which the engine orders it.
    pub key: Vec<u8>,
    /// The value in the form in which the engine stores it: a part for each group, or a single part.
    pub parts: Vec<Vec<u8>>,
}

impl Row {
    /// Empties the row, but keeps its memory.
    fn clear(&mut self, parts: usize) {
        self.key.clear();
        self.parts.resize_with(parts, Vec::new);
        self.parts.iter_mut().for_each(Vec::clear);
    }
}

/// The columns of a CSV or TSV row, without escapes.
pub trait Record {
    /// The number of columns.
    fn columns(&self) -> usize;
    /// The column at place `at`, counted from 0.
    fn column(&self, at: usize) -> Option<&[u8]>;
}

impl Record for Vec<Vec<u8>> {
    fn columns(&self) -> usize {
        self.len()
    }

    fn column(&self, at: usize) -> Option<&[u8]> {
        self.get(at).map(Vec::as_slice)
    }
}

/// Where a column of a CSV or TSV row is stored.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// The place of the column in the key, if it is part of the key.
    in_key: Option<usize>,
    /// The number of the part that contains its text.
    part: Option<usize>,
}

/// How the rows of one table are stored.
#[derive(Debug)]
pub struct Layout {
    schema: Option<Schema>,
    /// The types of the fields in keys, if keys are tuples.
    tuple: Option<Declaration>,
    /// The columns of a CSV or TSV row, up to the last column that the key or a group names.
    columns: Vec<Column>,
    /// The number of columns up to the last column of the key.
    key_end: usize,
    /// For each member of a JSON object that the key or a group names, the number of its part.
    members: BTreeMap<String, usize>,
    /// The part for columns and members that no group names, or `None` if a row may have no such columns.
    rest: Option<usize>,
}

impl Layout {
    /// Whether rows have no columns.
    pub fn is_raw(&self) -> bool {
        self.schema.is_none()
    }

    /// The layout that a schema asks for. Without a schema, rows are raw.
    pub fn new(schema: Option<Schema>) -> Self {
        let mut layout = Self {
            schema: None,
            tuple: None,
            columns: Vec::new(),
            key_end: 0,
            members: BTreeMap::new(),
            rest: Some(0),
        };
        let Some(schema) = schema else { return layout };
        if !schema.groups.is_empty() {
            layout.rest = schema.groups.iter().position(|group| group.rest);
            layout.name_columns(schema.columns.len());
        }
        for (part, group) in schema.groups.iter().enumerate() {
            for column in &group.columns {
                match column {
                    Place::Number(number) => layout.column(*number).part = Some(part),
                    Place::Name(name) => drop(layout.members.insert(name.clone(), part)),
                }
            }
        }
        for (place, key) in schema.key.iter().enumerate() {
            match &key.column {
                Place::Number(number) => {
                    let part = schema.keeps_whole_rows().then_some(0);
                    *layout.column(*number) = Column { in_key: Some(place), part };
                    layout.key_end = layout.key_end.max(*number);
                }
                Place::Name(name) => drop(layout.members.insert(name.clone(), 0)),
            }
        }
        Self { schema: Some(schema), ..layout }
    }

    /// The layout of raw rows whose keys are tuples.
    pub fn of_tuples(fields: Declaration) -> Self {
        Self { tuple: Some(fields), ..Self::new(None) }
    }

    fn column(&mut self, number: usize) -> &mut Column {
        self.name_columns(number);
        &mut self.columns[number - 1]
    }

    fn name_columns(&mut self, count: usize) {
        let rest = Column { in_key: None, part: self.rest };
        self.columns.resize(self.columns.len().max(count), rest);
    }

    /// The schema, or `None` if rows are raw.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The types of the fields in keys, or `None` if keys are not tuples.
    pub fn tuple(&self) -> Option<&Declaration> {
        self.tuple.as_ref()
    }

    /// The number of parts of a row.
    pub fn parts(&self) -> usize {
        self.schema.as_ref().map_or(1, |schema| schema.groups.len().max(1))
    }

    /// Whether values are split into groups.
    pub fn has_groups(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| !schema.groups.is_empty())
    }

    /// The place in the key of column `at`, if it is part of the key. Columns and places are counted from 0.
    pub fn in_key(&self, at: usize) -> Option<usize> {
        self.columns.get(at)?.in_key
    }

    /// The part that holds the text of column `at` (counted from 0), or would hold it if the row had that column.
    pub fn part_of(&self, at: usize) -> Option<usize> {
        self.columns.get(at).map_or(self.rest, |column| column.part)
    }

    /// The number of the part that contains a member of a JSON object.
    pub fn part_of_member(&self, name: &str) -> Option<usize> {
        self.members.get(name).copied().or(self.rest)
    }

    /// The number of columns up to the last column that the key or a group names. All columns after the last named
    /// column are in one part.
    pub fn named_columns(&self) -> usize {
        self.columns.len()
    }

    /// The columns in a part of a CSV or TSV row, with tabs between them; `None` if the part has no columns.
    pub fn columns_in<'p>(&self, part: &'p [u8]) -> Option<&'p [u8]> {
        if self.marks() { unmark(part) } else { Some(part) }
    }

    /// Whether a part may have no columns, so that parts are marked (see `mark`).
    pub fn marks(&self) -> bool {
        self.has_groups() || self.schema.as_ref().is_some_and(|schema| !schema.keeps_whole_rows())
    }

    /// The columns of the key; empty if rows are raw.
    pub fn key_columns(&self) -> &[KeyColumn] {
        self.schema.as_ref().map_or(&[], |schema| &schema.key)
    }

    /// Whether the text of a row is simply its key, a tab and its value. The text has this form if the key is a
    /// single text column in front and nothing is escaped.
    pub fn is_plain(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| {
            schema.format == Format::Tsv && schema.groups.is_empty() && self.key_end == 1 && !schema.keeps_whole_rows()
        })
    }

    /// Whether keys and fields are written with escapes. Fields of TSV need no escapes, because they contain
    /// neither tabs nor line ends.
    pub fn escapes(&self) -> bool {
        self.schema.as_ref().is_none_or(Schema::escapes)
    }

    /// Encodes a CSV or TSV row as bytes.
    pub fn encode(&self, record: &impl Record, row: &mut Row) -> Result<(), String> {
        row.clear(self.parts());
        let schema = self.schema.as_ref().expect("rows are read into a table with a schema");
        for (place, key) in schema.key.iter().enumerate() {
            let Place::Number(number) = key.column else { unreachable!("a soundness check passed") };
            let Some(text) = record.column(number - 1) else {
                return Err(format!(
                    "the row ends before its key, column {number}: it has {}; add what is missing or choose another --key",
                    crate::size::of(record.columns() as u64, "column")
                ));
            };
            keys::encode(key.kind, text, place + 1 == schema.key.len(), &mut row.key).map_err(|bad| {
                format!("column {number} of the key: {bad}; correct it or declare the column as text")
            })?;
        }
        let mut begun = [false; MAX_GROUPS];
        for at in 0..record.columns() {
            let Some(part) = self.part_of(at) else {
                if self.in_key(at).is_some() {
                    continue;
                }
                return Err(format!(
                    "column {} is in no group, and no group takes the rest; take it out, or import into a table with a \
                     group of *",
                    at + 1
                ));
            };
            let text = &mut row.parts[part];
            if std::mem::replace(&mut begun[part], true) {
                text.push(b'\t');
            }
            let field = record.column(at).expect("at is below the number of columns");
            if schema.escapes() {
                escape(field, text);
            } else {
                text.extend_from_slice(field);
            }
        }
        if self.marks() {
            row.parts.iter_mut().zip(begun).filter(|(_, begun)| *begun).for_each(|(part, _)| mark(part));
        }
        Ok(())
    }

    /// Like [`Layout::encode`], for fields that may contain any bytes: refuses what a row of TSV cannot hold.
    pub fn encode_fields(&self, record: &impl Record, row: &mut Row) -> Result<(), String> {
        let is_wrong = |byte: &u8| matches!(byte, b'\n' | b'\t');
        let mut fields = (0..record.columns()).filter_map(|at| record.column(at));
        if !self.escapes() && fields.any(|field| field.iter().any(is_wrong)) {
            return Err("a row of a TSV table cannot hold a line end, nor a column a tab; take them out".to_string());
        }
        self.encode(record, row)
    }

    /// Encodes a JSON object as bytes.
    pub fn encode_object(&self, text: &str, row: &mut Row) -> Result<(), String> {
        row.clear(self.parts());
        let schema = self.schema.as_ref().expect("rows are read into a table with a schema");
        object::encode_key(schema, text, &mut row.key)?;
        if schema.groups.is_empty() {
            row.parts[0].extend_from_slice(text.as_bytes());
            return Ok(());
        }
        object::split(text, |member| self.part_of_member(member), &mut row.parts)
    }

    /// Encodes a line of a table whose rows are [plain](Self::is_plain).
    pub fn encode_line(&self, line: &[u8], row: &mut Row) {
        row.clear(1);
        let tab = line.iter().position(|byte| *byte == b'\t');
        row.key.extend_from_slice(&line[..tab.unwrap_or(line.len())]);
        let Some(tab) = tab else { return };
        row.parts[0].extend_from_slice(&line[tab + 1..]);
        mark(&mut row.parts[0]);
    }

    /// Encodes a line of a raw table: the key, and the value after the first tab, both with escapes.
    pub fn encode_raw_line(&self, line: &[u8], row: &mut Row) -> Result<(), String> {
        row.clear(1);
        let tab = line.iter().position(|byte| *byte == b'\t');
        let key = &line[..tab.unwrap_or(line.len())];
        match &self.tuple {
            Some(fields) => row.key = keys::any_tuple(fields, KEY, key)?,
            None => unescape(key, &mut row.key)?,
        }
        let Some(tab) = tab else { return Ok(()) };
        unescape(&line[tab + 1..], &mut row.parts[0])
    }

    /// The names of the columns in the first line of a CSV file with rows of this table, or `None` if such a file has no
    /// line of names. `keys` says that the file has keys alone. `values` are the names of the parts of a raw row, if it
    /// has several, and `shows` says of which columns, counted from 0, the file has those that are not in the key.
    pub fn header(&self, keys: bool, values: &[String], shows: impl Fn(usize) -> bool) -> Option<Vec<String>> {
        let Some(schema) = &self.schema else {
            let value = vec!["value".to_owned()];
            let values = if keys {
                Vec::new()
            } else if values.is_empty() {
                value
            } else {
                values.to_vec()
            };
            return Some([vec!["key".to_owned()], values].concat());
        };
        let of_key = |key: &KeyColumn| match &key.column {
            Place::Number(number) => schema.columns.get(number - 1).cloned(),
            Place::Name(name) => Some(name.clone()),
        };
        let key: Option<Vec<String>> = schema.key.iter().map(of_key).collect();
        match (schema.format, keys) {
            (_, true) => key,
            (Format::Jsonl, false) => key.map(|key| [key, vec!["value".to_owned()]].concat()),
            (Format::Csv | Format::Tsv, false) if schema.columns.is_empty() => None,
            (Format::Csv | Format::Tsv, false) => {
                let names = schema.columns.iter().enumerate();
                Some(
                    names
                        .filter(|(at, _)| self.in_key(*at).is_some() || shows(*at))
                        .map(|(_, name)| name.clone())
                        .collect(),
                )
            }
        }
    }

    /// Encodes a row of a table of JSON lines from the texts of its key columns and the text of the object.
    pub fn encode_object_of_key(&self, texts: &[Vec<u8>], object: &[u8], row: &mut Row) -> Result<(), String> {
        let key = self.key_from_texts(texts)?;
        self.encode_object_with(&key, object, row)
    }

    /// Encodes an object whose key must be `key`.
    fn encode_object_with(&self, key: &[u8], object: &[u8], row: &mut Row) -> Result<(), String> {
        let object =
            std::str::from_utf8(object).map_err(|_| "the object is not UTF-8, and JSON must be".to_string())?;
        self.encode_object(object, row)?;
        if row.key != key {
            return Err("the object's own key members say another key; make them agree".to_string());
        }
        Ok(())
    }

    /// Encodes a row of a table of JSON lines from a line that `scan --format tsv` has printed. The line contains
    /// the columns of the key and then the object.
    pub fn encode_keyed_object(&self, line: &[u8], row: &mut Row) -> Result<(), String> {
        let mut tabs = line.iter().enumerate().filter(|(_, byte)| **byte == b'\t');
        let Some((tab, _)) = tabs.nth(self.key_columns().len() - 1) else {
            return Err("there is no object after the key; write the key, a tab and a JSON object".to_string());
        };
        self.encode_object_with(&self.key_from_text(&line[..tab])?, &line[tab + 1..], row)
    }

    /// The inverse of [`Layout::key_texts_of`]: returns the key whose columns have the texts `texts`. In a raw
    /// table, the text is the key itself or the text of a tuple.
    pub fn key_from_texts(&self, texts: &[Vec<u8>]) -> Result<Vec<u8>, String> {
        let columns = self.key_columns();
        if texts.len() != columns.len().max(1) {
            return Err(format!(
                "the key has {} and this one has {}",
                crate::size::of(columns.len().max(1) as u64, "column"),
                texts.len()
            ));
        }
        match &self.tuple {
            Some(fields) => return keys::any_tuple(fields, KEY, &texts[0]),
            None if columns.is_empty() => return Ok(texts[0].clone()),
            None => {}
        }
        let mut key = Vec::new();
        for (at, (column, text)) in columns.iter().zip(texts).enumerate() {
            keys::encode(column.kind, text, at + 1 == columns.len(), &mut key).map_err(|bad| format!("key: {bad}"))?;
        }
        Ok(key)
    }

    /// The key that `text` stands for. `text` contains the columns of the key with a tab between them. The columns
    /// have escapes if [`Layout::escapes`] is true. In a table whose keys are tuples, `text` may also stand for
    /// any bytes, in the form of [`Layout::key_text`].
    pub fn key_from_text(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        if let Some(fields) = &self.tuple {
            return keys::tuple_front(fields, KEY, text);
        }
        let Some(schema) = &self.schema else { return unescaped(text) };
        let columns = self.key_texts(text)?;
        if columns.len() != schema.key.len() {
            return Err(format!(
                "the key has {} and this text has {}; write them with a tab between them",
                crate::size::of(schema.key.len() as u64, "column"),
                columns.len()
            ));
        }
        let mut key = Vec::new();
        for (at, text) in columns.iter().enumerate() {
            let last = at + 1 == columns.len();
            keys::encode(schema.key[at].kind, text, last, &mut key).map_err(|bad| format!("key: {bad}"))?;
        }
        Ok(key)
    }

    /// Returns the bound that `text` stands for. `text` has the form of a key, but its last columns may be missing,
    /// and if the last column that it has is a text, it may be cut anywhere. A tab after a column says that the
    /// column is complete.
    pub fn bound_from_text(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        if let Some(fields) = &self.tuple {
            return keys::tuple_front(fields, KEY, text);
        }
        let Some(schema) = &self.schema else { return unescaped(text) };
        let columns = self.key_texts(text)?;
        if columns.len() > schema.key.len() {
            return Err(format!(
                "the key has only {}; this text has {}",
                crate::size::of(schema.key.len() as u64, "column"),
                columns.len()
            ));
        }
        let mut bound = Vec::new();
        for (at, text) in columns.iter().enumerate() {
            let cut = at + 1 == columns.len();
            let last = at + 1 == schema.key.len();
            match schema.key[at].kind {
                Kind::Text if cut && !last => ::rows::encode_beginning(text, &mut bound),
                kind if kind.is_numeric() && cut && text.is_empty() => {}
                kind => keys::encode(kind, text, last, &mut bound).map_err(|bad| format!("key: {bad}"))?,
            }
        }
        Ok(bound)
    }

    /// The inverse of [`Layout::bound_from_text`]: returns a text for the first place in key order that is not
    /// before `bound`, which may lie between two keys. Bytes with which no key of the table can begin are returned
    /// unchanged.
    pub fn text_of_bound(&self, bound: &[u8]) -> Vec<u8> {
        if let Some(fields) = &self.tuple {
            return fields.show(bound).into_bytes();
        }
        let columns = self.key_columns();
        let (mut line, mut text) = (Vec::new(), Vec::new());
        if self.schema.is_none() {
            escape(bound, &mut line);
            return line;
        }
        let mut rest = bound;
        for (at, column) in columns.iter().enumerate() {
            let last = at + 1 == columns.len();
            text.clear();
            let Some(cut) = keys::decode_cut(column.kind, rest, last, &mut text) else { return bound.to_vec() };
            if self.escapes() {
                escape(&text, &mut line);
            } else {
                line.extend_from_slice(&text);
            }
            match cut {
                keys::Cut::Whole(after) if !last => {
                    // The tab says that the column is complete.
                    line.push(b'\t');
                    if after.is_empty() {
                        return line;
                    }
                    rest = after;
                }
                keys::Cut::Whole(_) | keys::Cut::Open => return line,
            }
        }
        bound.to_vec()
    }

    /// Makes the row for `put` from the text of its key and the text of its other columns, in the form that `get`
    /// prints. In a raw table, the second text is the value, byte for byte.
    pub fn row_from_texts(&self, key: &[u8], rest: Option<&[u8]>) -> Result<Row, String> {
        let bytes = match &self.tuple {
            Some(fields) => keys::tuple(fields, KEY, key)?,
            None => self.key_from_text(key)?,
        };
        let mut row = Row { key: bytes, parts: Vec::new() };
        let Some(schema) = &self.schema else {
            row.parts.push(rest.unwrap_or_default().to_vec());
            return Ok(row);
        };
        let key_texts = self.key_texts(key)?;
        if schema.format == Format::Jsonl {
            let whole = object::with_key(schema, &key_texts, rest.unwrap_or(b"{}"), &row.key)?;
            self.encode_object(std::str::from_utf8(&whole).expect("made of UTF-8"), &mut row)?;
            return Ok(row);
        }
        let rest = match rest {
            Some(text) => self.split(text)?,
            None => Vec::new(),
        };
        let wanted = schema.columns.len().saturating_sub(schema.key.len());
        if !schema.columns.is_empty() && rest.len() != wanted {
            return Err(format!(
                "a row of this table has {} beside its key and this one has {}; write them with a tab between them ({})",
                crate::size::of(wanted as u64, "column"),
                rest.len(),
                self.names_beside_key(schema)
            ));
        }
        let mut record = Vec::with_capacity(key_texts.len() + rest.len());
        let mut rest = rest.into_iter();
        for at in 0.. {
            match self.in_key(at) {
                Some(place) => record.push(key_texts[place].clone()),
                None => match rest.next() {
                    Some(field) => record.push(field),
                    None if at < self.key_end => {
                        return Err(format!(
                            "column {} is part of the key, so a row needs at least {} beside its key; write them with a \
                             tab between them",
                            self.key_end,
                            crate::size::of((self.key_end - schema.key.len()) as u64, "column")
                        ));
                    }
                    None => break,
                },
            }
        }
        self.encode_fields(&record, &mut row)?;
        Ok(row)
    }

    /// Appends the text of a key in the form that [`Layout::key_from_text`] takes: its columns with a tab between
    /// them, or a tuple.
    pub fn key_text(&self, key: &[u8], texts: &mut Vec<Vec<u8>>, line: &mut Vec<u8>) {
        if let Some(fields) = &self.tuple {
            return line.extend_from_slice(keys::tuple_text(fields, key).as_bytes());
        }
        let texts = self.key_texts_of(key, texts);
        if texts.is_empty() {
            line.extend_from_slice(if self.schema.is_some() { NO_KEY } else { b"" });
            escape(key, line);
        }
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                line.push(b'\t');
            }
            if self.escapes() {
                escape(text, line);
            } else {
                line.extend_from_slice(text);
            }
        }
    }

    /// The bytes to print as JSON if a key cannot be split into the texts of the key columns. They are not escaped
    /// here, because JSON has its own escapes.
    pub fn key_without_columns<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        if self.schema.is_some() { Cow::Owned([NO_KEY, key].concat()) } else { Cow::Borrowed(key) }
    }

    /// The texts of the key columns, the most significant column first. There are none if the bytes are not a key
    /// of this schema.
    pub fn key_texts_of<'t>(&self, key: &[u8], texts: &'t mut Vec<Vec<u8>>) -> &'t [Vec<u8>] {
        let columns = self.key_columns();
        texts.resize_with(columns.len(), Vec::new);
        let mut rest = key;
        for (at, column) in columns.iter().enumerate() {
            texts[at].clear();
            match keys::decode(column.kind, rest, at + 1 == columns.len(), &mut texts[at]) {
                Some(after) => rest = after,
                None => return &[],
            }
        }
        if rest.is_empty() { texts } else { &[] }
    }

    /// The columns of a key, from its text. If a table has a single key column and escapes nothing, a tab is part
    /// of the column's text.
    fn key_texts(&self, text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        if self.key_columns().len() != 1 {
            return self.split(text);
        }
        let mut field = Vec::new();
        if self.escapes() {
            unescape(text, &mut field)?;
        } else {
            field.extend_from_slice(text);
        }
        Ok(vec![field])
    }

    /// Splits a line into its fields, and replaces the escapes in them.
    pub fn split(&self, text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let field = |text: &[u8]| {
            let mut field = Vec::new();
            if self.escapes() {
                unescape(text, &mut field)?;
            } else {
                field.extend_from_slice(text);
            }
            Ok(field)
        };
        text.split(|byte| *byte == b'\t').map(field).collect()
    }

    fn names_beside_key(&self, schema: &Schema) -> String {
        let names: Vec<&str> = schema
            .columns
            .iter()
            .enumerate()
            .filter(|(at, _)| self.in_key(*at).is_none())
            .map(|(_, name)| name.as_str())
            .collect();
        names.join(", ")
    }
}

fn unescaped(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    unescape(text, &mut bytes)?;
    Ok(bytes)
}

/// Marks a value or part that has columns, so that it differs from one without columns, which is empty.
fn mark(value: &mut Vec<u8>) {
    if value.first().is_none_or(|byte| *byte == 0) {
        value.insert(0, 0);
    }
}

/// The columns in a marked value or part, with tabs between them; `None` if it has none.
fn unmark(value: &[u8]) -> Option<&[u8]> {
    match value.first() {
        None => None,
        Some(0) => Some(&value[1..]),
        Some(_) => Some(value),
    }
}
