//! What the cache promises about memory: its budget, which session waits for which, and which pages stay or leave.
#![allow(clippy::disallowed_methods, reason = "these tests are about threads that meet in the cache")]

use super::*;
use crate::flaky::SplitMix;
use crate::numbered::{BLOCK_COST, Gate, ID, Numbered, PATH, accept, wait_until, watched};
use crate::{Admit, Error, PageLender, PageSource, PagedFile, Reason, Session, retry};
use os::sync::atomic::AtomicU64;
use std::thread;

/// The stack of each thread in a test with a thousand threads.
const STACK_BYTES: usize = 256 << 10;

fn session(cache: &Arc<PageCache>) -> Session {
    Session::new(cache, Reason::Point, Admit::Keep)
}

fn read(session: &Session, numbered: &Numbered, file: &Arc<PagedFile>, number: usize) {
    retry(session, || numbered.page(session, file, number).map(drop)).expect("no faults of the disk");
}

#[test]
fn a_missing_page_is_read_once_for_all_who_want_it() {
    const READERS: usize = 1_000;
    let numbered = Numbered::blocks(1);
    let gate = Arc::<Gate>::default();
    let cache = PageCache::new(1 << 20, 8, accept);
    let file = cache.register(PATH, ID, {
        let gate = Arc::clone(&gate);
        watched(&numbered.disk, move || gate.pass())
    });
    thread::scope(|threads| {
        for _ in 0..READERS {
            let reader = thread::Builder::new().stack_size(STACK_BYTES);
            reader.spawn_scoped(threads, || read(&session(&cache), &numbered, &file, 0)).expect("memory for its stack");
        }
        // The session that reads the page does not wait for itself.
        wait_until(|| cache.waiting_for(numbered.key(&file, 0)) == READERS - 1);
        gate.open();
    });
    assert_eq!(numbered.disk.counts().reads, 1);
    let counted = cache.counters().snapshot();
    assert_eq!((counted.data_reads(), counted.rounds(Reason::Point)), (1, READERS as u64));
}

#[test]
fn an_error_reaches_all_who_wait_and_the_next_who_asks_tries_again() {
    const READERS: usize = 8;
    let numbered = Numbered::blocks(1);
    numbered.disk.flip_bit(PATH, 2000, 1);
    let gate = Arc::<Gate>::default();
    let cache = PageCache::new(1 << 20, 8, accept);
    let file = cache.register(PATH, ID, {
        let gate = Arc::clone(&gate);
        watched(&numbered.disk, move || gate.pass())
    });
    let try_read = || {
        let session = session(&cache);
        retry(&session, || numbered.page(&session, &file, 0).map(drop))
    };
    thread::scope(|threads| {
        let readers: Vec<_> = (0..READERS).map(|_| threads.spawn(try_read)).collect();
        wait_until(|| cache.waiting_for(numbered.key(&file, 0)) == READERS - 1);
        gate.open();
        for reader in readers {
            let outcome = reader.join().expect("no reader panics");
            assert!(matches!(outcome, Err(Error::Corrupt { offset: 0, .. })), "{outcome:?}");
        }
    });
    assert_eq!((numbered.disk.counts().reads, cache.usage().used_bytes), (1, 0));
    numbered.disk.flip_bit(PATH, 2000, 1);
    try_read().expect("the bit is back");
}

