//! A file into which pages of another file were copied must hold the same rows as a file to which all rows were
//! added one by one.

use crate::fixture::{Built, Content, ID, PATH, Written, tiny};
use crate::format::filter::FilterKind;
use crate::format::validate;
use crate::row::{RowKind, Version};
use crate::{BuildOptions, Compression, SstBuilder, SstCursor, verify};
use os::sim::SimDisk;
use os::{Access, Disk};
use pages::{Resident, retry};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::path::Path;

/// Pages have about eight rows, so some pages have no reference and no older version.
fn options(seed: u64) -> BuildOptions {
    let compression = [Compression::Lz4, Compression::None, Compression::ZSTD][seed as usize / 3 % 3];
    let filter = FilterKind::ALL[seed as usize % 3];
    BuildOptions { max_page_rows: 1000, compression, filter, filter_prefix_bytes: (seed % 2) as u16, ..tiny() }
}

/// Keys of three bytes with values of up to 60 bytes. Most keys have one put. Some have erases, older versions or
/// large values.
fn content(rng: &mut StdRng, keys: usize) -> Content {
    let mut content = Content::default();
    for _ in 0..keys {
        let key: Vec<u8> = (0..3).map(|_| rng.random_range(b'a'..b'k')).collect();
        let newest = rng.random_range(20..100);
        let put = |version, bytes: usize| -> Written { (version, RowKind::Put, vec![b'v'; bytes]) };
        let written = match rng.random_range(0..60) {
            0 => vec![put(newest, 9000)],
            1 => vec![put(newest, 10), put(newest - 10, 20)],
            2..5 => vec![(newest, RowKind::Erase, Vec::new())],
            _ => vec![put(newest, rng.random_range(0..60))],
        };
        content.rows.insert(key, written);
    }
    content
}

/// Writes the rows of `from` to a new file. If `copies` is set, every page of `from` is copied as a whole if the
/// new file takes it. Also returns how many pages were copied.
fn rewritten(from: &Built, options: BuildOptions, copies: bool) -> (Built, usize) {
    let (disk, source) = (SimDisk::new(1), Resident::new(validate));
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    let mut builder = SstBuilder::new(file, PATH.into(), ID + 1, options);
    let mut cursor = SstCursor::new(from.sst());
    let mut there = retry(&source, || cursor.seek_first(&source)).expect("the file is whole");
    let mut copied = 0;
    while there {
        let page = cursor.copied_page().filter(|_| copies && cursor.is_at_page_start());
        if page.is_some_and(|page| builder.add_page(&page).expect("there is room")) {
            cursor.go_to_page_end();
            copied += 1;
        } else {
            let mut row = cursor.newest();
            let mut is_first = true;
            while let Some(version) = row {
                let value = retry(&source, || version.value.load(&source, &cursor.sst().file)).expect("it is whole");
                let parts = [value.as_bytes()];
                let parts = if version.kind == RowKind::Erase { &[][..] } else { &parts[..] };
                match version.until() {
                    Some(until) => builder.add_until(cursor.key(), version.version, until, parts),
                    None => builder.add(cursor.key(), version.version, version.kind, parts),
                }
                .expect("there is room");
                let next = |cursor: &mut SstCursor| match is_first {
                    true => cursor.first_older(&source),
                    false => cursor.next_older(&source),
                };
                let older = retry(&source, || next(&mut cursor)).expect("the file is whole");
                row = if older { cursor.older() } else { None };
                is_first = false;
            }
        }
        there = retry(&source, || cursor.next(&source)).expect("the file is whole");
    }
    let meta = builder.finish().expect("there is room");
    (Built { disk, meta, version_offset: 0 }, copied)
}

fn rows(built: &Built) -> Vec<(Vec<u8>, Version, RowKind, Vec<u8>)> {
    let source = Resident::new(validate);
    let mut cursor = SstCursor::new(built.sst());
    let mut rows = Vec::new();
    let mut there = retry(&source, || cursor.seek_first(&source)).expect("the file is whole");
    while there {
        let row = cursor.newest().expect("the cursor is at a row");
        let value = retry(&source, || row.value.load(&source, &cursor.sst().file)).expect("the file is whole");
        rows.push((cursor.key().to_vec(), row.version, row.kind, value.as_bytes().to_vec()));
        let exact = retry(&source, || cursor.sst().get(&source, cursor.key(), Version::MAX));
        assert!(exact.expect("the file is whole").is_some(), "a look-up finds it");
        there = retry(&source, || cursor.next(&source)).expect("the file is whole");
    }
    rows
}

#[test]
fn a_file_of_copied_pages_says_what_a_file_of_its_rows_says() {
    let (mut copied_pages, mut all_pages) = (0, 0);
    for seed in 0..60 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let keys = rng.random_range(1..600);
        let mut from = content(rng, keys).build(options(seed + rng.random_range(0..3)));
        from.version_offset = rng.random_range(0..2) * 1000;
        let (copy, copied) = rewritten(&from, options(seed), true);
        let (plain, _) = rewritten(&from, options(seed), false);
        copied_pages += copied;
        all_pages += from.meta.main.map_or(0, |main| main.data_pages as usize);
        let report = verify(&copy.sst(), &Resident::new(validate), &*copy.raw(), &mut |_| {});
        report.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(rows(&copy) == rows(&from), "seed {seed}");
        let says = |built: &Built| {
            let meta = &built.meta;
            let totals = meta.main.map(|main| (main.totals.rows, main.totals.erased));
            (totals, meta.user_bytes, meta.oldest, meta.newest, meta.bounds.clone(), meta.filter.is_some())
        };
        if copy.meta.main.is_some_and(|main| main.data_pages > 1)
            && plain.meta.main.is_some_and(|main| main.data_pages > 1)
        {
            assert_eq!(says(&copy), says(&plain), "seed {seed}");
        }
    }
    assert!(copied_pages > all_pages / 4, "{copied_pages} of {all_pages} pages were copied");
}

#[test]
fn pages_stay_at_least_half_full_from_file_to_file() {
    let options = options(1);
    let mut built = Content::of_keys((0..2000_u32).map(|i| i.to_be_bytes())).build(options);
    let pages = |built: &Built| built.meta.main.expect("it has rows").data_pages;
    let before = pages(&built);
    for _ in 0..5 {
        let (copy, copied) = rewritten(&built, options, true);
        assert!(copied as u64 + 1 >= pages(&built), "all but the last page are copied");
        built = copy;
    }
    assert_eq!(pages(&built), before);
}
