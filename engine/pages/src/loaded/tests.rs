//! What a source that never reads promises: it gives the pages that are in memory, and changes nothing.

use super::*;
use crate::numbered::{BLOCK_COST, Numbered, accept};
use crate::{Address, Admit, PageKind, Reason, Session, retry};

#[test]
fn what_is_in_memory_is_given_and_the_rest_faults_without_a_trace() {
    let numbered = Numbered::blocks(4);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    for number in [0, 2] {
        retry(&session, || numbered.page(&session, &file, number)).expect("no faults of the disk");
    }
    drop(session);
    let before = (cache.usage(), cache.counters().snapshot(), numbered.disk.operation_count());

    let loaded = Loaded::new(&cache);
    for number in 0..4 {
        let there = number % 2 == 0;
        assert_eq!(numbered.peek(&loaded, &file, number).is_some(), there);
        match numbered.page(&loaded, &file, number) {
            Ok(_) => assert!(there),
            Err(stop) => assert!(!there && matches!(stop, Stop::Fault)),
        }
        assert!(!numbered.ahead(&loaded, &file, number));
        loaded.fetch().expect("it does nothing");
        loaded.release();
    }
    assert_eq!((cache.usage(), cache.counters().snapshot(), numbered.disk.operation_count()), before);
}

#[test]
fn a_page_that_is_looked_at_is_no_warmer_for_it() {
    let numbered = Numbered::of_kinds(&[PageKind::Index, PageKind::Data]);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    let loaded = Loaded::new(&cache);
    for number in [0, 1] {
        let page = retry(&session, || numbered.page(&session, &file, number)).expect("no faults of the disk");
        for _ in 0..10 {
            assert!(numbered.page(&loaded, &file, number).is_ok() && numbered.peek(&loaded, &file, number).is_some());
        }
        assert_eq!(page.uses(), 0);
        // For a session that keeps pages, a peek does count as a use of the page.
        assert!(numbered.peek(&session, &file, number).is_some());
        assert_eq!(page.uses(), 1);
    }
}

#[test]
fn a_page_with_another_address_is_not_the_one_peeked_at_and_corrupt_when_needed() {
    let numbered = Numbered::blocks(1);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    retry(&session, || numbered.page(&session, &file, 0)).expect("no faults of the disk");
    let loaded = Loaded::new(&cache);
    let (kind, at) = numbered.pages[0];
    for (kind, at) in [(kind, Address { crc: !at.crc, ..at }), (PageKind::Index, at)] {
        assert!(loaded.peek(file.at(&at, kind)).is_none());
        assert!(matches!(loaded.page(file.at(&at, kind)), Err(Stop::Failed(_))));
    }
}
