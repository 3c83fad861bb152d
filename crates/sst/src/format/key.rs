//! Comparing a key with keys whose shared prefix and first bytes are stored apart from the rest.
//!
//! A page stores the prefix common to all its keys once, then for each key a *head*: the next four bytes as a
//! big-endian number, zero padded, contiguous with the other heads so that a search touches one array; then the
//! *tail*: whatever is left. Two suffixes order as the triples (head, bytes in the head, tail).

use std::cmp::Ordering;

/// Bytes of a key kept in its head.
pub const HEAD_BYTES: usize = 4;

/// What follows the page's prefix in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suffix<'a> {
    /// First four bytes, big-endian, zero padded.
    pub head: u32,
    /// How many bytes of the head are the key's, at most four.
    pub head_bytes: u8,
    /// The rest.
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

    /// Appends the bytes again.
    pub fn append_to(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.head.to_be_bytes()[..usize::from(self.head_bytes)]);
        key.extend_from_slice(self.tail);
    }
}

/// Where `key` lies relative to all keys that begin with `prefix`: before them, after them, or among them with its own
/// suffix.
pub fn strip_prefix<'k>(key: &'k [u8], prefix: &[u8]) -> Result<Suffix<'k>, Ordering> {
    let common = key.len().min(prefix.len());
    match key[..common].cmp(&prefix[..common]) {
        Ordering::Equal if key.len() >= prefix.len() => Ok(Suffix::new(&key[prefix.len()..])),
        Ordering::Equal => Err(Ordering::Less),
        other => Err(other),
    }
}

/// Length of the longest common prefix.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The shortest string that is greater than `last` and at most `first`, where `last < first`. It is a prefix of
/// `first`, and not a row's key.
pub fn separator<'k>(last: &[u8], first: &'k [u8]) -> &'k [u8] {
    debug_assert!(last < first, "keys arrive in order");
    &first[..common_prefix(last, first) + 1]
}

/// How many of the sorted `heads` (little-endian u32 each) are less than `head`. Branch-free: the loop's only
/// dependence on the data is an addition.
#[inline]
pub fn heads_below(heads: &[[u8; 4]], head: u32) -> usize {
    let mut base = 0;
    let mut len = heads.len();
    if len == 0 {
        return 0;
    }
    while len > 1 {
        let half = len / 2;
        base += usize::from(u32::from_le_bytes(heads[base + half - 1]) < head) * half;
        len -= half;
    }
    base + usize::from(u32::from_le_bytes(heads[base]) < head)
}

/// The run of entries whose head equals `head`: everything before it is less, everything after it is greater.
#[inline]
pub fn equal_heads(heads: &[[u8; 4]], head: u32) -> (usize, usize) {
    let low = heads_below(heads, head);
    // Nearly always none or one is equal: look before searching again.
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
    fn a_key_shorter_than_the_prefix_lies_before_or_after_it() {
        assert_eq!(strip_prefix(b"ab", b"abc"), Err(Ordering::Less));
        assert_eq!(strip_prefix(b"b", b"abc"), Err(Ordering::Greater));
        assert_eq!(strip_prefix(b"", b"abc"), Err(Ordering::Less));
        assert_eq!(strip_prefix(b"abc", b"abc"), Ok(Suffix::new(b"")));
    }

    #[test]
    fn head_search_agrees_with_a_linear_one() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..5_000 {
            let len = rng.random_range(0..40);
            let top = [4, 50, u32::MAX][rng.random_range(0..3)];
            let mut heads: Vec<u32> =
                (0..len).map(|_| if rng.random_bool(0.1) { u32::MAX } else { rng.random_range(0..=top) }).collect();
            heads.sort_unstable();
            let bytes: Vec<[u8; 4]> = heads.iter().map(|head| head.to_le_bytes()).collect();
            let wanted = if rng.random_bool(0.1) { u32::MAX } else { rng.random_range(0..=top) };
            let low = heads.iter().filter(|&&head| head < wanted).count();
            let high = heads.iter().filter(|&&head| head <= wanted).count();
            assert_eq!(heads_below(&bytes, wanted), low);
            assert_eq!(equal_heads(&bytes, wanted), (low, high));
        }
    }
}
