//! The values of rows, as scylla-bench makes them. A value is bytes drawn from the keys of the row, or zeros, or
//! bytes that can be checked when the row is read.
//!
//! ```text
//!   checked, less than 24 bytes    size u8 | pk ^ ck i64, little endian | zeros            cut to size
//!   checked, less than 57 bytes    size i64 | pk i64 | ck i64 | zeros                      little endian
//!   checked, 57 bytes and more     size i64 | pk i64 | ck i64 | payload | CRC-32C of the payload u32
//! ```

#[cfg(test)]
mod tests;

use crate::draw::below;
use ycsb::Random;

/// The number of bytes before the payload of a value that can be checked.
const HEADER_BYTES: usize = 24;
/// The least length of a value for which scylla-bench writes a checksum. Values with fewer bytes have no payload.
const LEAST_CHECKED_BYTES: usize = 57;
const CRC_BYTES: usize = 4;

/// What values are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filler {
    /// Bytes drawn from the keys.
    Random,
    /// Zeros.
    Zeros,
    /// Bytes that [`check`] can check.
    Checked,
}

/// The lengths of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSize {
    /// All have this number of bytes.
    Fixed(u64),
    /// The length is any number from the first one to the second one.
    Uniform(u64, u64),
}

/// The most bytes that a value may have. A greater number on the command line is taken for a mistake.
const MOST_BYTES: u64 = 1 << 28;

impl RowSize {
    /// Parses `4`, `fixed:4` or `uniform:1..100`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text has another form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad =
            || format!("`{text}` is no size of a row: write 4, fixed:4 or uniform:1..100, of at most {MOST_BYTES}");
        let number = |text: &str| {
            text.trim().parse::<u64>().ok().filter(|bytes| (1..=MOST_BYTES).contains(bytes)).ok_or_else(bad)
        };
        if let Some(range) = text.strip_prefix("uniform:") {
            let (least, most) = range.split_once("..").ok_or_else(bad)?;
            let (least, most) = (number(least)?, number(most)?);
            return if least <= most { Ok(Self::Uniform(least, most)) } else { Err(bad()) };
        }
        number(text.strip_prefix("fixed:").unwrap_or(text)).map(Self::Fixed)
    }

    /// The length of the next value.
    #[inline]
    pub fn draw(self, random: &mut Random) -> usize {
        let bytes = match self {
            Self::Fixed(bytes) => bytes,
            Self::Uniform(least, most) => least + below(random, most - least + 1),
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl std::fmt::Display for RowSize {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(out, "Fixed({bytes})"),
            Self::Uniform(least, most) => write!(out, "Uniform(min={least}, max={most})"),
        }
    }
}

/// Appends the value of a row to `out`.
#[inline]
pub fn put(filler: Filler, pk: i64, ck: i64, size: usize, out: &mut Vec<u8>) {
    let end = out.len() + size;
    match filler {
        Filler::Zeros => {}
        Filler::Random => put_random(pk, ck, size, out),
        Filler::Checked => put_checked(pk, ck, size, out),
    }
    out.resize(end, 0);
}

fn put_checked(pk: i64, ck: i64, size: usize, out: &mut Vec<u8>) {
    if size < HEADER_BYTES {
        let begin = out.len();
        out.push(size as u8);
        out.extend_from_slice(&(pk ^ ck).to_le_bytes());
        out.truncate(begin + size);
        return;
    }
    out.extend_from_slice(&(size as u64).to_le_bytes());
    out.extend_from_slice(&pk.to_le_bytes());
    out.extend_from_slice(&ck.to_le_bytes());
    if size >= LEAST_CHECKED_BYTES {
        let begin = out.len();
        put_random(pk, ck, size - HEADER_BYTES - CRC_BYTES, out);
        let crc = crc_fast::crc32_iscsi(&out[begin..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }
}

/// Marsaglia's xorshift of 64 bits. Its first state is a mix of the keys.
fn put_random(pk: i64, ck: i64, size: usize, out: &mut Vec<u8>) {
    let mixed = pk.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ck.cast_unsigned().rotate_left(32);
    let mut state = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd).max(1);
    let mut left = size;
    while left > 0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let bytes = state.to_le_bytes();
        let count = left.min(bytes.len());
        out.extend_from_slice(&bytes[..count]);
        left -= count;
    }
}

/// Checks that `value` is what [`put`] makes for this row with [`Filler::Checked`].
///
/// # Errors
///
/// Returns a text that says what is wrong with the value.
pub fn check(pk: i64, ck: i64, value: &[u8]) -> Result<(), String> {
    let size = value.len();
    if size < LEAST_CHECKED_BYTES {
        let mut expected = Vec::with_capacity(LEAST_CHECKED_BYTES);
        put(Filler::Checked, pk, ck, size, &mut expected);
        return match value == expected {
            true => Ok(()),
            false => Err(format!("its value is {value:02x?} and should be {expected:02x?}")),
        };
    }
    let word = |at: usize| i64::from_le_bytes(value[at..at + 8].try_into().expect("eight bytes"));
    for (what, at, expected) in [("length", 0, size as i64), ("pk", 8, pk), ("ck", 16, ck)] {
        let found = word(at);
        if found != expected {
            return Err(format!("its value says {what} {found}, and it should be {expected}"));
        }
    }
    let (payload, crc) = value[HEADER_BYTES..].split_at(size - HEADER_BYTES - CRC_BYTES);
    let (found, expected) = (crc_fast::crc32_iscsi(payload), u32::from_le_bytes(crc.try_into().expect("four bytes")));
    if found != expected {
        return Err(format!("the checksum of its payload is {found:08x}, and its value says {expected:08x}"));
    }
    Ok(())
}
