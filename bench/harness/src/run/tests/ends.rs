//! Tests the ways in which runs end: with success, with an error, early, or without a measurement.

use super::*;

fn reads() -> Reads {
    Reads { each: u64::MAX, requests: 1 }
}

#[test]
fn failures_are_counted_by_kind_and_the_first_of_each_is_kept() {
    let calls = AtomicU64::new(0);
    let store = Answering(|_: &Request<'_>| match calls.fetch_add(1, Ordering::SeqCst) {
        call if call % 10 == 3 => Err(Failure::request("io", format!("call {call}: no such page"))),
        call if call % 10 == 7 => Err(Failure::again("conflict", format!("call {call}: another was first"))),
        call if call % 2 == 0 => Ok(Outcome::NotFound),
        _ => Ok(Outcome::Ok),
    });
    let measured = run_quietly(&store, &Reads { each: 100, requests: 1 }, &Plan::default()).expect("runs");
    assert_eq!((measured.operations, measured.failed), (80, 20));
    let read = measured.kind("READ").expect("reads");
    assert_eq!((read.oks, read.not_found, read.failed_count()), (30, 50, 20));
    assert_eq!(read.failures, BTreeMap::from([("io".to_owned(), 10), ("conflict".to_owned(), 10)]));
    let first = |kind: &str| measured.failures[kind].as_str();
    assert_eq!((first("io"), first("conflict")), ("call 3: no such page", "call 7: another was first"));
}

#[test]
fn a_run_in_which_nothing_succeeds_is_an_error() {
    let store = Answering(|_: &Request<'_>| Err(Failure::request("io", "the disk is gone")));
    let error = run_quietly(&store, &Reads { each: 10, requests: 1 }, &Plan::default()).expect_err("nothing succeeds");
    assert!(matches!(error, RunError::NothingMeasured { .. }), "{error}");
    assert_eq!(error.partial().map(|partial| partial.failed), Some(10));
    let text = error.to_string();
    assert!(text.contains("10 failed") && text.contains("first io: the disk is gone"), "{text}");
}

#[test]
fn a_run_without_operations_is_an_error() {
    let error =
        run_quietly(&Noop::waiting(), &Reads { each: 0, requests: 1 }, &Plan::default()).expect_err("there is nothing");
    assert!(matches!(error, RunError::NothingMeasured { .. }), "{error}");
    let short = Plan { length: Length::Operations(0), ..Plan::default() };
    let error = run_quietly(&Noop::waiting(), &reads(), &short).expect_err("there is nothing");
    assert!(matches!(error, RunError::NothingMeasured { .. }), "{error}");
}

#[test]
fn a_lost_session_ends_the_run_of_all() {
    let calls = AtomicU64::new(0);
    let store = Answering(|_: &Request<'_>| match calls.fetch_add(1, Ordering::SeqCst) {
        100 => Err(Failure::session("gone", "the server closed the connection")),
        _ => Ok(Outcome::Ok),
    });
    let error = run_quietly(&store, &reads(), &Plan { clients: 3, ..Plan::default() }).expect_err("a session is lost");
    assert!(error.to_string().contains("lost its session: the server closed the connection"), "{error}");
    let RunError::Lost { partial, .. } = error else { panic!("{error}") };
    assert!(partial.operations >= 98, "{} before", partial.operations);
    assert_eq!(partial.failed, 1);
    assert!(!partial.interrupted);
}

#[test]
fn a_session_that_is_refused_is_an_error() {
    let store = Refusing(AtomicU64::new(3));
    let error = run_quietly(&store, &reads(), &Plan { clients: 5, ..Plan::default() }).expect_err("no fourth session");
    assert!(matches!(error, RunError::Session { .. }), "{error}");
    assert!(error.to_string().contains("too many"), "{error}");
}

#[test]
fn a_panic_of_a_client_thread_is_an_error() {
    let calls = AtomicU64::new(0);
    let store = Answering(|_: &Request<'_>| {
        assert!(calls.fetch_add(1, Ordering::SeqCst) != 50, "a store with a bug");
        Ok(Outcome::Ok)
    });
    let error = run_quietly(&store, &reads(), &Plan { clients: 2, ..Plan::default() }).expect_err("it panics");
    let RunError::Panicked { text, .. } = &error else { panic!("{error}") };
    assert!(text.contains("a store with a bug"), "{text}");
}

#[test]
fn a_stopped_run_is_marked_and_keeps_what_it_has() {
    let stop = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    let store = Answering(|_: &Request<'_>| {
        stop.store(calls.fetch_add(1, Ordering::SeqCst) > 1000, Ordering::SeqCst);
        Ok(Outcome::Ok)
    });
    let plan = Plan { clients: 2, length: Length::Time(Duration::from_secs(1_000_000)), ..Plan::default() };
    let measured = run(&store, &reads(), &plan, &stop, &mut |_| {}).expect("what it has is good");
    check_sums(&measured);
    assert!(measured.interrupted);
    assert!(measured.operations > 1000);
}

