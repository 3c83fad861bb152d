//! A scan must ask for every page that it needs, for each of them once, and for no other page. It must take few
//! rounds.

use super::*;
use crate::slice::{RowRanges, Slice};
use pages::{
    Admit, PageAt, PageCache, PageKind, PageLender, PageRef, PageSource, Reason, Resident, Result, Session, Stop, retry,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Bound;

/// A page source that keeps the pages that it has read, and counts them and its rounds.
pub(super) struct Counted {
    pages: Resident,
    here: RefCell<BTreeSet<u64>>,
    noted: RefCell<BTreeSet<(PageKind, u64, u32)>>,
    pub(super) brought: RefCell<BTreeSet<(PageKind, u64, u32)>>,
    pub(super) rounds: Cell<u64>,
}

impl Counted {
    pub(super) fn new() -> Self {
        Self {
            pages: Resident::new(crate::format::validate),
            here: RefCell::default(),
            noted: RefCell::default(),
            brought: RefCell::default(),
            rounds: Cell::new(0),
        }
    }

    /// Forgets everything.
    pub(super) fn start(&self) {
        self.here.borrow_mut().clear();
        self.noted.borrow_mut().clear();
        self.brought.borrow_mut().clear();
        self.rounds.set(0);
    }

    fn is_here(&self, at: PageAt<'_>) -> bool {
        self.here.borrow().contains(&at.address.offset)
    }

    fn note(&self, at: PageAt<'_>) {
        self.noted.borrow_mut().insert((at.kind, at.address.offset, at.address.bytes));
    }

    fn bytes(&self) -> u64 {
        self.brought.borrow().iter().map(|(.., bytes)| u64::from(*bytes)).sum()
    }
}

impl PageLender for Counted {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        if self.is_here(at) {
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

impl PageSource for Counted {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.peek(at)
    }

    fn ahead_bytes(&self) -> u64 {
        0
    }

    fn fetch(&self) -> Result<()> {
        self.rounds.set(self.rounds.get() + 1);
        let noted = std::mem::take(&mut *self.noted.borrow_mut());
        for page in noted {
            assert!(self.here.borrow_mut().insert(page.1), "{page:?} is brought twice");
            self.brought.borrow_mut().insert(page);
        }
        Ok(())
    }
}

/// What a scan reads, and how far ahead it asks for pages.
#[derive(Clone, Debug)]
struct Scan {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    forward: bool,
    groups: Groups,
    /// Whether all versions are read, as a compaction does.
    history: bool,
    readahead: Readahead,
}

fn key(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Reads rows in the same way as ranges and compactions, and returns their keys.
fn scan<S: PageSource + ?Sized>(sst: &Arc<Sst>, source: &S, wanted: &Scan) -> Vec<Vec<u8>> {
    let (near, far) = if wanted.forward { (&wanted.low, &wanted.high) } else { (&wanted.high, &wanted.low) };
    let mut cursor = SstCursor::new(Arc::clone(sst)).with_readahead(wanted.readahead).until(key(far));
    let step = |cursor: &mut SstCursor, is_first: bool| match (is_first, near, wanted.forward) {
        (false, _, true) => cursor.next(source),
        (false, _, false) => cursor.prev(source),
        (true, Bound::Unbounded, true) => cursor.seek_first(source),
        (true, Bound::Unbounded, false) => cursor.seek_last(source),
        (true, Bound::Included(key), true) => cursor.seek(source, key, Seek::Lower),
        (true, Bound::Excluded(key), true) => cursor.seek(source, key, Seek::Upper),
        (true, Bound::Included(key), false) => cursor.seek_back(source, key, Seek::Lower),
        (true, Bound::Excluded(key), false) => cursor.seek_back(source, key, Seek::Upper),
    };
    let is_beyond = |key: &[u8]| match (far, wanted.forward) {
        (Bound::Unbounded, _) => false,
        (Bound::Included(far), true) => key > far.as_slice(),
        (Bound::Excluded(far), true) => key >= far.as_slice(),
        (Bound::Included(far), false) => key < far.as_slice(),
        (Bound::Excluded(far), false) => key <= far.as_slice(),
    };
    let mut keys = Vec::new();
    let mut parts = Vec::new();
    let mut there = retry(source, || step(&mut cursor, true)).expect("nothing is damaged");
    while there && !is_beyond(cursor.key()) {
        keys.push(cursor.key().to_vec());
        let mut place = cursor.newest().expect("it is at a row").place;
        let mut older = false;
        loop {
            parts.clear();
            retry(source, || cursor.parts(source, wanted.groups, place, &mut parts)).expect("nothing is damaged");
            if !wanted.history {
                break;
            }
            let found = retry(source, || if older { cursor.next_older(source) } else { cursor.first_older(source) });
            if !found.expect("nothing is damaged") {
                break;
            }
            place = cursor.older().expect("it was found").place;
            older = true;
        }
        there = retry(source, || step(&mut cursor, false)).expect("nothing is damaged");
    }
    keys
}

const PAGE: u64 = 4096 + 200;

fn windows() -> Vec<Readahead> {
    let mut windows: Vec<Readahead> = [0, 1, 2, 3, 5, 8, 13, 1000].map(|pages| Readahead::full(pages * PAGE)).into();
    windows.extend([4, 6, 16, 1000].map(|pages| Readahead::growing(pages * PAGE)));
    windows
}

/// Rows with older versions, none of them erased, with values of many lengths.
fn content(rows: u64, groups: usize, history: bool) -> Content {
    let mut content = Content { groups, ..Content::default() };
    for row in 0..rows {
        let value = |version: u64| vec![b'v'; ((row * 7 + version * 31) % 400) as usize];
        let versions = if history && row % 3 != 1 { 1 + row % 4 } else { 1 };
        let written = (0..versions).rev().map(|version| (10 + version * 3, RowKind::Put, value(version)));
        content
            .rows
            .insert(format!("{:03}{}", row * 3, "x".repeat((row % 5) as usize)).into_bytes(), written.collect());
    }
    content
}

fn sliced(sst: &Sst, slice: &RowRanges) -> Arc<Sst> {
    let slice = Slice { rows: slice.clone(), bounds: sst.meta.bounds.clone(), bytes: 0 };
    Arc::new(sst.sliced(Some(slice)))
}

/// All pairs of bounds from `keys`. Included, excluded and missing bounds take turns, counted by `turn`.
fn bounds(keys: &[Vec<u8>], turn: &mut usize) -> Vec<[Bound<Vec<u8>>; 2]> {
    let mut all = vec![[Bound::Unbounded, Bound::Unbounded]];
    for (i, low) in keys.iter().enumerate() {
        for high in &keys[i..] {
            *turn += 1;
            let bound = |key: &Vec<u8>, by: usize| match *turn % by {
                0 => Bound::Unbounded,
                1 => Bound::Excluded(key.clone()),
                _ => Bound::Included(key.clone()),
            };
            all.push([bound(low, 7), bound(high, 5)]);
        }
    }
    all
}

#[test]
fn a_scan_asks_for_each_page_of_its_range_once_and_for_no_other() {
    const ROWS: u64 = 36;
    let mut turn = 0;
    let source = Counted::new();
    for (max_page_rows, max_node_children, heights) in
        [(1000, 1000, 0..=0), (2, 1000, 1..=1), (2, 5, 2..=2), (1, 3, 3..=9)]
    {
        for (groups, history) in [(0, false), (2, false), (1, true)] {
            let content = content(ROWS, groups, history);
            let options =
                BuildOptions { max_page_rows, max_node_children, page_bytes: 8192, node_bytes: 4096, ..tiny() };
            let built = content.build(options);
            let whole = built.sst();
            let height = built.meta.main.expect("it has rows").root(false).height;
            assert!(heights.contains(&height), "height {height}");
            let keys: Vec<Vec<u8>> = content.rows.keys().flat_map(|key| [key.clone(), key[..3].to_vec()]).collect();
            let keys: Vec<Vec<u8>> = BTreeSet::from_iter(keys).into_iter().step_by(3).collect();
            for slice in [None, Some(vec![3..9, 12..13, 20..31]), Some(vec![0..1, 35..36])] {
                let sst = match &slice {
                    None => Arc::clone(&whole),
                    Some(rows) => sliced(&whole, &RowRanges::new(rows.iter().cloned())),
                };
                for [low, high] in bounds(&keys, &mut turn) {
                    for forward in [true, false] {
                        let groups = Groups::first(1 + groups);
                        let readahead = Readahead::NONE;
                        let mut wanted =
                            Scan { low: low.clone(), high: high.clone(), forward, groups, history, readahead };
                        source.start();
                        let keys = scan(&sst, &source, &wanted);
                        let needed = source.brought.borrow().clone();
                        let (bytes, all_rounds) = (source.bytes(), source.rounds.get());
                        let windows = windows();
                        // All windows for some, some for all.
                        for readahead in windows.iter().skip(turn % 3).step_by(if turn % 16 == 0 { 1 } else { 5 }) {
                            wanted.readahead = *readahead;
                            source.start();
                            assert_eq!(scan(&sst, &source, &wanted), keys, "{wanted:?}");
                            check_pages(&source, &needed, slice.is_some(), &wanted);
                            assert!(source.rounds.get() <= all_rounds, "{wanted:?} in more rounds");
                            assert!(source.bytes() >= bytes);
                        }
                    }
                }
            }
        }
    }
}

fn check_pages(source: &Counted, needed: &BTreeSet<(PageKind, u64, u32)>, is_slice: bool, wanted: &Scan) {
    let brought = source.brought.borrow();
    let missing: Vec<_> = needed.difference(&brought).collect();
    assert!(missing.is_empty(), "{missing:?} never came: {wanted:?}");
    let vain: Vec<_> = brought.difference(needed).collect();
    // Rows in a gap of the slice have older versions, too. In the history, these lie between the older versions of
    // other rows, and readahead cannot tell them apart.
    let is_far = |page: &&&(PageKind, u64, u32)| is_slice && wanted.history && page.0 != PageKind::Data;
    let vain: Vec<_> = vain.iter().filter(|page| !is_far(page)).collect();
    assert!(vain.is_empty(), "{vain:?} in vain: {wanted:?}");
}

/// The most rounds that a scan of `bytes` may take, counted from its first page.
fn rounds_at_most(bytes: u64, high_bytes: u64, start_bytes: u64, height: u8) -> u64 {
    let doublings = (high_bytes / start_bytes.max(1)).ilog2();
    bytes.div_ceil(high_bytes) + u64::from(doublings) + u64::from(height) + 2
}

#[test]
fn a_cold_scan_takes_as_many_rounds_as_windows_and_the_doublings_before() {
    // A 32nd of 2 GB. Pages and windows are smaller in the same proportion.
    let rows = 84_000;
    let content = Content {
        rows: (0..rows)
            .map(|row: u32| (row.to_be_bytes().to_vec(), vec![(1, RowKind::Put, vec![b'v'; 800])]))
            .collect(),
        ..Content::default()
    };
    let built = content.build(BuildOptions { page_bytes: 4096, node_bytes: 4096, ..BuildOptions::default() });
    let tree = built.meta.main.expect("it has rows");
    let height = tree.root(false).height;
    assert!(tree.totals.bytes >= 64 << 20 && height >= 2, "{tree:?}");
    let window = 4 << 20;
    let memory = tree.data_pages * PAGE;
    for forward in [true, false] {
        for (readahead, start) in [(Readahead::growing(window), 16 << 10), (Readahead::full(window), window)] {
            let source = Counted::new();
            let wanted = Scan {
                low: Bound::Unbounded,
                high: Bound::Unbounded,
                forward,
                groups: Groups::MAIN,
                history: false,
                readahead,
            };
            assert_eq!(scan(&built.sst(), &source, &wanted).len(), rows as usize);
            let bound = rounds_at_most(memory, window, start, height);
            let rounds = source.rounds.get();
            println!("{rounds} rounds of at most {bound}, {readahead:?}, forward: {forward}");
            assert!(rounds <= bound.min(35));
            let index = source.brought.borrow().iter().filter(|page| page.0 == PageKind::Index).count();
            assert_eq!(index, built.nodes().len(), "each index page is read once");
        }
    }
    // The same scans, first through a session that keeps only the pages that it reads ahead, and then through a
    // cache.
    for (admit, budget) in [(Admit::Pass, 8 << 20), (Admit::Keep, 40 << 20), (Admit::Keep, 96 << 20)] {
        let cache = PageCache::new(budget, 2, crate::format::validate);
        let session = Session::new(&cache, Reason::Scan, admit).with_ahead_bytes(window + (window / 4));
        let sst = built.sst_in(&cache, false);
        let wanted = Scan {
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            forward: true,
            groups: Groups::MAIN,
            history: false,
            readahead: Readahead::growing(window),
        };
        assert_eq!(scan(&sst, &session, &wanted).len(), rows as usize);
        let pages = tree.data_pages + built.nodes().len() as u64;
        assert_eq!(session.page_reads(), pages, "{admit:?} within {budget}: each page is read once");
        let bound = rounds_at_most(memory, window, 16 << 10, height);
        assert!(session.rounds() <= bound, "{admit:?} within {budget}: {} rounds, not {bound}", session.rounds());
    }
}

/// A source whose disk is slower than the reader. A page that was asked for ahead stays on its way until the
/// reader needs it. Only pages that are needed arrive.
struct Slow {
    pages: Counted,
    on_the_way: RefCell<BTreeSet<u64>>,
    /// How many pages were on their way each time the reader waited.
    waits: RefCell<Vec<usize>>,
}

impl PageLender for Slow {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn ahead(&self, at: PageAt<'_>) -> bool {
        !self.pages.is_here(at) && self.on_the_way.borrow_mut().insert(at.address.offset)
    }

    fn ahead_if_spare(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn take_read(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn release(&self) {}

    pages::pass_on!(pages: page, peek);
}

impl PageSource for Slow {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.peek(at)
    }

    fn ahead_bytes(&self) -> u64 {
        0
    }

    fn fetch(&self) -> Result<()> {
        let on_the_way = &mut *self.on_the_way.borrow_mut();
        for (_, offset, _) in self.pages.noted.borrow().iter() {
            on_the_way.remove(offset);
        }
        self.waits.borrow_mut().push(on_the_way.len());
        self.pages.fetch()
    }
}

#[test]
fn a_scan_that_waits_for_pages_on_their_way_keeps_its_window() {
    let content = Content::of_keys((0..4000_u32).map(|row| row.to_be_bytes().to_vec()));
    let built = content.build(BuildOptions { max_page_rows: 4, ..BuildOptions::default() });
    let tree = built.meta.main.expect("it has rows");
    let window_pages = 64;
    for readahead in [Readahead::full(window_pages * PAGE), Readahead::growing(window_pages * PAGE)] {
        for forward in [true, false] {
            let source = Slow { pages: Counted::new(), on_the_way: RefCell::default(), waits: RefCell::default() };
            let (low, high) = (Bound::Unbounded, Bound::Unbounded);
            let wanted = Scan { low, high, forward, groups: Groups::MAIN, history: false, readahead };
            assert_eq!(scan(&built.sst(), &source, &wanted).len(), 4000);
            let waits = source.waits.borrow();
            let data_waits = &waits[waits.len() - tree.data_pages as usize..];
            // The first waits are left out because the window still grows, and the last ones because few pages are
            // left.
            let whole = &data_waits[16..data_waits.len() - 2 * window_pages as usize];
            let least = whole.iter().min().expect("there are many pages");
            assert!(*least as u64 >= window_pages / 2 - 2, "{least} pages on their way, {readahead:?}, {forward}");
        }
    }
}

#[test]
fn a_short_range_without_a_limit_asks_for_at_most_about_twice_what_it_returns() {
    let content = content(600, 0, false);
    let options = BuildOptions { max_page_rows: 2, max_node_children: 20, page_bytes: 8192, ..tiny() };
    let built = content.build(BuildOptions { node_bytes: 4096, ..options });
    let keys: Vec<&Vec<u8>> = content.rows.keys().collect();
    let source = Counted::new();
    let sst = built.sst();
    for forward in [true, false] {
        for count in (1..40).chain([100, 300]) {
            for readahead in [Readahead::NONE, Readahead::growing(128 << 20)] {
                source.start();
                let mut cursor = SstCursor::new(Arc::clone(&sst)).with_readahead(readahead);
                let start = if forward { keys[17] } else { keys[577] };
                let mut there = retry(&source, || match forward {
                    true => cursor.seek(&source, start, Seek::Exact),
                    false => cursor.seek_back(&source, start, Seek::Exact),
                })
                .expect("no damage");
                for _ in 1..count {
                    assert!(there);
                    there = retry(&source, || if forward { cursor.next(&source) } else { cursor.prev(&source) })
                        .expect("no damage");
                }
                let data = |kind: PageKind| source.brought.borrow().iter().filter(|page| page.0 == kind).count() as u64;
                let (pages, nodes) = (data(PageKind::Data), data(PageKind::Index));
                // Every page has two rows. The last window may contain one page none of whose rows is returned.
                let least = (count as u64).div_ceil(2);
                assert!(pages <= 2 * (least + 1) + 3, "{count} rows: {pages} pages, {readahead:?}, {forward}");
                // Nodes are asked for up to the end of the next window, which is as long as all windows before it
                // together.
                assert!(nodes <= 4 + (4 * least + 8) / 20, "{count} rows: {nodes} nodes, {readahead:?}");
            }
        }
    }
}

#[test]
fn a_scan_through_any_source_gives_all_rows() {
    for (seed, options) in (0..).zip(shapes()) {
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content { groups: 1, ..Content::random(&mut rng, 80) };
        let keys: Vec<&Vec<u8>> = content.rows.keys().collect();
        content.build(options).on_every_source(|reader| {
            for readahead in windows() {
                for forward in [true, false] {
                    let (low, high) = (Bound::Unbounded, Bound::Unbounded);
                    let groups = Groups::first(2);
                    let wanted = Scan { low, high, forward, groups, history: true, readahead };
                    let mut found = scan(&reader.sst, &reader.source, &wanted);
                    if !forward {
                        found.reverse();
                    }
                    assert_eq!(found.iter().collect::<Vec<_>>(), keys, "seed {seed}: {wanted:?}");
                }
            }
        });
    }
}
