//! Tests clients that wait before each operation, like users who think.

use super::*;
use crate::{Since, Wait};

/// Clients with `each` operations. Before each operation, a client waits as long as `wait` says for its number and
/// the operation.
pub(super) struct Thinking {
    pub(super) each: u32,
    pub(super) wait: fn(usize, u32) -> Wait,
}

pub(super) struct Thinker {
    number: usize,
    operation: u32,
    each: u32,
    wait: fn(usize, u32) -> Wait,
    key: [u8; 8],
}

impl Workload for Thinking {
    type Client = Thinker;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ"]
    }

    fn client(&self, number: usize, _: usize) -> Thinker {
        Thinker { number, operation: 0, each: self.each, wait: self.wait, key: (number as u64).to_be_bytes() }
    }
}

impl Client for Thinker {
    fn begin(&mut self) -> bool {
        self.operation += 1;
        self.operation <= self.each
    }

    fn wait(&mut self) -> Wait {
        (self.wait)(self.number, self.operation)
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(0), Request::Read { key: &self.key, fields: Fields::All })
    }

    fn served(&mut self, _: Result<Outcome, &Failure>, _: &Reply, _: &mut Extra<'_>) -> Next {
        Next::Done
    }
}

const MILLI: u64 = 1_000_000;

fn fine(_: &[u8]) -> Result<Outcome, Failure> {
    Ok(Outcome::Ok)
}

fn flying(depth: usize) -> Shuffling<impl Fn(&[u8]) -> Result<Outcome, Failure> + Send + Sync> {
    Shuffling { depth, answer: fine }
}

#[test]
fn ten_thousand_clients_that_wait_come_through_one_slot() {
    // The clients wait up to 40 ms, in an order that does not follow their numbers. Some do not wait at all.
    let wait = |number: usize, operation: u32| {
        let nanos = (number as u64 * 7_919 + u64::from(operation) * 104_729) % 40 * MILLI;
        Wait { nanos, since: if number.is_multiple_of(2) { Since::Served } else { Since::Due } }
    };
    let plan = Plan { clients: 10_000, workers: 2, ramp: Duration::from_millis(20), ..Plan::default() };
    for slack in [Duration::ZERO, Duration::from_millis(3)] {
        let plan = Plan { slack, ..plan.clone() };
        let measured = run_quietly(&flying(1), &Thinking { each: 3, wait }, &plan).expect("runs");
        let operations: u64 = measured.intervals.iter().map(|interval| interval.operations).sum();
        assert_eq!((operations + measured.warmed, measured.failed), (30_000, 0), "{slack:?}");
        let read = measured.kind("READ").expect("reads");
        assert_eq!(read.waited.as_ref().map(Times::count), Some(read.oks), "{slack:?}: it is counted who waits");
    }
}

#[test]
fn a_wait_begins_with_the_answer_or_when_the_request_was_due() {
    let wait = |since, nanos| Wait { nanos, since };
    assert_eq!(wait(Since::Served, 30).until(100, 120), 150);
    assert_eq!(wait(Since::Due, 30).until(100, 120), 130);
    assert_eq!(wait(Since::Due, 10).until(100, 120), 120, "never before the answer");
    assert_eq!(wait(Since::Due, u64::MAX).until(100, 120), u64::MAX);
    assert_eq!(wait(Since::Served, u64::MAX).until(100, 120), u64::MAX);
    assert_eq!(Wait::NONE.until(100, 120), 120);
}

