//! The check finds any changed byte of a file. It also finds parts of a file that contradict each other although
//! their checksums are right.

use super::*;
use crate::fixture::{Built, Content, ID, PATH, part, shapes, tiny};
use crate::format::data_page::{DataPageBuilder, Layout};
use crate::format::filter::FilterKind;
use crate::format::group_page::GroupPageBuilder;
use crate::format::meta::{KeyBounds, PageIndexKind, Tree};
use crate::format::node::{Child, IndexNode, NodeBuilder};
use crate::format::{OutsideValue, validate};
use crate::read::{EraseCursor, RangeErase};
use crate::slice::Slice;
use crate::write::{BuildOptions, Compression};
use os::sync::Arc;
use os::{Access, Disk};
use pages::{Admit, HEADER_BYTES, Packing, PageCache, PageLender, Reason, Resident, Session, encode_page};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::path::Path;

fn verified(built: &Built) -> Result<FileReport> {
    verify(&built.sst(), &Resident::new(crate::validate), &*built.raw(), &mut |_| {})
}

/// A part of the expected message, and the change that must cause it.
type Change<'a, T> = (&'a str, &'a dyn Fn(&mut T));
/// A change of the flat index: it changes the list of children, and the separators between them.
type ListChange<'a> = &'a dyn Fn(&mut Vec<Child>, &mut Vec<Vec<u8>>);

/// Asserts that `error` is about bytes of the file, and returns the offset of these bytes.
fn place(error: &Error) -> u64 {
    let Error::Corrupt { file, offset, why, .. } = error else { panic!("{error} is not about bytes") };
    assert_eq!(file, Path::new(PATH));
    assert!(!why.is_empty());
    *offset
}

#[test]
fn a_whole_file_is_found_whole_and_counted() {
    for seed in 0..20 {
        for options in shapes() {
            println!("seed {seed}");
            let mut rng = StdRng::seed_from_u64(seed);
            let content = Content::random(&mut rng, 60);
            let mut built = content.build(options);
            built.version_offset = seed % 2 * 1_000;
            let mut progress = Vec::new();
            let report =
                verify(&built.sst(), &Resident::new(crate::validate), &*built.raw(), &mut |done| progress.push(done))
                    .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(report.rows, content.rows.len() as u64);
            assert_eq!(report.older_versions, content.rows.values().map(|written| written.len() as u64 - 1).sum());
            assert_eq!(report.range_erases, content.range_erases.len() as u64);
            assert_eq!(report.erased, built.meta.main.map_or(0, |tree| tree.totals.erased));
            let index = report.pages_of(PageKind::Index).bytes + report.pages_of(PageKind::Flat).bytes;
            assert_eq!(
                (index, report.pages_of(PageKind::Value).bytes),
                (built.meta.index_bytes(), built.meta.value_bytes)
            );
            let pages = report.all_pages().bytes;
            assert_eq!(pages + report.padding_bytes + BLOCK_BYTES as u64, report.file_bytes);
            assert_eq!(progress.last(), Some(&built.meta.file_bytes));
            assert!(progress.is_sorted(), "progress never goes back");
        }
    }
}

#[test]
fn a_check_through_a_small_cache_reads_every_page_once() {
    for options in shapes() {
        let built = Content::random(&mut StdRng::seed_from_u64(1), 80).build(options);
        let cache = PageCache::new(1 << 20, 2, crate::validate);
        let session = Session::new(&cache, Reason::Scan, Admit::Pass);
        let report = verify(&built.sst_in(&cache, false), &session, &*built.raw(), &mut |_| {}).expect("it is whole");
        assert_eq!(session.page_reads(), report.all_pages().pages);
        assert!(session.rounds() < report.all_pages().pages, "some pages came ahead of their time");
        drop(session);
        assert_eq!(cache.usage().kind_bytes.iter().sum::<u64>(), 0, "the check leaves nothing in the cache");
    }
}

#[test]
fn a_check_reads_every_page_once_however_little_may_be_read_ahead() {
    for (seed, options) in (0..).zip(shapes()) {
        println!("seed {seed}");
        let mut content = Content::random(&mut StdRng::seed_from_u64(seed), 80);
        content.groups = 3;
        let built = content.build(BuildOptions { filter: FilterKind::Bits20, ..options });
        let pages = verified(&built).expect("it is whole").all_pages().pages;
        let mut rounds_before = u64::MAX;
        for room_bytes in [0, 1, 5 << 10, 9 << 10, 14 << 10, 50 << 10, 200 << 10, 1 << 20, 8 << 20] {
            let cache = PageCache::new(16 << 20, 2, crate::validate);
            let session = Session::new(&cache, Reason::Check, Admit::Pass).with_ahead_bytes(room_bytes);
            verify(&built.sst_in(&cache, false), &session, &*built.raw(), &mut |_| {}).expect("it is whole");
            assert_eq!(session.page_reads(), pages, "each page is read once with {room_bytes} bytes ahead");
            println!("{room_bytes} bytes ahead: {} rounds for {pages} pages", session.rounds());
            assert!(session.rounds() <= if room_bytes == 0 { pages } else { rounds_before });
            // If there is more room for readahead, the windows end at other places, which may cost some more
            // rounds. So an eighth more rounds than before are allowed.
            rounds_before = session.rounds() + session.rounds() / 8;
        }
        // A slice is checked like its file.
        let cache = PageCache::new(16 << 20, 2, crate::validate);
        let session = Session::new(&cache, Reason::Check, Admit::Pass);
        let slice = Slice { rows: (1..3).into(), bounds: built.meta.bounds.clone(), bytes: 0 };
        let sst = built.sst_in(&cache, false).sliced(Some(slice));
        verify(&sst, &session, &*built.raw(), &mut |_| {}).expect("it is whole");
        assert_eq!(session.page_reads(), pages);
    }
}

