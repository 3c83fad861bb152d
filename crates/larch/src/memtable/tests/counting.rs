//! An allocator that counts what the current thread takes and gives back, for tests that compare an estimate with the
//! truth. It knows nothing of memtables.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a thread has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allocated {
    /// Allocations made.
    pub count: u64,
    /// Bytes of them, each allocation rounded as glibc does: 8 bytes of its own, a multiple of 16, at least 32.
    pub bytes: u64,
    /// Bytes freed, rounded alike; maybe allocated by another thread.
    pub freed_bytes: u64,
}

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { count: 0, bytes: 0, freed_bytes: 0 }) };
}

/// The current thread's figures.
pub(super) fn allocated() -> Allocated {
    ALLOCATED.get()
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn rounded(layout: Layout) -> u64 {
    ((layout.size() + 8).next_multiple_of(16)).max(32) as u64
}

// SAFETY: every call is handed to `System` as it came, and what it returns is returned. Counting touches a constant
// thread-local without a destructor, which neither allocates nor fails at the end of a thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = ALLOCATED.get();
        ALLOCATED.set(Allocated { count: before.count + 1, bytes: before.bytes + rounded(layout), ..before });
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let before = ALLOCATED.get();
        ALLOCATED.set(Allocated { freed_bytes: before.freed_bytes + rounded(layout), ..before });
        // SAFETY: the caller got `pointer` from here, that is from `System`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}
