//! A field whose type is known only when the program runs: its bytes, its text, and how both are read back. This
//! module knows one field at a time.

use crate::decoder::{Decoder, Mistake};
use crate::field::{DecodeField, Field};
use crate::field_type::{FieldType, Kind};
use crate::scanner::{BadText, Scanner, push_hex, push_literal};
use std::borrow::Cow;
use std::fmt;

/// The value of a field.
///
/// `Display` writes it as in the text of a key: `17`, `-3`, `0.5`, `"abc"`, `x'00ff'`, `true`, `none`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldValue<'v> {
    /// No value.
    None,
    /// A value of kind `bool`.
    Bool(bool),
    /// A value of the kinds `u8` to `u128`.
    Unsigned(u128),
    /// A value of the kinds `i8` to `i128`.
    Signed(i128),
    /// A value of kind `f32`.
    F32(f32),
    /// A value of kind `f64`.
    F64(f64),
    /// A value of kind `string`.
    String(Cow<'v, str>),
    /// A value of the kinds `bytes` and `bytes[N]`.
    Bytes(Cow<'v, [u8]>),
}

/// Why a value cannot be a field of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The value is of another kind.
    #[error("{value} is not of type {kind}")]
    Kind {
        /// The value as text.
        value: String,
        /// The kind of the field.
        kind: Kind,
    },
    /// The value is a number outside the range of the type.
    #[error("{value} is outside the range of {kind}")]
    Range {
        /// The value as text.
        value: String,
        /// The kind of the field.
        kind: Kind,
    },
    /// The value has another number of bytes than the type.
    #[error("{bytes} bytes are not of type {kind}")]
    Length {
        /// The number of bytes of the value.
        bytes: usize,
        /// The kind of the field.
        kind: Kind,
    },
    /// The value is `none`, and the field is not optional.
    #[error("only a field that is declared with `?` can be none")]
    None,
}

