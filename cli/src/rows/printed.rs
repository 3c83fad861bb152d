//! Reads rows and keys in the form that `scan` prints, for each kind of table. From the output of
//! [`Printer`](crate::output::Printer), it makes the row that was printed, whatever bytes the row has. See
//! `docs/decisions/0080-what-is-printed-can-be-read.md`.

use super::csv::Csv;
use super::{BYTE_ORDER_MARK, Stop, Width};
use crate::args::TextFormat;
use crate::keys;
use crate::layout::{KEY, Layout, Record, Row};
use crate::object;
use crate::schema::{Format, Schema};
use ::csv::ByteRecord;
use ::rows::Kind;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::BufRead;

/// A reader of printed rows or keys.
pub enum Printed<R> {
    /// Comma-separated values, whose rows may have several lines.
    Csv {
        /// The parser.
        csv: Box<Csv<R>>,
        /// Whether the header was read, or is known to be missing.
        is_past_header: bool,
    },
    /// Each row is a line.
    Lines(Lines<R>),
}

/// The lines of an input.
pub struct Lines<R> {
    source: R,
    is_json: bool,
    /// The number of the last line. Lines are counted from 1.
    line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Printed<R> {
    /// Starts reading.
    pub fn new(source: R, format: TextFormat) -> Self {
        let is_json = format == TextFormat::Jsonl;
        match format {
            TextFormat::Csv => {
                let csv = Box::new(Csv::new(source, false).expect("nothing is read without a header"));
                Self::Csv { csv, is_past_header: false }
            }
            TextFormat::Tsv | TextFormat::Jsonl => Self::Lines(Lines { source, is_json, line: 0, text: Vec::new() }),
        }
    }

    /// The line of the last row. Lines are counted from 1.
    pub fn line(&self) -> u64 {
        match self {
            Self::Csv { csv, .. } => csv.line,
            Self::Lines(lines) => lines.line,
        }
    }

    /// Reads the next row. Returns false at the end of the input.
    pub fn next(&mut self, layout: &Layout, row: &mut Row) -> Result<bool, Stop> {
        let is_read = match self {
            Self::Csv { .. } => self.next_record(layout, false)?,
            Self::Lines(lines) => lines.read(layout)?,
        };
        if !is_read {
            return Ok(false);
        }
        let taken = match self {
            Self::Csv { csv, .. } => of_record(layout, &csv.record, row),
            Self::Lines(lines) if lines.is_json => text(&lines.text).and_then(|text| match layout.schema() {
                None => raw(layout, text, row),
                Some(schema) if schema.format == Format::Jsonl => layout.encode_object(text, row),
                Some(schema) => fields(layout, schema, text).and_then(|fields| encode(layout, &fields, row)),
            }),
            Self::Lines(lines) => match layout.schema() {
                None => layout.encode_raw_line(&lines.text, row),
                Some(schema) if schema.format == Format::Jsonl => layout.encode_keyed_object(&lines.text, row),
                Some(_) => layout.split(&lines.text).and_then(|fields| encode(layout, &fields, row)),
            },
        };
        taken.map_err(|why| Stop::Row(self.line(), why))?;
        Ok(true)
    }

    /// Reads the next line as a key. Returns false at the end of the input.
    pub fn next_key(&mut self, layout: &Layout, key: &mut Vec<u8>) -> Result<bool, Stop> {
        let is_read = match self {
            Self::Csv { .. } => self.next_record(layout, true)?,
            Self::Lines(lines) => lines.read_line()?,
        };
        if !is_read {
            return Ok(false);
        }
        let taken = match self {
            Self::Csv { csv, .. } => layout.key_from_texts(&texts(&csv.record)),
            Self::Lines(lines) if lines.is_json => text(&lines.text).and_then(|text| json_key(layout, text)),
            Self::Lines(lines) => layout.key_from_text(&lines.text),
        };
        *key = taken.map_err(|why| Stop::Row(self.line(), why))?;
        Ok(true)
    }

    /// Reads the next row of CSV, and before the first row the header.
    fn next_record(&mut self, layout: &Layout, keys: bool) -> Result<bool, Stop> {
        let Self::Csv { csv, is_past_header } = self else { unreachable!("the caller has looked") };
        if !csv.read()? {
            return Ok(false);
        }
        if std::mem::replace(is_past_header, true) {
            return Ok(true);
        }
        let Some(header) = layout.header(keys, &[], |_| true) else { return Ok(true) };
        if csv.record.iter().ne(header.iter().map(String::as_bytes)) {
            let header = header.join(",");
            return Err(Stop::Row(
                csv.line,
                format!("the first row is to be the header, {header}, as scan --format csv prints it; add it"),
            ));
        }
        csv.read()
    }
}

impl<R: BufRead> Lines<R> {
    /// Reads the line of a row. At the beginning of TSV, a byte order mark is skipped if the table is one of TSV: scan
    /// prints a second mark there if the row itself begins with one.
    fn read(&mut self, layout: &Layout) -> Result<bool, Stop> {
        let is_read = self.read_line()?;
        let may_have_mark = !self.is_json && layout.schema().is_some_and(|schema| schema.format == Format::Tsv);
        if self.line == 1 && may_have_mark && self.text.starts_with(BYTE_ORDER_MARK) {
            self.text.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(is_read)
    }

    /// Reads a line. For JSON, blank lines and a byte order mark are skipped. A line of TSV may begin with the same
    /// bytes as such a mark.
    fn read_line(&mut self) -> Result<bool, Stop> {
        loop {
            if !super::read_line(&mut self.source, &mut self.text)? {
                return Ok(false);
            }
            self.line += 1;
            if !self.is_json {
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

fn texts(record: &ByteRecord) -> Vec<Vec<u8>> {
    record.iter().map(<[u8]>::to_vec).collect()
}

/// A row from a row of CSV.
fn of_record(layout: &Layout, record: &ByteRecord, row: &mut Row) -> Result<(), String> {
    let count = |wanted: usize| {
        if record.len() == wanted {
            return Ok(());
        }
        let found = crate::size::of(record.len() as u64, "column");
        Err(format!("the row has {found} and the header {wanted}; put a text with a comma or a line end in quotes"))
    };
    match layout.schema() {
        None => {
            count(2)?;
            row.key = layout.key_from_texts(&[record[0].to_vec()])?;
            row.parts = vec![record[1].to_vec()];
            Ok(())
        }
        Some(schema) if schema.format == Format::Jsonl => {
            count(schema.key.len() + 1)?;
            let mut texts = texts(record);
            let object = texts.pop().expect("there are as many as in the header");
            layout.encode_object_of_key(&texts, &object, row)
        }
        Some(_) => encode(layout, record, row),
    }
}

/// The key in a line of JSON.
fn json_key(layout: &Layout, text: &str) -> Result<Vec<u8>, String> {
    let value: &RawValue = serde_json::from_str(text).map_err(|why| no_json("key", &why))?;
    key_of_json(layout, value)
}

/// A key in JSON: the value of its only column, or a list with the values of its columns. A tuple is a list of its
/// fields, or the string of its text.
fn key_of_json(layout: &Layout, value: &RawValue) -> Result<Vec<u8>, String> {
    if !value.get().starts_with('[') {
        let is_number = layout.key_columns().first().is_some_and(|column| column.kind.is_numeric());
        return layout.key_from_texts(&[bytes(value, is_number)?]);
    }
    let values: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|why| no_json("key", &why))?;
    if let Some(fields) = layout.tuple() {
        let kinds = fields.fields().iter().map(|field| Some(field.kind)).chain(std::iter::repeat(None));
        let texts =
            values.iter().zip(kinds).map(|(value, kind)| field_of_json(value, kind)).collect::<Result<Vec<_>, _>>()?;
        return keys::tuple(fields, KEY, format!("({})", texts.join(", ")).as_bytes());
    }
    let kinds = layout.key_columns().iter().map(|column| column.kind.is_numeric()).chain(std::iter::repeat(false));
    let texts =
        values.iter().zip(kinds).map(|(value, is_number)| bytes(value, is_number)).collect::<Result<Vec<_>, _>>()?;
    layout.key_from_texts(&texts)
}

/// The text of a field of a tuple. The kind is `None` if the tuple has no such field.
fn field_of_json(value: &RawValue, kind: Option<Kind>) -> Result<String, String> {
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'n') => Ok("none".to_owned()),
        Some(b'"') => {
            let text: String = serde_json::from_str(json).map_err(|why| no_json("key", &why))?;
            // A number that JSON does not have is printed as a string.
            let is_number = matches!(kind, Some(Kind::F32 | Kind::F64));
            Ok(if is_number { text } else { ::rows::quoted(&text, '"') })
        }
        Some(b'{') => {
            let digits: String = bytes(value, false)?.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(format!("x'{digits}'"))
        }
        _ => Ok(json.to_owned()),
    }
}

/// Encodes a row of CSV or TSV. It has as many columns as the header. In a table without a header, each row may have
/// another number of columns.
fn encode(layout: &Layout, fields: &impl Record, row: &mut Row) -> Result<(), String> {
    if layout.schema().is_some_and(|schema| !schema.columns.is_empty()) {
        Width::default().check(layout, fields.columns())?;
    }
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
    struct Raw<'t> {
        #[serde(borrow)]
        key: &'t RawValue,
        #[serde(borrow)]
        value: &'t RawValue,
    }
    let Raw { key, value } = serde_json::from_str(text).map_err(|why| no_json("row", &why))?;
    row.key = key_of_json(layout, key)?;
    row.parts = vec![bytes(value, false)?];
    Ok(())
}

/// The columns of a row of CSV or TSV.
fn fields(layout: &Layout, schema: &Schema, text: &str) -> Result<Vec<Vec<u8>>, String> {
    let Members(members) = serde_json::from_str(text).map_err(|why| no_json("row", &why))?;
    let names = schema.members();
    let mut fields: Vec<Option<Vec<u8>>> = Vec::new();
    fields.resize_with(members.len(), || None);
    for (name, value) in members {
        let named = names.iter().position(|other| *other == name);
        let at = named.or_else(|| name.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at >= names.len()));
        let Some(at) = at else {
            return Err(format!("the table has no column {name:?}; it has {}", names.join(", ")));
        };
        let is_number = layout.in_key(at).is_some_and(|place| schema.key[place].kind.is_numeric());
        match fields.get_mut(at) {
            Some(free @ None) => *free = Some(bytes(value, is_number)?),
            Some(Some(_)) => return Err(format!("column {name:?} is there twice; write it once")),
            // There are as many members as columns. So if the number of a member's column is too large, another
            // column has no member.
            None => return Err(format!("column {name:?} is there, and one before it is not; write all columns")),
        }
    }
    Ok(fields.into_iter().map(|field| field.expect("each member has a place of its own")).collect())
}

/// The bytes of a value in JSON: a string, or `{"hex":"…"}` if they are not UTF-8. If `is_number`, the value may also
/// be a number, whose bytes are its text.
fn bytes(value: &RawValue, is_number: bool) -> Result<Vec<u8>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Hex {
        hex: String,
    }
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map(String::into_bytes).map_err(|why| no_json("row", &why)),
        Some(b'{') => {
            let Hex { hex } = serde_json::from_str(json).map_err(|why| no_json("row", &why))?;
            let digit = |digit: u8| char::from(digit).to_digit(16);
            let byte = |pair: &[u8]| match *pair {
                [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
                _ => None,
            };
            let bytes = hex.as_bytes().chunks(2).map(byte).collect::<Option<_>>();
            bytes.ok_or_else(|| format!("{hex:?} are no bytes: two digits of base 16 each are expected"))
        }
        _ if is_number && object::is_number(json.as_bytes()) => Ok(json.as_bytes().to_vec()),
        _ => Err(format!("{json} is there, and a string or {{\"hex\":\"…\"}} is expected")),
    }
}

/// The members of an object, in their order.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Members<'de>, A::Error> {
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
