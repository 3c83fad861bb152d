//! What a guard promises: it gives the pages that are in memory, and those only, keeps no page for longer than it is
//! lent, and its hits are counted.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests are about threads that meet in the cache"
)]

use super::*;
use crate::counters::Counters;
use crate::numbered::{BLOCK_COST, Numbered, accept};
use crate::{Admit, HEADER_BYTES, Page, PageKind, PagedFile, Reason, Session, retry};
use os::sync::Arc;
use os::sync::atomic::{AtomicUsize, Ordering};
use os::sync::hazard::SLOTS;
use std::thread;

fn setup(pages: usize, budget_pages: u64) -> (Numbered, Arc<PageCache>, Arc<PagedFile>) {
    let numbered = Numbered::blocks(pages);
    let cache = PageCache::new(budget_pages * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    (numbered, cache, file)
}

fn read(numbered: &Numbered, cache: &Arc<PageCache>, file: &Arc<PagedFile>, number: usize) {
    let session = Session::new(cache, Reason::Point, Admit::Keep);
    retry(&session, || numbered.page(&session, file, number).map(drop)).expect("no faults of the disk");
}

fn with<T>(cache: &PageCache, read: impl FnOnce(&Guard<'_>) -> T) -> T {
    Lease::with(|lease| read(&Guard::new(cache, lease).expect("the trace is off"))).expect("the thread goes on")
}

fn hits(counters: &Counters) -> u64 {
    counters.snapshot().pages(Reason::Point, PageKind::Data).hits
}

#[test]
fn pages_in_memory_are_lent_and_others_are_missing() {
    let (numbered, cache, file) = setup(3, 8);
    let at = |number: usize| file.at(&numbered.pages[number].1, PageKind::Data);
    read(&numbered, &cache, &file, 1);
    let before = (hits(cache.counters()), numbered.disk.counts().reads);
    with(&cache, |guard| {
        assert!(matches!(guard.page(at(0)), Err(Stop::Fault)) && guard.peek(at(2)).is_none());
        assert!(!guard.ahead(at(0)) && !guard.ahead_if_spare(at(0)) && !guard.take_read(at(0)));
        let page = guard.page(at(1)).expect("it is in memory");
        assert_eq!((page.address(), page.kind()), (at(1).address, PageKind::Data));
        assert!(matches!(guard.page(file.at(&at(1).address, PageKind::Index)), Err(Stop::Fault)), "of another kind");
    });
    // A session starts over and counts its own hits.
    assert_eq!((hits(cache.counters()), numbered.disk.counts().reads), before);
    with(&cache, |guard| {
        assert!(guard.page(at(1)).is_ok() && guard.peek(at(1)).is_some());
        guard.count_hits();
    });
    assert_eq!(hits(cache.counters()), before.0 + 2);
    cache.trace().start(10);
    assert!(Lease::with(|lease| Guard::new(&cache, lease).is_none()).expect("the thread goes on"));
}

#[test]
fn hits_of_all_threads_are_counted() {
    let (numbered, cache, file) = setup(1, 8);
    let at = file.at(&numbered.pages[0].1, PageKind::Data);
    read(&numbered, &cache, &file, 0);
    let before = hits(cache.counters());
    // More threads at once than have counters of their own.
    let barrier = std::sync::Barrier::new(40);
    thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                with(&cache, |_| barrier.wait());
                for _ in 0..100 {
                    with(&cache, |guard| {
                        assert!(guard.page(at).is_ok());
                        guard.count_hits();
                    });
                }
                barrier.wait();
            });
        }
    });
    assert_eq!(hits(cache.counters()), before + 4000);
}

#[test]
fn a_thread_has_a_few_pages_at_a_time_and_then_misses_them() {
    let (numbered, cache, file) = setup(SLOTS + 1, 100);
    (0..=SLOTS).for_each(|number| read(&numbered, &cache, &file, number));
    with(&cache, |guard| {
        let page = |number: usize| guard.page(file.at(&numbered.pages[number].1, PageKind::Data));
        let held: Vec<_> = (0..SLOTS).map(|number| page(number).expect("it is in memory")).collect();
        assert!(page(SLOTS).is_err());
        drop(held);
        assert!(page(SLOTS).is_ok());
    });
}

#[test]
fn a_full_cache_evicts_around_a_lent_page() {
    let (numbered, cache, file) = setup(20, 3);
    read(&numbered, &cache, &file, 0);
    with(&cache, |guard| {
        let lent = guard.page(file.at(&numbered.pages[0].1, PageKind::Data)).expect("it is in memory");
        let bytes = lent.to_vec();
        (1..20).for_each(|number| read(&numbered, &cache, &file, number));
        assert_eq!(lent[..], bytes[..]);
        assert!(numbered.is_resident(&cache, &file, 0) && cache.used_bytes() <= cache.budget_bytes());
        // A page of a dead file stays until it is given back, and counts until then.
        cache.forget(file.slot());
        assert!(!numbered.is_resident(&cache, &file, 0) && cache.used_bytes() == BLOCK_COST);
        assert_eq!(lent[..], bytes[..]);
        drop(lent);
    });
    assert_eq!(cache.used_bytes(), 0, "the guard has freed it");
}

#[test]
fn pages_are_whole_while_others_evict_them() {
    const ROUNDS: usize = if cfg!(miri) { 12 } else { 20_000 };
    let (numbered, cache, file) = setup(12, 6);
    let reading = AtomicUsize::new(2);
    thread::scope(|scope| {
        for first in 0..2 {
            let (numbered, cache, file, reading) = (&numbered, &cache, &file, &reading);
            scope.spawn(move || {
                (0..ROUNDS).for_each(|i| read(numbered, cache, file, (i * 7 + first) % 12));
                reading.fetch_sub(1, Ordering::Release);
            });
        }
        for _ in 0..2 {
            let (numbered, cache, file, reading) = (&numbered, &cache, &file, &reading);
            scope.spawn(move || {
                let mut lent = 0;
                loop {
                    // After the last read, pages are in memory and stay there.
                    let is_last = reading.load(Ordering::Acquire) == 0;
                    for (number, (kind, address)) in numbered.pages.iter().enumerate() {
                        with(cache, |guard| {
                            let Some(page) = guard.peek(file.at(address, *kind)) else { return };
                            numbered.check(number, &page[HEADER_BYTES..]);
                            lent += 1;
                        });
                    }
                    if is_last {
                        break;
                    }
                }
                assert!(lent > 0, "no page was ever in memory");
            });
        }
    });
    assert!(cache.used_bytes() <= cache.budget_bytes());
}
