//! Operations that lie across an edge of the window are not measured, but are counted separately.

use super::*;

/// Waits until another thread sets `flag`.
pub(super) fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

#[test]
fn what_crosses_an_edge_of_the_window_is_not_in_it() {
    let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let calls = AtomicU64::new(0);
    // The first call lasts until the window has begun, and the twelfth call lasts until the window has ended.
    let store = Answering(|_: &Request<'_>| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => {
            wait_for(&begun);
            Ok(Outcome::NotFound)
        }
        11 => {
            wait_for(&ended);
            Ok(Outcome::Batched)
        }
        _ => Ok(Outcome::Ok),
    });
    let plan = Plan {
        warmup: Duration::from_millis(300),
        length: Length::Time(Duration::from_millis(300)),
        interval: Duration::from_millis(300),
        ..Plan::default()
    };
    let mut late = Vec::new();
    let mut watch = |interval: &Interval| {
        late.push((interval.warming, interval.late));
        let flag = if interval.warming { &begun } else { &ended };
        flag.store(true, Ordering::SeqCst);
    };
    let workload = Reads { each: u64::MAX, requests: 1 };
    let measured = run(&store, &workload, &plan, &AtomicBool::new(false), &mut watch).expect("runs");
    check_sums(&measured);
    assert_eq!((measured.operations, measured.warmed, measured.cut), (10, 1, 1));
    let read = measured.kind("READ").expect("reads");
    assert_eq!((read.oks, read.not_found, read.batched), (10, 0, 0));
    assert_eq!(measured.nanos, 300_000_000);
    assert_eq!(late, [(true, 1), (false, 1)], "a thread that waits for the store is said to be late");
    assert!(!measured.interrupted);
}

#[test]
fn what_is_told_late_is_in_the_result() {
    let shown = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    // Ten calls lie in the first interval. The next call lasts beyond the interval's end, so the first ten calls are
    // reported late.
    let store = Answering(|_: &Request<'_>| {
        if calls.fetch_add(1, Ordering::SeqCst) == 10 {
            wait_for(&shown);
        }
        Ok(Outcome::Ok)
    });
    let mut first = None;
    let mut watch = |interval: &Interval| {
        first.get_or_insert(interval.clone());
        shown.store(true, Ordering::SeqCst);
    };
    let plan = Plan { interval: Duration::from_millis(300), ..Plan::default() };
    let workload = Reads { each: 20, requests: 1 };
    let measured = run(&store, &workload, &plan, &AtomicBool::new(false), &mut watch).expect("runs");
    check_sums(&measured);
    let first = first.expect("an interval was shown");
    assert_eq!((first.operations, first.late), (0, 1));
    assert_eq!(first.told_late, []);
    assert_eq!(measured.intervals[0].operations, 10);
    assert_eq!(measured.operations, 20);
}

#[test]
fn a_warm_up_is_kept_beside_the_window() {
    let plan = Plan {
        clients: 3,
        ramp: Duration::from_millis(30),
        warmup: Duration::from_millis(40),
        length: Length::Operations(1000),
        interval: Duration::from_millis(20),
        ..Plan::default()
    };
    let measured = run_quietly(&Noop::waiting(), &Reads { each: u64::MAX, requests: 1 }, &plan).expect("runs");
    assert_eq!(measured.operations, 1000);
    let warming: Vec<_> = measured.intervals.iter().filter(|interval| interval.warming).collect();
    assert_eq!(warming.len(), 4);
    assert_eq!((warming[3].from_nanos, warming[3].to_nanos), (60_000_000, 70_000_000));
    assert!(warming.iter().map(|interval| interval.operations).sum::<u64>() > 0);
}
