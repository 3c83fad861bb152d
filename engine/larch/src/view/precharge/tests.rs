//! Tests the precharge of a run of several files: it must ask for the pages that a level's cursor reads.

use super::*;
use crate::manifest::Level;
use crate::manifest::db_file::FileOpener;
use crate::manifest::directory::leftovers::Leftovers;
use crate::view::level::{LevelCursor, files_between};
use os::Access;
use pages::{PageAt, PageCache, PageKind, PageLender, PageRef, Resident, Stop, retry};
use sst::{AtMost, BuildOptions, Groups, PageIndexKind, Readahead, RowKind, Seek, SstBuilder, Version};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Bound;

const ROWS: u64 = 40;
/// The number of rows in each file of the run.
const FILES: [u64; 4] = [13, 9, 1, 17];

fn key(row: u64) -> Vec<u8> {
    [(row / 4 * 3 + 2) as u8, (row % 4 * 2 + 1) as u8].to_vec()
}

/// Makes the run on a new disk.
fn build(options: BuildOptions, history: bool, prefer_flat: bool) -> Vec<Arc<DbFile>> {
    let (machine, _) = os::Machine::simulated(3);
    let disk = machine.disk.clone();
    let cache = PageCache::new(1 << 20, 1, sst::validate);
    let leftovers = Leftovers::new(machine.disk.clone());
    let opener = FileOpener {
        directory: "".into(),
        machine,
        cache,
        prefer_flat,
        early: Default::default(),
        known: Default::default(),
        leftovers,
    };
    let mut row = 0;
    let mut run = Vec::new();
    for (number, rows) in FILES.into_iter().enumerate() {
        let path = opener.path(number as u64, 1);
        let file = disk.open(&path, Access::Create).expect("the disk is empty");
        let mut builder = SstBuilder::new(file, path, 77 + number as u64, options);
        for _ in 0..rows {
            let kind = if row % 7 == 3 { RowKind::Erase } else { RowKind::Put };
            let value = vec![b'v'; (row % 5) as usize * 30];
            let parts = vec![value.as_slice(); if kind == RowKind::Erase { 0 } else { 1 + options.groups }];
            builder.add(&key(row), Version(100), kind, &parts).expect("there is room");
            for older in (0..if history { row % 4 } else { 0 }).rev() {
                let parts = vec![&b"older"[..]; 1 + options.groups];
                builder.add(&key(row), Version(10 + older * 10), RowKind::Put, &parts).expect("there is room");
            }
            row += 1;
        }
        run.push(opener.open(number as u64, 1, 0, builder.finish().expect("there is room")));
    }
    assert_eq!(row, ROWS);
    run
}

type Asked = BTreeSet<(PageKind, u64, u64)>;

/// A page source for tests. A page is in memory once a round has loaded it. The source records the requested pages
/// and the pages that were read.
struct Touch {
    pages: Resident,
    loaded: RefCell<BTreeSet<(u64, u64)>>,
    noted: RefCell<Asked>,
    asked: RefCell<Asked>,
    touched: RefCell<Asked>,
    /// Whether every page is in memory.
    whole: Cell<bool>,
    may_fault: Cell<bool>,
    rounds: Cell<u64>,
}

impl Touch {
    fn new() -> Self {
        Self {
            pages: Resident::new(sst::validate),
            loaded: RefCell::default(),
            noted: RefCell::default(),
            asked: RefCell::default(),
            touched: RefCell::default(),
            whole: Cell::new(false),
            may_fault: Cell::new(true),
            rounds: Cell::new(0),
        }
    }

    fn start(&self, whole: bool) {
        for set in [&self.noted, &self.asked, &self.touched] {
            set.borrow_mut().clear();
        }
        self.loaded.borrow_mut().clear();
        self.whole.set(whole);
        self.may_fault.set(true);
        self.rounds.set(0);
    }

    fn is_here(&self, at: PageAt<'_>) -> bool {
        self.whole.get() || self.loaded.borrow().contains(&(at.file.id(), at.address.offset))
    }

    fn note(&self, at: PageAt<'_>) {
        let PageAt { file, address: at, kind, .. } = at;
        assert!(self.may_fault.get(), "a fault after a precharge: {} page at {}", kind.name(), at.offset);
        self.noted.borrow_mut().insert((kind, file.id(), at.offset));
        self.asked.borrow_mut().insert((kind, file.id(), at.offset));
    }

    fn rows_of(set: &RefCell<Asked>) -> Asked {
        set.borrow().iter().filter(|(kind, ..)| !matches!(kind, PageKind::Index | PageKind::Flat)).copied().collect()
    }
}

