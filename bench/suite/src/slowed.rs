//! A store wrapper that makes each request longer by a fixed time, spent in a busy loop on the client. It tests
//! whether a comparison of results finds the slow-down.

use harness::store::{Blocking, Flights, Served};
use harness::transactions::{Checked, Commits, Transactions};
use harness::{Clock, Counter, Failure, Outcome, Reply, Request, Rows, Session, Setting, Store, StoreUse};
use std::hint::black_box;
use std::time::Duration;

/// Turns of the busy loop in one calibration. They take some hundred microseconds, short enough that most
/// calibrations are not interrupted.
const TIMED_TURNS: u64 = 500_000;
/// The number of calibrations. The shortest counts, because interference only makes a time longer.
const TIMINGS: u32 = 20;

/// Wraps `store` so that each request takes `longer` more.
pub fn slowed(store: Box<dyn Store>, longer: Duration) -> Box<dyn Store> {
    let timed = |_| {
        let clock = Clock::start();
        turn(TIMED_TURNS);
        clock.nanos()
    };
    let nanos = (0..TIMINGS).map(timed).min().unwrap_or(0).max(1);
    let turns = longer.as_nanos() as f64 * TIMED_TURNS as f64 / nanos as f64;
    Box::new(Slowed { store, longer, turns: turns.round() as u64 })
}

/// Burns time in proportion to `turns`. It does not read the clock, which would cost as much as a short request.
fn turn(turns: u64) {
    for number in 0..turns {
        black_box(number);
    }
}

struct Slowed {
    store: Box<dyn Store>,
    longer: Duration,
    turns: u64,
}

impl Slowed {
    fn session<'s>(&self, session: Session<'s>) -> Session<'s> {
        let turns = self.turns;
        match session {
            Session::Blocking(session) => Session::Blocking(Box::new(Slow { session, turns })),
            Session::Flights(session) => Session::Flights(Box::new(Slow { session, turns })),
        }
    }
}

impl Store for Slowed {
    fn settings(&self) -> Vec<Setting> {
        let mut settings = self.store.settings();
        settings.push(Setting::new("slowed down by", format!("{} ns a request", self.longer.as_nanos())));
        settings
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        self.store.session(clock).map(|session| self.session(session))
    }

    fn loader(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        self.store.loader(clock).map(|session| self.session(session))
    }

    fn transactions(&self, checked: Checked) -> Option<Box<dyn Transactions + '_>> {
        self.store.transactions(checked)
    }

    fn commits(&self, in_flight: usize) -> Option<Box<dyn Commits + '_>> {
        self.store.commits(in_flight)
    }

    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        self.store.bulk_load(rows)
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        self.store.is_empty()
    }

    fn counters(&self) -> Vec<Counter> {
        self.store.counters()
    }

    fn used(&self) -> StoreUse {
        self.store.used()
    }

    fn settle(&self) -> Result<(), Failure> {
        self.store.settle()
    }

    fn build_index(&self) -> Result<Option<u64>, Failure> {
        self.store.build_index()
    }

    fn check_and_drop_index(&self) -> Result<u64, Failure> {
        self.store.check_and_drop_index()
    }

    fn set_cache_bytes(&self, bytes: u64) -> Result<bool, Failure> {
        self.store.set_cache_bytes(bytes)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.store.close()
    }
}

struct Slow<S> {
    session: S,
    turns: u64,
}

impl Blocking for Slow<Box<dyn Blocking + '_>> {
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure> {
        turn(self.turns);
        self.session.call(request, reply)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.session.finish()
    }
}

impl Flights for Slow<Box<dyn Flights + '_>> {
    fn depth(&self) -> usize {
        self.session.depth()
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        turn(self.turns);
        self.session.start(slot, request)
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        self.session.wait(until, served)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.session.finish()
    }
}