/// Each request takes 30 ms, and the client waits 50 ms before each of the five operations. If waits are counted
/// from answers, the run takes 5 * (50 + 30) ms. If waits are counted from when requests were due, the run takes
/// 5 * 50 + 30 ms.
#[test]
fn both_kinds_of_session_wait_from_the_moment_that_the_client_says() {
    let slow = |_: &[u8]| {
        std::thread::park_timeout(Duration::from_millis(30));
        Ok(Outcome::Ok)
    };
    let since_served = |_, _| Wait { nanos: 50 * MILLI, since: Since::Served };
    let since_due = |_, _| Wait { nanos: 50 * MILLI, since: Since::Due };
    for (wait, least, most) in [(since_served as fn(_, _) -> _, 400, u64::MAX), (since_due, 280, 400)] {
        let workload = Thinking { each: 5, wait };
        let slack = Duration::from_nanos(1);
        let plan = Plan { slack, ..Plan::default() };
        for measured in [
            run_quietly(&Shuffling { depth: 1, answer: slow }, &workload, &plan).expect("runs"),
            run_quietly(&Answering(|_: &Request<'_>| slow(&[])), &workload, &plan).expect("runs"),
        ] {
            assert_eq!(measured.operations, 5);
            // If a thread is held up, the run becomes longer, but operations are not due earlier.
            let late = measured.kinds[0].waited.as_ref().expect("it is counted").max() * 5;
            let nanos = measured.nanos;
            assert!(nanos >= least * MILLI, "{nanos} ns is less than {least} ms");
            let held_up = measured.kinds[0].service.max() > 60 * MILLI || late > 50 * MILLI;
            assert!(held_up || nanos / MILLI < most, "{nanos} ns is {most} ms or more");
        }
    }
}

#[test]
fn a_run_is_stopped_while_all_its_clients_wait() {
    let workload = Thinking {
        each: 2,
        wait: |_, operation| Wait { nanos: if operation == 1 { 0 } else { u64::MAX }, since: Since::Served },
    };
    let stop = AtomicBool::new(false);
    let plan = Plan { clients: 4, interval: Duration::from_millis(10), ..Plan::default() };
    for flies in [true, false] {
        let mut operations = 0;
        stop.store(false, Ordering::SeqCst);
        let mut watch = |interval: &Interval| {
            operations += interval.operations;
            operations += interval.told_late.iter().map(|late| late.operations).sum::<u64>();
            stop.store(operations == 4, Ordering::SeqCst);
        };
        let measured = match flies {
            true => run(&flying(2), &workload, &plan, &stop, &mut watch).expect("runs"),
            false => {
                run(&Answering(|_: &Request<'_>| Ok(Outcome::Ok)), &workload, &plan, &stop, &mut watch).expect("runs")
            }
        };
        check_sums(&measured);
        assert_eq!((measured.operations, measured.unsent, measured.cut), (4, 0, 0));
        assert!(measured.interrupted);
    }
}

#[test]
fn an_open_loop_does_not_ask_how_long_a_client_waits() {
    let wait: fn(usize, u32) -> Wait = |_, _| panic!("the schedule decides");
    let pace = Pace::Open { per_second: 10_000.0 };
    let plan = Plan { clients: 3, pace, ..Plan::default() };
    for store in [Noop::waiting(), Noop::flying(2)] {
        let measured = run_quietly(&store, &Thinking { each: 10, wait }, &plan).expect("runs");
        assert_eq!(measured.operations, 30, "{store:?}");
    }
}

/// A hundred clients have times that are 0.1 ms apart, and the slack is 20 ms. At every multiple of 20 ms, all
/// clients whose times have come are served together.
#[test]
fn with_a_slack_those_whose_times_lie_between_two_multiples_begin_together() {
    let wait = |number: usize, _| Wait { nanos: (number as u64 + 1) * MILLI / 10, since: Since::Due };
    let slack = Duration::from_millis(20);
    let plan = Plan { clients: 100, slack, ..Plan::default() };
    let measured = run_quietly(&Noop::flying(100), &Thinking { each: 1, wait }, &plan).expect("runs");
    let waited = measured.kinds[0].waited.as_ref().expect("it is counted").clone();
    assert_eq!((measured.operations, waited.count()), (100, 100));
    // All times lie within 10 ms, so at most one multiple of 20 ms lies between them. Clients whose times are on
    // the same side of this multiple begin together. Among these clients, a client whose time is 1 ms earlier waits
    // 1 ms longer.
    assert!(waited.max() - waited.min() >= 4 * MILLI, "{} to {} ns", waited.min(), waited.max());
}
