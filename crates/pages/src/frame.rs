//! A page in memory. It does not know who keeps it, nor what its payload means.
//!
//! The bytes were verified before the frame was made and never change. [`PageRef`] is `Send + Sync`; while a clone
//! lives outside the cache the page is pinned: it cannot be evicted and counts against the budget.

use crate::cache::budget::Charge;
use crate::{Address, PageHeader, PageKind};
use os::Buffer;
use os::sync::Arc;
use os::sync::atomic::{AtomicU8, Ordering};
use std::fmt;
use std::ops::Deref;

/// What a page in memory costs besides its buffer: frame and counts 88; the cache's table 33 at a load of 7/16 at
/// worst, hence 76; its ring 24; the allocator's 2 x 16. Together 220.
pub(crate) const FRAME_BYTES: u64 = 224;

/// A page in memory, header and payload. Cloning costs one reference count.
#[derive(Clone)]
pub struct PageRef(Arc<Frame>);

/// Fields drop in this order: the memory is gone before the budget hears of it.
struct Frame {
    buffer: Buffer,
    address: Address,
    kind: PageKind,
    heat: AtomicU8,
    charge: Charge,
}

impl PageRef {
    /// A page that belongs to no cache and no budget; `buffer` holds a decoded page, as
    /// [`decode_page`](crate::page::decode_page) returns it.
    pub fn detached(buffer: Buffer, header: &PageHeader, at: Address) -> Self {
        Self::charged(buffer, header, at, Charge::none())
    }

    /// A page whose memory is paid for by `charge`.
    pub(crate) fn charged(mut buffer: Buffer, header: &PageHeader, at: Address, charge: Charge) -> Self {
        buffer.set_len_within_capacity(header.memory_bytes as usize);
        Self(Arc::new(Frame { buffer, address: at, kind: header.kind, heat: AtomicU8::new(0), charge }))
    }

    /// What the page is for.
    pub fn kind(&self) -> PageKind {
        self.0.kind
    }

    /// Where the page was read.
    pub fn address(&self) -> Address {
        self.0.address
    }

    /// Whether this is the page that a parent means. It was verified for the address and kind it was read with; a
    /// damaged parent may mean another.
    pub(crate) fn is(&self, at: &Address, kind: PageKind) -> bool {
        self.kind() == kind && self.address() == *at
    }

    /// Memory the page takes, in bytes: its buffer and what stands around it.
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(&self.0.buffer)
    }

    /// How many references to the page exist, the cache's own among them.
    pub(crate) fn references(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Sets the heat of a page that enters the cache.
    pub(crate) fn set_heat(&self, heat: u8) {
        self.0.heat.store(heat, Ordering::Relaxed);
    }

    /// The heat: how many passes of the clock's hand the page survives.
    pub(crate) fn heat(&self) -> u8 {
        self.0.heat.load(Ordering::Relaxed)
    }

    /// Raises the heat by one up to `cap`. Two threads at once may raise it by one together: it is a hint. At the cap
    /// nothing is written, so that a hot page's cache line stays shared but for its reference count.
    pub(crate) fn warm(&self, cap: u8) {
        let heat = self.heat();
        if heat < cap {
            self.set_heat(heat + 1);
        }
    }
}

/// Memory a page in `buffer` takes.
pub(crate) fn cost_bytes(buffer: &Buffer) -> u64 {
    buffer.capacity() as u64 + FRAME_BYTES
}

impl Deref for PageRef {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.buffer
    }
}

impl fmt::Debug for PageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = &*self.0;
        f.debug_struct("PageRef")
            .field("kind", &frame.kind)
            .field("address", &frame.address)
            .field("bytes", &frame.buffer.len())
            .field("charge", &frame.charge)
            .finish()
    }
}
