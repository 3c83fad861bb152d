//! The form of a partition in files of release 0.1: a binary fuse filter. It is only read; a compaction writes
//! [blocks](super::blocks) instead.
//!
//! ```text
//! 28  segments u32
//! 32  seed u64
//! 40  segment bits u8 | fingerprint bytes u8 | zero u8 x 6
//! 48  fingerprints   u8 or u16 x (segments + 2) << segment bits
//! ```
//!
//! It is a 3-wise filter (Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", 2022). A hash
//! has one place in each of three segments that follow each other. The fingerprints at these places, combined by
//! xor, are the fingerprint of the hash. A hash that was not added matches by chance in one of 256 or one of 65,536
//! cases. A page with 0 fingerprint bytes has no segments, and denies no key.
//!
//! ```text
//! h             = mix(hash xor seed)
//! place 0       = (h x (segments << segment bits)) >> 64
//! place 1       = (place 0 + 1 << segment bits) xor (bits 18 and up of h, as many as segment bits)
//! place 2       = (place 0 + 2 << segment bits) xor (bits 0 and up of h, as many as segment bits)
//! fingerprint   = low bits of h xor (h >> 32)
//! mix(x)        : x ^= x >> 33, x *= ff51afd7ed558ccd, x ^= x >> 33, x *= c4ceb9fe1a85ec53, x ^= x >> 33
//! ```

use super::super::little_endian::{u32_at, u64_at};

const SEGMENTS_AT: usize = 28;
const SEED_AT: usize = 32;
const SHAPE_AT: usize = 40;
const FINGERPRINTS_AT: usize = 48;

/// The number of places of a hash.
const PLACES: usize = 3;
/// The bits of the largest segment. With more bits, the bits of a hash that choose a place in a segment would
/// overlap the bits that choose the segment.
const MAX_SEGMENT_BITS: u8 = 18;

/// What the head of a partition says about its fingerprints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprints {
    seed: u64,
    segment_bits: u8,
    /// The number of segments in which the first of the three places can lie. Two more segments follow.
    segments: u32,
    bytes: u8,
}

impl Fingerprints {
    /// Reads the head of a validated page.
    #[inline]
    pub fn of(page: &[u8]) -> Self {
        let head: &[u8; FINGERPRINTS_AT] = page.first_chunk().expect("a validated filter has its head");
        Self {
            seed: u64_at(head, SEED_AT),
            segment_bits: head[SHAPE_AT],
            segments: u32_at(head, SEGMENTS_AT),
            bytes: head[SHAPE_AT + 1],
        }
    }

    /// Whether a key or prefix with the given hash may be among the rows. `self` must be the head of `page`.
    pub fn may_contain(&self, page: &[u8], hash: u64) -> bool {
        let h = mix(hash ^ self.seed);
        let fingerprints = &page[FINGERPRINTS_AT..];
        let places = self.places_of(h);
        let own = h ^ (h >> 32);
        match self.bytes {
            1 => places.iter().fold(own as u8, |sum, &place| sum ^ fingerprints[place]) == 0,
            2 => {
                let (fingerprints, _) = fingerprints.as_chunks::<2>();
                let of = |place: usize| u16::from_le_bytes(fingerprints[place]);
                places.iter().fold(own as u16, |sum, &place| sum ^ of(place)) == 0
            }
            _ => true,
        }
    }

    fn places_of(&self, h: u64) -> [usize; PLACES] {
        let mask = (1 << self.segment_bits) - 1;
        let first = ((u128::from(h) * (u128::from(self.segments) << self.segment_bits)) >> 64) as usize;
        let segment = 1 << self.segment_bits;
        [first, (first + segment) ^ ((h >> 18) as usize & mask), (first + 2 * segment) ^ (h as usize & mask)]
    }

    fn places(&self) -> u64 {
        if self.segments == 0 { 0 } else { (u64::from(self.segments) + PLACES as u64 - 1) << self.segment_bits }
    }
}

/// `1024 fingerprints of 8 bits`.
impl std::fmt::Display for Fingerprints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} fingerprints of {} bits", self.places(), u32::from(self.bytes) * 8)
    }
}

/// Checks that all places lie within the page.
pub(super) fn validate(page: &[u8]) -> Result<(), String> {
    let Some(head) = page.first_chunk::<FINGERPRINTS_AT>() else {
        return Err(format!("{} bytes are too few for a filter", page.len()));
    };
    let fingerprints = Fingerprints::of(head);
    let Fingerprints { segment_bits, segments, bytes, .. } = fingerprints;
    if head[SHAPE_AT + 2..] != [0; 6] || bytes > 2 || segment_bits > MAX_SEGMENT_BITS {
        return Err(format!("a filter of unknown shape {:?}", &head[SHAPE_AT..]));
    }
    if (segments == 0) != (bytes == 0) || segments == 0 && segment_bits > 0 {
        return Err(format!("a filter of {segments} segments has fingerprints of {bytes} bytes"));
    }
    let expected = FINGERPRINTS_AT as u64 + fingerprints.places() * u64::from(bytes);
    if expected != page.len() as u64 {
        return Err(format!("a filter of {expected} bytes in {}", page.len()));
    }
    Ok(())
}

/// Austin Appleby's finalizer of MurmurHash3.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

#[cfg(test)]
mod tests;