impl PageLender for Touch {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        if self.is_here(at) {
            self.touched.borrow_mut().insert((at.kind, at.file.id(), at.address.offset));
            return self.pages.page(at);
        }
        self.note(at);
        Err(Stop::Fault)
    }

    fn peek(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.is_here(at).then(|| self.pages.peek(at))?
    }

    fn ahead(&self, at: PageAt<'_>) -> bool {
        let missing = !self.is_here(at);
        if missing {
            self.note(at);
        }
        missing
    }

    fn ahead_if_spare(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn take_read(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn release(&self) {}
}

impl PageSource for Touch {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.peek(at)
    }

    fn ahead_bytes(&self) -> u64 {
        0
    }

    fn fetch(&self) -> pages::Result<()> {
        let noted = std::mem::take(&mut *self.noted.borrow_mut());
        self.rounds.set(self.rounds.get() + 1);
        self.loaded.borrow_mut().extend(noted.into_iter().map(|(_, file, offset)| (file, offset)));
        Ok(())
    }
}

/// Reads a run as a range does: rows that are not erased, with the parts of all groups, until there are enough.
fn read(source: &Touch, run: &Level, wanted: &ReadPlan<'_>, readahead: Readahead) {
    let forward = wanted.direction == Direction::Forward;
    let bounds = (wanted.low, wanted.high);
    let far = wanted.direction.near_far(bounds).1;
    let Some(mut cursor) = LevelCursor::within(source, run.clone(), bounds, wanted.direction, readahead) else {
        return;
    };
    let mut there = retry(source, || match (if forward { wanted.low } else { wanted.high }, forward) {
        (Bound::Unbounded, true) => cursor.seek_first(source),
        (Bound::Unbounded, false) => cursor.seek_last(source),
        (Bound::Included(key), true) => cursor.seek(source, key, Seek::Lower),
        (Bound::Excluded(key), true) => cursor.seek(source, key, Seek::Upper),
        (Bound::Included(key), false) => cursor.seek_back(source, key, Seek::Lower),
        (Bound::Excluded(key), false) => cursor.seek_back(source, key, Seek::Upper),
    })
    .expect("nothing is damaged");
    let is_old = run.iter().any(|file| wanted.at < file.sst.meta.newest);
    let (mut items, mut parts) = (0, Vec::new());
    while there {
        let key = cursor.key();
        let goes_on = match (far, forward) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(far), true) => key <= far,
            (Bound::Excluded(far), true) => key < far,
            (Bound::Included(far), false) => key >= far,
            (Bound::Excluded(far), false) => key > far,
        };
        if !goes_on {
            break;
        }
        let newest = retry(source, || cursor.visible(source, Version::MAX)).expect("nothing is damaged");
        let newest = newest.expect("every row has a newest version");
        let visible = retry(source, || cursor.visible(source, wanted.at)).expect("nothing is damaged");
        if let Some(row) = visible.filter(|row| row.kind != RowKind::Erase) {
            parts.clear();
            retry(source, || cursor.parts(source, wanted.groups, row.place, &mut parts)).expect("nothing is damaged");
        }
        items += u64::from(is_old || newest.kind != RowKind::Erase);
        if items == wanted.limits.rows {
            break;
        }
        there = retry(source, || if forward { cursor.next(source) } else { cursor.prev(source) })
            .expect("nothing is damaged");
    }
}

#[test]
fn every_range_of_keys_in_a_run_of_files_asks_for_what_is_touched() {
    let shape = |max_page_rows: usize, max_node_children: usize, groups: usize| BuildOptions {
        page_bytes: 4096,
        node_bytes: 4096,
        index: PageIndexKind::Both,
        max_page_rows,
        max_node_children,
        groups,
        ..BuildOptions::default()
    };
    let mut keys: Vec<Vec<u8>> = (0..ROWS).map(key).collect();
    keys.extend((0..ROWS).map(|row| vec![key(row)[0]]));
    keys.extend((0..ROWS).map(|row| vec![key(row)[0], key(row)[1] + 1]));
    keys.extend([vec![], vec![0xff]]);
    keys.sort();
    keys.dedup();
    let limits = [1, 2, 5, 13, 19, ROWS - 2, ROWS - 1, u64::MAX];
    for (rows, children) in [(1000, 1000), (2, 1000), (2, 3)] {
        for (groups, history, at) in [(0, false, u64::MAX), (2, true, u64::MAX), (2, true, 25)] {
            for prefer_flat in [false, true] {
                println!("{rows} rows a page, {children} children, {groups} groups, history {history}, {prefer_flat}");
                let run: Level = Arc::new(build(shape(rows, children, groups), history, prefer_flat));
                let source = Touch::new();
                let mut turn = 0;
                for (i, low) in keys.iter().enumerate() {
                    for high in &keys[i..] {
                        turn += 1;
                        for direction in [Direction::Forward, Direction::Backward] {
                            let wanted = ReadPlan {
                                low: if turn % 5 == 0 { Bound::Excluded(low) } else { Bound::Included(low) },
                                high: if turn % 3 == 0 { Bound::Included(high) } else { Bound::Excluded(high) },
                                direction,
                                limits: AtMost::rows(limits[turn % 8]),
                                groups: Groups::first(1 + groups),
                                at: Version(at),
                                ..ReadPlan::ALL
                            };
                            check(&source, &run, &wanted);
                        }
                    }
                }
                for limit in limits {
                    for direction in [Direction::Forward, Direction::Backward] {
                        let (limits, at) = (AtMost::rows(limit), Version(at));
                        let groups = Groups::first(1 + groups);
                        check(&source, &run, &ReadPlan { direction, limits, at, groups, ..ReadPlan::ALL });
                    }
                }
            }
        }
    }
}

