//! The common header of all pages, and how a page is stored and checked. This module does not know what a payload
//! means, which memory a page is read into, or anything about files but their ids.
//!
//! ```text
//!  0        1        2        3        4               8               12              16
//!  | kind   | codec  | level  | zero   | memory bytes  | stored bytes  | zero          | payload …
//! ```
//!
//! * The memory bytes are the length of header and payload when decoded. The stored bytes are their length as
//!   stored, without padding.
//! * If a page has a codec, its payload is stored compressed; its header never is. A compressed page is at least a
//!   [255th](MOST_UNPACKED) of its length in memory.
//! * The padding after the stored bytes is zero and covered by the checksum in the page's [`Address`].
//! * The checksum is seeded with the file id and the offset, so it also detects the right bytes in the wrong place.

mod compression;
mod packer;
mod unpacker;

use crate::{Address, PACK_BYTES};
pub use compression::Compression;
use crc_fast::{CrcAlgorithm, Digest};
use os::{BLOCK_BYTES, Buffer};
pub use packer::Packer;
pub use unpacker::{Undecoded, Unpacker};

/// Length of the header of every page.
pub const HEADER_BYTES: usize = 16;

/// The largest page in memory: enough for a value chunk of 1 MiB, and for a page with a single row of maximal
/// length.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// A compressed page unpacks to at most this many times its stored bytes, so the stored bytes of a value limit the
/// memory that it takes. LZ4 cannot exceed this, because each byte adds at most 255 to the length of a match. Where
/// zstd would exceed it, the page is stored as LZ4 instead.
pub const MOST_UNPACKED: u64 = 255;

/// What a page is for. The numbers are part of the file format. No kind has the number 0, so that a block of zeros
/// is not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PageKind {
    /// Rows of the main tree.
    Data = 1,
    /// A node of a tree, at any level above the data pages.
    Index = 2,
    /// Rows of the history tree.
    History = 3,
    /// A chunk of a large value.
    Value = 4,
    /// Range erases.
    RangeErase = 5,
    /// A flat index: one page for a whole small file.
    Flat = 6,
    /// A partition of a filter.
    Filter = 7,
    /// Rows of a column group.
    Group = 8,
    /// The footer, with which the file can be opened without any other file.
    Footer = 9,
    /// Rows of a column group's history.
    GroupHistory = 10,
}

impl PageKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Data,
        Self::Index,
        Self::History,
        Self::Value,
        Self::RangeErase,
        Self::Flat,
        Self::Filter,
        Self::Group,
        Self::Footer,
        Self::GroupHistory,
    ];

    /// The kind with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Name for messages and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Index => "index",
            Self::History => "history",
            Self::Value => "value",
            Self::RangeErase => "range erase",
            Self::Flat => "flat index",
            Self::Filter => "filter",
            Self::Group => "group",
            Self::Footer => "footer",
            Self::GroupHistory => "group history",
        }
    }

    /// Whether pages of this kind serve many other pages or many rows, as nodes, filters and range erases do.
    pub fn serves_many(self) -> bool {
        matches!(self, Self::Index | Self::RangeErase | Self::Flat | Self::Filter)
    }

    /// The place in [`PageKind::ALL`], for arrays with one cell per kind.
    pub fn index(self) -> usize {
        usize::from(self as u8) - 1
    }
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// Uncompressed.
    None = 0,
    /// One LZ4 block.
    Lz4 = 1,
    /// One zstd frame.
    Zstd = 2,
}

impl Codec {
    /// The codec with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The unit to which the length of a stored page is rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The unit is [`os::BLOCK_BYTES`]: the page is used in the buffer that it was read into, without a copy. A
    /// compressed page, or a page whose offset is not a multiple of a block, is still packed as with `Tight`.
    Block,
    /// The unit is [`PACK_BYTES`]: no space in the file is lost, but the page is copied out of the blocks that it
    /// shares with other pages.
    Tight,
}

