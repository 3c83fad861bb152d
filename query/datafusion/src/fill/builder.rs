//! Builds an array of one type, from values in the forms that occur in rows: bytes, fields of a tuple, or text.

use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, ArrowPrimitiveType, BinaryViewBuilder, BooleanBuilder, Decimal256Builder,
    FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder, Int64Builder,
    PrimitiveBuilder, StringViewBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use datafusion::arrow::datatypes::i256;
use rows::{DecodeField, Decoder, Kind, Mistake};
use std::str::FromStr;
use std::sync::Arc;

/// The size of an entry in an array of strings or bytes, without its content.
const VIEW_BYTES: usize = 16;

/// An array under construction.
pub enum Builder {
    Bool(BooleanBuilder),
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    I8(Int8Builder),
    I16(Int16Builder),
    I32(Int32Builder),
    I64(Int64Builder),
    /// Builds an array of `u128` or `i128`.
    Whole128(Decimal256Builder, Kind),
    F32(Float32Builder),
    F64(Float64Builder),
    /// The number says how many bytes of content the values have so far.
    String(StringViewBuilder, usize),
    /// The number says how many bytes of content the values have so far.
    Bytes(BinaryViewBuilder, usize),
    /// The number is the size of each value in bytes.
    Fixed(FixedSizeBinaryBuilder, usize),
}

/// Does `$do` with the array, whatever its kind.
macro_rules! each {
    ($self:expr, $array:ident => $do:expr) => {
        match $self {
            Builder::Bool($array) => $do,
            Builder::U8($array) => $do,
            Builder::U16($array) => $do,
            Builder::U32($array) => $do,
            Builder::U64($array) => $do,
            Builder::I8($array) => $do,
            Builder::I16($array) => $do,
            Builder::I32($array) => $do,
            Builder::I64($array) => $do,
            Builder::Whole128($array, _) => $do,
            Builder::F32($array) => $do,
            Builder::F64($array) => $do,
            Builder::String($array, _) => $do,
            Builder::Bytes($array, _) => $do,
            Builder::Fixed($array, _) => $do,
        }
    };
}

/// For kinds of fixed width, reads a value from the decoder `$from` and appends it. For all other kinds, does
/// `$else`.
macro_rules! push_fixed {
    ($builder:expr, $from:expr, $other:pat => $else:expr) => {
        match $builder {
            Builder::Bool(array) => array.append_value(bool::decode($from)?),
            Builder::U8(array) => array.append_value(u8::decode($from)?),
            Builder::U16(array) => array.append_value(u16::decode($from)?),
            Builder::U32(array) => array.append_value(u32::decode($from)?),
            Builder::U64(array) => array.append_value(u64::decode($from)?),
            Builder::I8(array) => array.append_value(i8::decode($from)?),
            Builder::I16(array) => array.append_value(i16::decode($from)?),
            Builder::I32(array) => array.append_value(i32::decode($from)?),
            Builder::I64(array) => array.append_value(i64::decode($from)?),
            Builder::Whole128(array, Kind::U128) => array.append_value(i256::from_parts(u128::decode($from)?, 0)),
            Builder::Whole128(array, _) => array.append_value(i256::from_i128(i128::decode($from)?)),
            Builder::F32(array) => array.append_value(f32::decode($from)?),
            Builder::F64(array) => array.append_value(f64::decode($from)?),
            Builder::Fixed(array, width) => {
                let bytes = Decoder::bytes($from, *width)?;
                array.append_value(&*bytes).expect("so many bytes were taken");
            }
            $other => $else,
        }
    };
}

