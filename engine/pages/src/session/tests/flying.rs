//! What is promised while pages are on their way, whichever session reads, whichever goes away, and in whatever
//! order the pages land.

use super::*;
use crate::PagedFile;
use os::sim::SimReads;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};
use os::{ReadRequest, Reads, Urgency};
use std::task::{Wake, Waker};

/// Counts how often a task was woken.
#[derive(Default)]
pub(super) struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    pub(super) fn times(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) struct Held {
    pub(super) numbered: Numbered,
    pub(super) reads: Arc<SimReads>,
    pub(super) cache: Arc<PageCache>,
    pub(super) file: Arc<PagedFile>,
}

impl Held {
    pub(super) fn new(pages: usize, budget_pages: u64, seed: u64) -> Self {
        println!("seed {seed}");
        let (numbered, reads) = (Numbered::blocks(pages), SimReads::new(seed));
        let cache = PageCache::new(budget_pages * BLOCK_COST, 8, accept);
        let file = numbered.register_held(&cache, &reads);
        Self { numbered, reads, cache, file }
    }

    pub(super) fn session(&self, admit: Admit) -> Session {
        Session::new(&self.cache, Reason::Point, admit)
    }

    /// Asks for pages as one step, and returns whether all are there.
    pub(super) fn ask(&self, session: &Session, pages: &[usize]) -> bool {
        let is_missing = |number: &&usize| self.numbered.page(session, &self.file, **number).is_err();
        pages.iter().filter(is_missing).count() == 0
    }

    pub(super) fn check_rest(&self) {
        let usage = self.cache.usage();
        assert_eq!((usage.pinned_bytes, usage.in_flight_bytes, usage.queued), (0, 0, 0), "{usage:?}");
        assert!(usage.used_bytes <= usage.budget_bytes, "{usage:?}");
        assert_eq!(usage.used_bytes, usage.frames * BLOCK_COST);
    }
}

pub(super) fn poll(session: &mut Session, woken: &Arc<Woken>) -> Poll<Result<()>> {
    let waker = Waker::from(Arc::clone(woken));
    session.poll_fetch(&mut Context::from_waker(&waker))
}

#[test]
fn a_task_is_woken_once_when_the_last_page_of_its_step_is_here() {
    for seed in 0..20 {
        for admit in [Admit::Keep, Admit::Pass] {
            let held = Held::new(10, 100, seed);
            let (mut session, woken) = (held.session(admit), Arc::default());
            assert!(!held.ask(&session, &[1, 5, 7]));
            assert!(poll(&mut session, &woken).is_pending());
            for left in (0..3).rev() {
                assert!(held.reads.step());
                assert_eq!(woken.times(), u64::from(left == 0));
                assert_eq!(poll(&mut session, &woken).is_ready(), left == 0);
            }
            assert!(held.ask(&session, &[1, 5, 7]), "they are pinned");
            assert!(poll(&mut session, &woken).is_ready(), "nothing is missing");
            session.release();
            held.check_rest();
            assert_eq!((session.rounds(), session.page_reads()), (1, 3));
        }
    }
}

#[test]
fn a_lone_page_is_read_in_the_poll_if_that_is_asked_for() {
    let held = Held::new(10, 100, 3);
    let woken = Arc::default();
    let mut lone = held.session(Admit::Keep).with_reads_in_poll(true);
    assert!(!held.ask(&lone, &[1]));
    assert!(matches!(poll(&mut lone, &woken), Poll::Ready(Ok(()))), "no thread but this one has read it");
    assert!(held.ask(&lone, &[1]));
    lone.release();
    assert!(!held.ask(&lone, &[2, 5]));
    assert!(poll(&mut lone, &woken).is_pending(), "two pages are read together, by others");

    let mut other = held.session(Admit::Keep).with_reads_in_poll(true);
    assert!(!held.ask(&other, &[7]));
    assert!(poll(&mut other, &woken).is_pending(), "a future waits, and would wait longer");
    held.reads.finish();
    assert!(matches!(poll(&mut lone, &woken), Poll::Ready(Ok(()))));
    assert!(matches!(poll(&mut other, &woken), Poll::Ready(Ok(()))));
    lone.release();
    other.release();

    let mut usual = held.session(Admit::Keep);
    assert!(!held.ask(&usual, &[9]));
    assert!(poll(&mut usual, &woken).is_pending(), "it was not asked for");
    held.reads.finish();
    assert!(poll(&mut usual, &woken).is_ready());
    drop((lone, other, usual));
    held.check_rest();
}

