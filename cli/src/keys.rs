//! Encodes key columns as bytes that sort like the columns, and decodes them. This module knows nothing of rows,
//! files or tables.
//!
//! The encoding is that of `docs/format/tuple.md`, except that a text in the last column has no end marker.
//!
//! ```text
//! text, last column    the bytes as they are
//! text, others         bytes
//! int                  i64
//! num                  f64, finite
//! ```

use ::rows::{BadText, Declaration, DecodeField, Decoder, Field, FieldValue};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// What a key column contains. This decides how it is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bytes, in byte order.
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A decimal number that is neither infinite nor NaN. It has the precision of an f64.
    Num,
}

impl Kind {
    /// Whether the order is numeric. If so, different texts (such as `7` and `007`) can be the same key.
    pub fn is_numeric(self) -> bool {
        self != Self::Text
    }

    /// The suffix that declares this kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "int",
            Self::Num => "num",
        }
    }
}

/// A text that is not a number, although its column was declared to hold numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct BadNumber {
    text: String,
    kind: Kind,
}

impl fmt::Display for BadNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Int => write!(f, "{:?} is not a whole number of 64 bits", self.text),
            _ => write!(f, "{:?} is not a finite decimal number", self.text),
        }
    }
}

/// Appends a key column. `last` says that no other column follows.
pub fn encode(kind: Kind, text: &[u8], last: bool, key: &mut Vec<u8>) -> Result<(), BadNumber> {
    let bad = || BadNumber { text: String::from_utf8_lossy(text).into_owned(), kind };
    match kind {
        Kind::Text if last => key.extend_from_slice(text),
        Kind::Text => text.encode(key),
        Kind::Int => number::<i64>(text).ok_or_else(bad)?.encode(key),
        Kind::Num => number::<f64>(text).filter(|number| number.is_finite()).ok_or_else(bad)?.encode(key),
    }
    Ok(())
}

fn number<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Appends the text of the first column in `key`, and returns the bytes after this column. Returns `None` if the
/// bytes do not begin with a column of this kind.
pub fn decode<'k>(kind: Kind, key: &'k [u8], last: bool, text: &mut Vec<u8>) -> Option<&'k [u8]> {
    let mut from = Decoder::new(key);
    match kind {
        Kind::Text if last => {
            text.extend_from_slice(key);
            return Some(&[]);
        }
        Kind::Text => text.extend_from_slice(&Cow::<[u8]>::decode(&mut from).ok()?),
        Kind::Int => write!(text, "{}", i64::decode(&mut from).ok()?).expect("memory takes every write"),
        Kind::Num => {
            let number = f64::decode(&mut from).ok()?;
            // The exponent form is used where a plain number would have many zeros. Both forms read back as the same
            // number.
            let written = if number != 0.0 && !(1e-5..1e16).contains(&number.abs()) {
                write!(text, "{number:e}")
            } else {
                write!(text, "{number}")
            };
            written.expect("memory takes every write");
        }
    }
    Some(from.rest())
}

/// What [`decode_cut`] found in a key that may be cut anywhere.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut<'k> {
    /// The column is complete. The bytes after it are kept.
    Whole(&'k [u8]),
    /// The key ends inside this column, or directly behind the column's text.
    Open,
}

