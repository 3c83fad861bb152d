//! A filter denies no key that is in the file, and no range that has a key, whichever pages are in memory. Pages
//! of filters are read only where many look-ups find nothing.

use super::*;
use crate::fixture::{Built, Content, shapes, tiny};
use crate::format::filter::{FilterKind, hash_key};
use crate::format::meta::PageIndexKind;
use crate::format::validate;
use crate::slice::Slice;
use crate::write::BuildOptions;
use pages::{Admit, Flaky, PageAt, PageCache, PageRef, Reason, Resident, Session, retry};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::cell::RefCell;

const KINDS: [FilterKind; 2] = [FilterKind::Bits12, FilterKind::Bits20];

fn with_filter(filter: FilterKind, filter_prefix_bytes: u16, options: BuildOptions) -> BuildOptions {
    BuildOptions { filter, filter_prefix_bytes, ..options }
}

/// All strings of up to 3 of these bytes, shortest first.
fn short_keys() -> Vec<Vec<u8>> {
    let mut keys = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..3 {
        let until = keys.len();
        for i in from..until {
            for byte in [0, b'a', 0xff] {
                let mut key = keys[i].clone();
                key.push(byte);
                keys.push(key);
            }
        }
        from = until;
    }
    keys
}

fn said<'s>(sst: &Sst, source: &Resident, key: &'s [u8]) -> (bool, &'s [u8]) {
    let filter = sst.meta.filter.as_ref().expect("it has a filter");
    (matches!(sst.filter_says(source, filter, key, hash_key(key)), Said::Absent(_)), key)
}