#[test]
fn a_check_takes_as_many_rounds_as_windows() {
    let row = |row: u32| {
        let older = row.is_multiple_of(4).then(|| (3, RowKind::Put, vec![b'o'; 800]));
        (row.to_be_bytes().to_vec(), [(5, RowKind::Put, vec![b'v'; 800])].into_iter().chain(older).collect())
    };
    let content = Content { rows: (0..12_000).map(row).collect(), groups: 2, ..Content::default() };
    let options =
        BuildOptions { page_bytes: 4096, node_bytes: 4096, filter: FilterKind::Bits20, ..BuildOptions::default() };
    let built = content.build(options);
    let window: u64 = 1 << 20;
    let cache = PageCache::new(64 << 20, 2, crate::validate);
    let session = Session::new(&cache, Reason::Check, Admit::Pass).with_ahead_bytes(window / 3 * 4);
    let report = verify(&built.sst_in(&cache, false), &session, &*built.raw(), &mut |_| {}).expect("it is whole");
    let pages = report.all_pages().pages;
    assert_eq!(session.page_reads(), pages);
    // Reading a tree starts with one round for each level, and the first and the last window of a tree are not
    // whole.
    let starts: u64 = built.meta.trees().map(|(_, tree)| u64::from(tree.root(false).height) + 3).sum();
    let memory_bytes = pages * (4096 + 224);
    let bound = memory_bytes.div_ceil(window) + starts;
    println!("{} rounds of at most {bound} for {pages} pages", session.rounds());
    assert!(session.rounds() <= bound, "{} rounds instead of {bound}", session.rounds());
}

/// A small file with a page of every kind.
fn small(index: PageIndexKind, compression: Compression) -> (Content, Built) {
    let mut content = Content::of_keys(["a", "ab", "abc", "b", "c"]);
    let long = |len: usize| (0..len).map(|i| (i * i / 7) as u8).collect::<Vec<u8>>();
    content.rows.insert(b"d".to_vec(), vec![(9, RowKind::Put, long(130)), (4, RowKind::Put, b"older".repeat(12))]);
    content.rows.insert(b"e".to_vec(), vec![(8, RowKind::Erase, Vec::new())]);
    content.range_erases = vec![RangeErase {
        keys: KeyRange { start: b"b".to_vec(), end: Some(b"bb".to_vec()) },
        versions: vec![Version(7), Version(6)],
    }];
    let (filter, filter_prefix_bytes) = (FilterKind::Bits20, 1);
    let options = BuildOptions { index, compression, filter, filter_prefix_bytes, max_page_rows: 4, ..tiny() };
    let built = content.build(options);
    (content, built)
}

fn check_every_byte(index: PageIndexKind, compression: Compression) {
    let (_, built) = small(index, compression);
    let report = verified(&built).expect("it is whole before it is damaged");
    let kinds = [PageKind::Data, PageKind::History, PageKind::Value, PageKind::RangeErase, PageKind::Filter];
    assert!(kinds.iter().all(|kind| report.pages_of(*kind).pages > 0), "the file has every kind of page");
    let seed = 42;
    let mut rng = StdRng::seed_from_u64(seed);
    for byte in 0..built.meta.file_bytes {
        let bit = rng.random_range(0..8);
        built.disk.flip_bit(PATH, byte, bit);
        let what = format!("{index:?} {compression:?}, byte {byte} bit {bit}, seed {seed}");
        let Err(error) = verified(&built) else { panic!("{what}: nobody noticed") };
        let offset = place(&error);
        let near = offset.saturating_sub(BLOCK_BYTES as u64)..offset + 2 * BLOCK_BYTES as u64;
        assert!(near.contains(&byte), "{what}: {error}");
        built.disk.flip_bit(PATH, byte, bit);
    }
    assert_eq!(verified(&built).ok(), Some(report));
}

#[test]
fn every_flipped_byte_of_a_plain_tree_is_noticed() {
    check_every_byte(PageIndexKind::Btree, Compression::None);
}

#[test]
fn every_flipped_byte_of_a_packed_tree_is_noticed() {
    check_every_byte(PageIndexKind::Btree, Compression::Lz4);
}

#[test]
fn every_flipped_byte_of_a_tree_packed_by_zstd_is_noticed() {
    check_every_byte(PageIndexKind::Btree, Compression::ZSTD);
}

#[test]
fn every_flipped_byte_of_a_plain_list_is_noticed() {
    check_every_byte(PageIndexKind::Flat, Compression::None);
}

#[test]
fn every_flipped_byte_of_a_packed_list_is_noticed() {
    check_every_byte(PageIndexKind::Flat, Compression::Lz4);
}