#[test]
fn an_error_of_a_lone_page_is_the_answer_of_the_poll() {
    let held = Held::new(10, 100, 4);
    held.numbered.disk.fail_all_after(0, std::io::ErrorKind::TimedOut);
    let mut lone = held.session(Admit::Keep).with_reads_in_poll(true);
    assert!(!held.ask(&lone, &[1]));
    assert!(matches!(poll(&mut lone, &Arc::default()), Poll::Ready(Err(_))));
    drop(lone);
    held.check_rest();
}

#[test]
fn a_session_that_goes_away_leaves_its_pages_to_those_who_wait_and_to_the_cache() {
    let held = Held::new(10, 100, 1);
    let (first_woken, woken) = (Arc::default(), Arc::default());
    let mut first = held.session(Admit::Keep);
    assert!(!held.ask(&first, &[1, 2]));
    assert!(poll(&mut first, &first_woken).is_pending());
    let mut second = held.session(Admit::Pass);
    assert!(!held.ask(&second, &[2]));
    assert!(poll(&mut second, &woken).is_pending());
    drop(first);
    assert_eq!(held.cache.usage().in_flight_bytes, 2 * BLOCK_COST, "the disk writes to it");
    held.reads.finish();
    assert_eq!((first_woken.times(), woken.times()), (1, 1));
    assert!(matches!(poll(&mut second, &woken), Poll::Ready(Ok(()))));
    assert!(held.ask(&second, &[2]));
    assert_eq!(held.numbered.disk.counts().reads, 2);
    drop(second);
    held.check_rest();
    assert!(held.numbered.is_resident(&held.cache, &held.file, 1));
}

#[test]
fn what_nobody_keeps_is_gone_when_the_last_who_waits_went_away() {
    let held = Held::new(10, 100, 2);
    let (mut session, woken) = (held.session(Admit::Pass), Arc::default());
    assert!(!held.ask(&session, &[4]));
    assert!(poll(&mut session, &woken).is_pending());
    drop(session);
    held.reads.finish();
    assert_eq!(held.cache.usage().used_bytes, 0);
    held.check_rest();
}

#[test]
fn a_thread_waits_for_what_a_task_began_to_read() {
    let held = Held::new(10, 100, 3);
    let (mut task, woken) = (held.session(Admit::Keep), Arc::default());
    assert!(!held.ask(&task, &[1, 2, 3]));
    assert!(poll(&mut task, &woken).is_pending());
    let thread = held.session(Admit::Keep);
    assert_eq!(all_of(&thread, &held.numbered, &held.file, &[2, 4]).expect("no faults"), 2);
    assert_eq!(held.numbered.disk.counts().reads, 4);
    drop(task);
    held.reads.finish();
    held.check_rest();
}

#[test]
fn an_error_reaches_a_task_and_the_next_step_tries_again() {
    let held = Held::new(10, 100, 4);
    held.numbered.disk.flip_bit(PATH, 3 * 4096 + 100, 2);
    let (mut session, woken) = (held.session(Admit::Keep), Arc::default());
    assert!(!held.ask(&session, &[2, 3]));
    assert!(poll(&mut session, &woken).is_pending());
    held.reads.finish();
    let outcome = poll(&mut session, &woken);
    assert!(matches!(outcome, Poll::Ready(Err(Error::Corrupt { offset: 12288, .. }))), "{outcome:?}");
    session.release();
    held.check_rest();
    held.numbered.disk.flip_bit(PATH, 3 * 4096 + 100, 2);
    assert!(!held.ask(&session, &[3]));
    assert!(poll(&mut session, &woken).is_pending());
    held.reads.finish();
    assert!(matches!(poll(&mut session, &woken), Poll::Ready(Ok(()))));
}

