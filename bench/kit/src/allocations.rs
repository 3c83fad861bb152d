//! An allocator that counts what a program allocates. A test or a benchmark makes it its global allocator:
//!
//! ```
//! #[global_allocator]
//! static COUNTING: kit::allocations::Counting<kit::allocations::Thread> = kit::allocations::Counting::new();
//! ```
//!
//! With [`Thread`], each thread counts its own allocations, which costs a benchmark the least. With [`Process`], the
//! allocations of all threads are counted together. A reallocation is counted as one allocation and one release.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes every request to the system's allocator, and lets `T` count it.
#[derive(Debug)]
pub struct Counting<T>(PhantomData<T>);

/// Counts allocations. The functions of a tally run inside the allocator, so they must not allocate.
pub trait Tally {
    /// Called before an allocation is made.
    fn allocated(layout: Layout);
    /// Called before an allocation is freed.
    fn freed(layout: Layout);
}

impl<T> Counting<T> {
    /// Makes an allocator. The program declares it as its global allocator.
    #[allow(clippy::new_without_default, reason = "a static needs a constant")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

// SAFETY: every request is passed unchanged to the system's allocator, and its result is returned. A tally allocates
// nothing and does not unwind.
unsafe impl<T: Tally> GlobalAlloc for Counting<T> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        T::allocated(layout);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        T::allocated(layout);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        T::freed(layout);
        // SAFETY: `start` came from one of the two functions above, and so from the system's allocator, with this
        // layout.
        unsafe { System.dealloc(start, layout) }
    }
}

/// What a thread has allocated and freed since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// The number of allocations.
    pub count: u64,
    /// The requested bytes.
    pub bytes: u64,
    /// The freed bytes. Another thread may have allocated them.
    pub freed_bytes: u64,
    /// Bytes of the heap that the allocations take, including what the allocator adds to each allocation.
    pub heap_bytes: u64,
    /// Bytes of the heap that were freed.
    pub freed_heap_bytes: u64,
}

impl Allocated {
    /// What was allocated and freed after `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            count: self.count - before.count,
            bytes: self.bytes - before.bytes,
            freed_bytes: self.freed_bytes - before.freed_bytes,
            heap_bytes: self.heap_bytes - before.heap_bytes,
            freed_heap_bytes: self.freed_heap_bytes - before.freed_heap_bytes,
        }
    }

    /// Requested bytes minus freed bytes.
    pub fn live_bytes(self) -> i64 {
        self.bytes as i64 - self.freed_bytes as i64
    }
}

/// The heap bytes that an allocation takes in glibc: its size plus 8 bytes, rounded up to a multiple of 16, but at
/// least 32.
fn heap_bytes(layout: Layout) -> u64 {
    ((layout.size() + 8).next_multiple_of(16)).max(32) as u64
}

/// Counts for each thread separately.
#[derive(Debug)]
pub struct Thread;

thread_local! {
    static ALLOCATED: Cell<Allocated> =
        const { Cell::new(Allocated { count: 0, bytes: 0, freed_bytes: 0, heap_bytes: 0, freed_heap_bytes: 0 }) };
}

// The cell is a constant without a destructor. So access to it neither allocates nor fails when a thread ends.
impl Tally for Thread {
    fn allocated(layout: Layout) {
        let before = ALLOCATED.get();
        let (count, bytes) = (before.count + 1, before.bytes + layout.size() as u64);
        ALLOCATED.set(Allocated { count, bytes, heap_bytes: before.heap_bytes + heap_bytes(layout), ..before });
    }

    fn freed(layout: Layout) {
        let before = ALLOCATED.get();
        let freed_bytes = before.freed_bytes + layout.size() as u64;
        let freed_heap_bytes = before.freed_heap_bytes + heap_bytes(layout);
        ALLOCATED.set(Allocated { freed_bytes, freed_heap_bytes, ..before });
    }
}

impl Thread {
    /// What the current thread has allocated so far.
    pub fn so_far() -> Allocated {
        ALLOCATED.get()
    }

    /// Runs `work`, and returns what this thread allocated while `work` ran.
    pub fn during<T>(work: impl FnOnce() -> T) -> (T, Allocated) {
        let before = Self::so_far();
        let value = work();
        (value, Self::so_far().since(before))
    }

    /// How many allocations `work` makes on this thread.
    pub fn count(work: impl FnOnce()) -> u64 {
        Self::during(work).1.count
    }
}

/// Counts for all threads together.
#[derive(Debug)]
pub struct Process;

static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);
static LIVE_HEAP_BYTES: AtomicU64 = AtomicU64::new(0);
static PEAK_BYTES: AtomicU64 = AtomicU64::new(0);

impl Tally for Process {
    fn allocated(layout: Layout) {
        let bytes = layout.size() as u64;
        PEAK_BYTES.fetch_max(LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
        LIVE_HEAP_BYTES.fetch_add(heap_bytes(layout), Ordering::Relaxed);
    }

    fn freed(layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        LIVE_HEAP_BYTES.fetch_sub(heap_bytes(layout), Ordering::Relaxed);
    }
}

impl Process {
    /// Requested bytes that are not freed yet.
    pub fn live_bytes() -> u64 {
        LIVE_BYTES.load(Ordering::Relaxed)
    }

    /// The heap bytes of the allocations that are not freed yet.
    pub fn live_heap_bytes() -> u64 {
        LIVE_HEAP_BYTES.load(Ordering::Relaxed)
    }

    /// Runs `work`, and returns by how many bytes the memory in use exceeded its start at the peak.
    pub fn peak_during(work: impl FnOnce()) -> u64 {
        let before = Self::live_bytes();
        PEAK_BYTES.store(before, Ordering::Relaxed);
        work();
        PEAK_BYTES.load(Ordering::Relaxed) - before
    }
}