/// Like [`decode`], but `key` may be cut anywhere. The appended text stands for the first place in key order that
/// is not before `key`: a cut number becomes the least number whose bytes begin with the remaining bytes, and a cut
/// text keeps its remaining bytes.
pub fn decode_cut<'k>(kind: Kind, key: &'k [u8], last: bool, text: &mut Vec<u8>) -> Option<Cut<'k>> {
    let start = text.len();
    if kind.is_numeric() {
        if let Some(rest) = decode(kind, key, last, text).filter(|rest| !last || rest.is_empty()) {
            return Some(Cut::Whole(rest));
        }
        text.truncate(start);
        let mut number = [0; 8];
        let bytes = key.len().min(8);
        number[..bytes].copy_from_slice(&key[..bytes]);
        // If bytes follow the number in the last column, the key comes after this number and before the next
        // number.
        let after = u64::from_be_bytes(number).checked_add(u64::from(key.len() > 8))?;
        let least = !f64::MIN.to_bits();
        if kind == Kind::Num && after > f64::MAX.to_bits() | 1 << 63 {
            return None;
        }
        // No key has the bits of -0, so the next number is 0.
        let after = if kind == Kind::Num && after == !(-0.0_f64).to_bits() { after + 1 } else { after };
        // No number comes before the least number.
        if kind == Kind::Int || after >= least {
            decode(kind, &after.to_be_bytes(), last, text)?;
        }
        return Some(Cut::Open);
    }
    if let Some(rest) = decode(kind, key, last, text) {
        return Some(if last { Cut::Open } else { Cut::Whole(rest) });
    }
    text.truncate(start);
    // A zero byte at the end is the first half of an escaped zero byte or of the end marker. In every key from here
    // on, one of these stands at this place, so the zero byte can be left out.
    let key = key.strip_suffix(&[0]).unwrap_or(key);
    let rest = decode(kind, &[key, &[0, 0]].concat(), last, text).map(<[u8]>::is_empty)?;
    rest.then_some(Cut::Open)
}

/// The values of a tuple, or `None` if the bytes are not exactly those that these values give.
pub fn tuple_values<'k>(fields: &Declaration, key: &'k [u8]) -> Option<Vec<FieldValue<'k>>> {
    let values = fields.decode(key).ok()?;
    let mut again = Vec::with_capacity(key.len());
    fields.encode(&values, &mut again).ok()?;
    (again == key).then_some(values)
}

/// The text of any bytes in a table whose keys are tuples. Bytes that are no tuple of these fields end in ` + x'…'`, so
/// that they cannot be mistaken for a tuple. [`any_tuple`] reads the text back.
pub fn tuple_text(fields: &Declaration, key: &[u8]) -> String {
    if tuple_values(fields, key).is_some() {
        return fields.show(key);
    }
    let text = fields.show(key);
    match fields.parse_front(&text) {
        Ok(bytes) if bytes == key && text.ends_with('\'') => text,
        Ok(bytes) if bytes == key => format!("{text} + x''"),
        _ => {
            let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("() + x'{digits}'")
        }
    }
}

/// Parses what [`tuple_text`] prints: a whole tuple, or any bytes in the form that ends in ` + x'…'`. Messages call
/// the tuple `what`.
pub fn any_tuple(fields: &Declaration, what: &str, text: &[u8]) -> Result<Vec<u8>, String> {
    if text.ends_with(b"'") { tuple_front(fields, what, text) } else { tuple(fields, what, text) }
}

/// Parses a tuple such as `(17, "Bonn")` to its bytes. Messages call the tuple `what`.
pub fn tuple(fields: &Declaration, what: &str, text: &[u8]) -> Result<Vec<u8>, String> {
    read_tuple(fields, what, text, Declaration::parse_key)
}

/// Parses the first fields of a tuple, or all of them, to the bytes with which all such tuples begin. The text may
/// also be any bytes in the form in which [`Declaration::show`] prints them.
pub fn tuple_front(fields: &Declaration, what: &str, text: &[u8]) -> Result<Vec<u8>, String> {
    read_tuple(fields, what, text, Declaration::parse_front)
}

fn read_tuple(
    fields: &Declaration,
    what: &str,
    text: &[u8],
    parse: impl Fn(&Declaration, &str) -> Result<Vec<u8>, BadText>,
) -> Result<Vec<u8>, String> {
    let wrong = |text: &str, why: &dyn fmt::Display| {
        format!("{text} is no {what}, which has the fields {fields}: {why}; write it as in (17, \"abc\")")
    };
    match std::str::from_utf8(text) {
        Ok(text) => parse(fields, text).map_err(|error| wrong(text, &error)),
        Err(_) => Err(wrong(&String::from_utf8_lossy(text), &"it is not UTF-8")),
    }
}
