//! A table may see only a slice of a file. All ways of reading must show only the rows of the slice, and must read
//! no page that has none of these rows.

use crate::fixture::{Content, Reader, shapes};
use crate::format::data_page::Layout;
use crate::format::{PageRows, validate};
use crate::precharge::{self, AskedPages, ReadPlan, Shares};
use crate::read::{Groups, Seek, Sst, SstCursor};
use crate::{AtMost, Direction, RowRanges, Slice, Version};
use os::sync::Arc;
use pages::{
    Admit, PageAt, PageCache, PageKind, PageLender, PageRef, PageSource, Reason, Result, Session, Stop, retry,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;
use std::ops::Bound;

/// Some of `rows` rows.
fn random_ranges(rng: &mut StdRng, rows: u64) -> RowRanges {
    let mut cuts: Vec<u64> = (0..2 * rng.random_range(0..4)).map(|_| rng.random_range(0..=rows)).collect();
    cuts.sort_unstable();
    RowRanges::new(cuts.as_chunks::<2>().0.iter().map(|&[start, end]| start..end))
}

fn sliced(sst: &Sst, rows: &RowRanges) -> Arc<Sst> {
    let slice = Slice { rows: rows.clone(), bounds: sst.meta.bounds.clone(), bytes: 0 };
    Arc::new(sst.sliced(Some(slice)))
}

/// Checks that seeks, walks and gets on `reader` show the rows of the slice and no other rows.
fn check(content: &Content, reader: &Reader<'_>, seen: &RowRanges) {
    let sst = sliced(&reader.sst, seen);
    let all: Vec<&Vec<u8>> = content.rows.keys().collect();
    let keys: Vec<&Vec<u8>> = (0u64..).zip(&all).filter(|(row, _)| seen.contains(*row)).map(|(_, key)| *key).collect();
    // A seek may take more rounds than usual: if the rows of its page lie outside the slice, it goes on from a
    // neighbouring page.
    let rounds = 40;
    let mut cursor = SstCursor::new(sst.clone());
    let mut there = reader.step(rounds, |source| cursor.seek_first(source));
    for (i, key) in keys.iter().enumerate() {
        assert!(there && cursor.key() == **key, "row {i} of {seen:?}");
        assert_eq!((cursor.is_first(), cursor.is_last()), (i == 0, i + 1 == keys.len()));
        there = reader.step(rounds, |source| cursor.next(source));
    }
    assert!(!there);
    there = reader.step(rounds, |source| cursor.seek_last(source));
    for key in keys.iter().rev() {
        assert!(there && cursor.key() == **key, "backward in {seen:?}");
        there = reader.step(rounds, |source| cursor.prev(source));
    }
    assert!(!there);
    for (row, key) in (0u64..).zip(&all) {
        for wanted in [(*key).clone(), [key.as_slice(), &[0]].concat(), key[..key.len() / 2].to_vec()] {
            let at = |cursor: &SstCursor, there: bool| there.then(|| cursor.key().to_vec());
            let after = |strict: bool| keys.iter().find(|key| if strict { ***key > wanted } else { ***key >= wanted });
            let before =
                |strict: bool| keys.iter().rev().find(|key| if strict { ***key < wanted } else { ***key <= wanted });
            for (seek, strict) in [(Seek::Lower, false), (Seek::Upper, true)] {
                let there = reader.step(rounds, |source| cursor.seek(source, &wanted, seek));
                assert_eq!(at(&cursor, there).as_ref(), after(strict).copied(), "{seek:?} of {wanted:?} in {seen:?}");
                let there = reader.step(rounds, |source| cursor.seek_back(source, &wanted, seek));
                assert_eq!(
                    at(&cursor, there).as_ref(),
                    before(strict).copied(),
                    "{seek:?} back, {wanted:?} in {seen:?}"
                );
            }
            let there = reader.step(rounds, |source| cursor.seek(source, &wanted, Seek::Exact));
            assert_eq!(there, keys.contains(&&wanted));
        }
        let found = reader.step(rounds, |source| sst.get(source, key, Version::MAX));
        assert_eq!(found.is_some(), seen.contains(row), "get of row {row} in {seen:?}");
    }
}

#[test]
fn a_slice_shows_its_rows_and_no_other() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content { range_erases: Vec::new(), ..Content::random(&mut rng, 40) };
        for options in shapes() {
            let built = content.build(options);
            let seen = random_ranges(&mut rng, content.rows.len() as u64);
            built.on_every_source(|reader| check(&content, reader, &seen));
        }
    }
}

/// Notes which main pages were asked for.
struct Noting<'s> {
    session: &'s Session,
    pages: RefCell<Vec<PageRef>>,
}

impl PageLender for Noting<'_> {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        let page = self.session.page(at)?;
        if at.kind == PageKind::Data {
            self.pages.borrow_mut().push(page.clone());
        }
        Ok(page)
    }

    pages::pass_on!(session: peek, ahead, ahead_if_spare, take_read, release);
}

impl PageSource for Noting<'_> {
    pages::pass_on!(session: glance, ahead_bytes, fetch);
}

