//! The head of a key: its first eight bytes as a number. Comparing heads nearly always decides the order of two
//! keys. The caller first cuts off the prefix that all keys share.

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
