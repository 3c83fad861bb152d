//! What a source that refuses pages promises: it does refuse pages, and every step still ends.

use super::*;
use crate::numbered::{Numbered, accept};
use crate::{Admit, PageCache, PagedFile, Reason, Resident, Session, retry};
use os::sync::Arc;

/// Walks over all pages `times` times within one step, and returns how often the step ran.
fn runs_of_a_walk<S: PageSource>(source: &S, numbered: &Numbered, file: &Arc<PagedFile>, times: usize) -> usize {
    let mut runs = 0;
    retry(source, || {
        runs += 1;
        for _ in 0..times {
            for number in 0..numbered.pages.len() {
                numbered.page(source, file, number)?;
            }
        }
        Ok(())
    })
    .expect("no faults of the disk");
    runs
}

#[test]
fn each_page_is_refused_once_in_every_step() {
    let numbered = Numbered::blocks(5);
    let file = numbered.alone();
    let flaky = Flaky::once(Resident::new(accept));
    for step in 1..=3 {
        assert_eq!(runs_of_a_walk(&flaky, &numbered, &file, 2), 6);
        assert_eq!(flaky.refusals(), 5 * step);
    }
}

#[test]
fn a_forgetful_source_refuses_again_and_again_and_every_step_ends() {
    for seed in 0..50 {
        println!("seed {seed}");
        let numbered = Numbered::blocks(7);
        let file = numbered.alone();
        let flaky = Flaky::forgetful(Resident::new(accept), seed);
        for _ in 0..100 {
            assert!(runs_of_a_walk(&flaky, &numbered, &file, 3) <= 8, "each run fetches a page more");
        }
        // 7 pages are touched at least 300 times each. Except in the step that fetched it, a page is refused after
        // at most 10 touches.
        assert!(flaky.refusals() > 100, "{}", flaky.refusals());
    }
}

#[test]
fn a_peek_is_refused_as_a_page_is_until_the_page_was_fetched_for_the_step() {
    let numbered = Numbered::blocks(3);
    let file = numbered.alone();
    let once = Flaky::once(Resident::new(accept));
    for _ in 0..2 {
        assert!(numbered.peek(&once, &file, 0).is_none());
        once.fetch().expect("nothing was noted");
        assert!(numbered.peek(&once, &file, 0).is_none(), "a peek is no request");
        assert!(numbered.page(&once, &file, 0).is_err());
        once.fetch().expect("no faults of the disk");
        assert!((0..10).all(|_| numbered.peek(&once, &file, 0).is_some()));
        once.release();
    }
    assert_eq!(once.refusals(), 2, "those of pages that were needed");

    let forgetful = Flaky::forgetful(Resident::new(accept), 3);
    let given = (0..300).filter(|i| numbered.peek(&forgetful, &file, i % 3).is_some()).count();
    assert!((18..=33).contains(&given), "each page once and 5 to 10 times more, then never again: {given}");
    assert_eq!(forgetful.refusals(), 0);
}

#[test]
fn faults_of_the_source_itself_are_answered_in_the_same_round() {
    let numbered = Numbered::blocks(5);
    let cache = PageCache::new(1 << 20, 8, accept);
    let file = numbered.register(&cache);
    let flaky = Flaky::once(Session::new(&cache, Reason::Point, Admit::Pass));
    assert_eq!(runs_of_a_walk(&flaky, &numbered, &file, 2), 6);
    assert_eq!((flaky.refusals(), flaky.inner().rounds()), (0, 5));
}

#[test]
fn what_the_disk_refuses_fails_the_step() {
    let numbered = Numbered::blocks(2);
    numbered.disk.flip_bit(crate::numbered::PATH, 100, 3);
    let file = numbered.alone();
    let flaky = Flaky::once(Resident::new(accept));
    let error = retry(&flaky, || numbered.page(&flaky, &file, 0)).expect_err("page 0 is damaged");
    assert!(error.to_string().contains("numbered is corrupt: data page at offset 0: checksum"), "{error}");
    retry(&flaky, || numbered.page(&flaky, &file, 1)).expect("page 1 is not");
}
