//! Makes keys and values from row numbers, so that readers can be checked.

/// Bytes of a key.
pub const KEY_BYTES: usize = 24;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 150;
/// Bytes of a value in the first of two column groups.
pub const HOT_BYTES: usize = 30;

/// A key.
pub type Key = [u8; KEY_BYTES];

/// Mixes a number into 64 random-looking bits (the finalizer of SplitMix64). Different numbers give different bits.
pub fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// The `i`-th random number below `end` for `seed`.
pub fn random(seed: u64, i: u64, end: u64) -> u64 {
    mix(mix(seed) ^ i) % end
}

/// The key of row `number`: 16 hexadecimal digits that scatter the rows, then the number as 8 digits for human
/// readers.
pub fn key(number: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    hex(mix(number), &mut key[..16]);
    hex(number << 32, &mut key[16..]);
    key
}

/// The key of row `number` if keys are to ascend with the number: `user` and 20 decimal digits.
pub fn sequential_key(number: u64) -> Key {
    let mut key = *b"user00000000000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// A key of random bytes.
pub fn binary_key(number: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    for (i, word) in key.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(number ^ (i as u64) << 48).to_be_bytes());
    }
    key
}

/// A kind of keys: its name, and the key of a row.
pub type KeyKind = (&'static str, fn(u64) -> Key);

/// The kinds of keys to measure: the size of an index depends on how much keys have in common.
pub const KEY_KINDS: [KeyKind; 3] =
    [("random bytes", binary_key), ("hexadecimal", key), ("sequential", sequential_key)];

/// The value of row `number`. It begins with its [`stamp`].
pub fn value(number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    for (i, word) in value.chunks_mut(8).enumerate() {
        let bits = mix(!number ^ (i as u64) << 48).to_le_bytes();
        word.copy_from_slice(&bits[..word.len()]);
    }
    value
}

/// The first eight bytes of a value, or of its first part. Measurements check the sum of the stamps that they read.
pub fn stamp(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().expect("a value has more than eight bytes"))
}

/// The [`stamp`] of the value of row `number`.
pub fn stamp_of(number: u64) -> u64 {
    mix(!number)
}

/// A row to look for. Probes are made before the clock runs and then read in order.
#[derive(Clone, Copy)]
pub struct Probe {
    /// The row's number.
    pub number: u64,
    /// The row's key.
    pub key: Key,
}

/// Picks `count` random rows out of `rows`.
pub fn probes(seed: u64, count: usize, rows: u64) -> Vec<Probe> {
    let probe = |i| {
        let number = random(seed, i, rows);
        Probe { number, key: key(number) }
    };
    (0..count as u64).map(probe).collect()
}

/// Writes the leading hexadecimal digits of `bits`.
fn hex(bits: u64, digits: &mut [u8]) {
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(bits >> (60 - 4 * at) & 15) as usize];
    }
}