#[test]
fn those_who_wait_for_a_reader_that_panics_read_for_themselves() {
    static PANICS_LEFT: AtomicU64 = AtomicU64::new(1);
    fn panic_once(_: PageKind, _: &[u8]) -> Result<(), String> {
        let panics = PANICS_LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(panics.is_err(), "the first check panics");
        Ok(())
    }
    let numbered = Numbered::blocks(1);
    let gate = Arc::<Gate>::default();
    let cache = PageCache::new(1 << 20, 8, panic_once);
    let file = cache.register(PATH, ID, {
        let gate = Arc::clone(&gate);
        watched(&numbered.disk, move || gate.pass())
    });
    thread::scope(|threads| {
        let readers: Vec<_> = (0..4).map(|_| threads.spawn(|| read(&session(&cache), &numbered, &file, 0))).collect();
        wait_until(|| cache.waiting_for(numbered.key(&file, 0)) == 3);
        gate.open();
        let panicked = readers.into_iter().map(|reader| reader.join()).filter(Result::is_err).count();
        assert_eq!(panicked, 1);
    });
    assert_eq!((numbered.disk.counts().reads, cache.usage().used_bytes), (2, BLOCK_COST));
}

/// Runs steps of `depth` pages, fetched one after the other, in a cache of `budget_pages`. Returns the most bytes
/// that the cache used at any page read.
fn crowd(seed: u64, threads: u64, budget_pages: u64, depth: usize, admit: Admit) -> u64 {
    let numbered = Numbered::blocks(40);
    let cache = PageCache::new(budget_pages * BLOCK_COST, 8, accept);
    let most = Arc::<AtomicU64>::default();
    let file = cache.register(PATH, ID, {
        let (most, cache) = (Arc::clone(&most), Arc::downgrade(&cache));
        watched(&numbered.disk, move || {
            let cache = cache.upgrade().expect("the readers have it");
            most.fetch_max(cache.budget().used(), Ordering::SeqCst);
        })
    });
    thread::scope(|scope| {
        for thread in 0..threads {
            let (cache, file, numbered) = (&cache, &file, &numbered);
            scope.spawn(move || {
                let mut random = SplitMix(seed ^ (thread << 32));
                let session = Session::new(cache, Reason::Point, admit);
                for _ in 0..50 {
                    let path: Vec<usize> = (0..depth).map(|_| random.next() as usize % 40).collect();
                    retry(&session, || {
                        let mut held = Vec::new();
                        for number in &path {
                            held.push(numbered.page(&session, file, *number)?);
                        }
                        Ok(())
                    })
                    .expect("no faults of the disk");
                }
            });
        }
    });
    let usage = cache.usage();
    assert!(usage.used_bytes <= usage.budget_bytes, "{usage:?}");
    assert_eq!((usage.pinned_bytes, usage.in_flight_bytes, usage.queued), (0, 0, 0));
    assert_eq!(usage.used_bytes, usage.frames * BLOCK_COST);
    most.load(Ordering::SeqCst)
}

#[test]
fn three_pages_and_64_threads_make_progress_within_one_step_of_the_budget() {
    for (seed, depth, admit) in [(1, 3, Admit::Keep), (2, 5, Admit::Keep), (3, 5, Admit::Pass), (4, 1, Admit::Keep)] {
        println!("seed {seed}");
        let most = crowd(seed, 64, 3, depth, admit);
        assert!(most <= (3 + depth as u64) * BLOCK_COST, "{most} bytes at depth {depth}");
        assert!(depth == 1 || most > 3 * BLOCK_COST, "nobody overdrew: the test shows nothing");
    }
}

#[test]
fn a_cache_of_nothing_still_serves_one_step_after_the_other() {
    let most = crowd(5, 8, 0, 4, Admit::Keep);
    assert!(most <= 4 * BLOCK_COST, "{most}");
}

#[test]
fn without_crowding_the_budget_is_never_exceeded() {
    assert!(crowd(6, 4, 40, 8, Admit::Keep) <= 40 * BLOCK_COST);
}

