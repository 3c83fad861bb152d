//! Rust tuples as keys: how they become bytes, how they are read back, and the range of the keys that begin with
//! given fields. This module does not know the types of single fields.
//!
//! Invariant: among tuples of the same types, exactly those of the form `(a, b)` have bytes that begin with the
//! bytes of `(a,)`.

use crate::decoder::{BadTuple, Decoder};
use crate::field::{DecodeField, Field};
use crate::field_type::FieldType;
use std::ops::Bound;

#[cfg(test)]
mod tests;

/// A tuple of up to twelve fields. The bytes of tuples sort like the tuples: by the first field, then by the
/// second, and so on.
///
/// ```
/// use larch_rows::{DecodeTuple, Descending, Tuple};
///
/// let (warehouse, district, order) = (17_u32, 3_u8, 3001_u32);
/// let key = (warehouse, district, Descending(order)).to_key();
/// assert_eq!(key, [0, 0, 0, 17, 3, 0xff, 0xff, 0xf4, 0x46]);
/// let (_, _, Descending(newest)) = <(u32, u8, Descending<u32>)>::decode(&key)?;
/// assert_eq!(newest, order);
///
/// // All orders of the district, the newest first, for `table.range(…)`.
/// let orders = (warehouse, district).range();
/// # use std::ops::RangeBounds;
/// # assert!(orders.contains(&key));
/// # Ok::<(), larch_rows::BadTuple>(())
/// ```
pub trait Tuple {
    /// The types of the fields.
    const TYPES: &'static [FieldType];

    /// Appends the bytes of all fields.
    fn encode(&self, key: &mut Vec<u8>);

    /// The bytes of all fields.
    fn to_key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        self.encode(&mut key);
        key
    }

    /// The range of all keys that begin with the fields of this tuple.
    fn range(&self) -> PrefixRange {
        prefix_range(self.to_key())
    }
}

/// A tuple that can be read back. Its fields may borrow from the key, which lives for `'k`.
pub trait DecodeTuple<'k>: Tuple + Sized {
    /// Reads a tuple from all of `key`.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not those of a tuple of this type, or if more bytes follow the tuple.
    fn decode(key: &'k [u8]) -> Result<Self, BadTuple> {
        let mut from = Decoder::new(key);
        let tuple = Self::decode_from(&mut from)?;
        from.finish()?;
        Ok(tuple)
    }

    /// Reads a tuple, and returns it with the bytes that follow it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes do not begin with a tuple of this type.
    fn decode_front(key: &'k [u8]) -> Result<(Self, &'k [u8]), BadTuple> {
        let mut from = Decoder::new(key);
        let tuple = Self::decode_from(&mut from)?;
        Ok((tuple, from.rest()))
    }

    /// Reads a tuple at the decoder's place.
    ///
    /// # Errors
    ///
    /// Fails if the next bytes are not those of a tuple of this type.
    fn decode_from(from: &mut Decoder<'k>) -> Result<Self, BadTuple>;
}

/// A range of keys, in the form that the standard library and the engine take.
pub type PrefixRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The range of all keys that begin with the bytes `prefix`.
pub fn prefix_range(prefix: Vec<u8>) -> PrefixRange {
    // The end is the shortest string that is greater than all of these keys: the prefix without the bytes ff at its
    // end, with 1 added to its last byte.
    let end = prefix.iter().rposition(|&byte| byte != 0xff).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        end
    });
    (Bound::Included(prefix), end.map_or(Bound::Unbounded, Bound::Excluded))
}

macro_rules! tuples {
    ($(($($field:ident $index:tt),*);)+) => {$(
        impl<$($field: Field),*> Tuple for ($($field,)*) {
            const TYPES: &'static [FieldType] = &[$($field::TYPE),*];

            #[inline]
            #[allow(unused_variables, reason = "a tuple of no fields has no bytes")]
            fn encode(&self, key: &mut Vec<u8>) {
                $(self.$index.encode(key);)*
            }
        }

        impl<'k, $($field: DecodeField<'k>),*> DecodeTuple<'k> for ($($field,)*) {
            #[inline]
            #[allow(unused_variables, reason = "a tuple of no fields has no bytes")]
            fn decode_from(from: &mut Decoder<'k>) -> Result<Self, BadTuple> {
                Ok(($($field::decode(from).map_err(|mistake| from.locate($index, $field::TYPE, mistake))?,)*))
            }
        }
    )+};
}

tuples! {
    ();
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
}