#[test]
fn every_flipped_byte_of_a_list_packed_by_zstd_is_noticed() {
    check_every_byte(PageIndexKind::Flat, Compression::ZSTD);
}

#[test]
fn a_flipped_byte_of_either_index_is_noticed_where_a_file_has_both() {
    let built = Content::of_keys((0..40).map(|i| format!("{i:03}")))
        .build(BuildOptions { index: PageIndexKind::Both, ..tiny() });
    let mut rng = StdRng::seed_from_u64(8);
    for node in built.nodes() {
        for _ in 0..20 {
            let (byte, bit) = (rng.random_range(node.at.offset..node.at.end()), rng.random_range(0..8));
            built.disk.flip_bit(PATH, byte, bit);
            let error = verified(&built).expect_err("the page is damaged");
            assert_eq!(place(&error), node.at.offset, "byte {byte} bit {bit}");
            built.disk.flip_bit(PATH, byte, bit);
        }
    }
}

#[test]
fn a_read_that_meets_a_flipped_byte_fails_and_is_never_wrong() {
    for compression in [Compression::None, Compression::Lz4, Compression::ZSTD] {
        let seed = 6;
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content::random(&mut rng, 40);
        let built = content.build(BuildOptions { index: PageIndexKind::Both, compression, ..tiny() });
        let (mut failed, mut right) = (0, 0);
        for _ in 0..400 {
            let (byte, bit) = (rng.random_range(0..built.meta.file_bytes), rng.random_range(0..8));
            built.disk.flip_bit(PATH, byte, bit);
            let cache = PageCache::new(1 << 20, 2, crate::validate);
            for prefer_flat in [false, true] {
                let sst = built.sst_in(&cache, prefer_flat);
                let session = Session::new(&cache, Reason::Point, Admit::Keep);
                for (key, written) in &content.rows {
                    for expected in written {
                        let read = retry(&session, || sst.get(&session, key, Version(expected.0))).and_then(|row| {
                            let row = row.expect("a version that was written is found or cannot be read");
                            let value = retry(&session, || row.value.load(&session, &sst.file))?;
                            Ok((row.version.0, row.kind, value.as_bytes().to_vec()))
                        });
                        match read {
                            Ok(row) => {
                                assert_eq!(&row, expected, "seed {seed}, byte {byte} bit {bit}");
                                right += 1;
                            }
                            Err(error) => {
                                let offset = place(&error);
                                assert!((offset..offset + (16 << 10)).contains(&byte), "byte {byte}: {error}");
                                failed += 1;
                            }
                        }
                    }
                }
                let mut cursor = EraseCursor::new(sst.clone());
                for erase in &content.range_erases {
                    match retry(&session, || cursor.seek(&session, &erase.keys.start)) {
                        Ok(found) => assert_eq!(found.as_ref(), Some(erase)),
                        Err(error) => drop(place(&error)),
                    }
                }
            }
            built.disk.flip_bit(PATH, byte, bit);
        }
        assert!(failed > 100 && right > 100, "{failed} reads failed, {right} were right");
    }
}

#[test]
fn a_cut_file_is_noticed() {
    let (_, built) = small(PageIndexKind::Btree, Compression::None);
    let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
    for len in [0, 1, 4095, 4096, built.meta.file_bytes - 4096, built.meta.file_bytes - 1] {
        let whole = built.bytes();
        file.set_len(len).expect("no faults");
        place(&verified(&built).expect_err("the file is too short"));
        file.write_at(&whole, 0).expect("there is room");
    }
    file.append(&[0]).expect("there is room");
    place(&verified(&built).expect_err("the file is too long"));
}

#[test]
fn a_disk_that_fails_is_not_called_corruption() {
    let (_, built) = small(PageIndexKind::Btree, Compression::None);
    for operation in 1..20 {
        let (sst, raw) = (built.sst(), built.raw());
        built.disk.fail_operation(operation, std::io::ErrorKind::TimedOut);
        let outcome = verify(&sst, &Resident::new(crate::validate), &*raw, &mut |_| {});
        built.disk.clear_faults();
        match outcome {
            Err(Error::Io { file, .. }) => assert_eq!(file, Path::new(PATH)),
            Err(error) => panic!("{error}"),
            Ok(_) => assert!(operation > 6, "the check makes more than {operation} operations"),
        }
    }
}

/// Changes the meta and writes a footer that fits it. So the footer's checksum is right, as if the file had been
/// written like this.
fn with_footer(mut built: Built, change: impl FnOnce(&mut Meta)) -> Built {
    change(&mut built.meta);
    let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
    file.write_at(&built.meta.footer(b""), built.meta.file_bytes - BLOCK_BYTES as u64).expect("there is room");
    built
}

/// The message of the error that checking a forged file returns.
fn complaint(built: &Built) -> String {
    let error = verified(built).expect_err("the file contradicts itself");
    place(&error);
    error.to_string()
}

