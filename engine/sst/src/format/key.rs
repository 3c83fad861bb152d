//! Compares a key with the keys of a page, whose shared prefix and first bytes are stored apart from the rest.
//! This module knows no page layout.
//!
//! A page stores the prefix common to all its keys once. For each key it stores a *head* and a *tail*. The head is
//! the next four bytes of the key as a big-endian number, padded with zeros. The heads of all keys are next to each
//! other, so that a search reads one array. The tail is the rest of the key. Two suffixes are ordered as the
//! triples (head, bytes in the head, tail).

use std::cmp::Ordering;
use std::hint;
use std::ops::Range;

/// Bytes of a key in its head.
pub const HEAD_BYTES: usize = 4;

/// The part of a key after the page's prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suffix<'a> {
    /// First four bytes, big-endian, zero padded.
    pub head: u32,
    /// How many bytes of the head belong to the key, at most four.
    pub head_bytes: u8,
    /// The bytes of the key after the head.
    pub tail: &'a [u8],
}

impl<'a> Suffix<'a> {
    /// Splits `suffix`.
    pub fn new(suffix: &'a [u8]) -> Self {
        match suffix.split_first_chunk::<HEAD_BYTES>() {
            Some((head, tail)) => Self { head: u32::from_be_bytes(*head), head_bytes: HEAD_BYTES as u8, tail },
            None => {
                let mut head = [0; HEAD_BYTES];
                head[..suffix.len()].copy_from_slice(suffix);
                Self { head: u32::from_be_bytes(head), head_bytes: suffix.len() as u8, tail: &[] }
            }
        }
    }

    /// The suffix of `key` after its first `prefix_bytes` bytes. `key` must have at least that many bytes.
    #[inline]
    fn after(key: &'a [u8], prefix_bytes: usize) -> Self {
        let Some(last) = key.len().checked_sub(HEAD_BYTES) else { return Self::new(&key[prefix_bytes..]) };
        // The head is read at a place where all of it lies within the key. Then the bytes before the suffix are
        // shifted out, so that no branch depends on a length.
        let at = prefix_bytes.min(last);
        let word = u32::from_be_bytes(*key[at..].first_chunk().expect("four bytes follow"));
        let head = (u64::from(word) << (8 * (prefix_bytes - at))) as u32;
        let end = (prefix_bytes + HEAD_BYTES).min(key.len());
        Self { head, head_bytes: (end - prefix_bytes) as u8, tail: &key[end..] }
    }

    /// Whether these are the same bytes.
    #[inline]
    pub fn is(&self, other: &Self) -> bool {
        self.head == other.head
            && self.head_bytes == other.head_bytes
            && self.tail.len() == other.tail.len()
            && equal(self.tail, other.tail)
    }

    /// Appends the bytes of the suffix to `key`.
    #[inline]
    pub fn append_to(&self, key: &mut Vec<u8>) {
        // The whole head is written and then cut, because a write of a fixed length takes one instruction.
        let end = key.len() + usize::from(self.head_bytes);
        key.extend_from_slice(&self.head.to_be_bytes());
        key.truncate(end);
        if !self.tail.is_empty() {
            key.extend_from_slice(self.tail);
        }
    }
}

/// Where `key` lies relative to all keys that begin with a prefix: before them, after them, or among them with its
/// own suffix. The prefix is the bytes `prefix` of `page`.
///
/// If the prefix is short, eight bytes are compared at once, and the difference of the bytes after the prefix is
/// ignored. So no branch depends on the length of the prefix, which differs from page to page.
#[inline(always)]
pub fn strip_prefix<'k>(key: &'k [u8], page: &[u8], prefix: Range<usize>) -> Result<Suffix<'k>, Ordering> {
    let len = prefix.len();
    let is_equal = match (key.first_chunk::<8>(), page[prefix.start..].first_chunk::<8>()) {
        (Some(start), Some(prefix)) if len < 8 => {
            let differs = u64::from_le_bytes(*start) ^ u64::from_le_bytes(*prefix);
            differs & ((1 << (8 * len)) - 1) == 0
        }
        _ => len == 0 || begins_with(key, page, prefix.clone()),
    };
    if is_equal { Ok(Suffix::after(key, len)) } else { Err(apart_from(key, &page[prefix])) }
}