#[test]
fn what_is_read_ahead_becomes_urgent_when_somebody_needs_it_and_is_read_once() {
    for admit in [Admit::Keep, Admit::Pass] {
        let held = Held::new(10, 1000, 5);
        let scan = held.session(admit);
        (0..4).for_each(|number| assert!(held.numbered.ahead(&scan, &held.file, number)));
        scan.release();
        let queued = held.reads.tickets();
        assert_eq!(queued.len(), 4, "they are begun when the step is done");
        assert!(queued.iter().all(|(_, urgency)| *urgency == Urgency::Ahead));
        assert!(!held.numbered.ahead(&scan, &held.file, 2), "it is on its way");
        let (mut session, woken) = (held.session(Admit::Keep), Arc::default());
        assert!(!held.ask(&session, &[2]));
        assert!(poll(&mut session, &woken).is_pending());
        let raised = held.reads.raised();
        assert_eq!(raised.len(), 1);
        assert!(held.reads.step_ticket(raised[0]));
        assert!(matches!(poll(&mut session, &woken), Poll::Ready(Ok(()))));
        assert!(held.ask(&session, &[2]));
        drop(session);
        // The scan finds the pages that came meanwhile, and waits for the others.
        let rounds = |numbers: &[usize]| {
            numbers.iter().for_each(|number| {
                all_of(&scan, &held.numbered, &held.file, &[*number]).expect("no faults");
            });
            scan.rounds()
        };
        let waited = rounds(&[2]);
        assert_eq!(waited, 0, "{admit:?}");
        held.reads.finish();
        assert_eq!(rounds(&[0, 1, 3]), 0, "{admit:?}");
        assert_eq!(held.numbered.disk.counts().reads, 4, "{admit:?}");
        drop(scan);
        held.check_rest();
    }
}

#[test]
fn what_was_read_ahead_and_comes_before_it_is_waited_for_is_read_once() {
    for admit in [Admit::Keep, Admit::Pass] {
        let held = Held::new(10, 1000, 8);
        let (mut session, woken) = (held.session(admit), Arc::default());
        assert!(held.numbered.ahead(&session, &held.file, 1));
        session.release();
        assert!(!held.ask(&session, &[1]));
        held.reads.finish();
        assert!(matches!(poll(&mut session, &woken), Poll::Ready(Ok(()))), "{admit:?}");
        assert!(held.ask(&session, &[1]), "{admit:?}");
        assert_eq!(held.cache.usage().used_bytes, BLOCK_COST, "{admit:?}");
        assert_eq!(held.reads.usage().reads, 1, "{admit:?}");
    }
}

#[test]
fn a_page_read_ahead_keeps_nobody_from_waiting_for_the_one_that_is_needed() {
    let held = Held::new(10, 100, 12);
    let (mut task, woken) = (held.session(Admit::Keep), Arc::default());
    assert!(!held.ask(&task, &[1]));
    assert!(poll(&mut task, &woken).is_pending());
    let thread = held.session(Admit::Keep);
    assert!(held.numbered.ahead(&thread, &held.file, 5));
    all_of(&thread, &held.numbered, &held.file, &[1]).expect("no faults");
    assert_eq!(held.reads.usage().reads, 2, "what nobody waits for is for others to read");
}

#[test]
fn a_session_that_goes_away_begins_no_reads() {
    for admit in [Admit::Keep, Admit::Pass] {
        let held = Held::new(10, 100, 10);
        let session = held.session(admit);
        assert!(held.numbered.ahead(&session, &held.file, 1));
        drop(session);
        assert_eq!(held.reads.held(), 0, "{admit:?}");
    }
}

