//! Rust types as fields of a tuple: how each value is written so that the bytes sort like the values, and how it is
//! read back. This module knows one field at a time. See `docs/format/tuple.md`.
//!
//! ```text
//! bool               00 or 01
//! u8 … u128          big-endian
//! i8 … i128          big-endian, sign bit turned over
//! f32, f64           big-endian; sign bit turned over if it is not set, all bits turned over if it is
//! string, bytes      the bytes with 00 written as 00 ff, then 00 00
//! bytes[n]           n bytes as they are
//! optional           00 for none; 01, then the value
//! descending         all bytes of the field inverted
//! ```
//!
//! Invariants: a value has exactly one encoding, and no encoding of a type is the beginning of another encoding of
//! the same type.

use crate::decoder::{Decoder, Mistake};
use crate::field_type::{FieldType, Kind};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A value that can be a field of a tuple.
///
/// Your own type becomes a field by using the encoding of the type that it wraps:
///
/// ```
/// use larch_rows::{DecodeField, Decoder, Field, FieldType, Mistake};
///
/// #[derive(Debug, PartialEq)]
/// struct Warehouse(u32);
///
/// impl Field for Warehouse {
///     const TYPE: FieldType = u32::TYPE;
///     fn encode(&self, key: &mut Vec<u8>) {
///         self.0.encode(key);
///     }
/// }
///
/// impl<'k> DecodeField<'k> for Warehouse {
///     fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
///         u32::decode(from).map(Self)
///     }
/// }
/// ```
pub trait Field {
    /// The declared type of the field, which also decides how it is encoded.
    const TYPE: FieldType;

    /// Appends its bytes.
    fn encode(&self, key: &mut Vec<u8>);
}

/// A field that can be read back. It may borrow from the key, which lives for `'k`.
pub trait DecodeField<'k>: Field + Sized {
    /// Reads the field at the decoder's place.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not those of a field of this type. After an error, the decoder stands at the byte
    /// that is wrong.
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake>;
}

/// A field in descending order: the greater value comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Descending<T>(pub T);

impl<T: PartialOrd> PartialOrd for Descending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        other.0.partial_cmp(&self.0)
    }
}

impl<T: Ord> Ord for Descending<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}

impl<T: Field> Field for Descending<T> {
    const TYPE: FieldType = T::TYPE.descending();

    #[inline]
    fn encode(&self, key: &mut Vec<u8>) {
        // The compiler reports an error if the type is descending already.
        const { assert!(Self::TYPE.is_descending) }
        let start = key.len();
        self.0.encode(key);
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

impl<'k, T: DecodeField<'k>> DecodeField<'k> for Descending<T> {
    #[inline]
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        from.inverted(T::decode).map(Self)
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: FieldType = T::TYPE.optional();

    #[inline]
    fn encode(&self, key: &mut Vec<u8>) {
        // The compiler reports an error if the type is optional or descending already.
        const { assert!(Self::TYPE.is_optional) }
        key.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.encode(key);
        }
    }
}

impl<'k, T: DecodeField<'k>> DecodeField<'k> for Option<T> {
    #[inline]
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        if from.flag()? { T::decode(from).map(Some) } else { Ok(None) }
    }
}

impl Field for bool {
    const TYPE: FieldType = FieldType::new(Kind::Bool);

    #[inline]
    fn encode(&self, key: &mut Vec<u8>) {
        key.push(u8::from(*self));
    }
}

impl<'k> DecodeField<'k> for bool {
    #[inline]
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        from.flag()
    }
}

/// Fields of whole numbers. A number is xored with `$flip`, so that its bytes sort like the number.
macro_rules! integers {
    ($($number:ident $kind:ident $flip:expr;)+) => {$(
        impl Field for $number {
            const TYPE: FieldType = FieldType::new(Kind::$kind);

            #[inline]
            fn encode(&self, key: &mut Vec<u8>) {
                key.extend_from_slice(&(self ^ $flip).to_be_bytes());
            }
        }

        impl<'k> DecodeField<'k> for $number {
            #[inline]
            fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
                from.array().map(|bytes| Self::from_be_bytes(bytes) ^ $flip)
            }
        }
    )+};
}