/// Whether `key` begins with the bytes `prefix` of `page`.
#[inline]
fn begins_with(key: &[u8], page: &[u8], prefix: Range<usize>) -> bool {
    let len = prefix.len();
    match (key.first_chunk::<16>(), page[prefix.start..].first_chunk::<16>()) {
        (Some(start), Some(prefix)) if len < 16 => {
            let differs = u128::from_le_bytes(*start) ^ u128::from_le_bytes(*prefix);
            differs & ((1 << (8 * len)) - 1) == 0
        }
        _ => key.get(..len).is_some_and(|start| equal(start, &page[prefix])),
    }
}

/// Where a key that does not begin with `prefix` lies relative to all keys that begin with it.
#[cold]
fn apart_from(key: &[u8], prefix: &[u8]) -> Ordering {
    if prefix.starts_with(key) { Ordering::Less } else { key.cmp(prefix) }
}

/// Whether `a` and `b`, which have the same length, are the same bytes. It compares eight bytes at a time and is
/// inlined: the bytes are few, and their number is hard to predict.
#[inline]
fn equal(a: &[u8], b: &[u8]) -> bool {
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    match (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(a_end), Some(b_end)) => {
            let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
            word(a_end) == word(b_end) && a.iter().zip(b).all(|(a, b)| word(a) == word(b))
        }
        _ => a == b,
    }
}

/// Length of the longest common prefix.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).enumerate();
    let differs = |(i, (a, b)): (usize, (&[u8; 8], &[u8; 8]))| {
        let bits = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        (bits != 0).then(|| 8 * i + bits.trailing_zeros() as usize / 8)
    };
    if let Some(len) = words.find_map(differs) {
        return len;
    }
    let shorter = a.len().min(b.len());
    match shorter.checked_sub(8).and_then(|at| a[at..].first_chunk::<8>().zip(b[at..].first_chunk::<8>())) {
        // At the end, fewer than eight bytes are left. The last eight bytes are compared instead: the ones before
        // the rest are known to be equal.
        Some((a, b)) => {
            let bits = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
            shorter - 8 + bits.trailing_zeros() as usize / 8
        }
        None => a.iter().zip(b).take_while(|(x, y)| x == y).count(),
    }
}

/// The shortest string that is greater than `last` and at most `first`; `last` must be less than `first`. This
/// string is a prefix of `first`, and need not be the key of a row.
pub fn separator<'k>(last: &[u8], first: &'k [u8]) -> &'k [u8] {
    debug_assert!(last < first, "keys arrive in order");
    &first[..common_prefix(last, first) + 1]
}

/// The number of heads that are compared together at the end of a search: the heads of a cache line.
pub const BLOCK: usize = 16;
/// The most blocks whose last heads are compared together.
const BLOCKS: usize = 32;

/// How many of the sorted `heads` (little-endian u32 each) are less than `head`.
///
/// A long array is first halved a few times. Then the last head of every block is compared, and then all heads of
/// one block. No comparison decides a branch, so none is mispredicted. If a page is in no CPU cache, its lines are
/// fetched together and not one after the other.
#[inline]
pub fn heads_below(heads: &[[u8; HEAD_BYTES]], head: u32) -> usize {
    let is_below = |bytes: &[u8; HEAD_BYTES]| usize::from(u32::from_le_bytes(*bytes) < head);
    let (mut base, mut len) = (0, heads.len());
    while len > BLOCK * BLOCKS {
        let half = len / 2;
        let is_above_half = is_below(&heads[base + half - 1]) == 1;
        base += hint::select_unpredictable(is_above_half, half, 0);
        len -= half;
    }
    let heads = &heads[base..base + len];
    let blocks: usize = samples(heads).map(is_below).sum();
    base + below_from(heads, blocks, head)
}

/// The last head of each whole block.
#[inline]
pub fn samples(heads: &[[u8; HEAD_BYTES]]) -> impl Iterator<Item = &[u8; HEAD_BYTES]> {
    heads.as_chunks::<BLOCK>().0.iter().map(|block| &block[BLOCK - 1])
}

/// How many of `heads` are less than `head`. The caller knows that this is true for all heads of the first
/// `blocks` blocks, and not for the last head of the next block.
#[inline]
fn below_from(heads: &[[u8; HEAD_BYTES]], blocks: usize, head: u32) -> usize {
    let is_below = |bytes: &[u8; HEAD_BYTES]| usize::from(u32::from_le_bytes(*bytes) < head);
    // The last block begins early instead of ending early, so that it is as long as the other blocks.
    let start = (blocks * BLOCK).min(heads.len().saturating_sub(BLOCK));
    let in_block: usize = match heads[start..].first_chunk::<BLOCK>() {
        Some(block) => block.iter().map(is_below).sum(),
        None => heads.iter().map(is_below).sum(),
    };
    start + in_block
}

