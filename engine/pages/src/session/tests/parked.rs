//! What is promised about futures that are not polled: they stop no other future and no thread, and they end once
//! they are polled again.

use super::flying::{Held, Woken, poll};
use super::*;
use std::task::{Wake, Waker};

impl Held {
    /// Polls the session whenever it was woken, until all pages of one step are there. Reads end only while the
    /// session waits to be woken.
    fn run(&self, session: &mut Session, pages: &[usize]) {
        let woken = Arc::<Woken>::default();
        while !self.ask(session, pages) {
            let before = woken.times();
            if let Poll::Ready(outcome) = poll(session, &woken) {
                outcome.expect("no faults");
                continue;
            }
            while woken.times() == before {
                assert!(self.reads.step(), "nobody wakes it: {:?}", self.cache.usage());
            }
        }
    }

    /// A session that was polled once for these pages.
    fn parked(&self, pages: &[usize]) -> Session {
        let mut session = self.session(Admit::Keep);
        assert!(!self.ask(&session, pages));
        assert!(poll(&mut session, &Arc::default()).is_pending());
        session
    }

    /// Asks for pages one after the other within one step, as a walk down a tree does.
    fn walk(&self, session: &mut Session, pages: &[usize]) {
        (1..=pages.len()).for_each(|depth| self.run(session, &pages[..depth]));
        session.release();
    }
}

#[test]
fn a_turn_whose_holder_is_not_polled_goes_on_to_the_next() {
    let held = Held::new(10, 0, 20);
    let mut first = held.parked(&[0, 1]);
    for _ in 0..3 {
        let mut second = held.session(Admit::Keep);
        held.walk(&mut second, &[2, 3, 4]);
    }
    held.walk(&mut first, &[0, 1]);
    drop(first);
    held.check_rest();
}

#[test]
fn many_futures_that_are_not_polled_do_not_stop_one_that_is() {
    for (count, budget_pages) in [(1, 0), (20, 0), (20, 3), (20, 10), (100, 10)] {
        let held = Held::new(100, budget_pages, count);
        let parked: Vec<Session> = (0..count).map(|i| held.parked(&[i as usize])).collect();
        let mut session = held.session(Admit::Keep);
        for i in 0..10 {
            held.walk(&mut session, &[i, i + 20, i + 40]);
        }
        assert!(held.cache.usage().used_bytes <= (budget_pages + 1) * BLOCK_COST, "{:?}", held.cache.usage());
        for (i, mut session) in parked.into_iter().enumerate() {
            held.walk(&mut session, &[i]);
        }
        drop(session);
        held.check_rest();
    }
}

#[test]
fn pages_of_futures_that_are_not_polled_leave_the_cache_to_those_that_are() {
    let held = Held::new(40, 10, 21);
    let parked: Vec<Session> = (0..10).map(|i| held.parked(&[i])).collect();
    held.reads.finish();
    assert_eq!(held.cache.usage().pinned_bytes, 10 * BLOCK_COST);
    let mut session = held.session(Admit::Keep);
    for i in 0..100 {
        held.walk(&mut session, &[10 + i % 30]);
    }
    assert_eq!(held.cache.usage().pinned_bytes, 0);
    let before = held.numbered.disk.counts().reads;
    for _ in 0..3 {
        (10..20).for_each(|i| held.walk(&mut session, &[i]));
    }
    assert!(held.numbered.disk.counts().reads - before <= 10, "they fit");
    drop((parked, session));
    held.check_rest();
}

#[test]
fn threads_pass_by_futures_that_are_not_polled_and_get_their_room_back() {
    let held = Held::new(40, 10, 22);
    let parked: Vec<Session> = (0..20).map(|i| held.parked(&[i])).collect();
    let thread = held.session(Admit::Keep);
    for i in 0..100 {
        all_of(&thread, &held.numbered, &held.file, &[20 + i % 10]).expect("no faults");
    }
    let before = held.numbered.disk.counts().reads;
    for i in 20..29 {
        all_of(&thread, &held.numbered, &held.file, &[i]).expect("no faults");
    }
    assert!(held.numbered.disk.counts().reads - before <= 10, "most of the cache is theirs again");
    drop((parked, thread));
    held.reads.finish();
    held.check_rest();
}

#[test]
fn a_future_ends_however_late_it_is_polled() {
    let held = Held::new(20, 0, 23);
    let (mut late, mut busy) = (held.session(Admit::Keep), held.session(Admit::Keep));
    let pages = [0, 1, 2, 3, 4];
    let (woken, late_woken) = (Arc::<Woken>::default(), Arc::default());
    let (mut depth, mut polls) = (1, 0);
    while depth <= pages.len() {
        if held.ask(&late, &pages[..depth]) {
            depth += 1;
        } else if let Poll::Ready(outcome) = poll(&mut late, &late_woken) {
            outcome.expect("no faults");
        }
        // Between any two polls of `late`, the session `busy` is polled many times, and takes the pages that it can
        // take.
        for i in 0..300 {
            polls += 1;
            held.reads.finish();
            if held.ask(&busy, &[10 + i % 10]) || poll(&mut busy, &woken).is_ready() && i % 7 == 0 {
                busy.release();
            }
        }
        busy.release();
        assert!(polls < 1_000_000, "it does not end");
    }
    drop((late, busy));
    held.check_rest();
}

#[test]
fn a_future_that_goes_away_while_others_queue_leaves_nothing() {
    let held = Held::new(10, 0, 24);
    let holder = held.parked(&[0, 1]);
    let queueing: Vec<Session> = (2..8).map(|i| held.parked(&[i])).collect();
    assert_eq!(held.cache.usage().queued, 6);
    drop(queueing);
    assert_eq!(held.cache.usage().queued, 0, "nobody is woken who went away");
    held.reads.finish();
    drop(holder);
    assert_eq!(held.cache.parking().parked(), 0);
    held.run(&mut held.session(Admit::Keep), &[9]);
    held.check_rest();
}

#[test]
fn a_waker_that_panics_keeps_nobody_else_from_being_woken() {
    struct Panicking;

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("as the test wants");
        }
    }

    for budget_pages in [0, 100] {
        let held = Held::new(10, budget_pages, 25);
        let waker = Waker::from(Arc::new(Panicking));
        let mut panicking = held.session(Admit::Keep);
        assert!(!held.ask(&panicking, &[1]));
        assert!(panicking.poll_fetch(&mut Context::from_waker(&waker)).is_pending());
        let mut others: Vec<Session> = (0..3).map(|_| held.session(Admit::Keep)).collect();
        let woken = Arc::<Woken>::default();
        for other in &mut others {
            assert!(!held.ask(other, &[1]));
            assert!(poll(other, &woken).is_pending());
        }
        held.reads.finish();
        assert_eq!(woken.times(), 3, "{budget_pages}");
        drop(panicking);
        others.iter_mut().for_each(|other| held.walk(other, &[1]));
        drop(others);
        held.check_rest();
    }
}
