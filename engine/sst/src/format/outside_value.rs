//! The reference that a page stores in place of a value that lies in value pages. This module does not know the
//! page that stores it, and it does not read the value.

use super::varint;
use pages::Address;
use pages::page::MOST_UNPACKED;

/// Maximum bytes of a large value in one chunk, without the chunk's header.
pub const MAX_CHUNK_BYTES: usize = 1 << 20;

/// The reference to a value that is kept in value pages.
///
/// ```text
/// value bytes varint | (address 16 bytes) x chunks
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OutsideValue<'a> {
    /// Length of the whole value.
    pub bytes: u64,
    chunks: &'a [u8],
}

impl<'a> OutsideValue<'a> {
    /// Reads a reference; `None` if it is malformed.
    pub fn new(mut bytes: &'a [u8]) -> Option<Self> {
        let len = varint::take(&mut bytes)?;
        (!bytes.is_empty() && bytes.len().is_multiple_of(Address::ENCODED_BYTES))
            .then_some(Self { bytes: len, chunks: bytes })
    }

    /// Checks a reference: a file must be able to hold a value of this length, and its chunks must lie one after
    /// the other. So no chunk is named twice, and the length of the file limits the memory that loading the value
    /// takes. The limit is a multiple of that length, because chunks may be packed.
    ///
    /// # Errors
    ///
    /// The error says what is wrong with the reference.
    pub fn check(bytes: &'a [u8]) -> Result<(), String> {
        let value = Self::new(bytes).ok_or("does not decode")?;
        let (mut chunks, mut stored_bytes, mut end) = (0, 0u64, 0);
        for address in value.chunks() {
            if address.bytes == 0 || address.offset < end {
                return Err(format!("names a chunk of {} bytes at {}, before {end}", address.bytes, address.offset));
            }
            end = address.offset.checked_add(u64::from(address.bytes)).ok_or("names a chunk at no place of a file")?;
            chunks += 1;
            stored_bytes = stored_bytes.saturating_add(address.bytes.into());
        }
        let most = (chunks * MAX_CHUNK_BYTES as u64).min(stored_bytes.saturating_mul(MOST_UNPACKED));
        if !(chunks..=most).contains(&value.bytes) {
            return Err(format!("says {} bytes of {chunks} chunks of {stored_bytes} stored bytes", value.bytes));
        }
        Ok(())
    }

    /// Addresses of the chunks, in order.
    pub fn chunks(&self) -> impl Iterator<Item = Address> + use<'a> {
        self.chunks.chunks_exact(Address::ENCODED_BYTES).map(|chunk| Address::decode(chunk).expect("whole addresses"))
    }

    /// Appends a reference.
    pub fn encode(out: &mut Vec<u8>, value_bytes: u64, chunks: &[Address]) {
        varint::put(out, value_bytes);
        for chunk in chunks {
            out.extend_from_slice(&chunk.encode());
        }
    }
}