#[test]
fn the_budget_changes_while_running() {
    let numbered = Numbered::blocks(100);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    for number in 0..100 {
        read(&session, &numbered, &file, number);
    }
    assert_eq!(cache.usage().frames, 100);
    cache.set_budget(30 * BLOCK_COST);
    assert_eq!(cache.usage().frames, 30);

    // Pinned pages stay until they are unpinned and their room is needed.
    let pinned: Vec<_> =
        (0..20).map(|number| retry(&session, || numbered.page(&session, &file, number)).expect("no faults")).collect();
    cache.set_budget(10 * BLOCK_COST);
    let usage = cache.usage();
    assert_eq!((usage.frames, usage.pinned_bytes, usage.used_bytes), (20, 20 * BLOCK_COST, 20 * BLOCK_COST));
    drop(pinned);
    read(&session, &numbered, &file, 99);
    assert_eq!(cache.usage().frames, 10);

    cache.set_budget(1000 * BLOCK_COST);
    for number in 0..100 {
        read(&session, &numbered, &file, number);
    }
    assert_eq!(cache.usage().frames, 100);
    drop((session, file));
    assert_eq!((cache.usage().frames, cache.usage().used_bytes), (0, 0), "the file is gone and so are its pages");
}

#[test]
fn a_cache_that_goes_takes_its_pages_with_it_but_for_those_that_are_held() {
    let numbered = Numbered::blocks(20);
    let cache = PageCache::new(8 << 20, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    (0..20).for_each(|number| read(&session, &numbered, &file, number));
    let held = retry(&session, || numbered.page(&session, &file, 7)).expect("no faults of the disk");
    let (frames, memory, budget) =
        (Arc::downgrade(&cache.frames), Arc::clone(&cache.memory), Arc::clone(&cache.budget));
    drop((session, file, cache));
    assert_eq!((memory.used_bytes(), budget.used()), (os::BLOCK_BYTES as u64, BLOCK_COST));
    assert_eq!(held.address(), numbered.pages[7].1);
    drop(held);
    assert_eq!((memory.used_bytes(), budget.used()), (0, 0));
    assert!(frames.upgrade().is_none());
}

#[test]
fn stripes_share_a_budget() {
    let numbered = Numbered::blocks(3000);
    let cache = PageCache::new(8 << 20, 8, accept);
    assert_eq!(cache.stripes.len(), 2);
    let file = numbered.register(&cache);
    let session = session(&cache);
    for number in 0..3000 {
        read(&session, &numbered, &file, number);
        assert!(cache.usage().used_bytes <= 8 << 20);
    }
    assert!(cache.usage().used_bytes > (8 << 20) - 2 * BLOCK_COST, "{:?}", cache.usage());
    cache.set_budget(4 << 20);
    let mut usage = [0; 2];
    cache.for_each_page(|key, page| usage[key.hash() as usize & 1] += page.cost_bytes());
    assert!(usage.iter().all(|bytes| (1 << 20..3 << 20).contains(bytes)), "shrunk evenly: {usage:?}");
}

#[test]
fn room_for_many_pages_comes_from_all_stripes() {
    let numbered = Numbered::blocks(3000);
    let cache = PageCache::new(8 << 20, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    (0..3000).for_each(|number| read(&session, &numbered, &file, number));
    let room = cache.try_reserve(4 << 20).expect("nothing is pinned");
    let mut usage = [0; 2];
    cache.for_each_page(|key, page| usage[key.hash() as usize & 1] += page.cost_bytes());
    assert!(usage.iter().all(|bytes| (1 << 20..3 << 20).contains(bytes)), "no stripe is emptied: {usage:?}");
    drop(room);
}

#[test]
fn pages_of_a_dead_file_vanish_and_do_not_come_back() {
    let numbered = Numbered::blocks(10);
    let cache = PageCache::new(1 << 20, 8, accept);
    let (file, other) = (numbered.register(&cache), numbered.register(&cache));
    let session = session(&cache);
    for number in 0..10 {
        read(&session, &numbered, &file, number);
        read(&session, &numbered, &other, number);
    }
    let pinned = retry(&session, || numbered.page(&session, &file, 3)).expect("no faults");
    file.kill();
    assert_eq!(cache.usage().frames, 11);
    assert!((0..10).all(|number| !numbered.is_resident(&cache, &file, number)));
    assert!((0..10).all(|number| numbered.is_resident(&cache, &other, number)));
    drop(pinned);
    assert_eq!(cache.usage().frames, 10);

    read(&session, &numbered, &file, 5);
    assert!(!numbered.is_resident(&cache, &file, 5), "a dead file is read and not kept");
    assert_eq!(cache.usage().frames, 10);
}

#[test]
fn a_cache_leaves_nothing_behind_but_what_is_pinned_though_its_files_live_on() {
    let numbered = Numbered::blocks(10);
    let cache = PageCache::new(1 << 20, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    for number in 0..10 {
        read(&session, &numbered, &file, number);
    }
    let pinned = numbered.page(&session, &file, 3).expect("it is in memory");
    let (frames, memory) = (Arc::downgrade(&cache.frames), Arc::clone(&cache.memory));
    drop((session, cache));
    assert_eq!(memory.used_bytes(), os::BLOCK_BYTES as u64);
    assert_eq!(numbered.pages[3].1, pinned.address());
    drop(pinned);
    assert_eq!((memory.used_bytes(), frames.strong_count()), (0, 0));
    drop(file);
}

#[test]
fn pages_in_memory_are_counted_by_file_and_kind() {
    let kinds: Vec<PageKind> = PageKind::ALL.into_iter().cycle().take(60).collect();
    let numbered = Numbered::of_kinds(&kinds);
    let cache = PageCache::new(8 << 20, 8, accept);
    assert_eq!(cache.stripes.len(), 2);
    let files = [numbered.register(&cache), numbered.register(&cache), numbered.register(&cache)];
    let session = session(&cache);
    (0..35).for_each(|number| read(&session, &numbered, &files[0], number));
    (20..60).for_each(|number| read(&session, &numbered, &files[1], number));

    let [first, second, third] = files.each_ref().map(|file| cache.usage_of([file]));
    assert_eq!((first.pages_of(PageKind::Data), first.bytes_of(PageKind::Data)), (4, 4 * BLOCK_COST));
    let all_bytes = 35 * BLOCK_COST;
    assert_eq!((first.pages_of(PageKind::GroupHistory), first.all_pages(), first.all_bytes()), (3, 35, all_bytes));
    assert_eq!((second.pages_of(PageKind::GroupHistory), second.all_pages()), (4, 40));
    assert_eq!(third, FilesUsage::default());
    let all = cache.usage_of(&files);
    for kind in PageKind::ALL {
        assert_eq!(all.bytes_of(kind), cache.usage().bytes_of(kind), "{}", kind.name());
        assert_eq!(all.bytes_of(kind), first.bytes_of(kind) + second.bytes_of(kind));
        assert_eq!(all.pages_of(kind), first.pages_of(kind) + second.pages_of(kind));
    }
    assert_eq!(all.all_pages(), cache.usage().frames);
    assert_eq!(cache.usage_of([&files[0], &files[0]]), first, "a file given twice is one");
    assert_eq!(cache.usage_of([]), FilesUsage::default());

    files[0].kill();
    assert_eq!(cache.usage_of(&files), second);
}

#[test]
fn a_file_that_dies_while_it_is_read_leaves_nothing() {
    let numbered = Numbered::blocks(1);
    let (reading, gate) = (Arc::<Gate>::default(), Arc::<Gate>::default());
    let cache = PageCache::new(1 << 20, 8, accept);
    let file = cache.register(PATH, ID, {
        let (reading, gate) = (Arc::clone(&reading), Arc::clone(&gate));
        watched(&numbered.disk, move || {
            reading.open();
            gate.pass();
        })
    });
    thread::scope(|threads| {
        threads.spawn(|| read(&session(&cache), &numbered, &file, 0));
        reading.pass();
        file.kill();
        gate.open();
    });
    assert_eq!(cache.usage().frames, 0);
}

#[test]
fn callers_keep_a_quarter_at_most() {
    let numbered = Numbered::blocks(20);
    let cache = PageCache::new(20 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    let page = |number| retry(&session, || numbered.page(&session, &file, number)).expect("no faults");
    let mut held: Vec<HeldPage> = (0..20).map_while(|number| cache.hold(page(number))).collect();
    assert_eq!((held.len(), cache.held_bytes()), (5, 5 * BLOCK_COST));
    assert!(cache.hold(page(7)).is_none());
    held.pop();
    assert!(cache.hold(page(7)).is_some_and(|held| held.page().address() == numbered.pages[7].1));
    drop(held);
    assert_eq!(cache.held_bytes(), 0);
}

#[test]
fn index_nodes_outlive_data_pages() {
    let mut kinds = vec![PageKind::Data; 200];
    kinds[..10].fill(PageKind::Index);
    let numbered = Numbered::of_kinds(&kinds);
    let cache = PageCache::new(30 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    for number in 0..200 {
        read(&session, &numbered, &file, number);
        // Each search passes one index node on its way to a data page.
        read(&session, &numbered, &file, number % 10);
    }
    assert!((0..10).all(|number| numbered.is_resident(&cache, &file, number)));
    drop(session);
    assert_eq!(cache.counters().snapshot().index_reads(), 10);
}

#[test]
fn index_nodes_read_once_outlive_data_pages_read_once() {
    // Index pages that were used only once may take a tenth of the cache.
    let mut kinds = vec![PageKind::Data; 200];
    kinds[..5].fill(PageKind::Index);
    let numbered = Numbered::of_kinds(&kinds);
    let cache = PageCache::new(60 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    for number in 0..200 {
        read(&session, &numbered, &file, number);
    }
    assert!((0..5).all(|number| numbered.is_resident(&cache, &file, number)));
}

#[test]
fn pages_without_heat_leave_in_the_order_they_came() {
    let numbered = Numbered::blocks(140);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    let check_resident = |numbers: std::ops::Range<usize>| {
        let resident = (0..140).filter(|number| numbered.is_resident(&cache, &file, *number));
        assert_eq!(resident.collect::<Vec<_>>(), numbers.collect::<Vec<_>>());
    };
    for number in 0..130 {
        numbered.ahead(&session, &file, number);
        session.fetch().expect("no faults of the disk");
    }
    check_resident(30..130);
    cache.set_budget(40 * BLOCK_COST);
    check_resident(90..130);
    for number in 130..140 {
        numbered.ahead(&session, &file, number);
        session.fetch().expect("no faults of the disk");
    }
    check_resident(100..140);
    cache.set_budget(0);
    check_resident(0..0);
}

#[test]
fn a_data_page_read_again_and_again_outlives_those_read_once() {
    let numbered = Numbered::blocks(1000);
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    for number in 10..1000 {
        read(&session, &numbered, &file, number);
        read(&session, &numbered, &file, number % 10);
    }
    drop(session);
    let reads = cache.counters().snapshot().data_reads();
    assert!(reads <= 1000 + 10, "{reads} reads of 1000 pages, ten of them hot");
}

#[test]
fn a_page_that_unpacks_to_more_than_was_guessed_is_charged_for_all_of_it() {
    let numbered = Numbered::write(&[PageKind::Data; 4], 1 << 20, crate::Compression::Lz4, crate::Packing::Tight);
    assert!(numbered.pages[0].1.bytes < 1 << 14, "it packs to less than a quarter");
    let cache = PageCache::new(2 << 20, 8, accept);
    let file = numbered.register(&cache);
    let session = session(&cache);
    for number in 0..4 {
        read(&session, &numbered, &file, number);
        let usage = cache.usage();
        assert!(usage.used_bytes > 1 << 20 && usage.used_bytes <= 2 << 20, "{usage:?}");
        assert_eq!(usage.in_flight_bytes, 0);
    }
}

/// Pages of 1 MiB that pack to a few KiB, and a cache that holds two of them, but has room for the size to which
/// all of them are expected to unpack.
fn unpacking() -> (Numbered, Arc<PageCache>, Arc<PagedFile>) {
    let numbered = Numbered::write(&[PageKind::Data; 20], 1 << 20, crate::Compression::Lz4, crate::Packing::Tight);
    let cache = PageCache::new(3 << 20, 8, accept);
    let file = numbered.register(&cache);
    (numbered, cache, file)
}

#[test]
fn pages_read_ahead_that_do_not_fit_once_unpacked_are_not_kept() {
    for admit in [Admit::Keep, Admit::Pass] {
        let (numbered, cache, file) = unpacking();
        let session = Session::new(&cache, Reason::Precharge, admit).with_ahead_bytes(u64::MAX);
        (0..20).for_each(|number| assert!(numbered.ahead(&session, &file, number)));
        session.fetch().expect("no faults of the disk");
        let usage = cache.usage();
        assert!(usage.used_bytes <= usage.budget_bytes, "{admit:?}: {usage:?}");
        assert_eq!((session.page_reads(), usage.frames), (20, 2), "{admit:?}: what came first stays");
        assert!((0..2).all(|number| numbered.peek(&session, &file, number).is_some()), "{admit:?}");
    }
}

#[test]
fn a_step_whose_pages_do_not_fit_once_unpacked_leaves_the_budget_as_it_was() {
    let (numbered, cache, file) = unpacking();
    let session = session(&cache);
    let step = || -> Vec<Result<PageRef, crate::Stop>> {
        (0..20).map(|number| numbered.page(&session, &file, number)).collect()
    };
    assert!(step().iter().all(Result::is_err));
    session.fetch().expect("no faults of the disk");
    assert!(step().iter().all(Result::is_ok), "a step has all its pages, whatever they take");
    let usage = cache.usage();
    assert!(usage.used_bytes > 20 << 20 && usage.pinned_bytes == usage.used_bytes, "{usage:?}");
    session.release();
    let usage = cache.usage();
    assert!(usage.used_bytes <= usage.budget_bytes && usage.pinned_bytes == 0, "{usage:?}");
    assert_eq!(usage.frames, 2);
}

#[test]
fn a_page_that_does_not_fit_once_unpacked_reaches_all_who_wait_for_it() {
    const READERS: usize = 8;
    let numbered = Numbered::write(&[PageKind::Data], 1 << 20, crate::Compression::Lz4, crate::Packing::Tight);
    let gate = Arc::<Gate>::default();
    let cache = PageCache::new(1 << 19, 8, accept);
    let file = cache.register(PATH, ID, {
        let gate = Arc::clone(&gate);
        watched(&numbered.disk, move || gate.pass())
    });
    thread::scope(|threads| {
        for _ in 0..READERS {
            let reader = thread::Builder::new().stack_size(STACK_BYTES);
            reader.spawn_scoped(threads, || read(&session(&cache), &numbered, &file, 0)).expect("memory for its stack");
        }
        wait_until(|| cache.waiting_for(numbered.key(&file, 0)) == READERS - 1);
        gate.open();
    });
    assert_eq!((numbered.disk.counts().reads, cache.usage().used_bytes), (1, 0));
}

#[test]
fn the_turn_to_overdraw_is_given_back_by_a_session_that_goes_away() {
    let numbered = Numbered::blocks(3);
    let cache = PageCache::new(0, 8, accept);
    let file = numbered.register(&cache);
    let first = session(&cache);
    assert!(numbered.page(&first, &file, 0).is_err());
    first.fetch().expect("no faults");
    thread::scope(|threads| {
        let second = threads.spawn(|| read(&session(&cache), &numbered, &file, 1));
        wait_until(|| cache.usage().queued == 1);
        drop(first);
        second.join().expect("it had its turn");
    });
    assert_eq!(cache.usage().used_bytes, 0);
}
