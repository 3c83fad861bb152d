//! Makes rows from their numbers, so that a reader can tell whether a row is as it was written.

/// The number of bytes in a key: 24 hexadecimal digits.
pub const KEY_BYTES: usize = 24;
/// The number of bytes in a value. All of them are printable.
pub const VALUE_BYTES: usize = 100;

/// A row's number as 64 bits that look random (the finalizer of SplitMix64). Different numbers give different bits.
pub fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// The key of row `number`. Its first 16 digits look random, so they scatter the rows over the table. Its last 8
/// digits are the number, so that people can tell rows apart.
pub fn key(seed: u64, number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    hex(mix(number ^ seed << 40), &mut key[..16]);
    hex(number << 32, &mut key[16..]);
    key
}

/// The value of the row with this key.
pub fn value(key: &[u8]) -> [u8; VALUE_BYTES] {
    let mut value = [b'.'; VALUE_BYTES];
    value[..4].copy_from_slice(b"row ");
    let start = key.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    for (at, word) in value[4..].chunks_exact_mut(16).enumerate() {
        hex(mix(start.wrapping_add(at as u64)), word);
    }
    value
}

/// The leading digits of `bits`.
fn hex(bits: u64, digits: &mut [u8]) {
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(bits >> (60 - 4 * at) & 15) as usize];
    }
}