#[test]
fn a_run_is_stopped_while_its_clients_sleep() {
    let (stop, called) = (AtomicBool::new(false), AtomicBool::new(false));
    let store = Answering(|_: &Request<'_>| {
        called.store(true, Ordering::SeqCst);
        Ok(Outcome::Ok)
    });
    // One operation begins at once, and the next one in a year.
    let plan = Plan { pace: Pace::Open { per_second: 3e-8 }, interval: Duration::from_millis(10), ..Plan::default() };
    let bad = run_quietly(&store, &reads(), &plan).expect_err("that is no rate");
    assert!(matches!(bad, RunError::Plan(_)), "{bad}");
    let plan = Plan { pace: Pace::Open { per_second: 1e-6 }, ..plan };
    let mut watch = |_: &Interval| stop.store(called.load(Ordering::SeqCst), Ordering::SeqCst);
    let measured = run(&store, &reads(), &plan, &stop, &mut watch).expect("one operation");
    check_sums(&measured);
    assert!(measured.interrupted);
    assert_eq!((measured.operations, measured.unsent), (1, 0));
}

#[test]
fn a_client_that_waits_for_a_new_attempt_makes_it() {
    let calls = AtomicU64::new(0);
    let store = Answering(|_: &Request<'_>| match calls.fetch_add(1, Ordering::SeqCst) {
        call if call < 3 => Err(Failure::again("conflict", "another was first")),
        _ => Ok(Outcome::Ok),
    });
    let measured = run_quietly(&store, &Stubborn { wait_nanos: |_| 1000 }, &Plan::default()).expect("runs");
    assert_eq!((measured.operations, measured.failed, measured.retries), (1, 0, 3));
    let kind = &measured.kinds[0];
    assert_eq!((kind.failures["conflict"], kind.retries, kind.failed_count()), (3, 3, 0), "none failed for good");
    assert!(!measured.has_failed());
}

#[test]
fn counts_of_the_store_are_those_of_the_window() {
    let store = Counting(AtomicU64::new(1_000));
    let plan = Plan { length: Length::Operations(100), ..Plan::default() };
    let measured = run_quietly(&store, &reads(), &plan).expect("runs");
    let change = |name: &str, before, after, gauge| Change { name: name.to_owned(), before, after, gauge };
    assert_eq!(measured.counters, [change("page reads", 1_000, 1_100, false), change("memory", 7, 7, true)]);
    assert_eq!(measured.counters[0].counted(), Some(100));
    assert_eq!(measured.counters[1].counted(), None);
}

#[test]
fn counts_of_the_store_are_kept_with_the_intervals() {
    let store = Counting(AtomicU64::new(1_000));
    let shown = Mutex::new(Vec::new());
    // Calls go on until two intervals were shown with the store's counters.
    let plan = Plan { interval: Duration::from_millis(1), ..Plan::default() };
    let stop = AtomicBool::new(false);
    let mut watch = |interval: &Interval| {
        let mut shown = shown.lock().expect("nothing panics with it");
        shown.extend(interval.counted.clone());
        stop.store(shown.len() >= 2, Ordering::Relaxed);
    };
    let measured = run(&store, &reads(), &plan, &stop, &mut watch).expect("runs");
    check_sums(&measured);
    let kept: Vec<Counted> = measured.intervals.iter().filter_map(|interval| interval.counted.clone()).collect();
    assert!(kept.len() >= 3 && kept.is_sorted_by_key(|counted| (counted.at_nanos, counted.counters["page reads"])));
    let last = kept.last().expect("there are three");
    assert_eq!(last.counters["page reads"], measured.counters[0].after, "the last one is the end of the window");
    let shown = shown.into_inner().expect("nothing panics with it");
    assert!(shown.iter().all(|counted| kept.contains(counted)), "what was shown is what is kept");
    for interval in measured.window() {
        assert!(interval.counted.as_ref().is_none_or(|counted| counted.at_nanos >= interval.to_nanos), "{interval:?}");
    }
}

#[test]
fn looking_at_the_store_takes_a_hundredth_of_the_time_at_most() {
    let plan = Plan { interval: Duration::from_nanos(1_000_000), ..Plan::default() };
    let timeline = timeline::Timeline::new(&plan, 0);
    let mut samples = Samples::default();
    assert_eq!(samples.due(999_999, &timeline), None, "no interval has ended");
    assert_eq!(samples.due(1_000_000, &timeline), Some(0));
    samples.taken(0, 1_000_000, 1_100_000);
    assert_eq!(samples.due(11_099_999, &timeline), None, "it took 0.1 ms, so the next is in 10 ms");
    assert_eq!(samples.due(11_100_000, &timeline), Some(10));
    samples.taken(10, 11_100_000, 11_100_000);
    assert_eq!(samples.due(11_100_001, &timeline), None, "once an interval is enough");
}