#[test]
fn a_walk_over_a_slice_reads_no_page_that_has_none_of_its_rows_and_none_again_after_a_precharge() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content { range_erases: Vec::new(), groups: seed as usize % 3, ..Content::random(&mut rng, 60) };
        let built = content.build(shapes()[seed as usize % 5]);
        let seen = random_ranges(&mut rng, content.rows.len() as u64);
        for direction in [Direction::Forward, Direction::Backward] {
            let cache = PageCache::new(16 << 20, 2, validate);
            let session = Session::new(&cache, Reason::Scan, Admit::Keep);
            let sst = sliced(&built.sst_in(&cache, false), &seen);
            let groups = Groups::first(1 + content.groups);
            let reading = ReadPlan { direction, groups, at: Version::MAX, ..ReadPlan::ALL };
            precharge::run(&session, 100, |asked: &AskedPages| {
                let mut shares = Shares::new(u64::MAX, u64::MAX);
                precharge::pass(&sst, &session, &reading, &mut shares, asked)
            })
            .expect("nothing is damaged");
            let reads = session.page_reads();
            let source = Noting { session: &session, pages: RefCell::default() };
            let mut cursor = SstCursor::new(sst.clone());
            let mut parts = Vec::new();
            let mut there = retry(&source, || match direction {
                Direction::Forward => cursor.seek_first(&source),
                Direction::Backward => cursor.seek_last(&source),
            });
            let mut rows = 0;
            while there.expect("nothing is damaged") {
                rows += 1;
                let row = cursor.newest().expect("it is somewhere");
                parts.clear();
                retry(&source, || cursor.parts(&source, groups, row.place, &mut parts)).expect("nothing is damaged");
                retry(&source, || row.value.load(&source, &sst.file)).expect("nothing is damaged");
                for part in &parts {
                    retry(&source, || part.load(&source, &sst.file)).expect("nothing is damaged");
                }
                there = retry(&source, || match direction {
                    Direction::Forward => cursor.next(&source),
                    Direction::Backward => cursor.prev(&source),
                });
            }
            assert_eq!(rows, seen.count());
            assert_eq!(session.page_reads(), reads, "a precharge of {seen:?} brings all there is, {direction:?}");
            let mut pages = source.pages.into_inner();
            for page in &pages {
                let layout = Layout::of(page);
                let held = layout.first_row()..layout.first_row() + layout.rows() as u64;
                assert!(seen.count_within(held.clone()) > 0, "rows {held:?} are not among {seen:?}");
            }
            pages.sort_by_key(|page| page.address().offset);
            pages.dedup_by_key(|page| page.address().offset);
            assert_eq!(
                session.reads_of(PageKind::Data),
                pages.len() as u64,
                "pages brought of {seen:?} and pages used"
            );
        }
    }
}

#[test]
fn a_slice_of_no_row_is_empty() {
    let content = Content::of_keys(["a", "b", "c"]);
    let built = content.build(shapes()[0]);
    built.on_every_source(|reader| check(&content, reader, &RowRanges::NONE));
}

/// Calls `check` with a file that has a tall tree. The table sees eight separate ranges of its rows. No page is in
/// memory.
fn pieces(check: impl Fn(&Session, Arc<Sst>)) {
    let content = Content::of_keys((0..4000u32).map(|i| format!("k{i:05}")));
    let built = content.build(shapes()[0]);
    let cache = PageCache::new(16 << 20, 2, validate);
    let session = Session::new(&cache, Reason::Scan, Admit::Keep);
    let seen = RowRanges::new((0..8u64).map(|i| i * 500..i * 500 + 250));
    check(&session, sliced(&built.sst_in(&cache, false), &seen));
}

fn charge(session: &Session, sst: &Sst, reading: &ReadPlan<'_>) -> u64 {
    precharge::run(session, precharge::rounds_at_most(sst, reading), |asked: &AskedPages| {
        precharge::pass(sst, session, reading, &mut Shares::new(u64::MAX, u64::MAX), asked)
    })
    .expect("nothing is damaged");
    session.page_reads()
}

#[test]
fn a_precharge_of_a_range_reads_nothing_of_the_pieces_before_it() {
    for (direction, low, high) in
        [(Direction::Forward, b"k03600", b"k03610"), (Direction::Backward, b"k00100", b"k00110")]
    {
        pieces(|session, sst| {
            let (low, high) = (Bound::Included(&low[..]), Bound::Included(&high[..]));
            charge(session, &sst, &ReadPlan { direction, low, high, ..ReadPlan::ALL });
            let pages = session.reads_of(PageKind::Data);
            assert!((6..=7).contains(&pages), "11 rows, two a page, and the row after: {pages} pages {direction:?}");
        });
    }
}

#[test]
fn a_precharge_of_some_rows_goes_on_from_piece_to_piece() {
    for limit in [u64::MAX, 100_000, 1900] {
        pieces(|session, sst| {
            let reads = charge(session, &sst, &ReadPlan { limits: AtMost::rows(limit), ..ReadPlan::ALL });
            let mut cursor = SstCursor::new(sst);
            let mut there = retry(session, || cursor.seek_first(session)).expect("nothing is damaged");
            for _ in 1..limit {
                if !there {
                    break;
                }
                there = retry(session, || cursor.next(session)).expect("nothing is damaged");
            }
            assert_eq!(session.page_reads(), reads, "{limit} rows");
        });
    }
}
