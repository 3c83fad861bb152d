//! Draws keys, values and ranges from a small set, so that a history meets the same keys again, and decides how
//! values are cut into parts.

use super::History;
use crate::model::KeyRange;
use larch::bulk::{FileBuilder, Import};
use larch::{Batch, Result, Table};
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::ops::Bound;
use std::time::Duration;

/// The parts of `value` in a table of `groups` column groups. Concatenated, they give the value. A hash of the value
/// decides where it is cut.
pub fn parts(value: &[u8], groups: usize) -> Vec<&[u8]> {
    let places = value.len() as u32 + 1;
    let hash = value.iter().fold(0x811c_9dc5u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // A cut often lies at an end of the value, so that some parts are empty.
    let place = |cut: u32| (hash.rotate_left(11 * cut) % (places + places / 4)).min(places - 1) as usize;
    let mut cuts: Vec<usize> = (1..groups as u32).map(place).collect();
    cuts.sort_unstable();
    let ends = cuts.iter().copied().chain([value.len()]);
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    starts.zip(ends).map(|(start, end)| &value[start..end]).collect()
}

/// The number of column groups of `table`, if it has column groups.
fn groups(table: &Table) -> Option<usize> {
    Some(table.options().groups.len()).filter(|&groups| groups > 0)
}

/// The table for which some writes name times until which their rows are there. For other tables, none does, but one of
/// them gives times to all its rows.
const TIMED: &str = "cherries";

/// A time that no history reaches, for some of the rows with values that a history has drawn.
fn until(table: &Table, value: &[u8]) -> Option<Duration> {
    let is_drawn = table.name() == TIMED && value.contains(&b':');
    let is_timed = is_drawn && value.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) % 3 > 0;
    is_timed.then(|| Duration::from_secs(1 << 36))
}

/// Writes a row, in parts if the table has column groups.
pub fn insert(table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
    match (groups(table), until(table, value)) {
        (Some(groups), None) => table.insert_parts(key, &parts(value, groups)),
        (Some(groups), Some(until)) => table.insert_parts_until(key, &parts(value, groups), until),
        (None, None) => table.insert(key, value),
        (None, Some(until)) => table.insert_until(key, value, until),
    }
}

/// Whether `key` is erased by a row that has expired when it is written.
fn is_erased_by_expiry(table: &Table, key: &[u8]) -> bool {
    table.name() == TIMED && key.len() % 2 == 1
}

/// What a row says whose time was over when it was written.
const EXPIRED: (&[u8], Duration) = (b"expired", Duration::from_secs(1));

/// Erases a key. In some tables, for some keys, this is a write of a row that has expired.
pub fn erase(table: &Table, key: &[u8]) -> Result<()> {
    let (value, until) = EXPIRED;
    match groups(table) {
        _ if !is_erased_by_expiry(table, key) => table.remove(key),
        Some(groups) => table.insert_parts_until(key, &parts(value, groups), until),
        None => table.insert_until(key, value, until),
    }
}

/// Like [`erase`], but adds the erase to a batch.
pub fn batch_erase(batch: &mut Batch, table: &Table, key: &[u8]) {
    let (value, until) = EXPIRED;
    match groups(table) {
        _ if !is_erased_by_expiry(table, key) => batch.remove(table, key),
        Some(groups) => batch.insert_parts_until(table, key, &parts(value, groups), until),
        None => batch.insert_until(table, key, value, until),
    }
}

/// Like [`insert`], but adds the row to a batch.
pub fn batch_insert(batch: &mut Batch, table: &Table, key: &[u8], value: &[u8]) {
    match (groups(table), until(table, value)) {
        (Some(groups), None) => batch.insert_parts(table, key, &parts(value, groups)),
        (Some(groups), Some(until)) => batch.insert_parts_until(table, key, &parts(value, groups), until),
        (None, None) => batch.insert(table, key, value),
        (None, Some(until)) => batch.insert_until(table, key, value, until),
    }
}

/// Like [`insert`], but adds the row to an import into `table`.
pub fn import_add(import: &mut Import, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
    match groups(table) {
        Some(groups) => import.add_parts(key, &parts(value, groups)),
        None => import.add(key, value),
    }
}

/// Like [`insert`], but adds the row to files that are built for a table of `groups` column groups.
pub fn build_add(files: &mut FileBuilder, groups: usize, key: &[u8], value: &[u8]) -> Result<()> {
    match groups {
        0 => files.add(key, value),
        _ => files.add_parts(key, &parts(value, groups)),
    }
}

impl History {
    /// Draws a key: mostly one of a few dozen short keys, sometimes one that differs from its neighbours only after
    /// about 64 bytes, where the bounds of files are cut, sometimes a long one, or one whose bytes sort before or
    /// after most others.
    pub fn key(&mut self) -> Vec<u8> {
        let rng = &mut self.rng;
        match rng.random_range(0..100) {
            0..70 => format!("k{:02}", rng.random_range(0..60)).into_bytes(),
            70..85 => {
                let mut key = vec![b'p'; rng.random_range(62..66)];
                key.extend_from_slice(format!("{:02}", rng.random_range(0..20)).as_bytes());
                key
            }
            85..95 => {
                let bytes = rng.random_range(0..4);
                (0..bytes).map(|_| *[0, 1, b'k', 0xff].choose(rng).expect("there are four")).collect()
            }
            _ => {
                let mut key = vec![b'x'; rng.random_range(0..400)];
                key.extend_from_slice(format!("{}", rng.random_range(0..9)).as_bytes());
                key
            }
        }
    }

    /// A value that no other row has, unless it is empty. Its length is a few bytes, or up to 200 bytes, or up to a
    /// quarter of the write buffer.
    pub(super) fn value(&mut self) -> Vec<u8> {
        self.values += 1;
        let most = (self.options.write_buffer_bytes / 4) as usize;
        let rng = &mut self.rng;
        let bytes = match rng.random_range(0..10) {
            0 => return Vec::new(),
            1..7 => rng.random_range(0..20),
            7..9 => rng.random_range(20..200),
            _ => rng.random_range(200..=most),
        };
        let mut value = format!("{}:", self.values).into_bytes();
        if rng.random() {
            value.resize(bytes.max(value.len()), b'v');
        } else {
            value.extend(std::iter::repeat_with(|| rng.random::<u8>()).take(bytes.saturating_sub(value.len())));
        }
        value
    }

    /// Draws any range: bounded or not, inclusive or not, often empty.
    pub fn range(&mut self) -> KeyRange {
        let (low, high) = (self.bound(), self.bound());
        if self.rng.random_range(0..4) == 0 {
            return (low, high);
        }
        match (&low, &high) {
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a > b => (high, low),
            _ => (low, high),
        }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.rng.random_range(0..8) {
            0 => Bound::Unbounded,
            1..5 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}
