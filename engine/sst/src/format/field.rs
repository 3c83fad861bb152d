//! Numbered fields with their lengths. A structure that contains such fields can be extended: later releases can
//! add fields to it.
//!
//! ```text
//! field:  number u8 | bytes varint | bytes
//! ```
//!
//! Numbers below 128 are required: a reader that does not know such a number refuses everything and names the
//! number. Numbers from 128 on are optional: a reader that does not know such a number skips the field. This module
//! does not know what a number means.

use super::features::Unreadable;
use super::varint;

/// Numbers from here on are optional.
const OPTIONAL: u8 = 128;

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'b> {
    /// Says which field it is.
    pub number: u8,
    /// Its content.
    pub bytes: &'b [u8],
}

impl<'b> Field<'b> {
    /// Takes a field off the front of `bytes`; `None` if it is malformed.
    pub fn take(bytes: &mut &'b [u8]) -> Option<Self> {
        let (&number, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(Self { number, bytes: varint::take_bytes(bytes)? })
    }

    /// Handles a field that the reader does not know: skips an optional field, and refuses a required one with an
    /// error that names `what` and the number.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Newer`] names a required field that is not known.
    pub fn pass_over(&self, what: &str) -> Result<(), Unreadable> {
        if self.number >= OPTIONAL { Ok(()) } else { Err(Unreadable::Newer(format!("{what} {}", self.number))) }
    }
}

/// Appends a field.
pub fn put(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number);
    varint::put_bytes(out, bytes);
}

/// Appends a field that holds a varint.
pub fn put_number(out: &mut Vec<u8>, number: u8, value: u64) {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, value);
    put(out, number, &bytes);
}

/// Takes the field with this number, which holds a varint, off the front of `bytes`. `Some(None)` if `bytes` begin with
/// something else; `None` if the field does not hold a varint.
pub fn take_number(bytes: &mut &[u8], number: u8) -> Option<Option<u64>> {
    let mut rest = *bytes;
    let Some(field) = Field::take(&mut rest).filter(|field| field.number == number) else { return Some(None) };
    let mut content = field.bytes;
    let value = varint::take(&mut content).filter(|_| content.is_empty())?;
    *bytes = rest;
    Some(Some(value))
}

/// Reads the fields to the end of `bytes`, for a reader that knows none of them. It skips optional fields. It
/// refuses a required field with an error that names `what` and the number of the field.
///
/// # Errors
///
/// [`Unreadable::Newer`] names a required field that is not known; [`Unreadable::Corrupt`] if a field does not decode.
pub fn pass_over_all(mut bytes: &[u8], what: &str) -> Result<(), Unreadable> {
    while !bytes.is_empty() {
        Field::take(&mut bytes).ok_or("a field does not decode")?.pass_over(what)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_if_it_comes_next() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, 1, 300);
        put(&mut bytes, 2, b"\x80");
        let mut left = &bytes[..];
        assert_eq!(take_number(&mut left, 2), Some(None));
        assert_eq!(take_number(&mut left, 1), Some(Some(300)));
        assert_eq!((take_number(&mut left, 2), left.len()), (None, 3), "it is cut");
        assert_eq!(take_number(&mut &[][..], 1), Some(None));
    }

    #[test]
    fn optional_fields_are_passed_over_and_required_ones_are_refused_by_number() {
        let mut bytes = Vec::new();
        put(&mut bytes, 128, b"optional");
        put(&mut bytes, 255, b"");
        assert_eq!(pass_over_all(&bytes, "option"), Ok(()));
        for cut in 1..bytes.len() {
            let is_whole = cut == 10;
            assert_eq!(pass_over_all(&bytes[..cut], "option").is_ok(), is_whole, "cut at {cut}");
        }
        put(&mut bytes, 127, b"required");
        assert_eq!(pass_over_all(&bytes, "option"), Err(Unreadable::Newer("option 127".to_owned())));
    }
}
