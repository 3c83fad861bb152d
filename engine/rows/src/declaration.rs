//! A declaration: the types of a tuple's fields, as a value. With it a program that was not written for a table can
//! show the keys of the table and read them from text. This module knows no rows.
//!
//! ```text
//! declaration:  type { "," type }            u32, i64 desc, string, bytes?
//! key:          "(" [ value { "," value } ] ")"
//! beginning:    "(" [ value { "," value } [ ".." ] ] ")" [ "+" bytes ]
//! ```

use crate::decoder::{BadTuple, Decoder};
use crate::field::END;
use crate::field_type::{FieldType, Kind};
use crate::scanner::{BadText, Scanner, push_hex};
use crate::stored::{self, BadStored};
use crate::tuple::Tuple;
use crate::value::{FieldValue, Misfit};
use std::fmt::{self, Write as _};
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// The types of a tuple's fields. It is parsed from text, and `Display` writes it as text.
///
/// ```
/// use larch_rows::{Declaration, Descending, Tuple};
///
/// let declaration: Declaration = "u32, i64 desc, string, bytes?".parse()?;
/// let key = declaration.parse_key(r#"(17, -3, "abc", none)"#)?;
/// assert_eq!(key, (17_u32, Descending(-3_i64), "abc", None::<&[u8]>).to_key());
/// assert_eq!(declaration.show(&key), r#"(17, -3, "abc", none)"#);
/// # Ok::<(), larch_rows::BadText>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Declaration {
    fields: Vec<FieldType>,
}

/// Why values are not the fields of a declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// A value cannot be the field at this place.
    #[error("field {field} ({field_type}): {misfit}")]
    Field {
        /// Number of the field, from 0.
        field: usize,
        /// The type that it should have.
        field_type: FieldType,
        /// Why the value does not have that type.
        misfit: Misfit,
    },
    /// The number of values differs from the number of fields.
    #[error("the number of values is {values}, and the number of fields {fields}")]
    Count {
        /// How many were given.
        values: usize,
        /// How many are declared.
        fields: usize,
    },
}

impl Declaration {
    /// The declaration of fields with the given types. At least one type is needed.
    ///
    /// # Panics
    ///
    /// Panics if `fields` is empty, or if a field is of kind `bytes[0]`, which has no value.
    pub fn new(fields: impl Into<Vec<FieldType>>) -> Self {
        let fields = fields.into();
        assert!(!fields.is_empty(), "a declaration has a field at least");
        assert!(fields.iter().all(|field| field.kind.width() != Some(0)), "a field has a byte at least");
        Self { fields }
    }

    /// The declaration of the types of a tuple with at least one field.
    ///
    /// # Panics
    ///
    /// Panics if the tuple has no field.
    pub fn of<T: Tuple>() -> Self {
        Self::new(T::TYPES)
    }

    /// The types of all fields, at least one.
    pub fn fields(&self) -> &[FieldType] {
        &self.fields
    }

    /// The declaration as bytes that can be stored: a version and its text; see `docs/format/tuple.md`.
    pub fn to_bytes(&self) -> Vec<u8> {
        stored::to_bytes(&self.to_string())
    }

