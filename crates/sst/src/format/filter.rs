//! A filter partition: one page about the keys of some rows of a file. It denies nearly every key that is not among
//! them, and no key that is. It knows no tree.
//!
//! ```text
//!  0  page header                                                           16
//! 16  first row id u64 | rows u32 | segments u32                            16
//! 32  seed u64                                                               8
//! 40  segment bits u8 | fingerprint bytes u8 | zero u8 x 6                   8
//! 48  fingerprints   u8 or u16 x (segments + 2) << segment bits
//! ```
//!
//! It is a binary fuse filter (Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", 2022): a hash
//! has one place in each of three segments that follow each other, and the fingerprints there, combined by xor, are its
//! own. A hash that was not put in matches by chance, once in 256 or in 65,536. With 0 fingerprint bytes there are no
//! segments and no key is denied: a builder writes it if it finds no filter, which has not happened yet.
//!
//! ```text
//! h             = mix(hash xor seed)
//! place 0       = (h x (segments << segment bits)) >> 64
//! place 1       = (place 0 + 1 << segment bits) xor (bits 18 and up of h, as many as segment bits)
//! place 2       = (place 0 + 2 << segment bits) xor (bits 0 and up of h, as many as segment bits)
//! fingerprint   = low bits of h xor (h >> 32)
//! mix(x)        : x ^= x >> 33, x *= ff51afd7ed558ccd, x ^= x >> 33, x *= c4ceb9fe1a85ec53, x ^= x >> 33
//! ```
//!
//! The hash of a key is fixed for ever, see [`hash_key`].

use super::little_endian::{u32_at, u64_at};
use super::page_rows::PageRows;
use pages::page::HEADER_BYTES;

const FIRST_ROW_AT: usize = HEADER_BYTES;
const ROWS_AT: usize = 24;
const SEGMENTS_AT: usize = 28;
const SEED_AT: usize = 32;
const SHAPE_AT: usize = 40;
const FINGERPRINTS_AT: usize = 48;

/// Places of a hash.
const PLACES: usize = 3;
/// Largest segment: the bits of a hash that choose within one and those that choose another do not meet.
const MAX_SEGMENT_BITS: u8 = 18;

/// Filters of larger pages have this size all the same: what building one takes is some ten times as much.
pub const MAX_PARTITION_BYTES: u32 = 64 << 10;

/// Which filter a file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FilterKind {
    /// None.
    #[default]
    None,
    /// About 10 bits a key; takes one absent key in 256 for present.
    Bits8,
    /// About 20 bits a key; takes one absent key in 65,536 for present.
    Bits16,
}

impl FilterKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::None, Self::Bits8, Self::Bits16];

    fn fingerprint_bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Bits8 => 1,
            Self::Bits16 => 2,
        }
    }
}

const KEY_SEED: u64 = 0xa076_1d64_78bd_642f;
const PREFIX_SEED: u64 = 0xe703_7ed1_a0b4_28db;
const FOLD: u64 = 0x8ebc_6af0_9c88_c6e3;
const LAST: u64 = 0x5899_65cc_7537_4cc3;

/// The hash of a whole key, the same on every machine and for ever:
///
/// ```text
/// x = a0761d6478bd642f xor length
/// for each 8 bytes, little-endian, the last filled up with zeros:   x = fold(x xor bytes)
/// hash = fold(x xor 589965cc75374cc3)
/// fold(x) = low half xor high half of x times 8ebc6af09c88c6e3, 128 bits
/// ```
///
/// Folded products are the way of Wang Yi's wyhash; the numbers are its, too.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    hash(key, KEY_SEED)
}

/// The hash of the first bytes of keys: as [`hash_key`], but begun with e7037ed1a0b428db, so that it is not that of the
/// key which has just these bytes.
pub fn hash_prefix(prefix: &[u8]) -> u64 {
    hash(prefix, PREFIX_SEED)
}

#[inline]
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut x = seed ^ bytes.len() as u64;
    for chunk in chunks {
        x = fold(x ^ u64::from_le_bytes(*chunk));
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        x = fold(x ^ u64::from_le_bytes(last));
    }
    fold(x ^ LAST)
}

#[inline]
fn fold(x: u64) -> u64 {
    let product = u128::from(x) * u128::from(FOLD);
    product as u64 ^ (product >> 64) as u64
}

/// Austin Appleby's finalizer of MurmurHash3.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// How fingerprints lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FilterShape {
    segment_bits: u8,
    /// First places are in these; two more follow.
    segments: u32,
}

/// The least number of hashes at which segments have 2^3 places, 2^4 and so on: 3.33^(bits - 2.25), as the paper found
/// best.
const SEGMENT_FROM: [u32; 16] = [
    3,
    9,
    28,
    92,
    304,
    1010,
    3362,
    11193,
    37273,
    124_118,
    413_310,
    1_376_322,
    4_583_150,
    15_261_887,
    50_822_082,
    169_237_530,
];