/// The run of entries whose head equals `head`. All entries before the run are less, and all entries after it are
/// greater.
#[inline]
pub fn equal_heads(heads: &[[u8; HEAD_BYTES]], head: u32) -> (usize, usize) {
    equal_from(heads, heads_below(heads, head), head)
}

/// Like [`equal_heads`], for a caller that has already searched the [`samples`]: `blocks` of them are less than
/// `head`, so only the block after the first `blocks` blocks is searched.
#[inline]
pub fn equal_heads_in_block(heads: &[[u8; HEAD_BYTES]], blocks: usize, head: u32) -> (usize, usize) {
    equal_from(heads, below_from(heads, blocks, head), head)
}

/// The number of heads that a guess covers. If keys are spread evenly, the distance between a head and its guessed
/// place has a standard deviation of at most half the square root of the number of heads: ten for 400 heads.
pub const GUESSED: usize = 3 * BLOCK;

/// Guesses where `head` lies in the sorted `heads`, and returns the start of the [`GUESSED`] neighbouring heads
/// among which it should be. The guess interpolates between the first and the last head: if keys are hashes or
/// counters, their heads are spread evenly. `None` if the heads are few or all equal, or if `head` is not between
/// the first and the last head.
#[inline]
pub fn guess(heads: &[[u8; HEAD_BYTES]], head: u32) -> Option<usize> {
    let (first, last) = (heads.first()?, heads.last()?);
    let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
    if heads.len() < GUESSED || !(first..=last).contains(&head) || first == last {
        return None;
    }
    let at = u64::from(head - first) * (heads.len() as u64 - 1) / u64::from(last - first);
    Some((at as usize).saturating_sub(GUESSED / 2).min(heads.len() - GUESSED))
}

/// The result of [`equal_heads`] if it lies within the [`GUESSED`] heads from `start` on, and otherwise `None`.
#[inline]
pub fn equal_heads_guessed(heads: &[[u8; HEAD_BYTES]], start: usize, head: u32) -> Option<(usize, usize)> {
    let is_below = |bytes: &[u8; HEAD_BYTES]| u32::from(u32::from_le_bytes(*bytes) < head);
    let guessed = heads.get(start..)?.first_chunk::<GUESSED>()?;
    let below = guessed.iter().map(is_below).sum::<u32>() as usize;
    let begins = below > 0 || start == 0;
    let ends = below < GUESSED || start + GUESSED == heads.len();
    (begins && ends).then(|| equal_from(heads, start + below, head))
}