#[test]
fn a_plan_that_cannot_be_run_is_refused() {
    for plan in [
        Plan { clients: 0, ..Plan::default() },
        Plan { workers: 0, ..Plan::default() },
        Plan { clients: MOST_CLIENTS + 1, ..Plan::default() },
        Plan { workers: MOST_THREADS + 1, ..Plan::default() },
        Plan { interval: Duration::ZERO, ..Plan::default() },
        Plan { pace: Pace::Open { per_second: 0.0 }, ..Plan::default() },
        Plan { pace: Pace::Open { per_second: f64::NAN }, ..Plan::default() },
    ] {
        let error = run_quietly(&Noop::waiting(), &reads(), &plan).expect_err("cannot be run");
        assert!(matches!(error, RunError::Plan(_)), "{error}");
    }
}

#[test]
fn more_clients_than_threads_are_refused_by_a_store_whose_calls_wait_with_the_limit() {
    let plan = Plan { clients: MOST_THREADS + 1, length: Length::Operations(10_000), ..Plan::default() };
    let error = run_quietly(&Noop::waiting(), &reads(), &plan).expect_err("too many threads");
    let text = error.to_string();
    assert!(matches!(error, RunError::Plan(_)) && text.contains("1024 threads: 1025 clients"), "{text}");
    run_quietly(&Noop::flying(usize::MAX), &reads(), &plan).expect("they are no threads");
}

#[test]
fn an_operation_of_nothing_has_a_cost_on_either_kind_of_session() {
    for (clients, depth) in [(1, None), (1, Some(1)), (50, Some(16))] {
        let nanos = crate::noop_nanos(&reads(), clients, depth, 10_000, &AtomicBool::new(false)).expect("runs");
        assert!(nanos > 0.0, "{nanos}");
    }
}

#[test]
fn what_an_operation_of_nothing_costs_is_not_measured_once_the_run_is_to_end() {
    let stop = AtomicBool::new(true);
    for (clients, depth) in [(1, None), (50, Some(16))] {
        // Operations may be done before the first look at `stop`. If the loop did not look at `stop`, the call of
        // `noop_nanos` would never return.
        match crate::noop_nanos(&Reads { each: u64::MAX, requests: 1 }, clients, depth, u64::MAX, &stop) {
            Ok(_) => {}
            Err(RunError::NothingMeasured { partial }) => assert!(partial.interrupted),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn time_that_clients_take_to_wait_for_their_schedule_is_counted_apart() {
    for store in [Noop::waiting(), Noop::flying(4)] {
        let open = Plan { pace: Pace::Open { per_second: 1000.0 }, length: Length::Operations(50), ..Plan::default() };
        let cost = run_quietly(&store, &reads(), &open).expect("runs").cost;
        assert!(cost.pausing_nanos > 0 && cost.pausing_nanos <= cost.client_nanos, "{store:?}: {cost:?}");
        let closed = Plan { length: Length::Operations(50), ..Plan::default() };
        let cost = run_quietly(&store, &reads(), &closed).expect("runs").cost;
        assert_eq!(cost.pausing_nanos, 0, "{store:?}: {cost:?}");
    }
}

#[test]
fn a_limit_ends_a_run_as_if_it_were_done() {
    let limit = Some(Duration::from_millis(50));
    for length in [Length::All, Length::Operations(u64::MAX), Length::Time(Duration::from_secs(1_000_000))] {
        let plan = Plan { length, limit, interval: Duration::from_millis(20), ..Plan::default() };
        let measured = run_quietly(&Noop::waiting(), &reads(), &plan).expect("runs");
        assert!(!measured.interrupted, "{length:?}");
        assert_eq!((measured.nanos, measured.window().count()), (50_000_000, 3), "{length:?}");
    }
}

#[test]
fn what_a_load_gathered_is_written_once_and_within_the_window() {
    for (fails, clients) in [(false, 3), (true, 1)] {
        let store = Gathering { fails, finish_nanos: 20_000_000, finished: AtomicU64::new(0) };
        let plan = Plan { clients, loading: true, ..Plan::default() };
        let result = run_quietly(&store, &Reads { each: 10, requests: 1 }, &plan);
        assert_eq!(store.finished.into_inner(), clients as u64);
        match (fails, result) {
            (false, Ok(measured)) => {
                assert_eq!((measured.operations, measured.kinds[0].batched), (30, 30));
                assert!(measured.kinds[0].service.is_empty(), "a copy in memory is not timed as a write");
                assert!(measured.nanos >= 20_000_000, "{} ns, and writing alone takes 20 ms", measured.nanos);
            }
            (true, Err(error)) => assert!(error.to_string().contains("the disk is full"), "{error}"),
            (_, result) => panic!("{result:?}"),
        }
    }
}