#[test]
fn a_task_that_goes_away_gives_the_turn_back_when_its_pages_have_landed() {
    let held = Held::new(10, 0, 9);
    let (first_woken, woken) = (Arc::default(), Arc::default());
    let mut first = held.session(Admit::Keep);
    assert!(!held.ask(&first, &[0, 1]));
    assert!(poll(&mut first, &first_woken).is_pending());
    let mut second = held.session(Admit::Keep);
    assert!(!held.ask(&second, &[2, 3]));
    assert!(poll(&mut second, &woken).is_pending());
    assert_eq!(held.cache.usage().queued, 1);
    drop(first);
    assert!(poll(&mut second, &woken).is_pending());
    assert_eq!(held.cache.usage().used_bytes, 2 * BLOCK_COST, "the disk writes to memory of one step");
    held.reads.finish();
    assert!(woken.times() > 0);
    assert!(poll(&mut second, &woken).is_pending());
    held.reads.finish();
    assert!(matches!(poll(&mut second, &woken), Poll::Ready(Ok(()))));
    assert!(held.ask(&second, &[2, 3]));
    drop(second);
    held.check_rest();
}

#[test]
fn background_work_waits_in_its_line_and_nobody_else_waits_there() {
    for is_ahead in [false, true] {
        let held = Held::new(10, 100, 13);
        let mut work = Session::new(&held.cache, Reason::Compaction, Admit::Pass);
        let (work_woken, woken) = (Arc::default(), Arc::default());
        if is_ahead {
            assert!(held.numbered.ahead(&work, &held.file, 1));
            work.release();
        }
        assert!(!held.ask(&work, &[1]));
        assert!(poll(&mut work, &work_woken).is_pending());
        let [(ticket, urgency)] = held.reads.tickets()[..] else { panic!("one page is read") };
        assert_eq!(urgency, Urgency::Background, "ahead: {is_ahead}");
        let mut point = held.session(Admit::Keep);
        assert!(!held.ask(&point, &[1]));
        assert!(poll(&mut point, &woken).is_pending());
        assert_eq!(held.reads.raised(), [ticket], "ahead: {is_ahead}");
    }
}

/// Holds reads back. When a session has claimed a page and submits the read, `quick` runs first, in the place of a
/// session that is quicker.
struct Overtaken {
    held: Arc<SimReads>,
    quick: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Reads for Overtaken {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let quick = self.quick.lock().take();
        if let Some(quick) = quick {
            quick();
        }
        self.held.submit(reads);
    }

    fn raise(&self, ticket: u64) {
        self.held.raise(ticket);
    }

    fn name(&self) -> &'static str {
        "overtaken"
    }
}

impl std::fmt::Debug for Overtaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Overtaken")
    }
}

#[test]
fn a_read_is_made_urgent_by_who_needs_the_page_before_it_was_handed_over() {
    let (numbered, held) = (Numbered::blocks(10), SimReads::new(14));
    let cache = PageCache::new(100 * BLOCK_COST, 8, accept);
    let reads = Arc::new(Overtaken { held: Arc::clone(&held), quick: Mutex::default() });
    let file = numbered.register_reading(&cache, Arc::clone(&reads) as Arc<dyn Reads>);
    let work = Session::new(&cache, Reason::Scan, Admit::Keep);
    let point = Arc::new(Mutex::new(Session::new(&cache, Reason::Point, Admit::Keep)));
    assert!(numbered.page(&*point.lock(), &file, 1).is_err());
    let quick = Arc::clone(&point);
    *reads.quick.lock() = Some(Box::new(move || assert!(poll(&mut quick.lock(), &Arc::default()).is_pending())));
    assert!(numbered.ahead(&work, &file, 1));
    work.release();
    let [(ticket, urgency)] = held.tickets()[..] else { panic!("one page is read") };
    assert_eq!((held.raised(), urgency), (vec![ticket], Urgency::Needed));
}