impl FilterShape {
    /// What the paper recommends for this many hashes, reckoned in whole numbers so that it is the same everywhere.
    fn of(hashes: u32) -> Self {
        let segment_bits = 2 + SEGMENT_FROM.partition_point(|&from| from <= hashes) as u8;
        // Places for a hash: 0.875 + 0.25 x log(1,000,000) / log(hashes), at least 1.125; in 1024ths. The logarithm,
        // of base 2, goes straight from one power of two to the next, below what it should be.
        let whole = hashes.max(2).ilog2();
        let log2 = (u64::from(whole) << 10) + (((u64::from(hashes.max(2)) << 10) >> whole) - 1024);
        let factor = (896 + 256 * 20_410 / log2).max(1152);
        let places = (u64::from(hashes) * factor).div_ceil(1024);
        let segments = places.div_ceil(1 << segment_bits).saturating_sub(PLACES as u64 - 1).max(1);
        Self { segment_bits, segments: segments as u32 }
    }

    fn places(&self) -> usize {
        (self.segments as usize + PLACES - 1) << self.segment_bits
    }

    #[inline]
    fn places_of(&self, h: u64) -> [usize; PLACES] {
        let mask = (1 << self.segment_bits) - 1;
        let first = ((u128::from(h) * (u128::from(self.segments) << self.segment_bits)) >> 64) as usize;
        let segment = 1 << self.segment_bits;
        [first, (first + segment) ^ ((h >> 18) as usize & mask), (first + 2 * segment) ^ (h as usize & mask)]
    }
}

#[inline]
fn fingerprint_of(h: u64) -> u16 {
    (h ^ (h >> 32)) as u16
}

/// The head of a partition.
#[derive(Clone, Copy, Debug)]
pub struct FilterLayout {
    first_row: u64,
    rows: u32,
    seed: u64,
    shape: FilterShape,
    fingerprint_bytes: u8,
}

impl PageRows for FilterLayout {
    #[inline]
    fn of(page: &[u8]) -> Self {
        let head: &[u8; FINGERPRINTS_AT] = page.first_chunk().expect("a validated filter has its head");
        Self {
            first_row: u64_at(head, FIRST_ROW_AT),
            rows: u32_at(head, ROWS_AT),
            seed: u64_at(head, SEED_AT),
            shape: FilterShape { segment_bits: head[SHAPE_AT], segments: u32_at(head, SEGMENTS_AT) },
            fingerprint_bytes: head[SHAPE_AT + 1],
        }
    }

    fn rows(&self) -> usize {
        self.rows as usize
    }

    fn first_row(&self) -> u64 {
        self.first_row
    }
}

impl FilterLayout {
    /// Length of a fingerprint in bits; 0 if everything may be there.
    pub fn fingerprint_bits(&self) -> u32 {
        u32::from(self.fingerprint_bytes) * 8
    }

    /// Fingerprints in the page.
    pub fn fingerprints(&self) -> usize {
        if self.fingerprint_bytes == 0 { 0 } else { self.shape.places() }
    }

    /// Whether what has this hash may be among the rows. `page` is the one this is the head of.
    #[inline]
    pub fn may_contain(&self, page: &[u8], hash: u64) -> bool {
        let h = mix(hash ^ self.seed);
        let fingerprints = &page[FINGERPRINTS_AT..];
        let places = self.shape.places_of(h);
        match self.fingerprint_bytes {
            1 => places.iter().fold(fingerprint_of(h) as u8, |sum, &place| sum ^ fingerprints[place]) == 0,
            2 => {
                let (fingerprints, _) = fingerprints.as_chunks::<2>();
                let of = |place: usize| u16::from_le_bytes(fingerprints[place]);
                places.iter().fold(fingerprint_of(h), |sum, &place| sum ^ of(place)) == 0
            }
            _ => true,
        }
    }
}

/// Checks a partition: that all places lie within it.
///
/// # Errors
///
/// What is wrong with the page.
pub fn validate(page: &[u8]) -> Result<(), String> {
    let Some(head) = page.first_chunk::<FINGERPRINTS_AT>() else {
        return Err(format!("{} bytes are too few for a filter", page.len()));
    };
    let layout = FilterLayout::of(head);
    let FilterShape { segment_bits, segments } = layout.shape;
    if layout.rows == 0 || layout.first_row.checked_add(layout.rows.into()).is_none() {
        return Err(format!("a filter of {} rows from {}", layout.rows, layout.first_row));
    }
    if head[SHAPE_AT + 2..] != [0; 6] || layout.fingerprint_bytes > 2 || segment_bits > MAX_SEGMENT_BITS {
        return Err(format!("a filter of unknown shape {:?}", &head[SHAPE_AT..]));
    }
    if (segments == 0) != (layout.fingerprint_bytes == 0) || segments == 0 && segment_bits > 0 {
        let bytes = layout.fingerprint_bytes;
        return Err(format!("a filter of {segments} segments has fingerprints of {bytes} bytes"));
    }
    let places = if segments == 0 { 0 } else { (u64::from(segments) + PLACES as u64 - 1) << segment_bits };
    let bytes = FINGERPRINTS_AT as u64 + places * u64::from(layout.fingerprint_bytes);
    if bytes != page.len() as u64 {
        return Err(format!("a filter of {bytes} bytes in {}", page.len()));
    }
    Ok(())
}