#[test]
fn a_footer_that_contradicts_the_file_is_noticed() {
    let main = |meta: &mut Meta, change: fn(&mut Tree)| change(meta.main.as_mut().expect("it has rows"));
    let changes: [Change<'_, Meta>; 14] = [
        ("rows: 8", &|meta| {
            main(meta, |tree| tree.totals.rows += 1);
            meta.filter.as_mut().expect("it has one").tree.totals.rows += 1;
        }),
        ("bytes: 8193", &|meta| main(meta, |tree| tree.totals.bytes += 1)),
        ("group_bytes", &|meta| main(meta, |tree| tree.totals.group_bytes -= 1)),
        ("erased: 0", &|meta| main(meta, |tree| tree.totals.erased = 0)),
        ("3 data pages", &|meta| main(meta, |tree| tree.data_pages += 1)),
        ("bytes of index", &|meta| {
            main(meta, |tree| tree.btree.as_mut().expect("it has a tree").index_bytes += 1);
        }),
        ("data page at offset", &|meta| {
            main(meta, |tree| tree.btree.as_mut().expect("it has a tree").height = 2);
        }),
        ("row 5 has no older version", &|meta| meta.history = None.into()),
        ("history page at offset", &|meta| (meta.main, meta.filter) = (None, None)),
        ("no page claims", &|meta| meta.range_erases = None.into()),
        ("oldest version", &|meta| meta.oldest = Version(0)),
        ("newest version", &|meta| meta.newest = Version(10)),
        ("bytes of keys and values", &|meta| meta.user_bytes += 1),
        ("outside the bounds", &|meta| meta.bounds = KeyBounds::cut(b"ab", b"d")),
    ];
    for (expected, change) in changes {
        let (_, built) = small(PageIndexKind::Btree, Compression::None);
        let found = complaint(&with_footer(built, change));
        assert!(found.contains(expected) || expected == "data page at offset", "{expected:?} expected: {found}");
    }
    let (_, built) = small(PageIndexKind::Btree, Compression::None);
    let mut other = built.meta.clone();
    other.user_bytes += 1;
    let built = Built { meta: other, ..built };
    assert!(complaint(&built).contains("otherwise than the database does"));
}

#[test]
fn a_page_compressed_by_zstd_in_a_file_that_does_not_say_so_is_noticed() {
    let value = (1, RowKind::Put, vec![b'v'; 6000]);
    let content = Content { rows: [(b"key".to_vec(), vec![value])].into(), ..Content::default() };
    for page_bytes in [16 << 10, 4 << 10] {
        let built = |compression| {
            content.build(BuildOptions { compression, page_bytes, node_bytes: page_bytes, ..BuildOptions::default() })
        };
        let zstd = built(Compression::ZSTD);
        assert!(zstd.meta.has_zstd, "its pages are dense");
        verified(&zstd).expect("it is whole before it is forged");
        let found = complaint(&with_footer(zstd, |meta| meta.has_zstd = false));
        assert!(found.contains("it is compressed by zstd, and the footer does not say"), "{found}");
        let found = complaint(&with_footer(built(Compression::Lz4), |meta| meta.has_zstd = true));
        assert!(found.contains("pages compressed by zstd: the footer says 1, the pages 0"), "{found}");
    }
}

/// A file whose main tree consists of a root and data pages. The test takes it apart and puts it together wrongly.
struct Forge {
    built: Built,
    root: Address,
    children: Vec<Child>,
    separators: Vec<Vec<u8>>,
}

impl Forge {
    /// Six pages of two rows.
    fn new() -> Self {
        let mut content = Content::of_keys((0..12).map(|i| format!("key {i:02}")));
        for key in ["key 03", "key 08"] {
            let newest = content.rows.get_mut(key.as_bytes()).expect("it was added");
            newest[0].0 += 100;
            newest.push((50, RowKind::Put, b"older".to_vec()));
        }
        let built = content.build(BuildOptions {
            max_page_rows: 2,
            max_node_children: 100,
            page_bytes: 512,
            node_bytes: 4096,
            ..tiny()
        });
        verified(&built).expect("it is whole before it is forged");
        let root = built.nodes().into_iter().next().expect("it has a root");
        let node = IndexNode::new(&root.page);
        let children = (0..node.children()).map(|i| node.child(i)).collect::<Vec<_>>();
        let separators = (0..node.children() - 1)
            .map(|i| {
                let mut separator = Vec::new();
                node.separator(i, &mut separator);
                separator
            })
            .collect();
        assert_eq!(children.len(), 6);
        Self { root: root.at, children, separators, built }
    }

    fn write(&self, page: &mut Vec<u8>, kind: PageKind, level: u8, offset: u64) -> Address {
        let at = encode_page(page, (kind, level), Compression::None, Packing::Block, ID, offset);
        let file = self.built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
        file.write_at(page, offset).expect("there is room");
        at
    }

    /// Replaces data page `i` by another page with the given rows. Each row is given as key, version, and whether
    /// it has history.
    fn replace(&mut self, i: usize, first_row: u64, rows: &[(&str, u64, bool)]) {
        let mut page = DataPageBuilder::new(first_row);
        for (key, version, has_history) in rows {
            page.add(key.as_bytes(), Version(*version), RowKind::Put, false, format!("value {version}").as_bytes());
            if *has_history {
                page.mark_history();
            }
        }
        let mut bytes = Vec::new();
        page.finish(&mut bytes);
        self.children[i].address = self.write(&mut bytes, PageKind::Data, 0, self.children[i].address.offset);
    }

    /// Writes a root over the pages that the file has now, and a footer that leads to this root.
    fn finish(self) -> Built {
        self.finish_at_level(1)
    }