fn check(source: &Touch, run: &Level, wanted: &ReadPlan<'_>) {
    if precharge::is_empty(&wanted.low, &wanted.high) {
        return;
    }
    source.start(true);
    read(source, run, wanted, Readahead::NONE);
    let expected = Touch::rows_of(&source.touched);

    source.start(false);
    let files = &run[files_between(run, wanted.low, wanted.high)];
    let bound = files.iter().map(|file| precharge::rounds_at_most(&file.sst, wanted)).sum();
    let found = precharge::run(source, bound, |asked| pass(source, files, wanted, u64::MAX, asked));
    let found = found.expect("nothing is damaged");
    assert!(!found.missing && !found.noted, "it is not done after {bound} rounds: {wanted:?}");
    let asked = Touch::rows_of(&source.asked);
    assert!(asked.is_superset(&expected), "{wanted:?}: {:?} are missing", expected.difference(&asked));
    // The precharge may ask for too many pages of column groups: a read does not use the parts of a row's newest
    // version if the row is erased or an older version is read. All other pages must be used.
    let is_main = |(kind, ..): &(PageKind, u64, u64)| !matches!(kind, PageKind::Group);
    let vain: Vec<_> = asked.difference(&expected).filter(|page| is_main(page)).collect();
    assert!(vain.is_empty(), "{wanted:?}: {vain:?} in vain");
    if wanted.limits.rows == u64::MAX {
        // Without a limit on rows, the pages of all files are loaded in the same rounds.
        let tallest = files.iter().map(|file| precharge::rounds_at_most(&file.sst, wanted)).max().unwrap_or(0);
        assert!(source.rounds.get() <= tallest, "{wanted:?}: {} rounds", source.rounds.get());
    }
    source.may_fault.set(false);
    read(source, run, wanted, Readahead::NONE);
}

#[test]
fn a_walk_over_files_asks_ahead_from_one_into_the_next_for_what_it_touches() {
    let mut keys: Vec<Vec<u8>> = (0..ROWS).step_by(3).map(key).collect();
    keys.extend([vec![], vec![0xff]]);
    keys.sort();
    for (rows, children, groups) in [(1000, 1000, 0), (2, 1000, 0), (2, 3, 0), (2, 3, 2)] {
        let options = BuildOptions {
            page_bytes: 4096,
            node_bytes: 4096,
            max_page_rows: rows,
            max_node_children: children,
            groups,
            ..BuildOptions::default()
        };
        let run: Level = Arc::new(build(options, false, false));
        let source = Touch::new();
        for (i, low) in keys.iter().enumerate() {
            for high in &keys[i..] {
                for direction in [Direction::Forward, Direction::Backward] {
                    let (low, high) = (Bound::Included(low.as_slice()), Bound::Excluded(high.as_slice()));
                    let groups = Groups::first(1 + groups);
                    let wanted = ReadPlan { low, high, direction, groups, ..ReadPlan::ALL };
                    if precharge::is_empty(&low, &high) {
                        continue;
                    }
                    source.start(false);
                    read(&source, &run, &wanted, Readahead::NONE);
                    let (needed, rounds) = (source.asked.borrow().clone(), source.rounds.get());
                    for pages in [1, 2, 5, 9, 1000] {
                        let bytes = pages * 4400;
                        for readahead in [Readahead::full(bytes), Readahead::growing(bytes)] {
                            source.start(false);
                            read(&source, &run, &wanted, readahead);
                            let asked = source.asked.borrow();
                            assert!(asked.is_superset(&needed), "{wanted:?} {readahead:?}");
                            // Pages with parts of erased rows are not needed, but may be loaded with their
                            // neighbours.
                            let is_part =
                                |page: &&(PageKind, u64, u64)| groups != Groups::MAIN && page.0 != PageKind::Data;
                            let vain: Vec<_> = asked.difference(&needed).filter(|page| !is_part(page)).collect();
                            assert!(vain.is_empty(), "{vain:?} in vain: {wanted:?} {readahead:?}");
                            assert!(source.rounds.get() <= rounds, "{wanted:?} {readahead:?} in more rounds");
                        }
                    }
                }
            }
        }
        // All files fit into the window, so the reader waits only for descents of the indexes, and for about two of
        // them at most.
        for direction in [Direction::Forward, Direction::Backward] {
            source.start(false);
            let wanted = ReadPlan { direction, groups: Groups::first(1 + groups), ..ReadPlan::ALL };
            read(&source, &run, &wanted, Readahead::full(1 << 20));
            let ways: u64 = run.iter().map(|file| precharge::rounds_at_most(&file.sst, &wanted)).max().unwrap_or(0);
            let rounds = source.rounds.get();
            println!(
                "{rounds} rounds, {ways} for the longest way, {children} children, {groups} groups, {direction:?}"
            );
            assert!(rounds <= 2 * ways + 2, "{rounds} rounds of {ways} for the longest way");
        }
    }
}
