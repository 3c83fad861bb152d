//! The content of fields: random text, or text that is computed from the key and the field.

#[cfg(test)]
mod tests;

use crate::key::decimal;
use crate::random::Random;

/// Random printable text. The text comes from a stream of random numbers that is not used for keys. Therefore the
/// written values do not influence which keys are drawn. The bytes of this text differ from the original's bytes,
/// but they are equally random: three bytes have 5, 6 and 6 random bits.
#[derive(Clone, Debug)]
pub struct Text {
    state: u64,
}

/// How many bytes are made in one step: three words of eight bytes.
const BLOCK: usize = 24;
const SPACES: u64 = 0x2020_2020_2020_2020;
/// The masks 31, 63 and 63, repeated over three words. With these masks, all characters are from 32 to 95.
const MASKS: [u64; 3] = [0x3f1f_3f3f_1f3f_3f1f, 0x1f3f_3f1f_3f3f_1f3f, 0x3f3f_1f3f_3f1f_3f3f];

impl Text {
    /// The text that client number `client` writes in a run with seed `seed`.
    pub fn of_client(seed: u64, client: u64) -> Text {
        // The seed is changed, so that the stream of texts differs from the stream of keys. Any constant other than
        // 0 would do.
        Text { state: Random::of_client(!seed, client).long().cast_unsigned() }
    }

    /// Fills `out` with text.
    #[inline]
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut blocks = out.chunks_exact_mut(BLOCK);
        for block in &mut blocks {
            self.block(block.try_into().expect("chunks have this length"));
        }
        let rest = blocks.into_remainder();
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            self.block(&mut block);
            rest.copy_from_slice(&block[..rest.len()]);
        }
    }

    #[inline]
    fn block(&mut self, out: &mut [u8; BLOCK]) {
        for (word, mask) in MASKS.into_iter().enumerate() {
            // Multiplies a counter and folds the result. Therefore the processor can compute several words at
            // once. For a text, these random bits are good enough.
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.state ^ (self.state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
            let z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
            let text = ((z ^ (z >> 32)) & mask) + SPACES;
            out[8 * word..][..8].copy_from_slice(&text.to_le_bytes());
        }
    }
}

/// Appends the `bytes` bytes that `field` of the record `key` has with `dataintegrity`. They begin with the key and
/// the field. Then Java's `hashCode` of the text so far is appended, again and again, until the text is long
/// enough.
pub fn push_checkable(key: &[u8], field: &[u8], bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(key);
    out.push(b':');
    out.extend_from_slice(field);
    let mut hash = 0;
    let mut hashed = start;
    while out.len() - start < bytes {
        out.push(b':');
        hash = java_hash(hash, &out[hashed..]);
        hashed = out.len();
        out.extend_from_slice(decimal(i64::from(hash), &mut [0; 20]));
    }
    out.truncate(start + bytes);
}

/// Continues `String.hashCode` with `text`, if the text before it has the hash `before`. Keys and names of fields
/// are ASCII.
fn java_hash(before: i32, text: &[u8]) -> i32 {
    text.iter().fold(before, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte)))
}