integers! {
    u8 U8 0;
    u16 U16 0;
    u32 U32 0;
    u64 U64 0;
    u128 U128 0;
    i8 I8 Self::MIN;
    i16 I16 Self::MIN;
    i32 I32 Self::MIN;
    i64 I64 Self::MIN;
    i128 I128 Self::MIN;
}

/// Fields of floating-point numbers. `$bits` is the unsigned type of the same width, and `$nan` has the bits of the
/// only NaN that is written.
macro_rules! floats {
    ($($number:ident $bits:ident $kind:ident $nan:expr;)+) => {$(
        impl Field for $number {
            const TYPE: FieldType = FieldType::new(Kind::$kind);

            #[inline]
            fn encode(&self, key: &mut Vec<u8>) {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                // Adding 0 turns -0 into 0.
                let bits = if self.is_nan() { $nan } else { (self + 0.0).to_bits() };
                let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { !bits };
                key.extend_from_slice(&ordered.to_be_bytes());
            }
        }

        impl<'k> DecodeField<'k> for $number {
            #[inline]
            fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let start = from.clone();
                let ordered = $bits::from_be_bytes(from.array()?);
                let bits = if ordered & SIGN == 0 { !ordered } else { ordered ^ SIGN };
                let number = Self::from_bits(bits);
                if bits == SIGN || (number.is_nan() && bits != $nan) {
                    *from = start;
                    return Err(Mistake::OtherFloat);
                }
                Ok(number)
            }
        }
    )+};
}

floats! {
    f32 u32 F32 0x7fc0_0000;
    f64 u64 F64 0x7ff8_0000_0000_0000;
}

/// The bytes that end the content of a string or of bytes.
pub(crate) const END: [u8; 2] = [0, 0];

/// Appends the content of a string or of bytes, without the end that follows the content. The bytes of a field
/// begin with the appended bytes if, and only if, the content of the field begins with `content`. So
/// [`prefix_range`](crate::prefix_range) makes the range of these fields from the appended bytes.
///
/// ```
/// use larch_rows::{Tuple, encode_beginning};
///
/// let mut key = (7_u32,).to_key();
/// encode_beginning(b"ab", &mut key);
/// assert!((7_u32, "abc").to_key().starts_with(&key));
/// ```
#[inline]
pub fn encode_beginning(content: &[u8], key: &mut Vec<u8>) {
    let mut rest = content;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        key.extend_from_slice(&rest[..zero]);
        key.extend_from_slice(&[0, 0xff]);
        rest = &rest[zero + 1..];
    }
    key.extend_from_slice(rest);
}

/// Fields whose content is escaped and followed by an end.
macro_rules! escaped {
    ($($owner:ty, $kind:ident;)+) => {$(
        impl Field for $owner {
            const TYPE: FieldType = FieldType::new(Kind::$kind);

            #[inline]
            fn encode(&self, key: &mut Vec<u8>) {
                encode_beginning(AsRef::<[u8]>::as_ref(&**self), key);
                key.extend_from_slice(&END);
            }
        }
    )+};
}

escaped! {
    &str, String;
    Cow<'_, str>, String;
    String, String;
    &[u8], Bytes;
    Cow<'_, [u8]>, Bytes;
    Vec<u8>, Bytes;
}

impl<'k> DecodeField<'k> for Cow<'k, str> {
    #[inline]
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        from.escaped_text()
    }
}

impl<'k> DecodeField<'k> for String {
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        from.escaped_text().map(Cow::into_owned)
    }
}

impl<'k> DecodeField<'k> for Cow<'k, [u8]> {
    #[inline]
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        from.escaped()
    }
}

impl<'k> DecodeField<'k> for Vec<u8> {
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        from.escaped().map(Cow::into_owned)
    }
}

impl<const N: usize> Field for [u8; N] {
    const TYPE: FieldType = {
        assert!(N > 0 && N <= u16::MAX as usize, "a field has 1 to 65,535 bytes");
        FieldType::new(Kind::Fixed(N as u16))
    };

    #[inline]
    fn encode(&self, key: &mut Vec<u8>) {
        // The compiler reports an error if the type has no bytes, or too many.
        const { assert!(Self::TYPE.kind.width().is_some()) }
        key.extend_from_slice(self);
    }
}

impl<'k, const N: usize> DecodeField<'k> for [u8; N] {
    #[inline]
    fn decode(from: &mut Decoder<'k>) -> Result<Self, Mistake> {
        from.array()
    }
}
