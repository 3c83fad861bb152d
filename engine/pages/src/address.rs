//! Where a page lies in its file. A page's address is in its parent, so memory need not hold a list of all
//! addresses of a file. This module does not know what the page holds.

/// The unit of offsets and stored lengths of pages. Uncompressed pages start at multiples of [`os::BLOCK_BYTES`],
/// unless they are packed [tightly](crate::Packing::Tight) as value pages are.
pub const PACK_BYTES: u64 = 64;

/// The place and the checksum of a page in its file.
///
/// ```text
/// offset u64 | bytes u32 | crc u32      16 bytes, little-endian, where a format stores one whole
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Address {
    /// Offset of the page in the file, a multiple of [`PACK_BYTES`].
    pub offset: u64,
    /// Stored length of the page with padding, a multiple of [`PACK_BYTES`].
    pub bytes: u32,
    /// The crc32c of the stored bytes with padding, seeded with the file id and the offset.
    pub crc: u32,
}

impl Address {
    /// Encoded length.
    pub const ENCODED_BYTES: usize = 16;

    /// Little-endian encoding, in the order of the fields.
    pub fn encode(&self) -> [u8; Self::ENCODED_BYTES] {
        let mut bytes = [0; Self::ENCODED_BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// Reads what [`Address::encode`] wrote; `None` if `bytes` is too short.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::ENCODED_BYTES] = bytes.get(..Self::ENCODED_BYTES)?.try_into().ok()?;
        Some(Self {
            offset: u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")),
            bytes: u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes")),
            crc: u32::from_le_bytes(bytes[12..].try_into().expect("4 bytes")),
        })
    }

    /// The offset just after the page.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }
}
