//! A walk that loads values must ask for every value that it needs, for each of them once, and for hardly any
//! other value. It must take few rounds.

use super::scan::Counted;
use super::*;
use crate::slice::{RowRanges, Slice};
use pages::{Admit, PageCache, PageKind, PageSource, Reason, Session, retry};
use std::ops::Bound;

/// Memory that a value of `VALUE_BYTES` is expected to take at most while it is read.
const VALUE_MEMORY: u64 = 32 << 10;
const VALUE_BYTES: usize = 5000;

/// How values are loaded.
#[derive(Clone, Copy, Debug)]
struct Walk {
    forward: bool,
    readahead: Readahead,
    groups: Groups,
    /// The version at which rows are read. `None` if all versions are read, as a compaction does.
    at: Option<Version>,
    /// Whether the values are loaded, too.
    loads: bool,
}

/// Rows whose value, or whose part in each group, has `VALUE_BYTES` bytes. The function `versions` says how many
/// versions each row has.
fn content(rows: u32, groups: usize, versions: impl Fn(u32) -> u64) -> Content {
    let written = |row: u32| {
        let value = |version: u64| (version, RowKind::Put, vec![(row % 251) as u8; VALUE_BYTES]);
        (0..versions(row)).rev().map(|older| value(1 + 10 * older)).collect()
    };
    Content {
        rows: (0..rows).map(|row| (row.to_be_bytes().to_vec(), written(row))).collect(),
        groups,
        ..Content::default()
    }
}

/// Walks to the end and returns how many values it has loaded. If the walk loads no values, it returns the number
/// of rows.
fn walk<S: PageSource + ?Sized>(sst: &Arc<Sst>, source: &S, walk: Walk, far: Bound<&[u8]>) -> u64 {
    let mut cursor = SstCursor::new(Arc::clone(sst)).with_readahead(walk.readahead).until(far);
    let step = |cursor: &mut SstCursor, is_first: bool| match (is_first, walk.forward) {
        (true, true) => cursor.seek_first(source),
        (true, false) => cursor.seek_last(source),
        (false, true) => cursor.next(source),
        (false, false) => cursor.prev(source),
    };
    let is_beyond = |key: &[u8]| match (far, walk.forward) {
        (Bound::Unbounded, _) => false,
        (Bound::Included(far) | Bound::Excluded(far), true) => key > far,
        (Bound::Included(far) | Bound::Excluded(far), false) => key < far,
    };
    let mut count = 0;
    let mut beside = Vec::new();
    let mut load = |cursor: &mut SstCursor, row: &Row| {
        count += 1;
        if !walk.loads {
            return;
        }
        let parts = || {
            beside.clear();
            cursor.parts(source, walk.groups, row.place, &mut beside)?;
            cursor.load_ahead(source, walk.groups, row.place, walk.at);
            for value in std::iter::once(&row.value).chain(&beside) {
                assert!(!value.load(source, &sst.file)?.as_bytes().is_empty());
            }
            Ok(())
        };
        retry(source, parts).expect("nothing is damaged");
    };
    let mut there = retry(source, || step(&mut cursor, true)).expect("nothing is damaged");
    while there && !is_beyond(cursor.key()) {
        match walk.at {
            Some(at) => {
                if let Some(row) = retry(source, || cursor.visible(source, at)).expect("nothing is damaged") {
                    load(&mut cursor, &row);
                }
            }
            None => {
                let mut row = cursor.newest();
                let mut is_first = true;
                while let Some(version) = row {
                    load(&mut cursor, &version);
                    let older =
                        retry(source, || if is_first { cursor.first_older(source) } else { cursor.next_older(source) });
                    row = if older.expect("nothing is damaged") { cursor.older() } else { None };
                    is_first = false;
                }
            }
        }
        there = retry(source, || step(&mut cursor, false)).expect("nothing is damaged");
    }
    count
}

fn values_brought(source: &Counted) -> u64 {
    source.brought.borrow().iter().filter(|page| page.0 == PageKind::Value).count() as u64
}

#[test]
fn a_walk_that_loads_values_waits_once_a_window() {
    const ROWS: u32 = 2000;
    const WINDOW: u64 = 1 << 20;
    let source = Counted::new();
    for (page_bytes, groups) in [(4096, 0), (512, 0), (4096, 1)] {
        let built = content(ROWS, groups, |_| 1).build(BuildOptions { page_bytes, ..BuildOptions::default() });
        let parts = 1 + groups as u64;
        for forward in [true, false] {
            for readahead in [Readahead::growing(WINDOW), Readahead::full(WINDOW)] {
                for at in [Some(Version(1)), None] {
                    let wanted = Walk { forward, readahead, groups: Groups::first(1 + groups), at, loads: true };
                    source.start();
                    assert_eq!(walk(&built.sst(), &source, wanted, Bound::Unbounded), u64::from(ROWS));
                    let values = u64::from(ROWS) * parts;
                    assert_eq!(values_brought(&source), values, "each once, which the source checks: {wanted:?}");
                    // Each round brings at least half a window of values. Some more rounds are allowed until the
                    // window has grown.
                    let bound = values * VALUE_MEMORY / (WINDOW / 2) + 16;
                    let rounds = source.rounds.get();
                    println!("{rounds} rounds of at most {bound} for {values} values: {wanted:?}");
                    assert!(rounds <= bound, "{rounds} rounds for {values} values: {wanted:?}, pages of {page_bytes}");
                }
            }
        }
    }
}