impl Builder {
    /// A builder for an array of the type [`crate::columns::data_type`] of `kind`, with room for `capacity` values.
    pub fn new(kind: Kind, capacity: usize) -> Self {
        match kind {
            Kind::Bool => Self::Bool(BooleanBuilder::with_capacity(capacity)),
            Kind::U8 => Self::U8(UInt8Builder::with_capacity(capacity)),
            Kind::U16 => Self::U16(UInt16Builder::with_capacity(capacity)),
            Kind::U32 => Self::U32(UInt32Builder::with_capacity(capacity)),
            Kind::U64 => Self::U64(UInt64Builder::with_capacity(capacity)),
            Kind::I8 => Self::I8(Int8Builder::with_capacity(capacity)),
            Kind::I16 => Self::I16(Int16Builder::with_capacity(capacity)),
            Kind::I32 => Self::I32(Int32Builder::with_capacity(capacity)),
            Kind::I64 => Self::I64(Int64Builder::with_capacity(capacity)),
            Kind::U128 | Kind::I128 => {
                let numbers =
                    Decimal256Builder::with_capacity(capacity).with_data_type(crate::columns::data_type(kind));
                Self::Whole128(numbers, kind)
            }
            Kind::F32 => Self::F32(Float32Builder::with_capacity(capacity)),
            Kind::F64 => Self::F64(Float64Builder::with_capacity(capacity)),
            Kind::String => Self::String(StringViewBuilder::with_capacity(capacity), 0),
            Kind::Fixed(bytes) => {
                Self::Fixed(FixedSizeBinaryBuilder::with_capacity(capacity, bytes.into()), bytes.into())
            }
            _ => Self::Bytes(BinaryViewBuilder::with_capacity(capacity), 0),
        }
    }

    /// Approximately how many bytes the array takes.
    pub fn bytes(&self) -> usize {
        let rows = each!(self, array => array.len());
        match self {
            Self::Bool(_) => rows / 4,
            Self::U8(_) | Self::I8(_) => rows,
            Self::U16(_) | Self::I16(_) => rows * 2,
            Self::U32(_) | Self::I32(_) | Self::F32(_) => rows * 4,
            Self::U64(_) | Self::I64(_) | Self::F64(_) => rows * 8,
            Self::Whole128(..) => rows * 32,
            Self::String(_, content) | Self::Bytes(_, content) => rows * VIEW_BYTES + content,
            Self::Fixed(_, width) => rows * width,
        }
    }

    /// Returns the array.
    pub fn finish(mut self) -> ArrayRef {
        each!(&mut self, array => Arc::new(array.finish()))
    }

    /// Appends NULL.
    #[inline]
    pub fn push_null(&mut self) {
        each!(self, array => array.append_null());
    }

