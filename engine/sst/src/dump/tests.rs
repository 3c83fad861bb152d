//! Tests that a dump fails where it cannot go on. The texts that dumps print are in the scripts of `crate::tests`.

use super::*;
use crate::fixture::{Built, Content, ID, PATH, SeenNode, shapes, tiny};
use crate::format::filter::FilterKind;
use crate::format::meta::PageIndexKind;
use crate::format::node::{Child, NodeBuilder};
use crate::format::validate;
use crate::write::{BuildOptions, Compression};
use os::{Access, Disk};
use pages::page::checksum;
use pages::{Admit, Loaded, Packing, PageCache, Reason, Resident, Session, encode_page, retry};
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn dumped(built: &Built) -> Result<String> {
    let mut out = Vec::new();
    dump(&built.sst(), &Resident::new(validate), DumpDetail::Rows, &mut out)?;
    Ok(String::from_utf8(out).expect("everything else is escaped"))
}

#[test]
fn a_dump_of_a_damaged_file_names_the_place_and_never_panics() {
    for compression in [Compression::None, Compression::Lz4, Compression::ZSTD] {
        let seed = 12;
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content::random(&mut rng, 30);
        let built = content.build(BuildOptions { index: PageIndexKind::Both, compression, ..tiny() });
        let whole = dumped(&built).expect("the file is whole");
        let mut failed = 0;
        for _ in 0..500 {
            let (byte, bit) = (rng.random_range(0..built.meta.file_bytes), rng.random_range(0..8));
            built.disk.flip_bit(PATH, byte, bit);
            match dumped(&built) {
                // The byte lies in a value page, which the dump does not read, or in a gap between pages.
                Ok(text) => assert_eq!(text, whole, "seed {seed}, byte {byte} bit {bit}"),
                Err(Error::Corrupt { file, offset, .. }) => {
                    assert_eq!(file, Path::new(PATH));
                    assert!((offset..offset + (16 << 10)).contains(&byte), "seed {seed}: byte {byte}, told {offset}");
                    failed += 1;
                }
                Err(error) => panic!("seed {seed}, byte {byte} bit {bit}: {error}"),
            }
            built.disk.flip_bit(PATH, byte, bit);
        }
        assert!(failed > 100, "{failed} flips were met");
    }
}

/// Makes a file of 12 rows under a root and two nodes, each with three pages. The node with the number `which` in
/// the order of [`Built::nodes`] is then written again at `level`, with its children changed by `change`. Returns
/// what a dump says of this file.
fn dumped_with(which: usize, level: u8, change: impl FnOnce(&mut [Child])) -> Result<String> {
    let content = Content::of_keys((0..12).map(|i| format!("key {i:02}")));
    let mut built = content.build(BuildOptions { max_page_rows: 2, ..tiny() });
    let nodes = built.nodes();
    assert_eq!(nodes.len(), 3);
    let rewrite = |seen: &SeenNode, level: u8, change: &mut dyn FnMut(&mut [Child])| {
        let node = IndexNode::new(&seen.page);
        let mut children: Vec<Child> = (0..node.children()).map(|i| node.child(i)).collect();
        change(&mut children);
        let mut forged = NodeBuilder::default();
        for (i, child) in children.into_iter().enumerate() {
            let mut separator = Vec::new();
            if i > 0 {
                node.separator(i - 1, &mut separator);
            }
            forged.add(&separator, child);
        }
        let mut page = Vec::new();
        forged.finish(forged.children(), &mut page, &mut Vec::new());
        let at = encode_page(
            &mut page,
            (PageKind::Index, level),
            pages::Compression::None,
            Packing::Block,
            ID,
            seen.at.offset,
        );
        let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
        file.write_at(&page, at.offset).expect("there is room");
        at
    };
    let mut change = Some(change);
    let mut at = rewrite(&nodes[which], level, &mut |children| change.take().expect("it is called once")(children));
    if which > 0 {
        at = rewrite(&nodes[0], 2, &mut |children| children[which - 1].address = at);
    }
    let tree = built.meta.main.as_mut().expect("it has rows");
    tree.btree.as_mut().expect("it has a tree").address = at;
    dumped(&built)
}

#[test]
fn a_dump_reads_every_page_once_however_little_may_be_read_ahead() {
    for (seed, options) in (0..).zip(shapes()) {
        println!("seed {seed}");
        let mut content = Content::random(&mut StdRng::seed_from_u64(seed), 80);
        content.groups = 3;
        let built = content.build(BuildOptions { filter: FilterKind::Bits20, ..options });
        let whole = dumped(&built).expect("it is whole");
        let report = crate::verify(&built.sst(), &Resident::new(validate), &*built.raw(), &mut |_| {});
        let report = report.expect("it is whole");
        // Values outside their page are named, but not read.
        let pages = report.all_pages().pages - report.pages_of(PageKind::Value).pages;
        for room_bytes in [0, 1, 5 << 10, 9 << 10, 14 << 10, 50 << 10, 200 << 10, 1 << 20, 8 << 20] {
            let cache = PageCache::new(16 << 20, 2, validate);
            let session = Session::new(&cache, Reason::Check, Admit::Pass).with_ahead_bytes(room_bytes);
            let mut out = Vec::new();
            dump(&built.sst_in(&cache, false), &session, DumpDetail::Rows, &mut out).expect("it is whole");
            assert_eq!(out, whole.as_bytes());
            assert_eq!(session.page_reads(), pages, "each page is read once with {room_bytes} bytes ahead");
            println!("{room_bytes} bytes ahead: {} rounds for {pages} pages", session.rounds());
            assert!(session.rounds() <= pages);
        }
    }
}

