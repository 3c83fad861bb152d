//! The layout of a row in the arena. This module does not know the order of rows, or which rows are linked.
//!
//! ```text
//! link n-1 | … | link 1 | link 0 | version u64 | value bytes u32 | key bytes, height, kind u32 | key | value | until?
//!                                 ▲ a node's address; all of it is one piece              at least 8 ◀─▶
//! ```
//!
//! Only a row of the kind "put until" has a time, of eight bytes, see [`Until`].
//!
//! Most comparisons on the way down a skip list need only eight bytes of the key, which is a single read. A key of
//! fewer bytes is padded with zeros. A node takes 24 bytes plus the key (at least 8 bytes) and the value, rounded up to
//! a multiple of 8. The 24 bytes include one link. Each further link adds 8 bytes; on average, a node has a third of
//! one.
//!
//! Invariants: once a node is written, nothing in it changes except its links. A link is null or leads to a node of
//! the same arena that was written before the link was set.

use super::arena::{ALIGNMENT, Arena};
use super::row_memory::RowMemory;
use os::sync::Arc;
use os::sync::atomic::AtomicPtr;
use sst::{MAX_KEY_BYTES, RowKind, Until, Version};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

/// The most links of a node. Of 4^12 (16 million) rows, one is on the top level on average.
pub(super) const MAX_HEIGHT: usize = 12;

const HEAD_BYTES: usize = size_of::<u64>();
const LINK_BYTES: usize = size_of::<Link>();
const HEADER_BYTES: usize = size_of::<Header>();

/// The memory of a node with one link, without its key and value.
pub(super) const SMALLEST_BYTES: usize = LINK_BYTES + HEADER_BYTES;

/// The length of a key and the height of a node share one number. These are their widths in bits.
const KEY_BITS: u32 = 17;
const HEIGHT_BITS: u32 = 4;

const _: () = assert!(MAX_KEY_BYTES < 1 << KEY_BITS && MAX_HEIGHT < 1 << HEIGHT_BITS);
const _: () = assert!(align_of::<Header>() <= ALIGNMENT && align_of::<Link>() <= ALIGNMENT);
const _: () = assert!(LINK_BYTES.is_multiple_of(align_of::<Header>()));

/// A link to the next node of a level.
pub(super) type Link = AtomicPtr<Header>;

/// The fixed part of a node. The node's links are before it in memory, and the key and the value after it.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Header {
    version: u64,
    value_bytes: u32,
    /// From the lowest bit: `KEY_BITS` bits of key length, `HEIGHT_BITS` bits of height, then the kind.
    key_height_kind: u32,
}

/// A node in an arena that lives at least as long as `'a`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a>(NonNull<Header>, PhantomData<&'a Arena>);

// SAFETY: nothing in a node changes except its links, and the links are atomic.
unsafe impl Send for Node<'_> {}
// SAFETY: as above.
unsafe impl Sync for Node<'_> {}

/// The content of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'c> {
    pub key: &'c [u8],
    pub version: Version,
    pub kind: RowKind,
    pub value: &'c [u8],
    /// The time of a row of the kind "put until".
    pub until: Option<Until>,
}

impl Content<'_> {
    /// The bytes that a node of this height with this content takes in an arena.
    #[inline]
    pub(super) fn node_bytes(&self, height: usize) -> usize {
        let until_bytes = if self.until.is_some() { Until::BYTES } else { 0 };
        node_bytes(height, self.key.len(), self.value.len() + until_bytes)
    }
}

impl<'a> Node<'a> {
    /// Writes a node with `height` empty links into `arena`.
    pub(super) fn write(arena: &'a Arena, height: usize, content: &Content<'_>) -> Self {
        // SAFETY: the piece is in `arena`, is as long as the node, and is used by nobody else.
        unsafe { Self::write_to(arena.allocate(content.node_bytes(height)), height, content) }
    }

    /// Writes a node of one level into an arena of its own, which is counted in `memory`, if there is one. Returns the
    /// arena and the address of the node.
    pub(super) fn write_alone(memory: Option<Arc<RowMemory>>, content: &Content<'_>) -> (Arena, NonNull<Header>) {
        let (arena, piece) = Arena::of_one(memory, content.node_bytes(1));
        // SAFETY: as in `write`.
        let node = unsafe { Self::write_to(piece, 1, content) }.address();
        (arena, node)
    }

    /// Writes a node with `height` empty links into a piece of an arena.
    ///
    /// # Safety
    ///
    /// The piece has the bytes of the node and is used by nobody else. Its arena lives at least as long as `'a`.
    #[inline]
    unsafe fn write_to(piece: NonNull<u8>, height: usize, content: &Content<'_>) -> Self {
        let Content { key, version, kind, value, until } = *content;
        debug_assert!(until.is_some() == (kind == RowKind::PutUntil), "such a row has a time");
        assert!((1..=MAX_HEIGHT).contains(&height) && key.len() <= MAX_KEY_BYTES, "the caller bounds both");
        let value_bytes = u32::try_from(value.len()).expect("the caller bounds values well below 4 GiB");
        let key_height_kind =
            key.len() as u32 | (height as u32) << KEY_BITS | u32::from(kind as u8) << (KEY_BITS + HEIGHT_BITS);
        let header = Header { version: version.0, value_bytes, key_height_kind };
        // SAFETY: the piece is aligned for links and headers, the caller says that nobody else uses it, and it has room
        // for `height` links, the header, the key, the value and the time, one after the other.
        unsafe {
            let links = piece.cast::<Link>();
            for level in 0..height {
                links.add(level).write(Link::new(ptr::null_mut()));
            }
            let place = piece.add(height * LINK_BYTES).cast::<Header>();
            place.write(header);
            let bytes = place.cast::<u8>().add(HEADER_BYTES);
            bytes.cast::<[u8; HEAD_BYTES]>().write([0; HEAD_BYTES]);
            bytes.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
            let value_at = bytes.add(key_room(key.len()));
            value_at.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
            if let Some(until) = until {
                value_at.add(value.len()).cast::<[u8; Until::BYTES]>().write(until.to_bytes());
            }
            Self(place, PhantomData)
        }
    }