    fn finish_at_level(mut self, level: u8) -> Built {
        let mut node = NodeBuilder::default();
        for (i, child) in self.children.iter().enumerate() {
            node.add(if i == 0 { b"" } else { &self.separators[i - 1] }, *child);
        }
        let mut page = Vec::new();
        node.finish(self.children.len(), &mut page, &mut Vec::new());
        self.root = self.write(&mut page, PageKind::Index, level, self.root.offset);
        let root = self.root;
        with_footer(self.built, |meta| {
            let tree = meta.main.as_mut().expect("it has rows");
            tree.btree.as_mut().expect("it has a tree").address = root;
        })
    }
}

#[test]
fn pages_that_contradict_each_other_are_noticed() {
    let changes: [Change<'_, Forge>; 11] = [
        ("after 2 data pages", &|forge| forge.children[1].totals.rows -= 1),
        ("after 3 data pages", &|forge| forge.children[2].totals.bytes += 64),
        ("after 5 data pages", &|forge| forge.children[4].totals.group_bytes += 64),
        ("after 6 data pages", &|forge| forge.children[5].totals.erased += 1),
        ("between its parent's separators", &|forge| forge.separators[2] = b"key 060".to_vec()),
        ("between its parent's separators", &|forge| forge.separators[2] = b"key 05".to_vec()),
        ("its first row is 4", &|forge| {
            let [second, third] = [forge.children[1].address, forge.children[2].address];
            (forge.children[1].address, forge.children[2].address) = (third, second);
        }),
        ("its first row is 5", &|forge| forge.replace(2, 5, &[("key 04", 5, false), ("key 05", 6, false)])),
        ("row 5 has no older version", &|forge| forge.replace(2, 4, &[("key 04", 5, false), ("key 05", 6, true)])),
        ("version of row 3, which has no older", &|forge| {
            forge.replace(1, 2, &[("key 02", 3, false), ("key 03", 104, false)]);
        }),
        ("version 50 as an older one of 40", &|forge| {
            forge.replace(1, 2, &[("key 02", 3, false), ("key 03", 40, true)]);
        }),
    ];
    for (expected, change) in changes {
        let mut forge = Forge::new();
        change(&mut forge);
        let found = complaint(&forge.finish());
        assert!(found.contains(expected), "{expected:?} expected: {found}");
    }
    let found = complaint(&Forge::new().finish_at_level(2));
    assert!(found.contains("of level 2 where 1 belongs"), "{found}");
}

#[test]
fn a_list_that_contradicts_the_tree_beside_it_is_noticed() {
    let change = |wanted: usize, change: ListChange<'_>| {
        let content = Content::of_keys((0..12).map(|i| format!("key {i:02}")));
        let options = BuildOptions { index: PageIndexKind::Both, max_page_rows: 2, max_node_children: 100, ..tiny() };
        let built = content.build(options);
        let list = built.nodes().into_iter().find(|node| node.kind == PageKind::Flat).expect("there is a list");
        let node = IndexNode::new(&list.page);
        let mut children = (0..node.children()).map(|i| node.child(i)).collect::<Vec<_>>();
        let mut separators = Vec::new();
        for i in 0..node.children() - 1 {
            separators.push(Vec::new());
            node.separator(i, &mut separators[i]);
        }
        change(&mut children, &mut separators);
        let mut forged = NodeBuilder::default();
        for (i, child) in children.iter().enumerate() {
            forged.add(if i == 0 { b"" } else { &separators[i - 1] }, *child);
        }
        let mut page = Vec::new();
        forged.finish(children.len(), &mut page, &mut Vec::new());
        let at = encode_page(&mut page, (PageKind::Flat, 1), Compression::None, Packing::Block, ID, list.at.offset);
        let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
        file.write_at(&page, at.offset).expect("there is room");
        assert_eq!(children.len(), wanted);
        complaint(&with_footer(built, |meta| {
            let tree = meta.main.as_mut().expect("it has rows");
            tree.flat.as_mut().expect("it has a list").address = at;
        }))
    };
    let says_otherwise = "the flat list says otherwise";
    assert!(change(6, &|_, separators| separators[2] = b"key 051".to_vec()).contains(says_otherwise));
    assert!(change(6, &|children, _| children[3].address.crc += 1).contains(says_otherwise));
    assert!(change(6, &|children, _| children[3].totals.rows += 1).contains("flat index page"));
    assert!(change(5, &|children, separators| drop((children.pop(), separators.pop()))).contains(says_otherwise));
    let more = change(7, &|children, separators| {
        let mut last = children[5];
        last.totals.rows += 1;
        children.push(last);
        separators.push(b"z".to_vec());
    });
    assert!(more.contains("7 in the list"), "{more}");
}

/// A file that has a single page of each kind and no nodes. It has two large values of the same length.
fn pages_of_one() -> Built {
    let mut content = Content::of_keys(["a", "b", "c", "d"]);
    content.rows.insert(b"b".to_vec(), vec![(2, RowKind::Put, vec![b'b'; 900])]);
    content.rows.insert(b"c".to_vec(), vec![(9, RowKind::Put, vec![b'c'; 900]), (3, RowKind::Put, b"old".to_vec())]);
    let range = |start: &[u8], end: &[u8]| RangeErase {
        keys: KeyRange { start: start.to_vec(), end: Some(end.to_vec()) },
        versions: vec![Version(7), Version(6)],
    };
    content.range_erases = vec![range(b"a", b"b"), range(b"b", b"c")];
    let built = content.build(BuildOptions { page_bytes: 1024, ..BuildOptions::default() });
    verified(&built).expect("it is whole before it is forged");
    built
}

