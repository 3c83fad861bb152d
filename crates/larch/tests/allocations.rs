//! What reads allocate when all is in memory, counted by an allocator that counts.

use larch::{Database, Tried};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all requests go to the system's allocator unchanged; the counter is a plain cell without a destructor, whose
// access allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: `start` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn poll_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("all is in memory"),
    }
}

#[test]
fn a_cached_get_allocates_nothing_in_any_form() {
    let machine = larch::os::Machine::simulated_on(larch::os::sim::SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let key = |i: u32| (i * 7 % 1000).to_be_bytes();
    for i in 0..1000 {
        table.insert(key(i), [7; 100]).expect("the disk works");
    }
    db.settle().expect("the disk works");

    let waits = |i| table.get(key(i)).expect("the disk works").is_some();
    let tries = |i| matches!(table.try_get(key(i)), Ok(Tried::Ready(Some(_))));
    let polls = |i| poll_once(table.get_async(key(i))).expect("the disk works").is_some();
    let before = ALLOCATIONS.get();
    assert!((0..1000).all(waits));
    assert!(ALLOCATIONS.get() > before, "faults allocate, and the allocator counts");
    let before = ALLOCATIONS.get();
    for i in 0..1000 {
        assert!(waits(i) && tries(i) && polls(i), "row {i} is there");
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