    /// The node at an address that [`Node::address`] has returned.
    ///
    /// # Safety
    ///
    /// The arena of the node lives at least as long as `'a`.
    #[inline]
    pub(super) unsafe fn at(address: NonNull<Header>) -> Self {
        Self(address, PhantomData)
    }

    /// The address of the node.
    #[inline]
    pub(super) fn address(self) -> NonNull<Header> {
        self.0
    }

    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: the header was written by `write` and does not change while the arena lives.
        unsafe { self.0.as_ref() }
    }

    /// The eight bytes of the key from `at` on, as a number that sorts like them. `None` if the key ends before. A
    /// key of fewer than eight bytes is padded with zeros to eight.
    #[inline]
    pub(super) fn number(self, at: usize) -> Option<u64> {
        (at + HEAD_BYTES <= self.key_bytes() || at == 0).then(|| {
            // SAFETY: these bytes lie within the room for the key, which has at least `HEAD_BYTES` bytes. `write` has
            // written all of it, and it does not change while the arena lives.
            u64::from_be_bytes(unsafe { self.bytes().add(at).cast::<[u8; HEAD_BYTES]>().read() })
        })
    }

    /// The version of the commit that wrote the row.
    #[inline]
    pub(super) fn version(self) -> Version {
        Version(self.header().version)
    }

    /// Whether the row puts a value or erases the key.
    #[inline]
    pub(super) fn kind(self) -> RowKind {
        let kind = self.header().key_height_kind >> (KEY_BITS + HEIGHT_BITS);
        RowKind::from_u8(kind as u8).expect("it was made of a kind")
    }

    #[inline]
    fn key_bytes(self) -> usize {
        (self.header().key_height_kind & ((1 << KEY_BITS) - 1)) as usize
    }

    /// The number of links that the node has.
    #[inline]
    pub(super) fn height(self) -> usize {
        (self.header().key_height_kind >> KEY_BITS & ((1 << HEIGHT_BITS) - 1)) as usize
    }

    /// The key.
    #[inline]
    pub(super) fn key(self) -> &'a [u8] {
        // SAFETY: `write` has written a key of this length behind the header, in the same piece. It does not change
        // while the arena lives.
        unsafe { slice::from_raw_parts(self.bytes(), self.key_bytes()) }
    }

    /// Whether another node has the same key.
    #[inline]
    pub(super) fn has_key_of(self, other: Node<'_>) -> bool {
        self.number(0) == other.number(0) && self.key() == other.key()
    }

    /// The value; empty for an erase.
    #[inline]
    pub(super) fn value(self) -> &'a [u8] {
        let value_bytes = self.header().value_bytes as usize;
        // SAFETY: as in `key`. The value comes after the key.
        unsafe { slice::from_raw_parts(self.bytes().add(key_room(self.key_bytes())), value_bytes) }
    }

    #[inline]
    fn has_until(self) -> bool {
        self.header().key_height_kind >> (KEY_BITS + HEIGHT_BITS) == RowKind::PutUntil as u32
    }

    /// The time until which the row is there, if it has one.
    #[inline]
    pub(super) fn until(self) -> Option<Until> {
        if !self.has_until() {
            return None;
        }
        let at = key_room(self.key_bytes()) + self.header().value_bytes as usize;
        // SAFETY: as in `key`. A row of this kind has a time, which comes after the value.
        Until::of_bytes(unsafe { self.bytes().add(at).cast::<[u8; Until::BYTES]>().read() })
    }

    /// The first byte after the header.
    #[inline]
    fn bytes(self) -> *const u8 {
        // SAFETY: the whole header lies within a piece, so the address after it is within the piece or at its end.
        unsafe { self.0.as_ptr().cast::<u8>().add(HEADER_BYTES) }
    }

    /// The link of the node on `level`. All nodes are on level 0.
    ///
    /// # Safety
    ///
    /// `level` must be below the height of the node.
    #[inline]
    pub(super) unsafe fn link(self, level: usize) -> &'a Link {
        debug_assert!(level < self.height(), "a node has links up to its height");
        // SAFETY: `write` has put `height` links before the header, in the same piece.
        unsafe { self.0.cast::<Link>().sub(level + 1).as_ref() }
    }

    /// The bytes that the node takes in the arena.
    pub(super) fn memory_bytes(self) -> u64 {
        let until_bytes = if self.has_until() { Until::BYTES } else { 0 };
        node_bytes(self.height(), self.key_bytes(), self.header().value_bytes as usize + until_bytes) as u64
    }

    /// Asks the processor to load the node into its cache. This is only a hint.
    #[inline]
    pub(super) fn prefetch(self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: every processor of this architecture has this instruction, and a prefetch has no effect that the
        // program can see.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(self.0.as_ptr().cast());
        }
    }
}

fn node_bytes(height: usize, key_bytes: usize, value_bytes: usize) -> usize {
    (height * LINK_BYTES + HEADER_BYTES + key_room(key_bytes) + value_bytes).next_multiple_of(ALIGNMENT)
}

/// The number of bytes from the start of a key to the value after it.
#[inline]
fn key_room(key_bytes: usize) -> usize {
    key_bytes.max(HEAD_BYTES)
}
