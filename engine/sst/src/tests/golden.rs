//! Files that the first version of the format wrote. Today's code must read them, and write the same bytes.
//!
//! A change that fails here changes the format. If that is intended, give it a feature bit or increase the format
//! version. Keep these files, which must stay readable, and write new ones under new names with `WRITE_GOLDEN=1`,
//! which never overwrites a file.

#![allow(clippy::disallowed_methods, reason = "the files lie in the source tree, not on a database's disk")]

use crate::KeyRange;
use crate::fixture::{Content, ID, PATH, part, tiny};
use crate::format::features::Unreadable;
use crate::format::filter::FilterKind;
use crate::format::meta::{Meta, NODE_SAMPLES, PageIndexKind, ZSTD};
use crate::read::{EraseCursor, RangeErase, Seek, Sst, SstCursor};
use crate::row::{RowKind, Version};
use crate::write::{BuildOptions, Compression};
use os::sim::SimDisk;
use os::{Access, Disk};
use pages::{PagedFile, Resident, retry};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn options(compression: Compression) -> BuildOptions {
    BuildOptions { index: PageIndexKind::Both, compression, ..tiny() }
}

/// A bit of everything a file can hold.
fn content(groups: usize) -> Content {
    let mut content = Content { groups, ..Content::default() };
    let mut add = |key: &[u8], written: &[(u64, RowKind, &[u8])]| {
        let written = written.iter().map(|(version, kind, value)| (*version, *kind, value.to_vec())).collect();
        content.rows.insert(key.to_vec(), written);
    };
    add(b"", &[(3, RowKind::Put, b"the empty key")]);
    add(b"\x00\xff", &[(4, RowKind::Put, b"")]);
    add(b"apple", &[(300, RowKind::Put, b"green"), (2, RowKind::Put, b"red")]);
    add(b"apple pie", &[(6, RowKind::Erase, b"")]);
    add(b"banana", &[(7, RowKind::Merge, b"+1")]);
    add(b"cherry", &[(1 << 40, RowKind::Put, &[b'c'; 1000])]);
    add(b"\xff\xff\xff", &[(9, RowKind::Put, b"the end"), (8, RowKind::Erase, b"")]);
    content.range_erases = vec![
        RangeErase {
            keys: KeyRange { start: b"b".to_vec(), end: Some(b"c".to_vec()) },
            versions: vec![Version(11), Version(10)],
        },
        RangeErase { keys: KeyRange { start: b"x".to_vec(), end: None }, versions: vec![Version(5)] },
    ];
    content
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes a missing golden file if `WRITE_GOLDEN` is set. An existing file is never overwritten: a release has
/// written it, or will be compared with it.
fn write_missing(name: &str, bytes: impl FnOnce() -> Vec<u8>) {
    if std::env::var_os("WRITE_GOLDEN").is_some() && !path(name).exists() {
        std::fs::create_dir_all(path("")).expect("the source tree can be written");
        std::fs::write(path(name), bytes()).expect("the source tree can be written");
    }
}

/// Reads everything in the file and compares it with what was put in.
fn check_content(bytes: &[u8]) {
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    file.append(bytes).expect("there is room");
    let meta = crate::read_footer(&*file, Path::new(PATH)).expect("it has a footer");
    let paged = PagedFile::alone(PATH, meta.file_id, Arc::clone(&disk) as Arc<dyn Disk>);
    let sst = Arc::new(Sst::new(paged, meta, 0, false));
    let source = Resident::new(crate::validate);
    let report = crate::verify(&sst, &source, &*file, &mut |_| {}).expect("the file is whole");
    assert_eq!((report.rows, report.older_versions, report.range_erases), (7, 2, 2));
    let content = content(sst.meta.groups.len());
    let mut cursor = SstCursor::new(Arc::clone(&sst));
    for (key, written) in &content.rows {
        assert!(cursor.seek(&source, key, Seek::Exact).expect("nothing faults"), "{key:?}");
        for (version, kind, value) in written {
            let row = cursor.visible(&source, Version(*version)).expect("nothing faults").expect("it was written");
            let loaded = retry(&source, || row.value.load(&source, &sst.file)).expect("the file is whole");
            assert_eq!((row.version.0, row.kind, loaded.as_bytes()), (*version, *kind, value.as_slice()));
            for group in 1..=content.groups {
                let stored = sst.part(&source, group, row.place).expect("nothing faults");
                let loaded = retry(&source, || stored.load(&source, &sst.file)).expect("the file is whole");
                assert_eq!(loaded.as_bytes(), part(&(*version, *kind, value.clone()), group));
            }
        }
    }
    let mut cursor = EraseCursor::new(Arc::clone(&sst));
    let first = cursor.seek_first(&source).expect("nothing faults");
    let rest = std::iter::from_fn(|| cursor.next(&source).expect("nothing faults"));
    assert_eq!(first.into_iter().chain(rest).collect::<Vec<_>>(), content.range_erases);
}

/// The files that are compared byte for byte, with their number of column groups beside the main one.
const PLAIN: [(&str, usize); 2] = [("golden-v1.sst", 0), ("golden-v1-groups.sst", 2)];

/// The files with filters of blocks, which are also compared byte for byte.
const FILTERS: [(&str, FilterKind); 2] =
    [("golden-v1-blocks12.sst", FilterKind::Bits12), ("golden-v1-blocks20.sst", FilterKind::Bits20)];

/// The files with filters of fingerprints, which are no longer written.
const FUSE_FILTERS: [&str; 2] = ["golden-v1-filter8.sst", "golden-v1-filter16.sst"];

/// A file whose footer has an origin, and that origin.
const ORIGIN: (&str, &[u8]) = ("golden-v1-origin.sst", b"a table of a database");

fn with_origin(features: u32) -> Vec<u8> {
    let content = Content { origin: ORIGIN.1.to_vec(), ..content(0) };
    content.build(BuildOptions { features, ..options(Compression::None) }).bytes()
}

#[test]
fn an_origin_of_version_1_is_written_byte_for_byte_and_read() {
    let (name, origin) = ORIGIN;
    write_missing(name, || with_origin(crate::FEATURES));
    let golden = golden(name);
    assert!(with_origin(crate::FEATURES) == golden, "{name} differs");
    check_content(&golden);
    let found = Meta::with_origin(&golden[golden.len() - os::BLOCK_BYTES..]);
    assert!(found.is_ok_and(|(meta, found)| meta.has_origin && found == origin));
}

#[test]
fn an_optional_feature_that_the_oldest_reader_does_not_know_is_left_out() {
    let without = with_origin(crate::FEATURES & !crate::format::meta::ORIGIN);
    assert!(without == golden("golden-v1.sst"), "as files were before there were origins");
}

/// The file has partitions of two rows, and prefixes that are longer than some keys.
fn with_filter(filter: FilterKind) -> Vec<u8> {
    content(0).build(BuildOptions { filter, filter_prefix_bytes: 3, ..options(Compression::None) }).bytes()
}

#[test]
fn a_filter_of_blocks_is_written_byte_for_byte_and_read() {
    for (name, filter) in FILTERS {
        write_missing(name, || with_filter(filter));
        let golden = golden(name);
        assert!(with_filter(filter) == golden, "{name} differs");
        check_content(&golden);
    }
}

#[test]
fn a_filter_of_fingerprints_is_read() {
    for name in FUSE_FILTERS {
        check_content(&golden(name));
    }
}

#[test]
fn a_file_for_a_reader_that_does_not_know_filters_of_blocks_has_no_filter() {
    let features = crate::FEATURES & !crate::BLOCK_FILTER;
    let options = BuildOptions { features, filter: FilterKind::Bits20, ..options(Compression::None) };
    assert!(content(0).build(options).bytes() == golden("golden-v1.sst"));
}

/// A file with a B-tree and a flat list, whose roots both have 69 separators.
const SAMPLES: &str = "golden-v1-samples.sst";

fn seventy_pages(features: u32) -> Vec<u8> {
    let options = BuildOptions { node_bytes: 16 << 10, max_node_children: 1000, max_page_rows: 1, features, ..tiny() };
    let keys = (0..70).map(|i| format!("key {i:02}"));
    Content::of_keys(keys).build(BuildOptions { index: PageIndexKind::Both, ..options }).bytes()
}

#[test]
fn nodes_with_samples_are_written_byte_for_byte_and_read() {
    write_missing(SAMPLES, || seventy_pages(crate::FEATURES));
    let golden = golden(SAMPLES);
    assert!(seventy_pages(crate::FEATURES) == golden, "{SAMPLES} differs");
    let without = seventy_pages(crate::FEATURES & !NODE_SAMPLES);
    for (bytes, has_samples) in [(&golden, true), (&without, false)] {
        let disk = SimDisk::new(1);
        let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
        file.append(bytes).expect("there is room");
        let meta = crate::read_footer(&*file, Path::new(PATH)).expect("it has a footer");
        assert_eq!(meta.has_samples, has_samples);
        let paged = PagedFile::alone(PATH, meta.file_id, Arc::clone(&disk) as Arc<dyn Disk>);
        for prefer_flat in [false, true] {
            let sst = Arc::new(Sst::new(Arc::clone(&paged), meta.clone(), 0, prefer_flat));
            let source = Resident::new(crate::validate);
            assert_eq!(crate::verify(&sst, &source, &*file, &mut |_| {}).expect("the file is whole").rows, 70);
            let mut cursor = SstCursor::new(sst);
            for i in 0..70 {
                let key = format!("key {i:02}");
                assert!(cursor.seek(&source, key.as_bytes(), Seek::Exact).expect("nothing faults"), "{key}");
            }
        }
    }
}

/// A file of rows that are there until a time: beside others, with and without older versions, in its page and outside.
const UNTIL: &str = "golden-v1-until.sst";

fn with_times(groups: usize) -> Content {
    let mut content = content(groups);
    let mut add = |key: &[u8], written: &[(u64, RowKind, &[u8])]| {
        let written = written.iter().map(|(version, kind, value)| (*version, *kind, value.to_vec())).collect();
        content.rows.insert(key.to_vec(), written);
    };
    add(b"date", &[(12, RowKind::PutUntil, b"fresh")]);
    add(b"elder", &[(14, RowKind::PutUntil, b""), (13, RowKind::PutUntil, b"older")]);
    add(b"fig", &[(15, RowKind::PutUntil, &[b'f'; 1000])]);
    content
}

#[test]
fn a_file_with_times_is_written_byte_for_byte_and_read() {
    let built = || with_times(0).build(options(Compression::None)).bytes();
    write_missing(UNTIL, built);
    let golden = golden(UNTIL);
    assert!(built() == golden, "{UNTIL} differs");
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    file.append(&golden).expect("there is room");
    let meta = crate::read_footer(&*file, Path::new(PATH)).expect("it has a footer");
    let expiry = meta.expiry.clone().expect("some rows have times");
    let times = [12, 13, 14, 15].map(crate::fixture::until);
    assert_eq!(expiry.rows(), 4);
    assert_eq!(Some(expiry.earliest()), times.into_iter().min());
    assert_eq!(Some(expiry.latest()), times.into_iter().max());
    assert_eq!(meta.expired_from(), None, "other rows have no time");
    let paged = PagedFile::alone(PATH, meta.file_id, Arc::clone(&disk) as Arc<dyn Disk>);
    let sst = Arc::new(Sst::new(paged, meta, 0, false));
    let source = Resident::new(crate::validate);
    crate::verify(&sst, &source, &*file, &mut |_| {}).expect("the file is whole");
    let mut cursor = SstCursor::new(Arc::clone(&sst));
    for (key, written) in &with_times(0).rows {
        assert!(cursor.seek(&source, key, Seek::Exact).expect("nothing faults"), "{key:?}");
        for (version, kind, value) in written {
            let row = cursor.visible(&source, Version(*version)).expect("nothing faults").expect("it was written");
            let loaded = retry(&source, || row.value.load(&source, &sst.file)).expect("the file is whole");
            let until = (*kind == RowKind::PutUntil).then(|| crate::fixture::until(*version));
            assert_eq!((row.kind, row.until(), loaded.as_bytes()), (*kind, until, value.as_slice()));
        }
    }
}

#[test]
fn a_reader_that_does_not_know_times_refuses_the_file_by_the_feature() {
    let meta = with_times(0).build(options(Compression::None)).meta;
    let refused = crate::format::features::check(meta.features(), crate::FEATURES & !crate::UNTIL);
    assert_eq!(refused, Err(Unreadable::Newer("feature 23".to_owned())));
    assert_eq!(content(0).build(options(Compression::None)).meta.features() & crate::UNTIL, 0);
}

/// A file that says that it has merges.
const MERGES: &str = "golden-v1-merges.sst";

#[test]
fn a_file_with_merges_is_written_byte_for_byte_and_refused_by_the_feature() {
    let built = || Content { notes_merges: true, ..content(0) }.build(options(Compression::None));
    write_missing(MERGES, || built().bytes());
    assert!(built().bytes() == golden(MERGES), "{MERGES} differs");
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    file.append(&golden(MERGES)).expect("there is room");
    let meta = crate::read_footer(&*file, Path::new(PATH)).expect("it has a footer");
    assert!(meta.has_merges);
    let refused = crate::format::features::check(meta.features(), crate::FEATURES & !crate::MERGES);
    assert_eq!(refused, Err(Unreadable::Newer("feature 24".to_owned())));
    check_content(&golden(MERGES));
}

#[test]
fn a_file_knows_from_when_on_none_of_its_rows_has_a_value() {
    let mut content = Content::default();
    content.rows.insert(b"a".to_vec(), vec![(3, RowKind::Erase, vec![]), (2, RowKind::PutUntil, b"v".to_vec())]);
    content.rows.insert(b"b".to_vec(), vec![(4, RowKind::PutUntil, b"v".to_vec())]);
    let last = [2, 4].map(crate::fixture::until).into_iter().max();
    assert_eq!(content.build(options(Compression::None)).meta.expired_from(), last);
    content.rows.insert(b"c".to_vec(), vec![(5, RowKind::PutUntil, vec![]), (1, RowKind::Put, vec![])]);
    assert_eq!(content.build(options(Compression::None)).meta.expired_from(), None, "an older version has no time");
}

#[test]
fn a_file_of_version_1_is_written_byte_for_byte() {
    for (name, groups) in PLAIN {
        write_missing(name, || content(groups).build(options(Compression::None)).bytes());
        let built = content(groups).build(options(Compression::None)).bytes();
        let golden = golden(name);
        assert!(golden.len() <= 128 << 10);
        let differs = built.iter().zip(&golden).position(|(a, b)| a != b);
        assert_eq!(
            (differs, built.len()),
            (None, golden.len()),
            "{name}: the first byte that differs, and the lengths"
        );
    }
}

#[test]
fn a_file_of_version_1_is_read() {
    for (name, _) in PLAIN {
        check_content(&golden(name));
    }
}

/// Files with packed pages, and their compression.
const PACKED: [(&str, Compression); 2] =
    [("golden-v1-lz4.sst", Compression::Lz4), ("golden-v1-zstd.sst", Compression::ZSTD)];

/// An encoder may pack the same bytes in other ways, so these files are read but not compared.
#[test]
fn a_packed_file_of_version_1_is_read() {
    for (name, compression) in PACKED {
        write_missing(name, || content(0).build(options(compression)).bytes());
        check_content(&golden(name));
    }
}

#[test]
fn a_file_says_that_it_has_pages_packed_by_zstd_only_if_it_has_some() {
    let features = |content: &Content| content.build(options(Compression::ZSTD)).meta.features();
    assert_eq!(features(&content(0)) & ZSTD, ZSTD);
    let golden = golden("golden-v1-zstd.sst");
    let meta = Meta::from_footer(&golden[golden.len() - os::BLOCK_BYTES..]).expect("it is whole");
    assert!(meta.has_zstd);
    // Noise does not compress, so the file has the same bytes as without compression.
    let mut rng = StdRng::seed_from_u64(1);
    let noise: Vec<u8> = (0..4000).map(|_| rng.random()).collect();
    let mut content = Content::default();
    content.rows.insert(b"noise".to_vec(), vec![(1, RowKind::Put, noise)]);
    let bytes = |compression| content.build(BuildOptions { compression, ..BuildOptions::default() }).bytes();
    assert!(bytes(Compression::ZSTD) == bytes(Compression::None));
}

#[test]
fn a_reader_that_does_not_know_zstd_refuses_the_file_by_the_feature() {
    let meta = content(0).build(options(Compression::ZSTD)).meta;
    let refused = crate::format::features::check(meta.features(), crate::FEATURES & !ZSTD);
    assert_eq!(refused, Err(Unreadable::Newer("feature 22".to_owned())));
}

#[test]
fn a_file_of_another_version_or_with_unknown_features_is_refused_by_name() {
    let bytes = golden("golden-v1.sst");
    let footer = &bytes[bytes.len() - os::BLOCK_BYTES..];
    let changed = |changes: &[(usize, &[u8])]| {
        let mut footer = footer.to_vec();
        for (at, to) in changes {
            footer[*at..*at + to.len()].copy_from_slice(to);
        }
        let end = footer.len() - 4;
        let crc = crc_fast::crc32_iscsi(&footer[..end]);
        footer[end..].copy_from_slice(&crc.to_le_bytes());
        Meta::from_footer(&footer)
    };
    // The features are in the footer and again in the meta, after the meta's file id.
    let with_features = |features: u32| changed(&[(12, &features.to_le_bytes()), (40, &features.to_le_bytes())]);
    assert!(
        changed(&[(8, &2u32.to_le_bytes())]).is_err_and(|why| why == Unreadable::Newer("format version 2".to_owned()))
    );
    assert!(with_features(1 << 25).is_err_and(|why| why == Unreadable::Newer("feature 25".to_owned())));
    let known = with_features(1).expect("this is how it was written: a list beside each tree");
    let newer = with_features(1 | 1 << 7).expect("a low feature bit is a hint");
    assert_eq!((newer.file_id, newer.unknown.features, newer.features()), (ID, 1 << 7, 1 | 1 << 7));
    assert_eq!(newer.main, known.main);
    assert!(with_features(1 | 1 << 16).is_err_and(|why| matches!(why, Unreadable::Corrupt(_))), "there are no groups");
}