/// How many rows a partition of about `page_bytes` bytes is for.
///
/// # Panics
///
/// If `kind` is none.
pub fn partition_rows(kind: FilterKind, page_bytes: u32) -> u32 {
    let room = (page_bytes.min(MAX_PARTITION_BYTES) as usize).saturating_sub(FINGERPRINTS_AT);
    let places = room / kind.fingerprint_bytes();
    // Places grow with rows but where segments get larger: what is left out by large steps is little.
    let mut rows = places as u32;
    while rows > 1 && FilterShape::of(rows).places() > places {
        rows -= rows / 128 + 1;
    }
    rows.max(1)
}

/// Seeds tried before a filter is made larger. One in some is enough.
const TRIES: u64 = 32;
/// How often a filter is made larger, by an eighth and a segment.
const GROWTHS: u32 = 8;

/// Writes the partition of `rows` rows from `first_row` into `out` (cleared first; the page header stays zero).
/// `hashes` are those of the rows' keys and prefixes, in any order, some perhaps twice; they are sorted.
pub fn build(kind: FilterKind, (first_row, rows): (u64, u32), hashes: &mut Vec<u64>, out: &mut Vec<u8>) {
    hashes.sort_unstable();
    hashes.dedup();
    let mut shape = FilterShape::of(hashes.len() as u32);
    let found = (0..u64::from(GROWTHS) * TRIES).find_map(|i| {
        if i > 0 && i % TRIES == 0 {
            shape.segments += shape.segments / 8 + 1;
        }
        let seed = mix(i);
        Some((shape, seed, peel(shape, seed, hashes)?))
    });
    write(kind, (first_row, rows), found, out);
}

/// A hash that was mixed, and the place that only it has among it and those that follow.
type Peeled = (u64, u32);

fn write(
    kind: FilterKind,
    (first_row, rows): (u64, u32),
    found: Option<(FilterShape, u64, Vec<Peeled>)>,
    out: &mut Vec<u8>,
) {
    let none = (FilterShape { segment_bits: 0, segments: 0 }, 0, Vec::new());
    let bytes = if found.is_some() { kind.fingerprint_bytes() } else { 0 };
    let (shape, seed, order) = found.unwrap_or(none);
    out.clear();
    out.resize(HEADER_BYTES, 0);
    out.extend_from_slice(&first_row.to_le_bytes());
    out.extend_from_slice(&rows.to_le_bytes());
    out.extend_from_slice(&shape.segments.to_le_bytes());
    out.extend_from_slice(&seed.to_le_bytes());
    out.extend_from_slice(&[shape.segment_bits, bytes as u8, 0, 0, 0, 0, 0, 0]);
    debug_assert_eq!(out.len(), FINGERPRINTS_AT, "the picture and the code agree");
    if bytes == 0 {
        return;
    }
    let mut fingerprints = vec![0_u16; shape.places()];
    for &(h, own) in order.iter().rev() {
        // Its own place is still zero, and no hash that was done has it.
        let sum = shape.places_of(h).iter().fold(fingerprint_of(h), |sum, &place| sum ^ fingerprints[place]);
        fingerprints[own as usize] = sum;
    }
    match bytes {
        1 => out.extend(fingerprints.iter().map(|&fingerprint| fingerprint as u8)),
        _ => out.extend(fingerprints.iter().flat_map(|fingerprint| fingerprint.to_le_bytes())),
    }
}

/// An order of the hashes, which are all different, in which each has a place that those after it do not have; `None`
/// if there is none under this seed.
fn peel(shape: FilterShape, seed: u64, hashes: &[u64]) -> Option<Vec<Peeled>> {
    /// Hashes that have a place, and all of them combined by xor.
    #[derive(Clone, Copy, Default)]
    struct Slot {
        count: u32,
        sum: u64,
    }
    let mut places = vec![Slot::default(); shape.places()];
    for &hash in hashes {
        let h = mix(hash ^ seed);
        for place in shape.places_of(h) {
            places[place].count += 1;
            places[place].sum ^= h;
        }
    }
    let mut order = Vec::with_capacity(hashes.len());
    let mut alone: Vec<u32> = (0..places.len() as u32).filter(|&place| places[place as usize].count == 1).collect();
    while let Some(place) = alone.pop() {
        let Slot { count: 1, sum: h } = places[place as usize] else { continue };
        order.push((h, place));
        for other in shape.places_of(h) {
            places[other].count -= 1;
            places[other].sum ^= h;
            if places[other].count == 1 {
                alone.push(other as u32);
            }
        }
    }
    (order.len() == hashes.len()).then_some(order)
}

#[cfg(test)]
mod tests;