/// The file has some of the short keys. This function asks it about every short key, and about every range between
/// two short keys.
fn check_all(content: &Content, built: &Built) {
    let (sst, source) = (built.sst(), Resident::new(validate));
    assert!(crate::verify(&sst, &source, &*built.raw(), &mut |_| {}).is_ok());
    let keys = short_keys();
    for key in &keys {
        let (denied, key) = said(&sst, &source, key);
        assert!(!(denied && content.rows.contains_key(key)), "{key:?} is there and denied");
        let found = sst.get_filtered(&source, &SoughtKey::new(key), Version::MAX).expect("nothing faults");
        assert_eq!(found.map(|row| row.version.0), content.get(key, u64::MAX).map(|written| written.0), "{key:?}");
    }
    if sst.meta.filter.is_none_or(|filter| filter.prefix_bytes == 0) {
        return;
    }
    for low in &keys {
        for high in keys.iter().map(Some).chain([None]) {
            for low in [Bound::Included(low.as_slice()), Bound::Excluded(low.as_slice())] {
                let highs = match high {
                    None => [Bound::Unbounded; 2],
                    Some(high) => [Bound::Included(high.as_slice()), Bound::Excluded(high.as_slice())],
                };
                for high in highs {
                    if sst.has_none_between(&source, low, high) {
                        let there = content
                            .rows
                            .keys()
                            .find(|key| std::ops::RangeBounds::contains(&(low, high), key.as_slice()));
                        assert_eq!(there, None, "from {low:?} to {high:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_short_key_and_no_range_with_keys_is_denied() {
    let keys = short_keys();
    for seed in 0..60 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let share = rng.random_range(0.05..1.0);
        let content = Content::of_keys(keys.iter().filter(|_| rng.random_bool(share)).cloned());
        for shape in shapes() {
            let shape = BuildOptions { max_page_rows: rng.random_range(1..5), ..shape };
            for prefix_bytes in 0..4 {
                let built = content.build(with_filter(KINDS[seed as usize % 2], prefix_bytes, shape));
                assert_eq!(built.meta.filter.is_some(), built.meta.main.is_some_and(|main| main.data_pages > 1));
                if built.meta.filter.is_some() {
                    check_all(&content, &built);
                }
            }
        }
    }
}

#[test]
fn a_prefix_is_looked_for_in_the_first_partition_that_has_it() {
    let keys = short_keys();
    for seed in 0..100 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let share = rng.random_range(0.05..1.0);
        let content = Content::of_keys(keys.iter().filter(|_| rng.random_bool(share)).cloned());
        for prefix_bytes in 1..4 {
            let shape = BuildOptions { max_page_rows: rng.random_range(1..4), index: PageIndexKind::Both, ..tiny() };
            let built = content.build(with_filter(FilterKind::Bits20, prefix_bytes, shape));
            let Some(filter) = built.meta.filter else { continue };
            let (sst, source) = (built.sst(), Resident::new(validate));
            for prefix in keys.iter().filter(|key| key.len() == usize::from(prefix_bytes)) {
                let Some(first) = content.rows.keys().position(|key| key.starts_with(prefix)) else { continue };
                let page = sst.descent(TreeKind::Filter).expect("it has one").peek_key(&source, prefix);
                let page = page.expect("all is in memory").expect("the tree is sound");
                let layout = FilterLayout::of(&page);
                assert_eq!(
                    layout.first_row(),
                    first as u64 / u64::from(filter.partition_rows) * u64::from(filter.partition_rows)
                );
                assert!(filter.form.may_contain(&page, hash_prefix(prefix)), "{prefix:?}");
            }
        }
    }
}

#[test]
fn answers_are_the_same_with_a_filter_from_every_source() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content::random(&mut rng, 60);
        let filter = KINDS[rng.random_range(0..2)];
        let shape = shapes()[rng.random_range(0..5)];
        let built = content.build(with_filter(filter, 2, shape));
        let asked: Vec<Vec<u8>> = short_keys().into_iter().chain(content.rows.keys().cloned()).collect();
        built.on_every_source(|reader| {
            let sst = &reader.sst;
            for at in [50, 100] {
                for key in asked.iter().cycle().take(3 * asked.len()) {
                    let rounds = sst.meta.main.map_or(0, |main| u64::from(main.root(sst.prefer_flat).height) + 1);
                    let history =
                        sst.meta.history.get().map_or(0, |tree| u64::from(tree.root(sst.prefer_flat).height) + 2);
                    let row = reader.step(rounds + 2 * history, |source| {
                        sst.get_filtered(source, &SoughtKey::new(key), Version(at))
                    });
                    let expected = content.get(key, at).map(|(version, kind, _)| (*version, *kind));
                    assert_eq!(row.map(|row| (row.version.0, row.kind)), expected, "{key:?} at {at}");
                }
            }
        });
    }
}

fn numbered(i: u32) -> Vec<u8> {
    format!("key {i:06}").into_bytes()
}

/// 4,000 even numbers in a tree of three levels, with a filter of several partitions under a node.
fn even() -> Built {
    even_as(FilterKind::Bits20)
}

/// The rows without the filter.
fn even_without() -> Built {
    even_as(FilterKind::None)
}

fn even_as(filter: FilterKind) -> Built {
    let options = BuildOptions { page_bytes: 1 << 10, node_bytes: 4 << 10, ..BuildOptions::default() };
    Content::of_keys((0..4_000).map(|i| numbered(2 * i))).build(with_filter(filter, 0, options))
}

/// Looks up `keys` one after the other. Returns how many pages of all kinds this reads, and how many of them
/// belong to filters (partitions and the nodes above them).
fn reads(session: &Session, sst: &Sst, keys: impl IntoIterator<Item = u32>) -> (u64, u64) {
    let before = (session.page_reads(), session.reads_of(PageKind::Filter));
    for key in keys {
        let bytes = numbered(key);
        let sought = SoughtKey::new(&bytes);
        let row = retry(session, || sst.get_filtered(session, &sought, Version::MAX)).expect("the disk works");
        assert_eq!(row.is_some(), key.is_multiple_of(2));
    }
    (session.page_reads() - before.0, session.reads_of(PageKind::Filter) - before.1)
}

#[test]
fn look_ups_of_absent_keys_bring_the_filter_and_then_read_nothing() {
    let built = even();
    let filter = built.meta.filter.expect("it has one");
    assert!(filter.tree.data_pages > 5 && filter.tree.root(false).height == 1, "{filter:?}");
    // The cache has room for the nodes, the filter and a few pages of rows.
    let cache = PageCache::new(120 << 10, 1, validate);
    let (sst, session) = (built.sst_in(&cache, false), Session::new(&cache, Reason::Point, Admit::Keep));
    let mut rng = StdRng::seed_from_u64(5);
    let mut odd = || 2 * rng.random_range(0..3_999) + 1;
    let (warm, filters) = reads(&session, &sst, (0..2_000).map(|_| odd()));
    println!("{filters} of {warm} pages");
    assert!(0 < filters && filters <= filter.tree.data_pages, "each partition once: {filters}");
    let (pages, _) = reads(&session, &sst, (0..2_000).map(|_| odd()));
    assert!(pages <= 20, "{pages} pages for 2,000 absent keys");
}

#[test]
fn found_keys_bring_no_filter() {
    for cache_bytes in [20 << 10, 60 << 10, 1 << 20] {
        let counts = [even(), even_without()].map(|built| {
            let cache = PageCache::new(cache_bytes, 1, validate);
            let (sst, session) = (built.sst_in(&cache, false), Session::new(&cache, Reason::Point, Admit::Keep));
            let mut rng = StdRng::seed_from_u64(6);
            // One absent key in fifty is no reason to read the filter.
            let mut key = |i: u32| 2 * rng.random_range(0..3_999) + u32::from(i.is_multiple_of(50));
            let found = reads(&session, &sst, (0..1_000).map(|i| key(50 * i + 1)));
            (found, reads(&session, &sst, (0..2_000).map(key)))
        });
        assert_eq!(counts[0], counts[1], "with a filter and without");
    }
}

#[test]
fn absent_keys_read_few_pages_more_with_a_filter_however_small_the_cache() {
    for cache_bytes in [10 << 10, 15 << 10, 20 << 10, 30 << 10, 40 << 10, 60 << 10, 120 << 10] {
        let [with, without] = [even(), even_without()].map(|built| {
            let cache = PageCache::new(cache_bytes, 1, validate);
            let (sst, session) = (built.sst_in(&cache, false), Session::new(&cache, Reason::Point, Admit::Keep));
            let mut rng = StdRng::seed_from_u64(7);
            reads(&session, &sst, (0..4_000).map(|_| 2 * rng.random_range(0..3_999) + 1))
        });
        println!("{cache_bytes} bytes: {with:?} and without {without:?}");
        // The smallest caches have room for 2 to 10 pages. They evict a filter page before it is of use, so each
        // partition is asked for three times.
        assert!(with.0 * 100 <= without.0 * 104, "{cache_bytes} bytes: {with:?} and without {without:?}");
    }
}

#[test]
fn a_filter_that_is_not_in_memory_is_not_waited_for() {
    let built = even();
    let (sst, source) = (built.sst(), Flaky::once(Resident::new(validate)));
    let height = u64::from(built.meta.main.expect("it has rows").root(false).height);
    // In each step, the source refuses every page once. A page that the step only peeks at stays refused.
    for _ in 0..100 {
        let before = source.refusals();
        let row = retry(&source, || sst.get_filtered(&source, &SoughtKey::new(b"key 000001"), Version::MAX));
        assert!(row.expect("the file is whole").is_none());
        assert_eq!(source.refusals() - before, height + 1);
    }
}

#[test]
fn no_reader_waits_for_a_filter_where_its_pages_of_rows_all_stay() {
    let built = even();
    let cache = PageCache::new(4 << 20, 1, validate);
    // The thread that asks for a page also makes the read, so it would wait for a page of the filter.
    let (sst, session) = (built.sst_in(&cache, false), Session::new(&cache, Reason::Point, Admit::Keep));
    let mut rng = StdRng::seed_from_u64(8);
    let (_, filters) = reads(&session, &sst, (0..20_000).map(|_| 2 * rng.random_range(0..3_999) + 1));
    assert_eq!(filters, 0);
}

#[test]
fn rows_that_a_slice_hides_are_not_found_beside_a_filter() {
    let built = even();
    let slice = Slice { rows: (100..2_000).into(), bounds: built.meta.bounds.clone(), bytes: 0 };
    let (sst, source) = (built.sst().sliced(Some(slice)), Resident::new(validate));
    for row in 0..4_000 {
        let found =
            sst.get_filtered(&source, &SoughtKey::new(&numbered(2 * row)), Version::MAX).expect("nothing faults");
        assert_eq!(found.is_some(), (100..2_000).contains(&row), "row {row}");
    }
}

#[test]
fn the_prefix_of_a_range_is_that_of_all_its_keys() {
    let check = |low: Bound<&[u8]>, high: Bound<&[u8]>, bytes: usize, expected: Option<&str>| {
        assert_eq!(common_prefix(low, high, bytes), expected.map(str::as_bytes), "{low:?} to {high:?}");
    };
    use Bound::{Excluded, Included, Unbounded};
    check(Included(b"abc"), Excluded(b"abd"), 3, Some("abc"));
    check(Excluded(b"abc1"), Included(b"abc7"), 3, Some("abc"));
    check(Included(b"abc1"), Included(b"abd"), 3, None);
    check(Included(b"abc1"), Excluded(b"abd\0"), 3, None);
    check(Included(b"abc1"), Included(b"abc7"), 5, None);
    check(Included(b"ab"), Excluded(b"ac"), 3, None);
    check(Included(b"abc"), Unbounded, 3, None);
    check(Included(b"abc"), Included(b"abc"), 0, None);
    check(Unbounded, Included(b"abc"), 3, None);
    assert_eq!(common_prefix(Included(&[0xff; 4]), Unbounded, 3), Some(&[0xff; 3][..]));
}

/// Notes which kinds of pages are asked for.
struct Noting<'a> {
    source: &'a dyn PageSource,
    kinds: RefCell<Vec<PageKind>>,
}

impl PageLender for Noting<'_> {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        self.kinds.borrow_mut().push(at.kind);
        self.source.page(at)
    }

    pages::pass_on!(source: peek, ahead, ahead_if_spare, take_read, release);
}