#[test]
fn a_walk_over_keys_asks_for_no_value() {
    let built = content(500, 0, |_| 1).build(BuildOptions { page_bytes: 4096, ..BuildOptions::default() });
    let source = Counted::new();
    for readahead in [Readahead::growing(1 << 20), Readahead::full(1 << 20)] {
        source.start();
        let wanted = Walk { forward: true, readahead, groups: Groups::MAIN, at: Some(Version(1)), loads: false };
        assert_eq!(walk(&built.sst(), &source, wanted, Bound::Unbounded), 500);
        assert_eq!(values_brought(&source), 0);
    }
}

#[test]
fn a_walk_asks_for_values_of_versions_that_it_sees_and_of_rows_up_to_its_end() {
    const ROWS: u32 = 600;
    // Versions 1, 11 and 21 of every third row, version 1 of the others.
    let content = content(ROWS, 0, |row| if row % 3 == 0 { 3 } else { 1 });
    let built = content.build(BuildOptions { page_bytes: 4096, ..BuildOptions::default() });
    let source = Counted::new();
    for forward in [true, false] {
        for readahead in [Readahead::growing(1 << 20), Readahead::full(1 << 20)] {
            for (at, values) in
                [(Some(Version(1)), 600), (Some(Version(15)), 600), (Some(Version(99)), 600), (None, 1000)]
            {
                if at.is_none() && !forward {
                    // The versions of a row are read newest first, whatever the direction of the walk. So a walk
                    // that reads all versions goes forward.
                    continue;
                }
                let wanted = Walk { forward, readahead, groups: Groups::MAIN, at, loads: true };
                source.start();
                assert_eq!(walk(&built.sst(), &source, wanted, Bound::Unbounded), values);
                assert_eq!(values_brought(&source), values, "{wanted:?}");
                assert!(source.rounds.get() < values / 8, "{} rounds: {wanted:?}", source.rounds.get());
                if at.is_some() {
                    let far = if forward { 299_u32 } else { 300 }.to_be_bytes();
                    source.start();
                    assert_eq!(walk(&built.sst(), &source, wanted, Bound::Included(&far)), 300);
                    // Where the range ends is known only once the page with its end is in memory, so some values
                    // beyond it may come.
                    let brought = values_brought(&source);
                    assert!(brought <= 300 + 70, "{brought} values brought for 300: {wanted:?}");
                }
            }
        }
    }
}

#[test]
fn a_walk_asks_for_no_value_in_a_hole() {
    let built = content(400, 0, |_| 1).build(BuildOptions { page_bytes: 4096, ..BuildOptions::default() });
    let whole = built.sst();
    let rows = RowRanges::new([10..60, 200..201, 300..390]);
    let slice = Slice { rows, bounds: whole.meta.bounds.clone(), bytes: 0 };
    let sst = Arc::new(whole.sliced(Some(slice)));
    let source = Counted::new();
    for forward in [true, false] {
        let readahead = Readahead::full(1 << 20);
        let wanted = Walk { forward, readahead, groups: Groups::MAIN, at: Some(Version(1)), loads: true };
        source.start();
        assert_eq!(walk(&sst, &source, wanted, Bound::Unbounded), 141);
        assert_eq!(values_brought(&source), 141);
    }
}

#[test]
fn a_session_that_keeps_nothing_reads_each_value_once_and_in_windows() {
    const ROWS: u32 = 2000;
    const WINDOW: u64 = 1 << 20;
    let built = content(ROWS, 1, |row| 1 + u64::from(row % 2)).build(BuildOptions::default());
    let cache = PageCache::new(16 << 20, 4, crate::format::validate);
    let session = Session::new(&cache, Reason::Compaction, Admit::Pass).with_ahead_bytes(2 * WINDOW);
    let wanted =
        Walk { forward: true, readahead: Readahead::full(WINDOW), groups: Groups::first(2), at: None, loads: true };
    let values = u64::from(ROWS) * 3;
    assert_eq!(walk(&built.sst_in(&cache, false), &session, wanted, Bound::Unbounded), values / 2);
    // Each version has a value and a part in a second group. Both lie outside the pages of their rows, unless the
    // part is empty.
    assert!(session.reads_of(PageKind::Value) <= values, "{} values read", session.reads_of(PageKind::Value));
    let bound = values * VALUE_MEMORY / (WINDOW / 2) + 16;
    assert!(session.rounds() <= bound, "{} rounds of at most {bound}", session.rounds());
}

#[test]
fn values_longer_than_the_window_are_read_when_they_are_needed() {
    let mut content = content(200, 0, |_| 1);
    for (row, written) in content.rows.values_mut().enumerate() {
        if row % 7 == 3 {
            written[0].2 = vec![b'L'; 300 << 10];
        }
    }
    let built = content.build(BuildOptions { page_bytes: 4096, ..BuildOptions::default() });
    let source = Counted::new();
    for forward in [true, false] {
        for readahead in [Readahead::growing(128 << 10), Readahead::full(128 << 10), Readahead::full(4 << 20)] {
            source.start();
            let wanted = Walk { forward, readahead, groups: Groups::MAIN, at: Some(Version(1)), loads: true };
            assert_eq!(walk(&built.sst(), &source, wanted, Bound::Unbounded), 200);
            assert_eq!(values_brought(&source), 200);
        }
    }
}
