//! Compresses the payloads of pages, one after the other. This module does not know what stands before the
//! payloads, or which pages are worth compressing.
//!
//! zstd needs a context with tables of the bytes that it has compressed: 280 KiB for pages of 16 KiB at level 3,
//! and up to 18 MiB for value pages of 1 MiB at level 19. The packer makes the context for its first page, reuses
//! it, and frees it when it is dropped. LZ4 has no context.
//!
//! A build without a codec's cargo feature never compresses with that codec. Options that ask for it are refused
//! before a page is written.

use std::fmt;
#[cfg(feature = "zstd")]
use zstd_safe::CCtx;

#[cfg(feature = "zstd")]
type Context = CCtx<'static>;

/// A build without zstd has no context.
#[cfg(not(feature = "zstd"))]
type Context = std::convert::Infallible;

/// Compresses pages, on one thread at a time.
#[derive(Default)]
pub struct Packer {
    zstd: Option<Context>,
}

impl Packer {
    /// Memory of its context.
    pub fn memory_bytes(&self) -> usize {
        self.zstd.as_ref().map_or(0, size)
    }

    /// Compresses the payload of `page`, which begins at `start`, with LZ4. Appends the result to the page and
    /// returns its length, or `None` if this build has no LZ4.
    #[cfg(feature = "lz4")]
    pub(super) fn lz4(page: &mut Vec<u8>, start: usize) -> Option<usize> {
        let room_bytes = lz4_flex::block::get_maximum_output_size(page.len() - start);
        Some(append(page, start, room_bytes, |payload, room| {
            lz4_flex::block::compress_into(payload, room).expect("there is room for the worst case")
        }))
    }

    #[cfg(not(feature = "lz4"))]
    pub(super) fn lz4(_: &mut Vec<u8>, _: usize) -> Option<usize> {
        None
    }

    /// Like [`Packer::lz4`], but with zstd.
    #[cfg(feature = "zstd")]
    pub(super) fn zstd(&mut self, page: &mut Vec<u8>, start: usize, level: u8) -> Option<usize> {
        let context = self.zstd.get_or_insert_with(CCtx::create);
        Some(append(page, start, zstd_safe::compress_bound(page.len() - start), |payload, room| {
            context.compress(room, payload, level.into()).unwrap_or_else(|code| {
                // The output has enough room, so zstd can fail only for lack of memory, where any allocation on the
                // heap would end the process, too.
                panic!("there is room for the worst case, and zstd says: {}", zstd_safe::get_error_name(code))
            })
        }))
    }

    #[cfg(not(feature = "zstd"))]
    pub(super) fn zstd(&mut self, _: &mut Vec<u8>, _: usize, _: u8) -> Option<usize> {
        None
    }
}

/// The memory of a context.
fn size(context: &Context) -> usize {
    #[cfg(feature = "zstd")]
    return context.sizeof();
    #[cfg(not(feature = "zstd"))]
    match *context {}
}

/// Calls `pack` with the payload and with room for its output behind the page. Returns the length that `pack`
/// returns.
#[cfg(feature = "lz4")]
fn append(page: &mut Vec<u8>, start: usize, room_bytes: usize, pack: impl FnOnce(&[u8], &mut [u8]) -> usize) -> usize {
    let memory_bytes = page.len();
    page.resize(memory_bytes + room_bytes, 0);
    let (plain, room) = page.split_at_mut(memory_bytes);
    pack(&plain[start..], room)
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("memory_bytes", &self.memory_bytes()).finish()
    }
}