/// A row of a forged page: its key, version, kind and value, whether the value lies outside, and whether the row has
/// history.
type ForgedRow<'r> = (&'r [u8], u64, RowKind, &'r [u8], bool, bool);

/// Replaces the only page of a tree by a page with `rows`. Returns the message of the check.
fn with_page(built: Built, tree: TreeKind, rows: &[ForgedRow<'_>]) -> String {
    let mut page = DataPageBuilder::new(0);
    for (key, version, kind, value, outside, has_history) in rows {
        page.add(key, Version(*version), *kind, *outside, value);
        if *has_history {
            page.mark_history();
        }
    }
    let mut bytes = Vec::new();
    page.finish(&mut bytes);
    let offset =
        built.meta.trees().find(|(kind, _)| *kind == tree).expect("the tree has rows").1.root(false).address.offset;
    let at = encode_page(&mut bytes, (tree.page_kind(), 0), Compression::None, Packing::Block, ID, offset);
    let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
    file.write_at(&bytes, offset).expect("there is room");
    complaint(&with_footer(built, |meta| {
        let tree = match tree {
            TreeKind::Main => meta.main.as_mut(),
            TreeKind::History => meta.history.tree_mut(),
            TreeKind::RangeErases => meta.range_erases.tree_mut(),
            TreeKind::Filter | TreeKind::Group(_) | TreeKind::GroupHistory(_) => {
                unreachable!("their pages have other rows")
            }
        };
        let root = tree.and_then(|tree| tree.btree.as_mut()).expect("it has rows");
        assert_eq!(root.address.bytes, at.bytes);
        root.address = at;
    }))
}

#[test]
fn two_roots_of_one_page_are_one() {
    let built = Content::of_keys(["a"]).build(BuildOptions { index: PageIndexKind::Both, ..tiny() });
    let found = complaint(&with_footer(built, |meta| {
        let flat = meta.main.as_mut().and_then(|tree| tree.flat.as_mut());
        flat.expect("it has both").address.crc += 1;
    }));
    assert!(found.contains("two roots of one page differ"), "{found}");
}

#[test]
fn a_node_whose_separators_leave_its_parents_is_noticed() {
    let content = Content::of_keys((0..8).map(|i| format!("key {i}")));
    let built = content.build(BuildOptions { max_page_rows: 1, max_node_children: 4, ..tiny() });
    let nodes = built.nodes();
    let [root, left, right] = nodes.as_slice() else { panic!("{} nodes", nodes.len()) };
    for (damaged, separator) in [(left, "key 9"), (right, "key 2")] {
        let (children, mut node) = (IndexNode::new(&damaged.page), NodeBuilder::default());
        for i in 0..children.children() {
            let mut before = Vec::new();
            if i > 0 {
                children.separator(i - 1, &mut before);
            }
            // The separator that is changed: the last one of the left node, or the first one of the right node.
            let edge = if damaged.at == left.at { children.children() - 1 } else { 1 };
            node.add(if i == edge { separator.as_bytes() } else { &before }, children.child(i));
        }
        let forged = Content::of_keys((0..8).map(|i| format!("key {i}"))).build(BuildOptions {
            max_page_rows: 1,
            max_node_children: 4,
            ..tiny()
        });
        let file = forged.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
        let mut page = Vec::new();
        node.finish(children.children(), &mut page, &mut Vec::new());
        let at = encode_page(&mut page, (PageKind::Index, 1), Compression::None, Packing::Block, ID, damaged.at.offset);
        file.write_at(&page, at.offset).expect("there is room");
        let above = IndexNode::new(&root.page);
        let mut node = NodeBuilder::default();
        for i in 0..above.children() {
            let mut before = Vec::new();
            if i > 0 {
                above.separator(i - 1, &mut before);
            }
            let child = above.child(i);
            let address = if child.address.offset == at.offset { at } else { child.address };
            node.add(&before, Child { address, ..child });
        }
        node.finish(above.children(), &mut page, &mut Vec::new());
        let at = encode_page(&mut page, (PageKind::Index, 2), Compression::None, Packing::Block, ID, root.at.offset);
        file.write_at(&page, at.offset).expect("there is room");
        let found = complaint(&with_footer(forged, |meta| {
            let tree = meta.main.as_mut().expect("it has rows");
            tree.btree.as_mut().expect("it has a tree").address = at;
        }));
        assert!(found.contains("separators"), "{found}");
    }
}

#[test]
fn rows_that_contradict_each_other_are_noticed() {
    use RowKind::{Erase, Put};
    let built = pages_of_one();
    let sst = built.sst();
    let source = Resident::new(crate::validate);
    let at = built.meta.main.expect("it has rows").root(false).address;
    let page = retry(&source, || source.page(sst.file.at(&at, PageKind::Data))).expect("it is whole");
    let layout = Layout::of(&page);
    let reference = |i: usize| {
        let record = layout.record(&page, i);
        assert!(record.outside);
        page[record.value_at..record.value_at + record.value_bytes].to_vec()
    };
    let (b, c) = (reference(1), reference(2));
    let mut longer = b.clone();
    longer[0] += 1;
    let a: ForgedRow<'_> = (b"a", 1, Put, b"value 0", false, false);
    let d: ForgedRow<'_> = (b"d", 4, Put, b"value 3", false, false);
    let main = |second: ForgedRow<'_>, third: ForgedRow<'_>, what: &str| {
        let found = with_page(pages_of_one(), TreeKind::Main, &[a, second, third, d]);
        assert!(found.contains(what), "{what:?} expected: {found}");
    };
    main((b"b", 2, Put, &b, true, false), (b"c", 9, Put, &b, true, true), "the page before it ends at");
    main(
        (b"b", 2, Put, &longer, true, false),
        (b"c", 9, Put, &c, true, true),
        "a value of 901 bytes has chunks of 900",
    );
    main((b"b", 2, Erase, &b, true, false), (b"c", 9, Put, &c, true, true), "an erase has a value");
    main((b"b", 1, Put, &b, true, false), (b"c", 10, Put, &c, true, true), "newest version");

    let history = |key: &[u8], row: ForgedRow<'_>, what: &str| {
        let found = with_page(pages_of_one(), TreeKind::History, &[(key, row.1, row.2, row.3, row.4, row.5)]);
        assert!(found.contains(what), "{what:?} expected: {found}");
    };
    let key = crate::format::history_key(2, Version(3));
    history(&key, (b"", 4, Put, b"old", false, false), "version 4 has the key of version 3");
    history(&key, (b"", 3, Put, b"old", false, true), "older versions of its own");
    history(&key[..15], (b"", 3, Put, b"old", false, false), "has 15 bytes");
    history(&crate::format::history_key(1, Version(1)), (b"", 1, Put, b"old", false, false), "which has no older");
    history(&crate::format::history_key(9, Version(3)), (b"", 3, Put, b"old", false, false), "has no older version");

    let ranges = |first: ForgedRow<'_>, second: ForgedRow<'_>, what: &str| {
        let found = with_page(pages_of_one(), TreeKind::RangeErases, &[first, second]);
        assert!(found.contains(what), "{what:?} expected: {found}");
    };
    // End present, end, older versions.
    let to = |end: u8| [1, 1, end, 1, 6];
    let good: ForgedRow<'_> = (b"a", 7, Erase, &to(b'b'), false, false);
    ranges(good, (b"b", 7, Erase, &to(b'a'), false, false), "is not one");
    ranges(good, (b"b", 7, Put, &to(b'c'), false, false), "is not one");
    ranges(good, (b"aa", 7, Erase, &to(b'c'), false, false), "overlaps the one before it");
    ranges(good, (b"b", 5, Erase, &to(b'c'), false, false), "out of order");
    ranges(good, (b"b", 7, Erase, &to(b'x'), false, false), "leaves the bounds");
    ranges(good, (b"b", 7, Erase, &[0, 0, 1, 6], false, false), "leaves the bounds");
    ranges(good, (b"b", 7, Erase, &[2, 1, b'c', 1, 6], false, false), "does not decode");
    ranges(good, (b"b", 7, Erase, &[1, 1, b'c', 1, 6, 0], false, false), "does not decode");
}