impl Packing {
    /// `bytes` rounded up.
    pub fn padded(self, bytes: usize) -> usize {
        match self {
            Self::Block => bytes.next_multiple_of(BLOCK_BYTES),
            Self::Tight => bytes.next_multiple_of(PACK_BYTES as usize),
        }
    }
}

/// The first [`HEADER_BYTES`] of a page; see the picture at the top of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// What the page is for.
    pub kind: PageKind,
    /// How the payload is stored.
    pub codec: Codec,
    /// The height above the lowest pages of the tree; 0 for pages that are not nodes.
    pub level: u8,
    /// Length of header and payload when decoded.
    pub memory_bytes: u32,
    /// Length of header and payload as stored, without padding.
    pub stored_bytes: u32,
}

impl PageHeader {
    /// The bytes of the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind as u8;
        bytes[1] = self.codec as u8;
        bytes[2] = self.level;
        bytes[4..8].copy_from_slice(&self.memory_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes
    }

    /// Reads what [`PageHeader::encode`] wrote.
    ///
    /// # Errors
    ///
    /// A text that says what is wrong with the bytes.
    pub fn decode(page: &[u8]) -> Result<Self, String> {
        let Some(bytes) = page.first_chunk::<HEADER_BYTES>() else {
            return Err(format!("{} bytes are too few for a page header", page.len()));
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let kind = PageKind::from_u8(bytes[0]).ok_or_else(|| format!("unknown page kind {}", bytes[0]))?;
        let codec = Codec::from_u8(bytes[1]).ok_or_else(|| format!("unknown codec {}", bytes[1]))?;
        if bytes[3] != 0 || word(12) != 0 {
            return Err("reserved bytes of the page header are not zero".into());
        }
        let header = Self { kind, codec, level: bytes[2], memory_bytes: word(4), stored_bytes: word(8) };
        let lengths = HEADER_BYTES..=MAX_PAGE_BYTES;
        if !lengths.contains(&(header.memory_bytes as usize)) || !lengths.contains(&(header.stored_bytes as usize)) {
            return Err(format!("page of {} bytes, {} stored", header.memory_bytes, header.stored_bytes));
        }
        match codec {
            Codec::None if header.memory_bytes != header.stored_bytes => {
                Err(format!("plain page of {} bytes, {} stored", header.memory_bytes, header.stored_bytes))
            }
            Codec::Lz4 | Codec::Zstd if is_too_dense(header.memory_bytes as usize, header.stored_bytes as usize) => {
                Err(format!("compressed page of {} bytes, {} stored", header.memory_bytes, header.stored_bytes))
            }
            Codec::None | Codec::Lz4 | Codec::Zstd => Ok(header),
        }
    }
}

/// Turns a page in memory into the bytes that are written at `offset`, and returns the address for the page's
/// parent.
///
/// On entry, `page` has [`HEADER_BYTES`] reserved bytes and then the payload. On return, it has the stored bytes
/// with padding. `header` is the kind and the level of the page. This is [`pack_page`] followed by [`seal_page`]. A
/// writer that aligns only plain pages calls these two itself, because it chooses the offset once it knows whether
/// the page shrank.
///
/// # Panics
///
/// Panics if the page is longer than [`MAX_PAGE_BYTES`] or shorter than its header, or if `offset` is not a
/// multiple of [`PACK_BYTES`].
pub fn encode_page(
    page: &mut Vec<u8>,
    header: (PageKind, u8),
    compression: Compression,
    packing: Packing,
    file_id: u64,
    offset: u64,
) -> Address {
    pack_page(page, header, compression, packing, &mut Packer::default());
    seal_page(page, packing, file_id, offset)
}

/// Writes the header, after compressing the payload with `packer` if that is asked for and saves enough. Returns
/// the codec of the page.
///
/// A compressed page must take at least an eighth less of the file than the plain page. A smaller saving is not
/// worth unpacking the page on every read. Panics as [`encode_page`] does.
pub fn pack_page(
    page: &mut Vec<u8>,
    (kind, level): (PageKind, u8),
    compression: Compression,
    packing: Packing,
    packer: &mut Packer,
) -> Codec {
    let memory_bytes = page.len();
    assert!((HEADER_BYTES..=MAX_PAGE_BYTES).contains(&memory_bytes), "a page of {memory_bytes} bytes");
    let codec = compress(page, compression, packing, packer);
    // Both lengths are at most MAX_PAGE_BYTES, because a compressed page is kept only when it is shorter.
    let header = PageHeader { kind, codec, level, memory_bytes: memory_bytes as u32, stored_bytes: page.len() as u32 };
    page[..HEADER_BYTES].copy_from_slice(&header.encode());
    codec
}

/// Compresses the payload in place, if the caller wants this, it saves enough, and this build has the codec. The
/// space behind the page serves as scratch memory meanwhile.
fn compress(page: &mut Vec<u8>, compression: Compression, packing: Packing, packer: &mut Packer) -> Codec {
    let memory_bytes = page.len();
    let by_lz4 = |page: &mut Vec<u8>| Packer::lz4(page, HEADER_BYTES).map(|packed_bytes| (Codec::Lz4, packed_bytes));
    let packed = match compression {
        Compression::None => None,
        Compression::Lz4 => by_lz4(page),
        Compression::Zstd { level } => match packer.zstd(page, HEADER_BYTES, level) {
            Some(packed_bytes) if is_too_dense(memory_bytes, HEADER_BYTES + packed_bytes) => {
                page.truncate(memory_bytes);
                by_lz4(page)
            }
            packed_bytes => packed_bytes.map(|packed_bytes| (Codec::Zstd, packed_bytes)),
        },
    };
    let Some((codec, packed_bytes)) = packed else { return Codec::None };
    let plain_bytes = packing.padded(memory_bytes);
    let is_worth_it = Packing::Tight.padded(HEADER_BYTES + packed_bytes) <= plain_bytes - plain_bytes / 8;
    if is_worth_it {
        page.copy_within(memory_bytes..memory_bytes + packed_bytes, HEADER_BYTES);
        page.truncate(HEADER_BYTES + packed_bytes);
        codec
    } else {
        page.truncate(memory_bytes);
        Codec::None
    }
}

/// Whether a compressed page would unpack to more than [`MOST_UNPACKED`] times its length.
fn is_too_dense(memory_bytes: usize, stored_bytes: usize) -> bool {
    memory_bytes as u64 > stored_bytes as u64 * MOST_UNPACKED
}

/// Pads a packed page and computes its checksum for the given offset. Panics as [`encode_page`] does.
pub fn seal_page(page: &mut Vec<u8>, packing: Packing, file_id: u64, offset: u64) -> Address {
    assert!(offset.is_multiple_of(PACK_BYTES), "a page at offset {offset}");
    let header = PageHeader::decode(page).expect("the caller packed this page");
    let between_blocks = !offset.is_multiple_of(BLOCK_BYTES as u64);
    let packing = if header.codec != Codec::None || between_blocks { Packing::Tight } else { packing };
    page.resize(packing.padded(page.len()), 0);
    let bytes = u32::try_from(page.len()).expect("a page is at most 8 MiB");
    Address { offset, bytes, crc: checksum(file_id, offset, page) }
}

/// The crc32c of the file id and the offset, both little-endian, followed by the stored bytes with padding.
pub fn checksum(file_id: u64, offset: u64, stored: &[u8]) -> u32 {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&file_id.to_le_bytes());
    seed[8..].copy_from_slice(&offset.to_le_bytes());
    let mut sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
    sum.update(&seed);
    sum.update(stored);
    // The sum has 32 bits; the library returns it in a type for all widths.
    sum.finalize() as u32
}

