//! Reads the bytes of a tuple from left to right, and says where they cannot be the bytes of a tuple. This module
//! knows how bytes are escaped and inverted, but it knows no types. See `docs/format/tuple.md`.
//!
//! Invariant: the decoder stands at the first byte that it has not accepted, so after a mistake it stands at the
//! mistake. No bytes make it panic.

use crate::field_type::FieldType;
use std::borrow::Cow;

/// Why bytes are not a tuple of the expected types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTuple {
    /// The bytes of a field are wrong.
    #[error("field {field} ({field_type}) at byte {offset}: {mistake}")]
    Field {
        /// Number of the field, from 0.
        field: usize,
        /// The type that it should have.
        field_type: FieldType,
        /// The number of the wrong byte, from 0.
        offset: usize,
        /// What is wrong there.
        mistake: Mistake,
    },
    /// Bytes follow after the last field.
    #[error("the tuple ends at byte {offset}, and {bytes} more follow")]
    Longer {
        /// Where the last field ends.
        offset: usize,
        /// The number of bytes that follow.
        bytes: usize,
    },
}

/// What is wrong with the bytes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// Bytes are missing.
    #[error("the bytes end within the field")]
    Short,
    /// A byte that can only be 0 or 1 has another value.
    #[error("the byte is neither 0 nor 1")]
    NeitherZeroNorOne,
    /// A zero byte is followed by a byte that no encoding has there.
    #[error("after a zero byte comes neither 00, the end, nor ff, a zero that belongs to the field")]
    Escape,
    /// A string is not UTF-8.
    #[error("the string is not UTF-8")]
    NotUtf8,
    /// A floating-point number has bits that no encoding has: those of -0.0, or those of another NaN.
    #[error("the bits are those of a number that is written in another way")]
    OtherFloat,
}

/// A place in the bytes of a tuple.
#[derive(Clone, Debug)]
pub struct Decoder<'k> {
    all: usize,
    rest: &'k [u8],
    /// Each byte is xored with this value: ff within a descending field, and otherwise 0.
    mask: u8,
}

impl<'k> Decoder<'k> {
    /// Begins at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'k [u8]) -> Self {
        Self { all: bytes.len(), rest: bytes, mask: 0 }
    }

    /// Begins in `bytes`, after `passed` bytes.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` has fewer than `passed` bytes.
    pub fn at(bytes: &'k [u8], passed: usize) -> Self {
        Self { all: bytes.len(), rest: &bytes[passed..], mask: 0 }
    }

    /// The number of bytes before this place.
    pub fn offset(&self) -> usize {
        self.all - self.rest.len()
    }

    /// The bytes from this place on.
    pub fn rest(&self) -> &'k [u8] {
        self.rest
    }

    /// Calls `read` with all bytes inverted, as they are in a descending field.
    ///
    /// # Errors
    ///
    /// The mistakes of `read`.
    pub fn inverted<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Mistake>) -> Result<T, Mistake> {
        self.mask = !self.mask;
        let result = read(self);
        self.mask = !self.mask;
        result
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    ///
    /// Fails if fewer bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Mistake> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(Mistake::Short)?;
        self.rest = rest;
        let mut array = *array;
        array.iter_mut().for_each(|byte| *byte ^= self.mask);
        Ok(array)
    }

    /// The next `count` bytes. The result borrows these bytes unless they are inverted.
    ///
    /// # Errors
    ///
    /// Fails if fewer bytes are left.
    pub fn bytes(&mut self, count: usize) -> Result<Cow<'k, [u8]>, Mistake> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(Mistake::Short)?;
        self.rest = rest;
        Ok(match self.mask {
            0 => Cow::Borrowed(bytes),
            mask => bytes.iter().map(|byte| byte ^ mask).collect(),
        })
    }

    /// A byte that says no (0) or yes (1).
    ///
    /// # Errors
    ///
    /// Fails if the next byte is neither 0 nor 1, or if no byte is left.
    #[inline]
    pub fn flag(&mut self) -> Result<bool, Mistake> {
        let (first, rest) = self.rest.split_first().ok_or(Mistake::Short)?;
        let flag = match first ^ self.mask {
            0 => false,
            1 => true,
            _ => return Err(Mistake::NeitherZeroNorOne),
        };
        self.rest = rest;
        Ok(flag)
    }

    /// The bytes up to the end 00 00. Within them, 00 ff stands for 00. The result borrows these bytes if none of
    /// them is escaped or inverted.
    ///
    /// # Errors
    ///
    /// Fails if the end is missing, or if a zero byte is followed by a byte that is neither 00 nor ff.
    pub fn escaped(&mut self) -> Result<Cow<'k, [u8]>, Mistake> {
        let (zero, mut plain) = (self.mask, Cow::Borrowed(&[][..]));
        let mut rest = self.rest;
        loop {
            let at = rest.iter().position(|&byte| byte == zero).ok_or(Mistake::Short)?;
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            let (&second, after) = after.split_first().ok_or(Mistake::Short)?;
            if plain.is_empty() && self.mask == 0 {
                plain = Cow::Borrowed(before);
            } else {
                plain.to_mut().extend(before.iter().map(|byte| byte ^ self.mask));
            }
            match second ^ self.mask {
                0 => {
                    self.rest = after;
                    return Ok(plain);
                }
                0xff => plain.to_mut().push(0),
                _ => {
                    self.rest = &rest[at + 1..];
                    return Err(Mistake::Escape);
                }
            }
            rest = after;
        }
    }

    /// Like [`escaped`](Self::escaped), but returns the bytes as text.
    ///
    /// # Errors
    ///
    /// The mistakes of [`escaped`](Self::escaped), and [`Mistake::NotUtf8`]. After the latter, the decoder stands
    /// where the text begins.
    pub fn escaped_text(&mut self) -> Result<Cow<'k, str>, Mistake> {
        let start = self.rest;
        let text = match self.escaped()? {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).ok(),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).ok(),
        };
        if text.is_none() {
            self.rest = start;
        }
        text.ok_or(Mistake::NotUtf8)
    }

    /// The error for a mistake in a field, with the decoder's place.
    pub(crate) fn locate(&self, field: usize, field_type: FieldType, mistake: Mistake) -> BadTuple {
        BadTuple::Field { field, field_type, offset: self.offset(), mistake }
    }

    /// Fails if more bytes follow.
    pub(crate) fn finish(&self) -> Result<(), BadTuple> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(BadTuple::Longer { offset: self.offset(), bytes }),
        }
    }
}
