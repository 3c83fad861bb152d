//! Unpacks the payloads of compressed pages. This module knows nothing about a page but its payload.
//!
//! zstd needs a context of 96 KiB, for symbol tables and a buffer of literals, whatever the header of the page
//! says. A thread takes a context for one page and gives it back, so the contexts are at most as many as the
//! threads that ever unpacked at once. Idle contexts are kept for later pages: always one, and more up to a limit.
//! The unpacker frees them when it is dropped. The output goes only into the caller's memory. LZ4 has no context.
//!
//! A build without a codec's cargo feature cannot unpack its pages. The error names the feature.
//!
//! Thread safe. The lock is held only while a context is taken off the list or put on it.

use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};
use std::fmt;
#[cfg(feature = "zstd")]
use zstd_safe::DCtx;

#[cfg(feature = "zstd")]
type Context = DCtx<'static>;

/// A build without zstd has no context.
#[cfg(not(feature = "zstd"))]
type Context = std::convert::Infallible;

/// The reason why stored bytes give no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecoded {
    /// The bytes are not what was written. The text says what is wrong.
    Damaged(String),
    /// The bytes are what was written, but this build has no codec for them. The cargo feature has the codec's name.
    MissingFeature(&'static str),
}

impl From<String> for Undecoded {
    fn from(why: String) -> Self {
        Self::Damaged(why)
    }
}

/// Unpacks pages, on any number of threads.
#[derive(Default)]
pub struct Unpacker {
    /// Contexts that no thread uses.
    idle: Mutex<Vec<Context>>,
    /// The most bytes that `idle` may take. One context is always kept.
    most_idle_bytes: AtomicU64,
    /// The bytes of all contexts, idle or in use.
    bytes: AtomicU64,
}

impl Unpacker {
    /// An unpacker that keeps at most `most_idle_bytes` of idle contexts, but at least one context.
    pub fn new(most_idle_bytes: u64) -> Self {
        Self { most_idle_bytes: AtomicU64::new(most_idle_bytes), ..Self::default() }
    }

    /// Changes how many bytes of idle contexts are kept, and frees the excess.
    pub fn set_most_idle_bytes(&self, bytes: u64) {
        self.most_idle_bytes.store(bytes, Ordering::Relaxed);
        let mut excess = Vec::new();
        let mut idle = self.idle.lock();
        while idle.len() > 1 && idle.iter().map(size).sum::<u64>() > bytes {
            excess.extend(idle.pop());
        }
        drop(idle);
        excess.into_iter().for_each(|context| self.free(context));
    }

    /// Memory of its contexts.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Unpacks an LZ4 block into `payload`, and returns the length of the result.
    ///
    /// # Errors
    ///
    /// [`Undecoded::Damaged`] if the bytes are not an LZ4 block, or unpack to more than `payload` holds;
    /// [`Undecoded::MissingFeature`] if this build has no LZ4.
    #[cfg(feature = "lz4")]
    pub(super) fn lz4(packed: &[u8], payload: &mut [u8]) -> Result<usize, Undecoded> {
        lz4_flex::block::decompress_into(packed, payload).map_err(does_not_unpack)
    }

    #[cfg(not(feature = "lz4"))]
    pub(super) fn lz4(_: &[u8], _: &mut [u8]) -> Result<usize, Undecoded> {
        Err(Undecoded::MissingFeature("lz4"))
    }

    /// Like [`Unpacker::lz4`], but for a zstd frame.
    ///
    /// # Errors
    ///
    /// [`Undecoded::Damaged`] if the bytes are not a zstd frame, or unpack to more than `payload` holds;
    /// [`Undecoded::MissingFeature`] if this build has no zstd.
    #[cfg(feature = "zstd")]
    pub(super) fn zstd(&self, packed: &[u8], payload: &mut [u8]) -> Result<usize, Undecoded> {
        let mut context = self.take();
        let unpacked = context.decompress(payload, packed);
        self.give_back(context);
        unpacked.map_err(|code| does_not_unpack(zstd_safe::get_error_name(code).to_lowercase()))
    }

    #[cfg(not(feature = "zstd"))]
    pub(super) fn zstd(&self, _: &[u8], _: &mut [u8]) -> Result<usize, Undecoded> {
        Err(Undecoded::MissingFeature("zstd"))
    }

    #[cfg(feature = "zstd")]
    fn take(&self) -> Context {
        let idle = self.idle.lock().pop();
        idle.unwrap_or_else(|| {
            let context = DCtx::create();
            self.bytes.fetch_add(size(&context), Ordering::Relaxed);
            context
        })
    }

    #[cfg(feature = "zstd")]
    fn give_back(&self, context: Context) {
        let mut idle = self.idle.lock();
        let idle_bytes = (idle.len() as u64 + 1) * size(&context);
        if idle.is_empty() || idle_bytes <= self.most_idle_bytes.load(Ordering::Relaxed) {
            idle.push(context);
            return;
        }
        drop(idle);
        self.free(context);
    }

    fn free(&self, context: Context) {
        self.bytes.fetch_sub(size(&context), Ordering::Relaxed);
    }
}

/// The memory of a context, which does not change.
fn size(context: &Context) -> u64 {
    #[cfg(feature = "zstd")]
    return context.sizeof() as u64;
    #[cfg(not(feature = "zstd"))]
    match *context {}
}

#[cfg(any(feature = "lz4", feature = "zstd"))]
fn does_not_unpack(why: impl fmt::Display) -> Undecoded {
    Undecoded::Damaged(format!("does not unpack: {why}"))
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").field("memory_bytes", &self.memory_bytes()).finish()
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests;
