//! An allocator that counts what each thread asks of it. It does not know what for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Passes every request on to the system's allocator.
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: all requests go to the system's allocator unchanged; the counters are plain cells without a destructor, whose
// access allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as i64);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as i64);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as i64);
        // SAFETY: `start` came from one of the two above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(start, layout) }
    }
}

/// How many allocations `of` makes on this thread.
pub fn count<T>(of: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.get();
    let value = of();
    (value, ALLOCATIONS.get() - before)
}

/// Bytes that this thread asked for and has not given back, since it began. What another thread gives back is not seen.
pub fn live_bytes() -> i64 {
    LIVE_BYTES.get()
}
