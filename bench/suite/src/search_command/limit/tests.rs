use super::{Limit, Objective};
use harness::report::Run;
use harness::{Cost, Measure, Measured, Plan, Times};

const SECOND: u64 = 1_000_000_000;

/// A run of a second with 2000 requests of `service_micros`, by one thread that used `client_nanos`, of which it waited
/// `pausing_nanos`.
fn run(service_micros: u64, clients: u64, client_nanos: u64, pausing_nanos: u64, noop_nanos: Option<f64>) -> Run {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    histogram.record_n(service_micros * 1000, 2000).expect("it grows");
    let kind = Measure { service: Times::from_hdr(&histogram), oks: 2000, ..Measure::default() };
    let cost = Cost { client_nanos, pausing_nanos, client_threads: 1, ..Cost::default() };
    let measured =
        Measured { nanos: SECOND, clients, operations: 2000, kinds: vec![kind], cost, ..Measured::default() };
    let mut run = Run::new("run", "noop:", &Plan::default(), measured);
    run.noop_nanos = noop_nanos;
    run
}

fn limit(run: &Run, is_networked: bool) -> Option<Limit> {
    Limit::of(run, Objective::parse("p99<1ms").expect("it is one"), is_networked)
}

#[test]
fn a_client_that_works_all_the_time_is_the_limit_of_a_server() {
    assert_eq!(limit(&run(100, 16, SECOND * 9 / 10, 0, None), true), Some(Limit::Processor(0.9)));
    let waiting = limit(&run(100, 16, SECOND * 9 / 10, SECOND / 2, None), true);
    assert!(!matches!(waiting, Some(Limit::Processor(_))), "most of it was waiting: {waiting:?}");
}

#[test]
fn the_work_of_a_store_in_the_process_is_not_the_clients() {
    let store = limit(&run(100, 16, SECOND, 0, Some(1000.0)), false);
    assert!(!matches!(store, Some(Limit::Processor(_))), "{store:?}");
    assert_eq!(limit(&run(100, 16, SECOND, 0, Some(400_000.0)), false), Some(Limit::Processor(0.8)));
    assert_eq!(limit(&run(100, 16, SECOND, 0, None), false), None, "its part is not known");
}

#[test]
fn too_few_clients_are_the_limit_if_the_requests_were_served_in_time() {
    assert_eq!(
        limit(&run(480, 1, SECOND / 2, 0, None), true).map(|limit| matches!(limit, Limit::Clients(_))),
        Some(true)
    );
    let free = limit(&run(480, 4, SECOND / 2, 0, None), true);
    assert!(
        matches!(free, Some(Limit::Late(share)) if share > 0.7),
        "operations were begun late for another reason: {free:?}"
    );
    assert_eq!(limit(&run(4800, 10, SECOND / 2, 0, None), true), None, "the store did not serve in time");
}