#[test]
fn a_value_page_of_another_level_is_noticed() {
    let rows = [(b"a".to_vec(), vec![(1, RowKind::Put, vec![b'v'; 900])])];
    let built = Content { rows: rows.into(), ..Content::default() }.build(tiny());
    let sst = built.sst();
    let source = Resident::new(crate::validate);
    let at = built.meta.main.expect("it has a row").root(false).address;
    let page = retry(&source, || source.page(sst.file.at(&at, PageKind::Data))).expect("it is whole");
    let record = Layout::of(&page).record(&page, 0);
    let stored = &page[record.value_at..record.value_at + record.value_bytes];
    let [chunk] = chunks_of(stored, record.outside)[..] else { panic!("one chunk holds the value") };
    let forged = |level: u8| {
        let mut value = vec![0; HEADER_BYTES];
        value.extend_from_slice(&[b'v'; 900]);
        let address =
            encode_page(&mut value, (PageKind::Value, level), Compression::None, Packing::Tight, ID, chunk.offset);
        assert_eq!(address.bytes, chunk.bytes);
        let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
        file.write_at(&value, chunk.offset).expect("there is room");
        let mut reference = Vec::new();
        OutsideValue::encode(&mut reference, 900, &[address]);
        let mut page = DataPageBuilder::new(0);
        page.add(b"a", Version(1), RowKind::Put, true, &reference);
        let mut bytes = Vec::new();
        page.finish(&mut bytes);
        let at = encode_page(&mut bytes, (PageKind::Data, 0), Compression::None, Packing::Block, ID, at.offset);
        file.write_at(&bytes, at.offset).expect("there is room");
        let disk = Arc::clone(&built.disk);
        with_footer(Built { disk, meta: built.meta.clone(), version_offset: 0 }, |meta| {
            let tree = meta.main.as_mut().expect("it has a row");
            tree.btree.as_mut().expect("it has a tree").address = at;
        })
    };
    verified(&forged(0)).expect("nothing is wrong with that");
    let found = complaint(&forged(3));
    assert!(found.contains("value page") && found.contains("it is of level 3 where 0 belongs"), "{found}");
}

