//! The head of a key: its first eight bytes as a number, which most comparisons of two keys end at. It knows no keys that have
//! something in common: where they do, the caller cuts that off.

/// The first eight bytes of a key as a number with the same order. A shorter key is filled with zeros, so keys with equal heads
/// must still be compared.
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
