//! Encodes the parts of a row as one value. If a table has column groups, each row has one part for each group. The
//! log, the memtables and the sort buffers of imports hold values in this form; files store the parts apart from
//! each other. This module does not know which part belongs to which group.
//!
//! ```text
//! length of each part but the last, varint | parts, back to back        with one group or none: the value itself
//! ```

use sst::format::varint;
use std::ops::{Deref, Range};

/// The largest number of column groups of a table.
pub const MAX_GROUPS: usize = sst::MAX_GROUPS + 1;

/// Total bytes of the parts, without their encoded lengths. This counts as the length of the value.
pub fn bytes(parts: &[impl AsRef<[u8]>]) -> usize {
    parts.iter().map(|part| part.as_ref().len()).sum()
}

/// Bytes that [`encode`] appends.
pub fn encoded_bytes(parts: &[impl AsRef<[u8]>]) -> usize {
    let (_, all_but_last) = parts.split_last().expect("a row has a part");
    let lengths = all_but_last.iter().map(|part| varint::encoded_len(part.as_ref().len() as u64));
    lengths.sum::<usize>() + bytes(parts)
}

/// Joins the parts into one value and appends it to `out`.
pub fn encode(parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) {
    let (_, all_but_last) = parts.split_last().expect("a row has a part");
    for part in all_but_last {
        varint::put(out, part.as_ref().len() as u64);
    }
    for part in parts {
        out.extend_from_slice(part.as_ref());
    }
}

/// Where part `wanted` is in `value`, or `None` if the value was not made of `count` parts.
pub fn find(value: &[u8], count: usize, wanted: usize) -> Option<Range<usize>> {
    let mut lengths = value;
    let (mut before, mut found) = (0usize, None);
    for i in 0..count.saturating_sub(1) {
        let length = usize::try_from(varint::take(&mut lengths)?).ok()?;
        if i == wanted {
            found = Some(before..before.checked_add(length)?);
        }
        before = before.checked_add(length)?;
    }
    let head = value.len() - lengths.len();
    let found = found.unwrap_or(before..lengths.len());
    (before <= lengths.len()).then(|| head + found.start..head + found.end)
}

/// The parts of a value, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'v> {
    parts: [&'v [u8]; MAX_GROUPS],
    count: usize,
}

impl<'v> Slices<'v> {
    /// Splits `value` into its `count` parts. Returns `None` if the value was not made of `count` parts.
    pub fn of(value: &'v [u8], count: usize) -> Option<Self> {
        let count = count.max(1);
        let mut parts = [&[][..]; MAX_GROUPS];
        let mut lengths = value;
        let mut sizes = [0; MAX_GROUPS];
        for size in &mut sizes[..count - 1] {
            *size = usize::try_from(varint::take(&mut lengths)?).ok()?;
        }
        let mut rest = lengths;
        for (part, size) in parts[..count - 1].iter_mut().zip(sizes) {
            (*part, rest) = rest.split_at_checked(size)?;
        }
        parts[count - 1] = rest;
        Some(Self { parts, count })
    }
}

impl<'v> Deref for Slices<'v> {
    type Target = [&'v [u8]];

    fn deref(&self) -> &Self::Target {
        &self.parts[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_one_by_one_and_together() {
        for count in 1..=MAX_GROUPS {
            for size in [0, 1, 127, 128, 70_000] {
                let parts: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; (size * (i + 1)) % 90_000]).collect();
                let mut value = Vec::new();
                encode(&parts, &mut value);
                assert_eq!(value.len(), encoded_bytes(&parts));
                let slices = Slices::of(&value, count).expect("it was made of so many");
                assert_eq!(slices.to_vec(), parts);
                for (i, part) in parts.iter().enumerate() {
                    assert_eq!(&value[find(&value, count, i).expect("as above")], part, "part {i} of {count}");
                }
                if count == 1 {
                    assert_eq!(value, parts[0], "one part is the value itself");
                }
            }
        }
    }

    #[test]
    fn a_value_of_other_parts_is_refused_or_read_within_itself() {
        let mut value = Vec::new();
        encode(&[&b"one"[..], b"two", b"three"], &mut value);
        for len in 0..value.len() {
            for count in 1..=MAX_GROUPS {
                let slices = Slices::of(&value[..len], count);
                for i in 0..count {
                    let range = find(&value[..len], count, i);
                    assert_eq!(
                        range.clone().map(|range| &value[range]),
                        slices.map(|slices| slices[i]),
                        "{len} {count}"
                    );
                }
            }
        }
        assert!(Slices::of(&[0xff; 20], 2).is_none(), "a length beyond everything");
    }
}