    /// Reads a declaration that was stored.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a declaration, or if they have a version that this release does not know.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadStored> {
        Ok(stored::text_of(bytes)?.parse()?)
    }

    /// Appends the key of these values.
    ///
    /// # Errors
    ///
    /// Fails if the number of values is not the number of fields, or if a value has another type than its field.
    /// After an error, nothing is appended.
    pub fn encode(&self, values: &[FieldValue<'_>], key: &mut Vec<u8>) -> Result<(), BadValue> {
        if values.len() < self.fields.len() {
            return Err(BadValue::Count { values: values.len(), fields: self.fields.len() });
        }
        self.encode_front(values, key)
    }

    /// Appends the beginning of a key: the values of its first fields.
    ///
    /// # Errors
    ///
    /// Fails if more values than fields are given, or if a value has another type than its field. After an error,
    /// nothing is appended.
    pub fn encode_front(&self, values: &[FieldValue<'_>], key: &mut Vec<u8>) -> Result<(), BadValue> {
        if values.len() > self.fields.len() {
            return Err(BadValue::Count { values: values.len(), fields: self.fields.len() });
        }
        let start = key.len();
        for (field, (value, &field_type)) in values.iter().zip(&self.fields).enumerate() {
            if let Err(misfit) = value.encode(field_type, key) {
                key.truncate(start);
                return Err(BadValue::Field { field, field_type, misfit });
            }
        }
        Ok(())
    }

    /// The values of a key.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a key of this declaration, or if more bytes follow the key.
    pub fn decode<'k>(&self, key: &'k [u8]) -> Result<Vec<FieldValue<'k>>, BadTuple> {
        let mut from = Decoder::new(key);
        let values = self.decode_from(&mut from)?;
        from.finish()?;
        Ok(values)
    }

    /// The values of a key, and the bytes that follow the key.
    ///
    /// # Errors
    ///
    /// Fails if the bytes do not begin with a key of this declaration.
    pub fn decode_front<'k>(&self, key: &'k [u8]) -> Result<(Vec<FieldValue<'k>>, &'k [u8]), BadTuple> {
        let mut from = Decoder::new(key);
        let values = self.decode_from(&mut from)?;
        Ok((values, from.rest()))
    }

    fn decode_from<'k>(&self, from: &mut Decoder<'k>) -> Result<Vec<FieldValue<'k>>, BadTuple> {
        let field = |(field, &field_type): (usize, &FieldType)| {
            FieldValue::decode(field_type, from).map_err(|mistake| from.locate(field, field_type, mistake))
        };
        self.fields.iter().enumerate().map(field).collect()
    }

    /// The value of one field of a key.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a key of this declaration, or if more bytes follow the key.
    ///
    /// # Panics
    ///
    /// Panics if no field has the number `field`. The first field has the number 0.
    pub(crate) fn decode_field<'k>(&self, key: &'k [u8], field: usize) -> Result<FieldValue<'k>, BadTuple> {
        Ok(self.decode(key)?.swap_remove(field))
    }

    /// Shows any bytes as text, such as `(17, -3, "abc")`. If only the first bytes are fields of a key, the
    /// remaining bytes are written after the fields, as in `(17) + x'80'`. [`parse_front`](Self::parse_front) reads
    /// the text back.
    pub fn show(&self, bytes: &[u8]) -> String {
        let (mut from, mut text) = (Decoder::new(bytes), String::from("("));
        for (field, &field_type) in self.fields.iter().enumerate() {
            let before = from.clone();
            let Ok(value) = FieldValue::decode(field_type, &mut from) else {
                from = before;
                break;
            };
            let comma = if field > 0 { ", " } else { "" };
            write!(text, "{comma}{value}").expect("memory takes every write");
        }
        text.push(')');
        if !from.rest().is_empty() {
            text.push_str(" + ");
            push_hex(from.rest(), &mut text);
        }
        text
    }

    /// The bytes of a key from its text.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a list in brackets with one value for each field.
    pub fn parse_key(&self, text: &str) -> Result<Vec<u8>, BadText> {
        let (mut text, mut key) = (Scanner::new(text), Vec::new());
        let scanned = self.scan(&mut text, &mut key)?;
        if scanned.is_open || scanned.values < self.fields.len() {
            return text.fail(format!("a key has one whole value for each field: {self}"));
        }
        text.expect_end()?;
        Ok(key)
    }

    /// Reads the beginning of a key from its text. The beginning may have fewer values than the key, as in `(17)`
    /// or `()`. It may end with the start of a string or of bytes, as in `(17, "ab"..)`. Any bytes may follow the
    /// values, as [`show`](Self::show) writes them.
    ///
    /// # Errors
    ///
    /// Fails if the text is not the beginning of a key.
    pub fn parse_front(&self, text: &str) -> Result<Vec<u8>, BadText> {
        let (mut text, mut key) = (Scanner::new(text), Vec::new());
        let scanned = self.scan(&mut text, &mut key)?;
        if !scanned.is_open && text.takes("+") {
            key.extend(text.hex()?);
        }
        text.expect_end()?;
        Ok(key)
    }

    /// Appends the bytes of the next values in brackets.
    fn scan(&self, text: &mut Scanner<'_>, key: &mut Vec<u8>) -> Result<Scanned, BadText> {
        text.expect("(")?;
        let mut values = 0;
        if text.takes(")") {
            return Ok(Scanned { values, is_open: false });
        }
        loop {
            let Some(&field_type) = self.fields.get(values) else {
                return text.fail(format!("there is no further field: {self}"));
            };
            let mut before = text.clone();
            let value = FieldValue::scan(field_type, text)?;
            value.encode(field_type, key).or_else(|misfit| before.fail(misfit.to_string()))?;
            values += 1;
            let has_end = matches!(field_type.kind, Kind::String | Kind::Bytes) && value != FieldValue::None;
            if has_end && text.takes("..") {
                text.expect(")")?;
                key.truncate(key.len() - END.len());
                return Ok(Scanned { values, is_open: true });
            }
            if text.takes(")") {
                return Ok(Scanned { values, is_open: false });
            }
            if !text.takes(",") {
                return text.fail("`,` or `)` is expected");
            }
        }
    }

    /// The declaration that comes next in a text.
    pub(crate) fn scan_types(text: &mut Scanner<'_>) -> Result<Self, BadText> {
        let mut fields = vec![FieldType::scan(text, None)?];
        while text.takes(",") {
            fields.push(FieldType::scan(text, None)?);
        }
        Ok(Self { fields })
    }
}

/// What a text in brackets contained.
struct Scanned {
    values: usize,
    /// Whether the last value is only the beginning of a longer value.
    is_open: bool,
}

impl FromStr for Declaration {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let mut text = Scanner::new(text);
        let declaration = Self::scan_types(&mut text)?;
        text.expect_end()?;
        Ok(declaration)
    }
}

impl fmt::Display for Declaration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, field) in self.fields.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(out, "{comma}{field}")?;
        }
        Ok(())
    }
}
