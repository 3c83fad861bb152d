//! What a field of a tuple can be, and the words that declare it. This module knows neither values nor their bytes.
//!
//! ```text
//! type:  kind [ "?" ] [ "desc" ]        u32    i64 desc    string?    bytes[16]? desc
//! ```

use crate::scanner::{BadText, Scanner};
use std::fmt;

/// What a field holds. The kind also says how its values are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `false` before `true`.
    Bool,
    /// A whole number from 0, of 8 bits.
    U8,
    /// A whole number from 0, of 16 bits.
    U16,
    /// A whole number from 0, of 32 bits.
    U32,
    /// A whole number from 0, of 64 bits.
    U64,
    /// A whole number from 0, of 128 bits.
    U128,
    /// A whole number with a sign, of 8 bits.
    I8,
    /// A whole number with a sign, of 16 bits.
    I16,
    /// A whole number with a sign, of 32 bits.
    I32,
    /// A whole number with a sign, of 64 bits.
    I64,
    /// A whole number with a sign, of 128 bits.
    I128,
    /// A floating-point number of 32 bits. -0.0 is 0.0, and NaN comes after infinity.
    F32,
    /// A floating-point number of 64 bits. -0.0 is 0.0, and NaN comes after infinity.
    F64,
    /// UTF-8 of any length, in the order of its bytes, which is also the order of its characters.
    String,
    /// Any bytes, in byte order.
    Bytes,
    /// Exactly this number of bytes, at least one, in byte order.
    Fixed(u16),
}

/// The names of all kinds except [`Kind::Fixed`], whose name contains its number of bytes.
const NAMES: [(&str, Kind); 15] = [
    ("bool", Kind::Bool),
    ("u8", Kind::U8),
    ("u16", Kind::U16),
    ("u32", Kind::U32),
    ("u64", Kind::U64),
    ("u128", Kind::U128),
    ("i8", Kind::I8),
    ("i16", Kind::I16),
    ("i32", Kind::I32),
    ("i64", Kind::I64),
    ("i128", Kind::I128),
    ("f32", Kind::F32),
    ("f64", Kind::F64),
    ("string", Kind::String),
    ("bytes", Kind::Bytes),
];

impl Kind {
    /// The number of bytes that every value of this kind takes; `None` if different values take different numbers
    /// of bytes.
    pub const fn width(self) -> Option<usize> {
        match self {
            Self::Bool | Self::U8 | Self::I8 => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::U128 | Self::I128 => Some(16),
            Self::Fixed(bytes) => Some(bytes as usize),
            Self::String | Self::Bytes => None,
        }
    }

    /// Whether the kind is a whole number or a floating-point number.
    pub const fn is_number(self) -> bool {
        !matches!(self, Self::Bool | Self::String | Self::Bytes | Self::Fixed(_))
    }

    /// The kind whose name comes next in the text; `None` if no such name comes next.
    pub(crate) fn scan(text: &mut Scanner<'_>) -> Result<Option<Self>, BadText> {
        let word = text.peek_word();
        let Some(&(_, kind)) = NAMES.iter().find(|(name, _)| *name == word) else { return Ok(None) };
        text.takes_word(word);
        if kind != Self::Bytes || !text.takes("[") {
            return Ok(Some(kind));
        }
        let mut before = text.clone();
        let bytes = text.number()?;
        text.expect("]")?;
        match u16::try_from(bytes) {
            Ok(bytes) if bytes > 0 => Ok(Some(Self::Fixed(bytes))),
            _ => before.fail(format!("a field has 1 to {} bytes", u16::MAX)),
        }
    }

    /// Fails because no kind comes next.
    pub(crate) fn missing<T>(text: &mut Scanner<'_>) -> Result<T, BadText> {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        text.fail(format!("a type is expected: one of {}, or bytes[N]", names.join(", ")))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, NAMES.iter().find(|(_, kind)| kind == self)) {
            (_, Some((name, _))) => out.write_str(name),
            (Self::Fixed(bytes), None) => write!(out, "bytes[{bytes}]"),
            (_, None) => unreachable!("every other kind has a name"),
        }
    }
}

/// The type of one field: its kind, whether it may be `none`, and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldType {
    /// What the field holds.
    pub kind: Kind,
    /// Whether the field may be `none`, which comes before all values.
    pub is_optional: bool,
    /// Whether the order is turned around, so that `none` comes last.
    pub is_descending: bool,
}

impl FieldType {
    /// The type of a field that always has a value, in ascending order.
    pub const fn new(kind: Kind) -> Self {
        Self { kind, is_optional: false, is_descending: false }
    }

    /// The same type, but its field may also be `none`.
    ///
    /// # Panics
    ///
    /// Panics if the field is optional or descending already. If the call is in a constant, the compiler reports
    /// an error.
    pub const fn optional(self) -> Self {
        assert!(!self.is_optional, "an `Option` of an `Option` is no field of a tuple");
        assert!(!self.is_descending, "an optional field in descending order is a `Descending<Option<T>>`");
        Self { is_optional: true, ..self }
    }

    /// The type in the opposite order.
    ///
    /// # Panics
    ///
    /// Panics if the field is descending already. If the call is in a constant, the compiler reports an error.
    pub const fn descending(self) -> Self {
        assert!(!self.is_descending, "a `Descending` of a `Descending` is no field of a tuple");
        Self { is_descending: true, ..self }
    }

    /// The type that comes next. If the text names no kind, the kind is `default`.
    pub(crate) fn scan(text: &mut Scanner<'_>, default: Option<Kind>) -> Result<Self, BadText> {
        let Some(kind) = Kind::scan(text)?.or(default) else { return Kind::missing(text) };
        Ok(Self { kind, is_optional: text.takes("?"), is_descending: text.takes_word("desc") })
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = if self.is_optional { "?" } else { "" };
        let descending = if self.is_descending { " desc" } else { "" };
        write!(out, "{}{optional}{descending}", self.kind)
    }
}