/// Verifies the `stored` bytes of a page, and copies or unpacks them into the buffer that `memory` returns for a
/// given number of bytes.
///
/// # Errors
///
/// [`Undecoded::Damaged`] if the checksum, the header or a length is wrong, or if the payload does not unpack;
/// [`Undecoded::MissingFeature`] if this build lacks the page's codec.
pub fn decode_page(
    stored: &[u8],
    kind: PageKind,
    at: &Address,
    file_id: u64,
    unpacker: &Unpacker,
    memory: impl FnOnce(usize) -> Buffer,
) -> Result<(Buffer, PageHeader), Undecoded> {
    let header = verify(stored, kind, at, file_id)?;
    let mut buffer = memory(header.memory_bytes as usize);
    let stored = &stored[..header.stored_bytes as usize];
    match header.codec {
        Codec::None => buffer.copy_from_slice(stored),
        Codec::Lz4 => unpack(stored, &mut buffer, Unpacker::lz4)?,
        Codec::Zstd => unpack(stored, &mut buffer, |packed, payload| unpacker.zstd(packed, payload))?,
    }
    Ok((buffer, header))
}

/// Copies the header, and unpacks the payload with `payload_of`. The payload must fill the rest of `buffer`.
fn unpack(
    stored: &[u8],
    buffer: &mut [u8],
    payload_of: impl FnOnce(&[u8], &mut [u8]) -> Result<usize, Undecoded>,
) -> Result<(), Undecoded> {
    let (head, payload) = buffer.split_at_mut(HEADER_BYTES);
    let (stored_head, packed) = stored.split_at(HEADER_BYTES);
    head.copy_from_slice(stored_head);
    match payload_of(packed, payload)? {
        unpacked if unpacked == payload.len() => Ok(()),
        unpacked => Err(Undecoded::Damaged(format!("unpacks to {unpacked} bytes instead of {}", payload.len()))),
    }
}

