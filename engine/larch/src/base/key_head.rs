//! The head of a key: its first eight bytes as a number. Comparing heads nearly always decides the order of two
//! keys. The caller first cuts off the prefix that all keys share.

use std::cmp::Ordering;

/// The first eight bytes of a key as a number that sorts like the key. A shorter key is padded with zeros, so two
/// different keys can have equal heads.
#[inline]
pub fn head(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Longer keys are compared with `memcmp`, which is faster for them.
const LONGEST_IN_NUMBERS: usize = 64;

/// Compares two keys whose [heads](head) are equal. Most keys of a table have the same length, and often share more
/// than their heads. Keys of equal length are compared eight bytes at a time, as numbers, which is faster than
/// calling `memcmp`.
#[inline]
pub fn order_after_head(a: &[u8], b: &[u8]) -> Ordering {
    let bytes = a.len();
    if bytes != b.len() || !(8..=LONGEST_IN_NUMBERS).contains(&bytes) {
        return a.cmp(b);
    }
    let (mut a_rest, mut b_rest) = (&a[8..], &b[8..]);
    while let (Some((a_next, a_after)), Some((b_next, b_after))) =
        (a_rest.split_first_chunk::<8>(), b_rest.split_first_chunk::<8>())
    {
        if a_next != b_next {
            return u64::from_be_bytes(*a_next).cmp(&u64::from_be_bytes(*b_next));
        }
        (a_rest, b_rest) = (a_after, b_after);
    }
    // The last comparison overlaps bytes that were already compared and are equal.
    let last = |key: &[u8]| u64::from_be_bytes(*key.last_chunk().expect("eight bytes or more"));
    last(a).cmp(&last(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_equal_heads_have_the_order_of_their_bytes() {
        let lengths = [0, 1, 7, 8, 9, 12, 15, 16, 17, 20, 23, 24, 25, 63, 64, 65, 80];
        for (a_bytes, b_bytes) in lengths.iter().flat_map(|&a| lengths.map(|b| (a, b))) {
            let (a, b) = (vec![5; a_bytes], vec![5; b_bytes]);
            if head(&a) == head(&b) {
                assert_eq!(order_after_head(&a, &b), a.cmp(&b));
            }
            for i in 8..b_bytes {
                for byte in [0, 4, 6, 0xff] {
                    let mut b = b.clone();
                    b[i] = byte;
                    if head(&a) == head(&b) {
                        assert_eq!(order_after_head(&a, &b), a.cmp(&b), "{a:?} {b:?}");
                        assert_eq!(order_after_head(&b, &a), b.cmp(&a), "{b:?} {a:?}");
                    }
                }
            }
        }
    }
}