#[test]
fn a_dump_takes_as_many_rounds_as_windows() {
    let row = |row: u32| (row.to_be_bytes().to_vec(), vec![(5, RowKind::Put, vec![b'v'; 800])]);
    let content = Content { rows: (0..12_000).map(row).collect(), groups: 2, ..Content::default() };
    let built = content.build(BuildOptions { page_bytes: 4096, node_bytes: 4096, ..BuildOptions::default() });
    let window: u64 = 1 << 20;
    let cache = PageCache::new(64 << 20, 2, validate);
    let session = Session::new(&cache, Reason::Check, Admit::Pass).with_ahead_bytes(window / 3 * 4);
    dump(&built.sst_in(&cache, false), &session, DumpDetail::Pages, &mut io::sink()).expect("it is whole");
    let pages: u64 = built.meta.trees().map(|(_, tree)| tree.data_pages).sum::<u64>() + built.nodes().len() as u64;
    assert_eq!(session.page_reads(), pages);
    let starts: u64 = built.meta.trees().map(|(_, tree)| u64::from(tree.root(false).height) + 3).sum();
    let bound = (pages * (4096 + 224)).div_ceil(window) + starts;
    println!("{} rounds of at most {bound} for {pages} pages", session.rounds());
    assert!(session.rounds() <= bound, "{} rounds instead of {bound}", session.rounds());
}

#[test]
fn a_node_that_contradicts_its_parent_ends_a_dump() {
    let whole = dumped_with(2, 1, |_| {}).expect("nothing is wrong with it");
    assert_eq!(whole.matches("data page at").count(), 6);
    let complaint = |which: usize, level: u8, change: fn(&mut [Child])| {
        let error = dumped_with(which, level, change).expect_err("the file contradicts itself");
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        error.to_string()
    };
    let check = |found: String, expected: &str| assert!(found.contains(expected), "{expected:?} expected: {found}");
    check(complaint(0, 1, |_| {}), "it is of level 1 where 2 belongs");
    check(complaint(2, 2, |_| {}), "it is of level 2 where 1 belongs");
    // All children are at one page. A walk that follows all children would print this page once for each child.
    check(
        complaint(0, 2, |children| children[1].address = children[0].address),
        "its children end at rows 2 to 6, its parent says 6..12",
    );
    check(
        complaint(1, 1, |children| children[1].address = children[0].address),
        "it holds rows 0..2, its parent says 2..4",
    );
    check(
        complaint(2, 1, |children| children[0].totals.rows = 6),
        "its children end at rows 6 to 12, its parent says 6..12",
    );
}

#[test]
fn a_data_page_of_another_level_ends_a_dump() {
    let mut built = Content::of_keys(["a", "b"]).build(tiny());
    let root = built.meta.main.as_mut().and_then(|tree| tree.btree.as_mut()).expect("it has a tree");
    let mut page = built.disk.read_all(Path::new(PATH)).expect("no faults")[..root.address.bytes as usize].to_vec();
    page[2] = 1;
    root.address.crc = checksum(ID, root.address.offset, &page);
    let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
    file.write_at(&page, root.address.offset).expect("there is room");
    let error = dumped(&built).expect_err("it is no node").to_string();
    assert!(error.contains("it is of level 1 where 0 belongs"), "{error}");
}

#[test]
fn something_else_is_not_taken_for_a_file() {
    let disk = os::sim::SimDisk::new(1);
    for (name, bytes) in [("empty", vec![]), ("short", vec![7; 100]), ("long", vec![7; 10_000])] {
        let file = disk.open(Path::new(name), Access::Create).expect("the name is free");
        file.append(&bytes).expect("there is room");
        let error = read_footer(&*file, Path::new(name)).expect_err("it is no SST");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_full_output_is_an_error() {
    let built = Content::of_keys(["a", "b"]).build(tiny());
    let mut room = [0; 50];
    let source = Resident::new(validate);
    let error =
        dump(&built.sst(), &source, DumpDetail::Pages, &mut room.as_mut_slice()).expect_err("fifty bytes hold no dump");
    assert!(error.to_string().contains("cannot write output"), "{error}");
}

#[test]
fn a_dump_of_what_is_in_memory_reads_nothing_and_names_the_rest() {
    let mut rng = StdRng::seed_from_u64(3);
    let mut content = Content::random(&mut rng, 40);
    content.groups = 2;
    let built = content.build(tiny());
    let cache = PageCache::new(1 << 20, 2, validate);
    let sst = built.sst_in(&cache, false);
    let text = |sst: &Sst| {
        let mut out = Vec::new();
        dump(sst, &Loaded::new(&cache), DumpDetail::Loaded, &mut out).expect("nothing is read");
        String::from_utf8(out).expect("everything else is escaped")
    };
    let before = built.disk.counts().reads;
    let nothing = text(&sst);
    assert_eq!(nothing.lines().filter(|line| line.ends_with("not in memory")).count(), built.meta.trees().count());
    assert_eq!(built.disk.counts().reads, before);

    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    let key = content.rows.keys().next().expect("it has rows");
    retry(&session, || sst.get(&session, key, crate::Version::MAX)).expect("the disk works");
    let before = built.disk.counts().reads;
    let some = text(&sst);
    let height = built.meta.main.expect("it has rows").btree.expect("it has a tree").height;
    assert_eq!(some.matches("node at").count(), usize::from(height), "the way to one row is in memory");
    assert_eq!(
        some.lines().filter(|line| line.trim_start().starts_with("data page at") && line.contains("rows")).count(),
        1
    );
    assert_eq!(built.disk.counts().reads, before);
}
