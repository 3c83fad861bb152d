//! What is noted is what the session did, told once a step.

use super::*;
use crate::numbered::{BLOCK_COST, Numbered, accept};
use crate::{Admit, PageCache, Reason, retry};

fn setup(pages: usize, budget_pages: u64) -> (Numbered, Arc<PagedFile>, Recorder) {
    let numbered = Numbered::blocks(pages);
    let cache = PageCache::new(budget_pages * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let recorder = Recorder::new(Session::new(&cache, Reason::Point, Admit::Keep));
    (numbered, file, recorder)
}

/// A step that needs pages one after the other.
fn path(recorder: &Recorder, numbered: &Numbered, file: &Arc<PagedFile>, pages: &[usize]) {
    let step = || pages.iter().try_for_each(|page| numbered.page(recorder, file, *page).map(drop));
    retry(recorder, step).expect("no faults");
}

fn touched(recorder: &Recorder) -> Touched {
    recorder.notes().files().iter().map(|file| file.of(PageKind::Data)).next().expect("the file was asked")
}

fn found(recorder: &Recorder) -> Vec<(u64, Found)> {
    recorder.notes().visits().iter().map(|visit| (visit.round, visit.found)).collect()
}

const BYTES: u64 = os::BLOCK_BYTES as u64;

#[test]
fn a_page_counts_once_a_step_however_often_it_runs() {
    for budget_pages in [1, 100] {
        let (numbered, file, recorder) = setup(20, budget_pages);
        path(&recorder, &numbered, &file, &[9, 4, 15, 9]);
        assert_eq!(touched(&recorder), Touched { faults: 3, read_bytes: 3 * BYTES, ..Touched::default() });
        assert_eq!(found(&recorder), [(1, Found::Fault), (2, Found::Fault), (3, Found::Fault)]);
        path(&recorder, &numbered, &file, &[9, 4, 9]);
        let after = touched(&recorder);
        assert_eq!(after.faults, recorder.session().page_reads());
        // With room for one page, 9 is found, gone when 4 was read, and read.
        assert_eq!((after.hits, after.faults), if budget_pages == 1 { (1, 5) } else { (2, 3) });
    }
}

#[test]
fn a_page_read_ahead_is_no_hit_when_it_is_first_used() {
    let (numbered, file, recorder) = setup(20, 100);
    assert!(numbered.ahead(&recorder, &file, 4));
    assert!(numbered.ahead(&recorder, &file, 5));
    path(&recorder, &numbered, &file, &[3]);
    path(&recorder, &numbered, &file, &[4]);
    assert!(numbered.peek(&recorder, &file, 7).is_none());
    let bytes = 3 * BYTES;
    assert_eq!(touched(&recorder), Touched { faults: 1, ahead: 2, read_bytes: bytes, ..Touched::default() });
    path(&recorder, &numbered, &file, &[4]);
    assert_eq!(touched(&recorder).hits, 1);
    assert_eq!(found(&recorder), [(1, Found::Fault), (1, Found::Ahead), (1, Found::Hit)]);
}

#[test]
fn a_page_that_another_reader_brought_is_neither_hit_nor_fault() {
    let (numbered, file, recorder) = setup(20, 100);
    assert!(matches!(numbered.page(&recorder, &file, 2), Err(Stop::Fault)));
    let other = Session::new(recorder.session().cache(), Reason::Point, Admit::Keep);
    retry(&other, || numbered.page(&other, &file, 2)).expect("no faults");
    recorder.fetch().expect("no faults");
    path(&recorder, &numbered, &file, &[2]);
    assert_eq!(touched(&recorder), Touched { shared: 1, ..Touched::default() });
    assert_eq!(recorder.session().page_reads(), 0);
}

#[test]
fn notes_stay_small_and_say_what_they_leave_out() {
    let (numbered, file, recorder) = setup(2, 100);
    for _ in 0..MAX_VISITS {
        path(&recorder, &numbered, &file, &[0, 1]);
    }
    let notes = recorder.notes();
    assert_eq!((notes.visits().len(), notes.visits_left_out()), (MAX_VISITS, MAX_VISITS as u64));
    assert_eq!(notes.files()[0].of(PageKind::Data).hits, 2 * MAX_VISITS as u64 - 2);
}

#[test]
fn what_is_read_ahead_when_a_step_is_done_is_noted() {
    let numbered = Numbered::blocks(4);
    let reads = os::sim::SimReads::new(1);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register_held(&cache, &reads);
    let recorder = Recorder::new(Session::new(&cache, Reason::Scan, Admit::Keep));
    assert!((0..3).all(|number| numbered.ahead(&recorder, &file, number)));
    recorder.release();
    reads.finish();
    retry(&recorder, || numbered.page(&recorder, &file, 1)).expect("no faults");
    let notes = recorder.notes();
    let touched = notes.files()[0].of(PageKind::Data);
    assert_eq!((touched.ahead, touched.faults, touched.hits, touched.read_bytes), (3, 0, 0, 3 * 4096));
    assert_eq!(notes.visits()[0].found, Found::Ahead);
}