#[test]
fn an_erase_with_a_part_in_a_group_is_noticed() {
    let newest = (9, RowKind::Erase, Vec::new());
    let older = [(5, RowKind::Put, b"older".to_vec()), (4, RowKind::Erase, Vec::new())];
    let mut content = Content { groups: 2, ..Content::of_keys(["a", "b", "c"]) };
    content.rows.insert(b"b".to_vec(), [&[newest], older.as_slice()].concat());
    let newest: Vec<_> = content.rows.values().map(|written| part(&written[0], 2)).collect();
    let older: Vec<_> = older.iter().map(|written| part(written, 2)).collect();
    // Row 1 of the main tree is an erase, and so is row 1 of the history.
    for (kind, mut parts) in [(TreeKind::Group(2), newest), (TreeKind::GroupHistory(2), older)] {
        let built = content.build(BuildOptions::default());
        verified(&built).expect("it is whole before it is forged");
        assert!(parts[1].is_empty());
        parts[1] = b"stray".to_vec();
        let mut page = GroupPageBuilder::default();
        parts.iter().for_each(|part| page.add(part, false));
        let mut bytes = Vec::new();
        page.finish(&mut bytes);
        let offset = built.meta.tree(kind).expect("it has rows").root(false).address.offset;
        let at = encode_page(&mut bytes, (kind.page_kind(), 0), Compression::None, Packing::Block, ID, offset);
        let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
        file.write_at(&bytes, offset).expect("there is room");
        let built = with_footer(built, |meta| {
            meta.user_bytes += parts[1].len() as u64;
            let trees = &mut meta.groups[1];
            let tree = if kind == TreeKind::Group(2) { &mut trees.newest } else { &mut trees.older };
            tree.as_mut().and_then(|tree| tree.btree.as_mut()).expect("it has rows").address = at;
        });
        let error = verified(&built).expect_err("an erase has a part");
        assert_eq!(place(&error), offset);
        let what = format!("{} page at offset {offset}", kind.page_kind().name());
        let error = error.to_string();
        assert!(error.contains(&what) && error.contains("row 1 is an erase and has a part"), "{error}");
    }
}

/// The message of the check for a file of 6 rows with two rows in each partition, after `change` has changed
/// partition `which` of its filter. Empty if the check finds nothing.
fn complaint_of_filter(which: usize, change: impl FnOnce(&mut [u8])) -> String {
    let options = BuildOptions { filter: FilterKind::Bits12, filter_prefix_bytes: 1, max_page_rows: 2, ..tiny() };
    let built = Content::of_keys(["a1", "a2", "a3", "b1", "c1", "c2"]).build(options);
    let filter = built.meta.filter.expect("it has one");
    assert_eq!((filter.tree.data_pages, filter.tree.root(false).height), (3, 1));
    let mut nodes = built.nodes();
    let seen = nodes.swap_remove(nodes.iter().position(|node| node.tree == TreeKind::Filter).expect("it has a node"));
    let (sst, source) = (built.sst(), Resident::new(validate));
    let node = IndexNode::new(&seen.page);
    let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
    let mut forged = NodeBuilder::default();
    let mut change = Some(change);
    for i in 0..node.children() {
        let mut child = node.child(i);
        if i == which {
            let page = source.page(sst.file.at(&child.address, PageKind::Filter)).expect("the file is whole");
            let mut bytes = page.to_vec();
            change.take().expect("one page is changed")(&mut bytes);
            let header = (PageKind::Filter, 0);
            let offset = child.address.offset;
            child.address = encode_page(&mut bytes, header, Compression::None, Packing::Block, ID, offset);
            file.write_at(&bytes, offset).expect("there is room");
        }
        let mut separator = Vec::new();
        if let Some(before) = i.checked_sub(1) {
            node.separator(before, &mut separator);
        }
        forged.add(&separator, child);
    }
    let (mut bytes, count) = (Vec::new(), forged.children());
    forged.finish(count, &mut bytes, &mut Vec::new());
    let at = encode_page(&mut bytes, (PageKind::Index, 1), Compression::None, Packing::Block, ID, seen.at.offset);
    file.write_at(&bytes, at.offset).expect("there is room");
    let forged = with_footer(built, |meta| {
        let tree = &mut meta.filter.as_mut().expect("it has one").tree;
        tree.btree.as_mut().expect("it has a tree").address = at;
    });
    verified(&forged).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_filter_that_denies_a_key_is_found() {
    assert_eq!(complaint_of_filter(0, |_| {}), "");
    // Blocks without the hashes.
    let why = complaint_of_filter(1, |page| page[64..].fill(0));
    assert!(why.contains("it denies the key of row 2"), "{why}");
    // Rows that it does not cover.
    let why = complaint_of_filter(2, |page| page[16] = 3);
    assert!(why.contains("its first row is 3, the one before it was the last of 4"), "{why}");
    let why = complaint_of_filter(2, |page| page[24] = 1);
    assert!(why.contains("and not row 5") || why.contains("it has"), "{why}");
}
