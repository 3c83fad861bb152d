//! Reads rows and keys in the form that `scan` prints, for each kind of table. From the output of
//! [`Printer`](crate::output::Printer), it makes the row that was printed, whatever bytes the row has. See
//! `docs/decisions/0080-what-is-printed-can-be-read.md`.

use super::{BYTE_ORDER_MARK, Stop, Width};
use crate::args::ScanFormat;
use crate::layout::{Layout, Row};
use crate::schema::{Format, Schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::io::BufRead;

/// A reader of printed rows or keys.
pub struct Printed<R> {
    source: R,
    format: ScanFormat,
    /// The line of the last row. Lines are counted from 1.
    pub line: u64,
    text: Vec<u8>,
    width: Width,
}

impl<R: BufRead> Printed<R> {
    /// Starts reading.
    pub fn new(source: R, format: ScanFormat) -> Self {
        Self { source, format, line: 0, text: Vec::new(), width: Width::default() }
    }

    /// Reads the next row. Returns false at the end of the input.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool, Stop> {
        if !self.read_line()? {
            return Ok(false);
        }
        let taken = match (self.format, layout.schema()) {
            (ScanFormat::Tsv, None) => layout.encode_raw_line(&self.text, row),
            (ScanFormat::Tsv, Some(schema)) if schema.format == Format::Jsonl => {
                layout.encode_keyed_object(&self.text, row)
            }
            (ScanFormat::Tsv, Some(_)) => {
                layout.split(&self.text).and_then(|fields| encode(&mut self.width, layout, &fields, row))
            }
            (ScanFormat::Jsonl, schema) => text(&self.text).and_then(|text| match schema {
                None => raw(layout, text, row),
                Some(schema) if schema.format == Format::Jsonl => layout.encode_object(text, row),
                // In a table without a header, the name of a column is its number.
                Some(schema) if schema.columns.is_empty() => {
                    fields(schema, text).and_then(|fields| layout.encode_fields(&fields, row))
                }
                Some(schema) => fields(schema, text).and_then(|fields| encode(&mut self.width, layout, &fields, row)),
            }),
        };
        taken.map_err(|why| Stop::Row(self.line, why))?;
        Ok(true)
    }

    /// Reads the next line as a key. Returns false at the end of the input.
    pub fn next_key(&mut self, layout: &Layout, key: &mut Vec<u8>) -> Result<bool, Stop> {
        if !self.read_line()? {
            return Ok(false);
        }
        let taken = match self.format {
            ScanFormat::Tsv => layout.key_from_text(&self.text),
            ScanFormat::Jsonl => text(&self.text).and_then(|text| {
                let texts = match serde_json::from_str(text).map_err(|why| no_json("key", &why))? {
                    Key::One(text) => vec![text.0],
                    Key::Several(texts) => texts.into_iter().map(|text| text.0).collect(),
                };
                layout.key_from_texts(&texts)
            }),
        };
        *key = taken.map_err(|why| Stop::Row(self.line, why))?;
        Ok(true)
    }

    /// Reads a line. For JSON, blank lines and a byte order mark are skipped. A line of TSV may begin with the same
    /// bytes as such a mark.
    fn read_line(&mut self) -> Result<bool, Stop> {
        loop {
            if !super::read_line(&mut self.source, &mut self.text)? {
                return Ok(false);
            }
            self.line += 1;
            if self.format == ScanFormat::Tsv {
                return Ok(true);
            }
            if self.line == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
                self.text.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }
}

fn encode(width: &mut Width, layout: &Layout, fields: &Vec<Vec<u8>>, row: &mut Row) -> Result<(), String> {
    width.check(layout, fields.len())?;
    layout.encode_fields(fields, row)
}

fn text(line: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(line.trim_ascii());
    text.map_err(|bad| format!("not UTF-8 after {} bytes, and JSON must be", bad.valid_up_to()))
}

fn no_json(what: &str, why: &serde_json::Error) -> String {
    format!("no {what} as scan --format jsonl prints it: {why}")
}

/// A row of a raw table.
fn raw(layout: &Layout, text: &str, row: &mut Row) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        key: Bytes,
        value: Bytes,
    }
    let Raw { key, value } = serde_json::from_str(text).map_err(|why| no_json("row", &why))?;
    row.key = layout.key_from_texts(&[key.0])?;
    row.parts = vec![value.0];
    Ok(())
}

/// The columns of a row of CSV or TSV.
fn fields(schema: &Schema, text: &str) -> Result<Vec<Vec<u8>>, String> {
    let Members(members) = serde_json::from_str(text).map_err(|why| no_json("row", &why))?;
    let names = schema.members();
    let mut fields: Vec<Option<Vec<u8>>> = Vec::new();
    fields.resize_with(members.len(), || None);
    for (name, Bytes(field)) in members {
        let named = names.iter().position(|other| *other == name);
        let at = named.or_else(|| name.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at >= names.len()));
        let Some(at) = at else {
            return Err(format!("the table has no column {name:?}; it has {}", names.join(", ")));
        };
        match fields.get_mut(at) {
            Some(free @ None) => *free = Some(field),
            Some(Some(_)) => return Err(format!("column {name:?} is there twice; write it once")),
            // There are as many members as columns. So if the number of a member's column is too large, another
            // column has no member.
            None => return Err(format!("column {name:?} is there, and one before it is not; write all columns")),
        }
    }
    Ok(fields.into_iter().map(|field| field.expect("each member has a place of its own")).collect())
}

/// A key in JSON: the value of its only column, or a list with the values of its columns.
#[derive(Deserialize)]
#[serde(untagged)]
enum Key {
    One(Bytes),
    Several(Vec<Bytes>),
}

/// The bytes of a value in JSON: a string, or `{"hex":"…"}` if they are not UTF-8.
#[derive(Deserialize)]
#[serde(try_from = "Text")]
struct Bytes(Vec<u8>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or {\"hex\":\"…\"} is expected")]
enum Text {
    String(String),
    Hex(Hex),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hex {
    hex: String,
}

impl TryFrom<Text> for Bytes {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        match text {
            Text::String(text) => Ok(Self(text.into_bytes())),
            Text::Hex(Hex { hex }) => {
                let digit = |digit: u8| char::from(digit).to_digit(16);
                let byte = |pair: &[u8]| match *pair {
                    [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
                    _ => None,
                };
                let bytes = hex.as_bytes().chunks(2).map(byte).collect::<Option<_>>();
                bytes.map(Self).ok_or_else(|| format!("{hex:?} are no bytes: two digits of base 16 each are expected"))
            }
        }
    }
}

/// The members of an object, in their order.
struct Members(Vec<(String, Bytes)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = from.next_entry().map_err(de::Error::custom)? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Object)
    }
}
