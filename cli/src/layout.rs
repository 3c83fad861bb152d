//! How a row lies in a table: its columns as key bytes and value bytes. It does not read files and does not print.
//!
//! ```text
//! key     the key columns, see keys
//! value   CSV, TSV            the other columns, in their order, tab between them
//!         … a number in key   all columns, tab between them, as they were written
//!         JSON lines          the whole object, as it was written
//!         no schema           whatever was put
//! ```
//!
//! Columns of CSV are kept escaped (see [`crate::escape`]), those of TSV as they are. A value of the first form must tell
//! a row without other columns from one with a single empty column: the former is empty, and a value that would be empty
//! or begin with a zero byte gets a zero byte before it.

use crate::escape::{escape, unescape};
use crate::keys::{self, Kind};
use crate::object;
use crate::schema::{Format, KeyColumn, Place, Schema};

#[cfg(test)]
mod tests;

/// Bytes of a row, in buffers that are used again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The key as the engine orders it.
    pub key: Vec<u8>,
    /// The value as the engine keeps it.
    pub value: Vec<u8>,
}

impl Row {
    /// Forgets the row, keeps the memory.
    pub fn clear(&mut self) {
        self.key.clear();
        self.value.clear();
    }
}

/// Columns of a CSV or TSV row, not escaped.
pub trait Record {
    /// How many there are.
    fn columns(&self) -> usize;
    /// The one at `at`, from 0.
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

/// How the rows of one table lie in it.
#[derive(Debug)]
pub struct Layout {
    schema: Option<Schema>,
    /// For each column of a CSV or TSV row up to the last key column: its place in the key.
    in_key: Vec<Option<usize>>,
}

impl Layout {
    /// The layout that a schema asks for; without one, rows are raw.
    pub fn new(schema: Option<Schema>) -> Self {
        let mut in_key = Vec::new();
        for (place, key) in schema.iter().flat_map(|schema| &schema.key).enumerate() {
            if let Place::Number(number) = key.column {
                in_key.resize(in_key.len().max(number), None);
                in_key[number - 1] = Some(place);
            }
        }
        Self { schema, in_key }
    }

    /// The schema, unless rows are raw.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The place in the key of the column at `at`, from 0.
    pub fn in_key(&self, at: usize) -> Option<usize> {
        self.in_key.get(at).copied().flatten()
    }

    /// Columns of the key; none if rows are raw.
    pub fn key_columns(&self) -> &[KeyColumn] {
        self.schema.as_ref().map_or(&[], |schema| &schema.key)
    }

    /// Whether a row is its key, a tab and its value, all as written: one text key column in front and nothing escaped.
    pub fn is_plain(&self) -> bool {
        self.schema
            .as_ref()
            .is_some_and(|schema| schema.format == Format::Tsv && self.in_key.len() == 1 && !schema.keeps_whole_rows())
    }

    /// Whether keys and fields are written with escapes.
    pub fn escapes(&self) -> bool {
        self.schema.as_ref().is_some_and(Schema::escapes)
    }

    /// Writes a CSV or TSV row as bytes.
    pub fn encode(&self, record: &impl Record, row: &mut Row) -> Result<(), String> {
        row.clear();
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
        let whole = schema.keeps_whole_rows();
        let mut first = true;
        for at in 0..record.columns() {
            if !whole && self.in_key(at).is_some() {
                continue;
            }
            if !std::mem::take(&mut first) {
                row.value.push(b'\t');
            }
            let field = record.column(at).expect("at is below the number of columns");
            if schema.escapes() {
                escape(field, &mut row.value);
            } else {
                row.value.extend_from_slice(field);
            }
        }
        if !whole && !first {
            mark(&mut row.value);
        }
        Ok(())
    }

    /// The key that `text` names: its columns with a tab between them, escaped where the table escapes.
    pub fn key_from_text(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let Some(schema) = &self.schema else { return Ok(text.to_vec()) };
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

    /// Where the keys begin that start with `text`: like a key, but the last columns may be missing, and a text may be
    /// cut anywhere. A tab after a column says that it is complete.
    pub fn bound_from_text(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let Some(schema) = &self.schema else { return Ok(text.to_vec()) };
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
                Kind::Text if cut && !last => keys::encode_open(text, &mut bound),
                kind if kind.is_numeric() && cut && text.is_empty() => {}
                kind => keys::encode(kind, text, last, &mut bound).map_err(|bad| format!("key: {bad}"))?,
            }
        }
        Ok(bound)
    }

    /// The row that `put` was given: the key's text, and the rest of the row as `scan --format tsv` would show it.
    pub fn row_from_texts(&self, key: &[u8], rest: Option<&[u8]>) -> Result<Row, String> {
        let mut row = Row { key: self.key_from_text(key)?, value: Vec::new() };
        let Some(schema) = &self.schema else {
            row.value = rest.unwrap_or_default().to_vec();
            return Ok(row);
        };
        let key_texts = self.key_texts(key)?;
        if schema.format == Format::Jsonl {
            row.value = object::with_key(schema, &key_texts, rest.unwrap_or(b"{}"), &row.key)?;
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
                    None if at < self.in_key.len() => {
                        return Err(format!(
                            "column {} is part of the key, so a row needs at least {} beside its key; write them with a \
                             tab between them",
                            self.in_key.len(),
                            crate::size::of((self.in_key.len() - schema.key.len()) as u64, "column")
                        ));
                    }
                    None => break,
                },
            }
        }
        if !schema.escapes() && record.iter().flatten().any(|byte| matches!(byte, b'\n' | b'\t')) {
            return Err("a row of a TSV table cannot hold a line end, nor a column a tab; take them out".to_string());
        }
        self.encode(&record, &mut row)?;
        Ok(row)
    }

    /// Texts of the key columns, most significant first; empty if the bytes are not a key of this schema.
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

    /// A key's columns from its text. A table with one key column that escapes nothing takes a tab as it is.
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

    fn split(&self, text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
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

/// Tells the value of a row with other columns from one without.
pub fn mark(value: &mut Vec<u8>) {
    if value.first().is_none_or(|byte| *byte == 0) {
        value.insert(0, 0);
    }
}

/// The other columns in a marked value, tab between them; `None` if there are none.
pub fn unmark(value: &[u8]) -> Option<&[u8]> {
    match value.first() {
        None => None,
        Some(0) => Some(&value[1..]),
        Some(_) => Some(value),
    }
}
