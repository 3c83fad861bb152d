//! A hit in the cache allocates nothing, whoever asks and however: counted by an allocator that counts.

use os::sync::Arc;
use os::{Access, Disk};
use pages::{
    Admit, Codec, HEADER_BYTES, Loaded, Packing, PageCache, PageKind, PageSource, Reason, Session, encode_page, retry,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

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

#[test]
fn a_hit_allocates_nothing() {
    let disk = os::sim::SimDisk::new(0);
    let file = disk.open(Path::new("pages"), Access::Create).expect("the disk is empty");
    let mut page = vec![7; HEADER_BYTES + 100];
    let at = encode_page(&mut page, (PageKind::Data, 0), Codec::None, Packing::Block, 1, 0);
    file.append(&page).expect("the disk has room");

    let cache = PageCache::new(1 << 20, 8, |_, _| Ok(()));
    let file = cache.register("pages", 1, Arc::clone(&disk) as Arc<dyn Disk>);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    let read = || retry(&session, || session.page(file.at(&at, PageKind::Data)).map(|page| page.len()));

    let loaded = Loaded::new(&cache);
    let before = ALLOCATIONS.get();
    read().expect("the page is whole");
    assert!(ALLOCATIONS.get() > before, "a miss allocates, and the allocator counts");
    let before = ALLOCATIONS.get();
    for _ in 0..1000 {
        read().expect("the page is in memory");
        assert!(session.peek(file.at(&at, PageKind::Data)).is_some() && !session.ahead(file.at(&at, PageKind::Data)));
        assert!(
            loaded.page(file.at(&at, PageKind::Data)).is_ok() && loaded.peek(file.at(&at, PageKind::Data)).is_some()
        );
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