/// The run of entries whose head equals `head`. If any entry has this head, the run begins at `low`.
#[inline]
fn equal_from(heads: &[[u8; HEAD_BYTES]], low: usize, head: u32) -> (usize, usize) {
    // Nearly always, no entry or one entry has this head. This is checked before a further search.
    let is_equal = |i: usize| heads.get(i).is_some_and(|bytes| u32::from_le_bytes(*bytes) == head);
    if !is_equal(low) {
        return (low, low);
    }
    if !is_equal(low + 1) {
        return (low, low + 1);
    }
    let high = head.checked_add(1).map_or(heads.len() - low, |next| heads_below(&heads[low..], next));
    (low, low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    fn random_key(rng: &mut StdRng) -> Vec<u8> {
        let len = rng.random_range(0..9);
        (0..len).map(|_| [0, 0, 1, 0xff, b'a'][rng.random_range(0..5)]).collect()
    }

    #[test]
    fn suffixes_order_as_their_bytes() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..20_000 {
            let (a, b) = (random_key(&mut rng), random_key(&mut rng));
            assert_eq!(Suffix::new(&a).cmp(&Suffix::new(&b)), a.cmp(&b), "{a:?} {b:?}");
            let mut again = Vec::new();
            Suffix::new(&a).append_to(&mut again);
            assert_eq!(again, a);
        }
    }

    #[test]
    fn separators_separate_and_are_shortest() {
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..20_000 {
            let (a, b) = (random_key(&mut rng), random_key(&mut rng));
            let (last, first) = if a < b { (a, b) } else { (b, a) };
            if last == first {
                continue;
            }
            let cut = separator(&last, &first);
            assert!(last.as_slice() < cut && cut <= first.as_slice());
            assert!(cut.is_empty() || &cut[..cut.len() - 1] <= last.as_slice(), "no shorter prefix separates");
        }
    }

    #[test]
    fn a_key_lies_before_among_or_after_those_with_the_prefix() {
        let strip = |key: &'static [u8], prefix: &[u8]| strip_prefix(key, prefix, 0..prefix.len());
        assert_eq!(strip(b"ab", b"abc"), Err(Ordering::Less));
        assert_eq!(strip(b"b", b"abc"), Err(Ordering::Greater));
        assert_eq!(strip(b"", b"abc"), Err(Ordering::Less));
        assert_eq!(strip(b"abc", b"abc"), Ok(Suffix::new(b"")));
        let mut rng = StdRng::seed_from_u64(4);
        for _ in 0..50_000 {
            let mut page = random_key(&mut rng);
            let prefix = page.len()..page.len() + rng.random_range(0..20);
            page.resize_with(prefix.end + rng.random_range(0..9), || rng.random());
            let mut key = page[prefix.clone()].to_vec();
            match rng.random_range(0..4) {
                0 => key.truncate(rng.random_range(0..=key.len())),
                1 if !key.is_empty() => {
                    let at = rng.random_range(0..key.len());
                    key[at] ^= 1 << rng.random_range(0..8);
                }
                _ => {}
            }
            key.extend(random_key(&mut rng));
            let expected = match key.strip_prefix(&page[prefix.clone()]) {
                Some(suffix) => Ok(Suffix::new(suffix)),
                None => Err(key.as_slice().cmp(&page[prefix.clone()])),
            };
            assert_eq!(strip_prefix(&key, &page, prefix.clone()), expected, "{key:?} {page:?} {prefix:?}");
        }
    }

    #[test]
    fn suffixes_are_the_same_when_their_bytes_are() {
        let mut rng = StdRng::seed_from_u64(5);
        for _ in 0..50_000 {
            let a: Vec<u8> = (0..4).flat_map(|_| random_key(&mut rng)).collect();
            let mut b = a.clone();
            match rng.random_range(0..3) {
                0 => b.truncate(rng.random_range(0..=b.len())),
                1 if !b.is_empty() => {
                    let at = rng.random_range(0..b.len());
                    b[at] ^= 1 << rng.random_range(0..8);
                }
                _ => {}
            }
            assert_eq!(Suffix::new(&a).is(&Suffix::new(&b)), a == b, "{a:?} {b:?}");
        }
    }

    #[test]
    fn heads_that_are_spread_evenly_are_nearly_always_where_they_are_guessed() {
        let mut rng = StdRng::seed_from_u64(7);
        let (mut right, mut all) = (0, 0);
        for _ in 0..200 {
            let mut heads: Vec<u32> = (0..400).map(|_| rng.random()).collect();
            heads.sort_unstable();
            let bytes: Vec<[u8; 4]> = heads.iter().map(|head| head.to_le_bytes()).collect();
            for head in heads {
                let start = guess(&bytes, head).expect("it is between the first and the last");
                right += usize::from(equal_heads_guessed(&bytes, start, head).is_some());
                all += 1;
            }
        }
        assert!(right * 100 > all * 97, "{right} of {all}");
    }

    #[test]
    fn head_search_agrees_with_a_linear_one() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..5_000 {
            let most = [40, 100, 2_000][rng.random_range(0..3)];
            let len: usize = rng.random_range(0..most);
            let top = [4, 50, u32::MAX][rng.random_range(0..3)];
            let mut heads: Vec<u32> =
                (0..len).map(|_| if rng.random_bool(0.1) { u32::MAX } else { rng.random_range(0..=top) }).collect();
            heads.sort_unstable();
            let bytes: Vec<[u8; 4]> = heads.iter().map(|head| head.to_le_bytes()).collect();
            let head = if rng.random_bool(0.1) { u32::MAX } else { rng.random_range(0..=top) };
            let low = heads.iter().filter(|&&other| other < head).count();
            let high = heads.iter().filter(|&&other| other <= head).count();
            assert_eq!(heads_below(&bytes, head), low);
            assert_eq!(equal_heads(&bytes, head), (low, high));
            let samples: Vec<[u8; 4]> = samples(&bytes).copied().collect();
            assert_eq!(equal_heads_in_block(&bytes, heads_below(&samples, head), head), (low, high));
            let guessed = guess(&bytes, head).and_then(|start| equal_heads_guessed(&bytes, start, head));
            assert!(guessed.is_none_or(|guessed| guessed == (low, high)), "{guessed:?}, not {low}..{high}");
            for start in [0, len / 2, len.saturating_sub(GUESSED), len] {
                let guessed = equal_heads_guessed(&bytes, start, head);
                assert!(guessed.is_none_or(|guessed| guessed == (low, high)), "{guessed:?} from {start}");
            }
        }
    }
}
