//! Tests that the notes contain everything that a session did, and each page only once per step.

use super::*;
use crate::numbered::{BLOCK_COST, Numbered, accept};
use crate::{Admit, PageCache, PageLender, PageSource, Reason, Session, Stop, retry};
use os::sync::Arc;

fn setup(pages: usize, budget_pages: u64) -> (Numbered, Arc<PagedFile>, Session) {
    let numbered = Numbered::blocks(pages);
    let cache = PageCache::new(budget_pages * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = Session::new(&cache, Reason::Point, Admit::Keep).with_notes();
    (numbered, file, session)
}

/// A step that needs pages one after the other.
fn path(session: &Session, numbered: &Numbered, file: &Arc<PagedFile>, pages: &[usize]) {
    let step = || pages.iter().try_for_each(|page| numbered.page(session, file, *page).map(drop));
    retry(session, step).expect("no faults");
}

fn touched(session: &Session) -> Touched {
    session
        .notes()
        .expect("it takes notes")
        .files()
        .iter()
        .map(|file| file.of(PageKind::Data))
        .next()
        .expect("the file was asked")
}

fn found(session: &Session) -> Vec<(u64, PageFound)> {
    session.notes().expect("it takes notes").visits().iter().map(|visit| (visit.round, visit.found)).collect()
}

const BYTES: u64 = os::BLOCK_BYTES as u64;

#[test]
fn a_page_counts_once_a_step_however_often_it_runs() {
    for budget_pages in [1, 100] {
        let (numbered, file, session) = setup(20, budget_pages);
        path(&session, &numbered, &file, &[9, 4, 15, 9]);
        assert_eq!(touched(&session), Touched { faults: 3, read_bytes: 3 * BYTES, ..Touched::default() });
        assert_eq!(found(&session), [(1, PageFound::Fault), (2, PageFound::Fault), (3, PageFound::Fault)]);
        path(&session, &numbered, &file, &[9, 4, 9]);
        let after = touched(&session);
        assert_eq!(after.faults, session.page_reads());
        // With room for one page, page 9 is first found, then evicted by the read of page 4, and then read.
        assert_eq!((after.hits, after.faults), if budget_pages == 1 { (1, 5) } else { (2, 3) });
    }
}

#[test]
fn a_page_read_ahead_is_no_hit_when_it_is_first_used() {
    let (numbered, file, session) = setup(20, 100);
    assert!(numbered.ahead(&session, &file, 4));
    assert!(numbered.ahead(&session, &file, 5));
    path(&session, &numbered, &file, &[3]);
    path(&session, &numbered, &file, &[4]);
    assert!(numbered.peek(&session, &file, 7).is_none());
    let bytes = 3 * BYTES;
    assert_eq!(touched(&session), Touched { faults: 1, ahead: 2, read_bytes: bytes, ..Touched::default() });
    path(&session, &numbered, &file, &[4]);
    assert_eq!(touched(&session).hits, 1);
    assert_eq!(found(&session), [(1, PageFound::Fault), (1, PageFound::Ahead), (1, PageFound::Hit)]);
}

#[test]
fn a_page_that_another_reader_brought_is_neither_hit_nor_fault() {
    let (numbered, file, session) = setup(20, 100);
    assert!(matches!(numbered.page(&session, &file, 2), Err(Stop::Fault)));
    let other = Session::new(session.cache(), Reason::Point, Admit::Keep);
    retry(&other, || numbered.page(&other, &file, 2)).expect("no faults");
    session.fetch().expect("no faults");
    path(&session, &numbered, &file, &[2]);
    assert_eq!(touched(&session), Touched { shared: 1, ..Touched::default() });
    assert_eq!(session.page_reads(), 0);
}

#[test]
fn notes_stay_small_and_say_what_they_leave_out() {
    let (numbered, file, session) = setup(2, 100);
    for _ in 0..MAX_VISITS {
        path(&session, &numbered, &file, &[0, 1]);
    }
    let notes = session.notes().expect("it takes notes");
    assert_eq!((notes.visits().len(), notes.visits_left_out()), (MAX_VISITS, MAX_VISITS as u64));
    assert_eq!(notes.files()[0].of(PageKind::Data).hits, 2 * MAX_VISITS as u64 - 2);
}

#[test]
fn what_is_read_ahead_when_a_step_is_done_is_noted() {
    let numbered = Numbered::blocks(4);
    let reads = os::sim::SimReads::new(1);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register_held(&cache, &reads);
    let session = Session::new(&cache, Reason::Scan, Admit::Keep).with_notes();
    assert!((0..3).all(|number| numbered.ahead(&session, &file, number)));
    session.release();
    reads.finish();
    retry(&session, || numbered.page(&session, &file, 1)).expect("no faults");
    let notes = session.notes().expect("it takes notes");
    let touched = notes.files()[0].of(PageKind::Data);
    assert_eq!((touched.ahead, touched.faults, touched.hits, touched.read_bytes), (3, 0, 0, 3 * 4096));
    assert_eq!(notes.visits()[0].found, PageFound::Ahead);
}