impl<'v> FieldValue<'v> {
    /// The same value, but it borrows nothing.
    pub fn into_owned(self) -> FieldValue<'static> {
        match self {
            Self::None => FieldValue::None,
            Self::Bool(value) => FieldValue::Bool(value),
            Self::Unsigned(value) => FieldValue::Unsigned(value),
            Self::Signed(value) => FieldValue::Signed(value),
            Self::F32(value) => FieldValue::F32(value),
            Self::F64(value) => FieldValue::F64(value),
            Self::String(value) => FieldValue::String(Cow::Owned(value.into_owned())),
            Self::Bytes(value) => FieldValue::Bytes(Cow::Owned(value.into_owned())),
        }
    }

    /// Appends the bytes of the value as a field of `field_type`. If the value cannot be such a field, nothing is
    /// appended.
    pub(crate) fn encode(&self, field_type: FieldType, key: &mut Vec<u8>) -> Result<(), Misfit> {
        let start = key.len();
        match (self, field_type.is_optional) {
            (Self::None, true) => key.push(0),
            (Self::None, false) => return Err(Misfit::None),
            (value, is_optional) => {
                if is_optional {
                    key.push(1);
                }
                if let Err(misfit) = value.encode_plain(field_type.kind, key) {
                    key.truncate(start);
                    return Err(misfit);
                }
            }
        }
        if field_type.is_descending {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(())
    }

    fn encode_plain(&self, kind: Kind, key: &mut Vec<u8>) -> Result<(), Misfit> {
        /// Appends a whole number of type `N`.
        fn whole<N, W>(number: W, key: &mut Vec<u8>, range: impl FnOnce() -> Misfit) -> Result<(), Misfit>
        where
            N: Field + TryFrom<W>,
        {
            N::try_from(number).map_err(|_| range())?.encode(key);
            Ok(())
        }
        let range = || Misfit::Range { value: self.to_string(), kind };
        match (self, kind) {
            (Self::Bool(value), Kind::Bool) => value.encode(key),
            (&Self::Unsigned(value), Kind::U8) => whole::<u8, _>(value, key, range)?,
            (&Self::Unsigned(value), Kind::U16) => whole::<u16, _>(value, key, range)?,
            (&Self::Unsigned(value), Kind::U32) => whole::<u32, _>(value, key, range)?,
            (&Self::Unsigned(value), Kind::U64) => whole::<u64, _>(value, key, range)?,
            (Self::Unsigned(value), Kind::U128) => value.encode(key),
            (&Self::Signed(value), Kind::I8) => whole::<i8, _>(value, key, range)?,
            (&Self::Signed(value), Kind::I16) => whole::<i16, _>(value, key, range)?,
            (&Self::Signed(value), Kind::I32) => whole::<i32, _>(value, key, range)?,
            (&Self::Signed(value), Kind::I64) => whole::<i64, _>(value, key, range)?,
            (Self::Signed(value), Kind::I128) => value.encode(key),
            (Self::F32(value), Kind::F32) => value.encode(key),
            (Self::F64(value), Kind::F64) => value.encode(key),
            (Self::String(value), Kind::String) => value.encode(key),
            (Self::Bytes(value), Kind::Bytes) => value.encode(key),
            (Self::Bytes(value), Kind::Fixed(bytes)) => {
                if value.len() != usize::from(bytes) {
                    return Err(Misfit::Length { bytes: value.len(), kind });
                }
                key.extend_from_slice(value);
            }
            _ => return Err(Misfit::Kind { value: self.to_string(), kind }),
        }
        Ok(())
    }

    /// Reads a field of `field_type`.
    pub(crate) fn decode(field_type: FieldType, from: &mut Decoder<'v>) -> Result<Self, Mistake> {
        let read = |from: &mut Decoder<'v>| match field_type.is_optional && !from.flag()? {
            true => Ok(Self::None),
            false => Self::decode_plain(field_type.kind, from),
        };
        if field_type.is_descending { from.inverted(read) } else { read(from) }
    }

    fn decode_plain(kind: Kind, from: &mut Decoder<'v>) -> Result<Self, Mistake> {
        Ok(match kind {
            Kind::Bool => Self::Bool(bool::decode(from)?),
            Kind::U8 => Self::Unsigned(u8::decode(from)?.into()),
            Kind::U16 => Self::Unsigned(u16::decode(from)?.into()),
            Kind::U32 => Self::Unsigned(u32::decode(from)?.into()),
            Kind::U64 => Self::Unsigned(u64::decode(from)?.into()),
            Kind::U128 => Self::Unsigned(u128::decode(from)?),
            Kind::I8 => Self::Signed(i8::decode(from)?.into()),
            Kind::I16 => Self::Signed(i16::decode(from)?.into()),
            Kind::I32 => Self::Signed(i32::decode(from)?.into()),
            Kind::I64 => Self::Signed(i64::decode(from)?.into()),
            Kind::I128 => Self::Signed(i128::decode(from)?),
            Kind::F32 => Self::F32(f32::decode(from)?),
            Kind::F64 => Self::F64(f64::decode(from)?),
            Kind::String => Self::String(from.escaped_text()?),
            Kind::Bytes => Self::Bytes(from.escaped()?),
            Kind::Fixed(bytes) => Self::Bytes(from.bytes(bytes.into())?),
        })
    }

    /// Parses a number or a `bool`; `None` if `text` is not a value of this kind.
    pub(crate) fn of_word(kind: Kind, text: &str) -> Option<FieldValue<'static>> {
        Some(match kind {
            Kind::Bool => FieldValue::Bool(text.parse().ok()?),
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::U128 => FieldValue::Unsigned(text.parse().ok()?),
            Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 | Kind::I128 => FieldValue::Signed(text.parse().ok()?),
            Kind::F32 => FieldValue::F32(text.parse().ok()?),
            Kind::F64 => FieldValue::F64(text.parse().ok()?),
            Kind::String | Kind::Bytes | Kind::Fixed(_) => return None,
        })
    }

    /// The value that comes next in a text, as `Display` writes it.
    pub(crate) fn scan(field_type: FieldType, text: &mut Scanner<'_>) -> Result<FieldValue<'static>, BadText> {
        if text.takes_word("none") {
            return Ok(FieldValue::None);
        }
        match field_type.kind {
            Kind::String => text.literal('"').map(|content| FieldValue::String(content.into())),
            Kind::Bytes | Kind::Fixed(_) => text.hex().map(|bytes| FieldValue::Bytes(bytes.into())),
            kind => {
                let mut before = text.clone();
                let word = text.token();
                let value = Self::of_word(kind, word);
                value.map_or_else(|| before.fail(format!("a value of type {kind} is expected, not `{word}`")), Ok)
            }
        }
    }
}

impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        match self {
            Self::None => return out.write_str("none"),
            Self::Bool(value) => return write!(out, "{value}"),
            Self::Unsigned(value) => return write!(out, "{value}"),
            Self::Signed(value) => return write!(out, "{value}"),
            Self::F32(value) if value.is_nan() => return out.write_str("nan"),
            Self::F64(value) if value.is_nan() => return out.write_str("nan"),
            // `Debug` writes a point or an exponent, and the shortest text that is read back as the same number.
            Self::F32(value) => return write!(out, "{value:?}"),
            Self::F64(value) => return write!(out, "{value:?}"),
            Self::String(value) => push_literal(value, '"', &mut text),
            Self::Bytes(value) => push_hex(value, &mut text),
        }
        out.write_str(&text)
    }
}
