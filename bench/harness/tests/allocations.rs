//! Tests that the request loops do not allocate for each operation.

#![allow(clippy::disallowed_methods, reason = "the machine's own allocator is counted")]

use harness::{
    Blocking, Client, Clock, Counter, Extra, Failure, Fields, Flights, Kind, Length, Next, Outcome, Pace, Plan, Reply,
    Request, Served, Session, Setting, Since, Store, StoreUse, Wait, Workload,
};
use kit::allocations::{Counting, Thread};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

/// Operations of two requests. After each request the client makes a check of its own.
struct Pairs {
    /// How long each client waits before an operation.
    wait_nanos: u64,
}

struct Pair {
    state: u64,
    key: [u8; 8],
    second: bool,
    wait_nanos: u64,
}

impl Workload for Pairs {
    type Client = Pair;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ", "PAIR", "CHECK"]
    }

    fn counts(&self) -> &'static [&'static str] {
        &["requests"]
    }

    fn client(&self, number: usize, _: usize) -> Pair {
        Pair { state: number as u64, key: [0; 8], second: false, wait_nanos: self.wait_nanos }
    }
}

impl Client for Pair {
    fn begin(&mut self) -> bool {
        self.second = false;
        true
    }

    fn wait(&mut self) -> Wait {
        Wait { nanos: self.wait_nanos, since: Since::Due }
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.key = self.state.to_be_bytes();
        (Kind(0), Request::Read { key: &self.key, fields: Fields::All })
    }

    fn served(&mut self, _: Result<Outcome, &Failure>, _: &Reply, extra: &mut Extra<'_>) -> Next {
        extra.note(Kind(2), 5, Ok(Outcome::Ok));
        extra.count(0, 1);
        match std::mem::replace(&mut self.second, true) {
            false => Next::More,
            true => Next::DoneAs(Kind(1)),
        }
    }
}

/// A store that counts allocations between its first requests and its last request.
struct Quiet {
    flights: bool,
    allocations: AtomicU64,
}

/// The number of requests before counting begins, after which all buffers have their final size, and the number of
/// requests counted.
const FIRST: u64 = 10_000;
const COUNTED: u64 = 190_000;

struct QuietSession<'s> {
    clock: Clock,
    requests: u64,
    before: u64,
    allocations: &'s AtomicU64,
    under_way: Vec<(u32, u64)>,
    reply: Reply,
}

impl QuietSession<'_> {
    fn count(&mut self) {
        self.requests += 1;
        match self.requests {
            FIRST => self.before = Thread::so_far().count,
            all if all == FIRST + COUNTED => {
                self.allocations.store(Thread::so_far().count - self.before, Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

impl Store for Quiet {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let (reply, under_way, allocations) = (Reply::new(), Vec::with_capacity(16), &self.allocations);
        let session = QuietSession { clock, requests: 0, before: 0, allocations, under_way, reply };
        Ok(match self.flights {
            true => Session::Flights(Box::new(session)),
            false => Session::Blocking(Box::new(session)),
        })
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Blocking for QuietSession<'_> {
    fn call(&mut self, _: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        self.count();
        Ok(Outcome::Ok)
    }
}

impl Flights for QuietSession<'_> {
    fn depth(&self) -> usize {
        16
    }

    fn start(&mut self, slot: u32, _: &Request<'_>) -> Result<(), Failure> {
        self.count();
        self.under_way.push((slot, self.clock.nanos()));
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        while self.under_way.is_empty() && until.is_some_and(|until| self.clock.nanos() < until) {
            std::hint::spin_loop();
        }
        for (slot, sent) in self.under_way.drain(..).rev() {
            served(Served { slot, sent, served: self.clock.nanos(), result: Ok(Outcome::Ok), reply: &self.reply });
        }
        Ok(())
    }
}

/// The only allocations that remain are new groups of buckets, each a page of memory, allocated when the first time
/// falls into the group. Each kind has groups for service times, for response times and for waits. When the system
/// interrupts a thread, the thread may need a new group.
const GROUPS: u64 = 100;

fn check(flights: bool, clients: usize, pace: Pace) {
    check_waiting(flights, clients, pace, 0);
}

/// Does the same as `check`, but each client waits `wait_nanos` before each operation.
fn check_waiting(flights: bool, clients: usize, pace: Pace, wait_nanos: u64) {
    let store = Quiet { flights, allocations: AtomicU64::new(u64::MAX) };
    let plan = Plan {
        clients,
        pace,
        length: Length::Operations((FIRST + COUNTED) / 2),
        // When threads hand over their counts, new tallies may be made. The long interval prevents this.
        interval: Duration::from_secs(3600),
        ..Plan::default()
    };
    let measured =
        harness::run(&store, &Pairs { wait_nanos }, &plan, &AtomicBool::new(false), &mut |_| {}).expect("runs");
    assert_eq!(measured.operations, (FIRST + COUNTED) / 2);
    let allocations = store.allocations.load(Ordering::SeqCst);
    assert!(allocations <= GROUPS, "{allocations} allocations in {COUNTED} requests of {plan:?}");
}

#[test]
fn a_closed_loop_allocates_nothing_once_an_operation() {
    check(false, 1, Pace::Closed);
}

#[test]
fn an_open_loop_allocates_nothing_once_an_operation() {
    check(false, 1, Pace::Open { per_second: 200_000.0 });
}

#[test]
fn many_clients_on_one_thread_allocate_nothing_once_an_operation() {
    check(true, 10, Pace::Closed);
    check(true, 100, Pace::Closed);
    check(true, 100, Pace::Open { per_second: 200_000.0 });
}

#[test]
fn clients_that_wait_allocate_nothing_once_an_operation() {
    // 2,000 clients wait 5 ms each, so 400 clients are in each tick of the wheel.
    check_waiting(true, 2_000, Pace::Closed, 5_000_000);
    check_waiting(false, 1, Pace::Closed, 1_000);
}