#[test]
fn tasks_that_have_no_room_wait_for_each_other_and_threads_do_not_wait_for_them() {
    let held = Held::new(40, 3, 6);
    let woken: Vec<Arc<Woken>> = (0..8).map(|_| Arc::default()).collect();
    let mut tasks: Vec<(Session, Vec<usize>)> =
        (0..8).map(|task| (held.session(Admit::Keep), (0..5).map(|page| task * 5 + page).collect())).collect();
    let mut done = [false; 8];
    // The first task has the turn and is not polled again for a while.
    assert!(!held.ask(&tasks[0].0, &tasks[0].1));
    assert!(poll(&mut tasks[0].0, &woken[0]).is_pending());
    for _ in 0..3 {
        for (i, (session, pages)) in tasks.iter_mut().enumerate().skip(1) {
            assert!(!held.ask(session, pages));
            assert!(poll(session, &woken[i]).is_pending());
        }
    }
    assert_eq!(held.cache.usage().queued, 7);
    let thread = held.session(Admit::Keep);
    all_of(&thread, &held.numbered, &held.file, &[30, 31, 32, 33]).expect("it overdraws");
    drop(thread);
    // From now on, poll each task whenever it was woken.
    let mut patience = 1000;
    while !done.iter().all(|done| *done) {
        patience -= 1;
        assert!(patience > 0, "they are stuck: {done:?} {:?}", held.cache.usage());
        held.reads.finish();
        for (i, (session, pages)) in tasks.iter_mut().enumerate() {
            if done[i] || !held.ask(session, pages) && poll(session, &woken[i]).is_pending() {
                continue;
            }
            if held.ask(session, pages) {
                done[i] = true;
                session.release();
            }
        }
    }
    drop(tasks);
    held.check_rest();
}

#[test]
fn random_tasks_read_what_the_disk_has_whenever_they_are_dropped() {
    for seed in 0..200 {
        let mut random = SplitMix(seed);
        let held = Held::new(30, 2 + random.next() % 30, seed);
        let woken: Arc<Woken> = Arc::default();
        let mut tasks: Vec<Option<(Session, Vec<usize>)>> = (0..6).map(|_| None).collect();
        for _ in 0..300 {
            let i = (random.next() % 6) as usize;
            match (&mut tasks[i], random.next() % 8) {
                (empty @ None, _) => {
                    let admit = if random.next().is_multiple_of(3) { Admit::Pass } else { Admit::Keep };
                    let pages = (0..1 + random.next() % 5).map(|_| (random.next() % 30) as usize).collect();
                    *empty = Some((held.session(admit), pages));
                }
                (some, 0) => *some = None,
                (Some((session, pages)), 1) => {
                    for number in &mut *pages {
                        held.numbered.ahead(session, &held.file, (*number + 1) % 30);
                    }
                    session.release();
                }
                (Some((session, pages)), 2..6) => {
                    if held.ask(session, pages) {
                        session.release();
                        *pages = (0..1 + random.next() % 5).map(|_| (random.next() % 30) as usize).collect();
                    } else if let Poll::Ready(outcome) = poll(session, &woken) {
                        outcome.expect("no faults");
                    }
                }
                (Some(_), _) => {
                    held.reads.step();
                }
            }
        }
        tasks.clear();
        held.reads.finish();
        held.check_rest();
    }
}

/// A precharge ends when its pages are in memory. A scan does not wait for pages that it asked for ahead.
#[test]
fn a_precharge_waits_for_what_it_asks_for_and_a_scan_does_not() {
    for (reason, is_here) in [(Reason::Precharge, true), (Reason::Scan, false)] {
        let Held { numbered, reads, cache, file } = Held::new(4, 100, 1);
        let session = Session::new(&cache, reason, Admit::Keep);
        assert!((0..3).all(|number| numbered.ahead(&session, &file, number)));
        session.fetch().expect("the disk works");
        assert_eq!((session.page_reads(), session.rounds()), (3, u64::from(is_here)));
        assert!((0..3).all(|number| numbered.is_resident(&cache, &file, number) == is_here), "{reason:?}");
        session.release();
        drop(session);
        reads.finish();
        assert!((0..3).all(|number| numbered.is_resident(&cache, &file, number)));
    }
}