impl PageSource for Noting<'_> {
    pages::pass_on!(source: glance, ahead_bytes, fetch);
}

#[test]
fn a_look_up_that_comes_back_after_its_data_page_was_missing_asks_for_no_node_again() {
    let built = even_without();
    let height = usize::from(built.meta.main.expect("it has rows").root(false).height);
    let cache = PageCache::new(1 << 20, 1, validate);
    let (sst, session) = (built.sst_in(&cache, false), Session::new(&cache, Reason::Point, Admit::Keep));
    let look_up = |key: u32| {
        let noting = Noting { source: &session, kinds: RefCell::default() };
        let bytes = numbered(key);
        let sought = SoughtKey::new(&bytes);
        let row = retry(&noting, || sst.get_filtered(&noting, &sought, Version::MAX)).expect("the file is whole");
        assert_eq!(row.is_some(), key.is_multiple_of(2));
        noting.kinds.into_inner()
    };
    let way = [vec![PageKind::Index; height], vec![PageKind::Data]].concat();
    // In the first look-up the nodes are missing, too. In the later ones they are in memory.
    assert!(height == 1 && look_up(0) == [vec![PageKind::Index], way.clone(), vec![PageKind::Data]].concat());
    for key in [4_000, 7_001] {
        assert_eq!(look_up(key), [way.clone(), vec![PageKind::Data]].concat());
        assert_eq!(look_up(key), way);
    }
}
