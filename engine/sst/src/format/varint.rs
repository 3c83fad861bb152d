//! Unsigned integers in groups of 7 bits (LEB128). The lowest group comes first. In every byte except the last, the
//! high bit is set. This module knows no fields.

/// The length of the longest encoding of a u64.
pub const MAX_BYTES: usize = 10;

/// Encoded length of `value` in bytes.
#[inline]
pub fn encoded_len(value: u64) -> usize {
    if value < 0x80 {
        return 1;
    }
    ((64 - (value | 1).leading_zeros()) as usize).div_ceil(7)
}

/// Appends `value`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes `value` at the start of `out`, which has room for it, and returns how many bytes it takes.
#[inline]
pub fn write(out: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Takes a value from the front of `bytes`; `None` if the value is cut short or does not fit a u64.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    take_long(bytes)
}

/// Does the work of [`take`] for a value of several groups. It is a separate function, so that [`take`] can be
/// inlined.
fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let mut value = u64::from(first & 0x7f);
    for (i, &byte) in rest.iter().take(MAX_BYTES - 1).enumerate() {
        let shift = 7 * (i as u32 + 1);
        let group = u64::from(byte & 0x7f);
        if shift == 63 && group > 1 {
            return None;
        }
        value |= group << shift;
        if byte < 0x80 {
            *bytes = &rest[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Takes a length from the front of `bytes`, and then as many bytes as the length says.
pub fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_survives_the_round_trip() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                put(&mut bytes, value);
                assert_eq!(bytes.len(), encoded_len(value));
                let mut written = [0; MAX_BYTES];
                assert_eq!((write(&mut written, value), &written[..bytes.len()]), (bytes.len(), &bytes[..]));
                let mut rest = bytes.as_slice();
                assert_eq!(take(&mut rest), Some(value));
                assert!(rest.is_empty());
                assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None, "a cut value is refused");
            }
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(take(&mut [0xff; 11].as_slice()), None);
        assert_eq!(take(&mut [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2].as_slice()), None);
    }
}
