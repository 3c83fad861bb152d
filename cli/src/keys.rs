//! Key columns as bytes whose order is the columns' order, and back. It knows nothing of rows, files or tables.
//!
//! ```text
//! text, last column    the bytes as they are
//! text, others         the bytes with 00 written as 00 FF, then 00 00
//! int                  8 bytes, big-endian i64 with its sign bit turned over
//! num                  8 bytes, big-endian f64; sign bit turned over if positive, all bits if negative; -0 is 0
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Write as _;

#[cfg(test)]
mod tests;

/// What a key column holds, and so how it is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Bytes, in byte order.
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A finite decimal number, with the precision of an f64.
    Num,
}

impl Kind {
    /// Whether the order is that of numbers, so that different texts (`7`, `007`) can be one key.
    pub fn is_numeric(self) -> bool {
        self != Self::Text
    }

    /// The suffix that declares it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "int",
            Self::Num => "num",
        }
    }
}

/// A text that is not the number its column was declared to hold.
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
        Kind::Text => {
            encode_open(text, key);
            key.extend_from_slice(&[0, 0]);
        }
        Kind::Int => {
            let number: i64 = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or_else(bad)?;
            key.extend_from_slice(&(number as u64 ^ 1 << 63).to_be_bytes());
        }
        Kind::Num => {
            let number: f64 = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or_else(bad)?;
            if !number.is_finite() {
                return Err(bad());
            }
            // Adding 0 turns -0 into 0.
            let bits = (number + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 };
            key.extend_from_slice(&ordered.to_be_bytes());
        }
    }
    Ok(())
}

/// Appends the beginning of a text column that has columns after it: escaped, not terminated.
pub fn encode_open(text: &[u8], key: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        key.extend_from_slice(&rest[..zero]);
        key.extend_from_slice(&[0, 0xFF]);
        rest = &rest[zero + 1..];
    }
    key.extend_from_slice(rest);
}

/// Appends the text of the first column of `key` and returns what follows it; `None` if the bytes are not such a column.
pub fn decode<'k>(kind: Kind, key: &'k [u8], last: bool, text: &mut Vec<u8>) -> Option<&'k [u8]> {
    match kind {
        Kind::Text if last => {
            text.extend_from_slice(key);
            Some(&[])
        }
        Kind::Text => {
            let mut rest = key;
            loop {
                let zero = rest.iter().position(|byte| *byte == 0)?;
                text.extend_from_slice(&rest[..zero]);
                match rest.get(zero + 1)? {
                    0xFF => text.push(0),
                    0 => return Some(&rest[zero + 2..]),
                    _ => return None,
                }
                rest = &rest[zero + 2..];
            }
        }
        Kind::Int => {
            let (bytes, rest) = key.split_first_chunk::<8>()?;
            write!(text, "{}", (u64::from_be_bytes(*bytes) ^ 1 << 63) as i64).expect("memory takes every write");
            Some(rest)
        }
        Kind::Num => {
            let (bytes, rest) = key.split_first_chunk::<8>()?;
            let ordered = u64::from_be_bytes(*bytes);
            let number = f64::from_bits(if ordered >> 63 == 1 { ordered ^ 1 << 63 } else { !ordered });
            // The exponent form where a plain one would be a row of zeros; both read back as the same number.
            let written = if number != 0.0 && !(1e-5..1e16).contains(&number.abs()) {
                write!(text, "{number:e}")
            } else {
                write!(text, "{number}")
            };
            written.expect("memory takes every write");
            Some(rest)
        }
    }
}

/// A column of a key that may end anywhere.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut<'k> {
    /// The column is whole; these bytes follow it.
    Whole(&'k [u8]),
    /// The key ends in it, or right where its text ends.
    Open,
}

/// As [`decode`], of a key that may be cut anywhere: appends a text that says where the keys begin that are not less. A
/// number that is cut short is the least that begins so; a text is what there is of it.
pub fn decode_cut<'k>(kind: Kind, key: &'k [u8], last: bool, text: &mut Vec<u8>) -> Option<Cut<'k>> {
    if kind.is_numeric() {
        let whole = key.split_first_chunk::<8>().filter(|(_, rest)| !last || rest.is_empty());
        if let Some((number, rest)) = whole {
            decode(kind, number, last, text)?;
            return Some(Cut::Whole(rest));
        }
        let mut number = [0; 8];
        let bytes = key.len().min(8);
        number[..bytes].copy_from_slice(&key[..bytes]);
        // What follows a last column is after its number and before the next one.
        let after = u64::from_be_bytes(number).checked_add(u64::from(key.len() > 8))?;
        let least = !f64::MIN.to_bits();
        if kind == Kind::Num && after > f64::MAX.to_bits() | 1 << 63 {
            return None;
        }
        // Before the least number there is nothing to cut off.
        if kind == Kind::Int || after >= least {
            decode(kind, &after.to_be_bytes(), last, text)?;
        }
        return Some(Cut::Open);
    }
    let start = text.len();
    if let Some(rest) = decode(kind, key, last, text) {
        return Some(if last { Cut::Open } else { Cut::Whole(rest) });
    }
    text.truncate(start);
    // A zero at the end is the first half of an escaped one, or of the end: whatever goes on after the text has either.
    let key = key.strip_suffix(&[0]).unwrap_or(key);
    let rest = decode(kind, &[key, &[0, 0]].concat(), last, text).map(<[u8]>::is_empty)?;
    rest.then_some(Cut::Open)
}
