//! Checks with a counting allocator that neither a cache hit, through any kind of reader and call, nor unpacking a
//! page allocates memory.

use kit::allocations::{Counting, Thread};
use larch_pages::page::{Unpacker, decode_page};
use larch_pages::{
    Admit, Compression, HEADER_BYTES, Loaded, Packing, PageCache, PageKind, PageLender, Reason, Session, encode_page,
    retry,
};
use os::sync::Arc;
use os::{Access, Buffer, Disk};
use std::path::Path;

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

#[test]
fn a_hit_allocates_nothing() {
    let disk = os::sim::SimDisk::new(0);
    let file = disk.open(Path::new("pages"), Access::Create).expect("the disk is empty");
    let mut page = vec![7; HEADER_BYTES + 100];
    let at = encode_page(&mut page, (PageKind::Data, 0), Compression::None, Packing::Block, 1, 0);
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

#[test]
fn only_the_first_page_that_is_unpacked_allocates_beside_its_own_memory() {
    for compression in [Compression::Lz4, Compression::ZSTD] {
        let mut page = vec![0; HEADER_BYTES];
        page.extend((0..1000u32).flat_map(|row| format!("row {row} of the table;").into_bytes()));
        let bytes = page.len();
        let at = encode_page(&mut page, (PageKind::Data, 0), compression, Packing::Tight, 1, 64);
        assert!(page.len() < bytes / 2, "{compression} makes it smaller");
        let unpacker = Unpacker::default();
        let unpack = || {
            let memory = Buffer::zeroed(bytes);
            let before = Thread::so_far();
            let decoded = decode_page(&page, PageKind::Data, &at, 1, &unpacker, |_| memory);
            let allocated = Thread::so_far().since(before);
            decoded.expect("the page is whole");
            allocated
        };
        let first = unpack();
        let context_bytes = unpacker.memory_bytes();
        assert!(first.bytes >= context_bytes, "{first:?} with the context of {context_bytes}");
        assert_eq!(compression == Compression::ZSTD, context_bytes > 0);
        for _ in 0..100 {
            assert_eq!(unpack().count, 0);
        }
        assert_eq!(unpacker.memory_bytes(), context_bytes);
    }
}
