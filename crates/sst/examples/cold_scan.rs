//! Scans a large file cold and says how often it waited: `cargo run --release -p larch-sst --example cold_scan -- DIRECTORY
//! [megabytes] [cache megabytes]`. The file is made in the directory, of rows with keys of 16 bytes and values of 100,
//! and removed. It asserts what `docs/decisions/0010-readahead.md` promises.

use os::sync::Arc;
use os::{Access, Machine};
use pages::{Admit, PageCache, PageKind, Reason, Session, retry};
use sst::{BuildOptions, Builder, Readahead, RowKind, Sst, SstCursor, Version};
use std::path::PathBuf;

const MAX_AHEAD_BYTES: u64 = 128 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().expect("a directory for the file"));
    let mut number = |otherwise: u64| arguments.next().map_or(otherwise, |text| text.parse().expect("megabytes"));
    let (bytes, cache_bytes) = (number(2048) << 20, number(1024) << 20);
    let machine = Machine::real();
    let path = directory.join("cold_scan.sst");
    machine.disk.remove(&path).ok();
    let file = machine.disk.open(&path, Access::CreateDirect).expect("the directory can be written");
    let options = BuildOptions::default();
    let mut builder = Builder::new(file, path.clone(), 7, options);
    // A key, a value, and what a page adds to a row.
    let rows = bytes / 111;
    let mut value = [0u8; 100];
    for row in 0..rows {
        let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        value.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&mixed[..chunk.len()]));
        let key = format!("{row:016}");
        builder.add(key.as_bytes(), Version(1), RowKind::Put, &[&value]).expect("there is room");
    }
    let meta = builder.finish().expect("there is room");
    let tree = meta.main.expect("it has rows");
    println!(
        "{} bytes, {rows} rows, {} data pages, height {}",
        meta.file_bytes,
        tree.data_pages,
        tree.root(false).height
    );
    let cache = PageCache::new(cache_bytes, 16, sst::validate);
    for (name, forward, admit) in [
        ("forward", true, Admit::Keep),
        ("backward", false, Admit::Keep),
        ("forward, passing the cache by", true, Admit::Pass),
    ] {
        let file = cache.register(&path, 7, machine.disk.clone());
        let sst = Arc::new(Sst::new(file, meta.clone(), 0, false));
        let window = MAX_AHEAD_BYTES.min(cache_bytes / 8);
        let session = Session::new(&cache, Reason::Scan, admit).with_ahead_bytes(window / 4 * 5);
        let start = machine.clock.now();
        let mut cursor = SstCursor::new(sst).with_readahead(Readahead::growing(window));
        let mut there =
            retry(&session, || if forward { cursor.seek_first(&session) } else { cursor.seek_last(&session) });
        let mut found = 0;
        while there.expect("the disk works") {
            found += 1;
            there = retry(&session, || if forward { cursor.next(&session) } else { cursor.prev(&session) });
        }
        let micros = (machine.clock.now() - start).as_micros() as u64;
        let (data, nodes) = (session.reads_of(PageKind::Data), session.reads_of(PageKind::Index));
        println!(
            "{name}: {} rounds, {data} data pages, {nodes} index pages, {} MB/s",
            session.rounds(),
            meta.file_bytes / micros.max(1)
        );
        assert_eq!((found, data), (rows, tree.data_pages), "each page is read once");
        drop((cursor, session));
        cache.set_budget(1 << 20);
        cache.set_budget(cache_bytes);
    }
    machine.disk.remove(&path).expect("it was there");
}