/// Like [`decode_page`], but for a page that has a buffer of its own. A plain page is used in this buffer without a
/// copy.
///
/// # Errors
///
/// As [`decode_page`].
pub fn adopt_page(
    stored: Buffer,
    kind: PageKind,
    at: &Address,
    file_id: u64,
    unpacker: &Unpacker,
    memory: impl FnOnce(usize) -> Buffer,
) -> Result<(Buffer, PageHeader), Undecoded> {
    let bytes = (at.bytes as usize).min(stored.len());
    let header = verify(&stored[..bytes], kind, at, file_id)?;
    match header.codec {
        Codec::None => Ok((stored, header)),
        Codec::Lz4 | Codec::Zstd => decode_page(&stored[..bytes], kind, at, file_id, unpacker, memory),
    }
}

/// Refuses an address that cannot be valid, before any byte of the page is read. The address was itself read from
/// disk and may be damaged.
pub(crate) fn verify_address(at: &Address) -> Result<(), String> {
    let packed = at.offset.is_multiple_of(PACK_BYTES) && u64::from(at.bytes).is_multiple_of(PACK_BYTES);
    let in_bounds = (1..=MAX_PAGE_BYTES).contains(&(at.bytes as usize));
    let ends = at.offset.checked_add(u64::from(at.bytes) + BLOCK_BYTES as u64).is_some();
    if packed && in_bounds && ends { Ok(()) } else { Err(format!("its parent gives it {} bytes", at.bytes)) }
}

/// Verifies the length, the checksum, the header and the padding, in this order.
fn verify(stored: &[u8], kind: PageKind, at: &Address, file_id: u64) -> Result<PageHeader, String> {
    if stored.len() != at.bytes as usize {
        return Err(format!("{} bytes of {}", stored.len(), at.bytes));
    }
    let crc = checksum(file_id, at.offset, stored);
    if crc != at.crc {
        return Err(format!("checksum {crc:08x}, its parent expects {:08x}", at.crc));
    }
    let header = PageHeader::decode(stored)?;
    if header.kind != kind {
        return Err(format!("its parent expects a {} page, this is a {} page", kind.name(), header.kind.name()));
    }
    let padding = stored.len().checked_sub(header.stored_bytes as usize);
    if padding.is_none_or(|padding| padding >= BLOCK_BYTES) {
        return Err(format!("{} bytes stored in {}", header.stored_bytes, stored.len()));
    }
    Ok(header)
}

#[cfg(test)]
mod tests;