    /// Appends a value that consists of exactly these bytes.
    ///
    /// # Errors
    ///
    /// Fails if a string is not UTF-8.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::String(array, content) => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    array.append_value(text);
                    *content += bytes.len();
                    Ok(())
                }
                Err(bad) => Err(not_utf8(bad.valid_up_to())),
            },
            Self::Bytes(array, content) => {
                array.append_value(bytes);
                *content += bytes.len();
                Ok(())
            }
            _ => unreachable!("only strings and bytes are declared without a form"),
        }
    }

    /// Reads a field of a tuple and appends its value. The field must not be NULL.
    ///
    /// # Errors
    ///
    /// Returns the errors of the decoder.
    #[inline]
    pub fn push_field(&mut self, from: &mut Decoder<'_>) -> Result<(), Mistake> {
        push_fixed!(self, from, builder => return builder.push_escaped(from));
        Ok(())
    }

    /// The same as [`Builder::push_field`] for a field of fixed width, whose bytes are exactly `value`.
    ///
    /// # Errors
    ///
    /// Returns the errors of the decoder.
    #[inline]
    pub fn push_plain(&mut self, value: &[u8]) -> Result<(), Mistake> {
        // A new decoder for each value stays in registers.
        push_fixed!(self, &mut Decoder::new(value), _ => unreachable!("strings and bytes have no width"));
        Ok(())
    }

    /// Appends many fields as [`Builder::push_plain`] would, but faster, because the type is checked before the
    /// loop.
    ///
    /// # Errors
    ///
    /// Returns the errors of the decoder.
    pub fn push_column<'b>(&mut self, mut values: impl Iterator<Item = &'b [u8]>) -> Result<(), Mistake> {
        match self {
            Self::U8(array) => push_numbers(array, values, u8::decode),
            Self::U16(array) => push_numbers(array, values, u16::decode),
            Self::U32(array) => push_numbers(array, values, u32::decode),
            Self::U64(array) => push_numbers(array, values, u64::decode),
            Self::I8(array) => push_numbers(array, values, i8::decode),
            Self::I16(array) => push_numbers(array, values, i16::decode),
            Self::I32(array) => push_numbers(array, values, i32::decode),
            Self::I64(array) => push_numbers(array, values, i64::decode),
            Self::F32(array) => push_numbers(array, values, f32::decode),
            Self::F64(array) => push_numbers(array, values, f64::decode),
            _ => values.try_for_each(|value| self.push_plain(value)),
        }
    }

    /// Reads a field with a string or with bytes.
    fn push_escaped(&mut self, from: &mut Decoder<'_>) -> Result<(), Mistake> {
        match self {
            Self::String(array, content) => {
                let text = from.escaped_text()?;
                array.append_value(&*text);
                *content += text.len();
            }
            Self::Bytes(array, content) => {
                let bytes = from.escaped()?;
                array.append_value(&*bytes);
                *content += bytes.len();
            }
            _ => unreachable!("the other kinds have a width"),
        }
        Ok(())
    }

    /// Appends the value of a text. An empty text becomes NULL, except in a column of strings or bytes, where it is
    /// an empty value.
    ///
    /// # Errors
    ///
    /// Fails if the text is no value of this type.
    #[inline]
    pub fn push_text(&mut self, text: &[u8]) -> Result<(), String> {
        if matches!(self, Self::String(..) | Self::Bytes(..)) {
            return self.push_bytes(text);
        }
        if text.is_empty() {
            self.push_null();
            return Ok(());
        }
        match self {
            Self::Bool(array) => array.append_value(word(text, Kind::Bool)?),
            Self::U8(array) => array.append_value(word(text, Kind::U8)?),
            Self::U16(array) => array.append_value(word(text, Kind::U16)?),
            Self::U32(array) => array.append_value(word(text, Kind::U32)?),
            Self::U64(array) => array.append_value(word(text, Kind::U64)?),
            Self::I8(array) => array.append_value(word(text, Kind::I8)?),
            Self::I16(array) => array.append_value(word(text, Kind::I16)?),
            Self::I32(array) => array.append_value(word(text, Kind::I32)?),
            Self::I64(array) => array.append_value(word(text, Kind::I64)?),
            Self::Whole128(array, Kind::U128) => array.append_value(i256::from_parts(word(text, Kind::U128)?, 0)),
            Self::Whole128(array, _) => array.append_value(i256::from_i128(word(text, Kind::I128)?)),
            Self::F32(array) => array.append_value(word(text, Kind::F32)?),
            Self::F64(array) => array.append_value(word(text, Kind::F64)?),
            Self::String(..) | Self::Bytes(..) => unreachable!("returned above"),
            Self::Fixed(..) => unreachable!("no text is declared as bytes of fixed length"),
        }
        Ok(())
    }
}

/// Appends numbers. Each item of `values` must be exactly the bytes of one number.
#[inline]
fn push_numbers<'b, T: ArrowPrimitiveType>(
    array: &mut PrimitiveBuilder<T>,
    values: impl Iterator<Item = &'b [u8]>,
    decode: impl Fn(&mut Decoder<'b>) -> Result<T::Native, Mistake>,
) -> Result<(), Mistake> {
    let numbers = values.map(|value| decode(&mut Decoder::new(value)));
    // One call for all numbers, because each call also marks its values as not NULL.
    array.append_slice(&numbers.collect::<Result<Vec<_>, _>>()?);
    Ok(())
}

/// Skips a field of a tuple that is not NULL.
///
/// # Errors
///
/// Returns the errors of the decoder.
#[inline]
pub fn pass_field(from: &mut Decoder<'_>, kind: Kind) -> Result<(), Mistake> {
    match kind.width() {
        Some(1) => from.array::<1>().map(|_| ()),
        Some(2) => from.array::<2>().map(|_| ()),
        Some(4) => from.array::<4>().map(|_| ()),
        Some(8) => from.array::<8>().map(|_| ()),
        Some(width) => from.bytes(width).map(|_| ()),
        None => from.escaped().map(|_| ()),
    }
}

/// Parses a number or a `bool` from its text.
#[inline]
fn word<T: FromStr>(text: &[u8], kind: Kind) -> Result<T, String> {
    let read = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    read.ok_or_else(|| format!("\"{}\" is not of type {kind}", text.escape_ascii()))
}

/// The message about a string that is not UTF-8 from byte `from` on.
pub fn not_utf8(from: usize) -> String {
    format!("the string is not UTF-8 from byte {from} on; declare the column as bytes")
}
