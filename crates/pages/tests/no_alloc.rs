//! A hit in the cache allocates nothing, whoever asks and however: counted by an allocator that counts.

use kit::allocations::{Counting, Thread};
use os::sync::Arc;
use os::{Access, Disk};
use pages::{
    Admit, Codec, HEADER_BYTES, Loaded, Packing, PageCache, PageKind, PageSource, Reason, Session, encode_page, retry,
};
use std::path::Path;

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

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
    let before = Thread::so_far().count;
    read().expect("the page is whole");
    assert!(Thread::so_far().count > before, "a miss allocates, and the allocator counts");
    let before = Thread::so_far().count;
    for _ in 0..1000 {
        read().expect("the page is in memory");
        assert!(session.peek(file.at(&at, PageKind::Data)).is_some() && !session.ahead(file.at(&at, PageKind::Data)));
        assert!(
            loaded.page(file.at(&at, PageKind::Data)).is_ok() && loaded.peek(file.at(&at, PageKind::Data)).is_some()
        );
    }
    assert_eq!(Thread::so_far().count, before);
}
