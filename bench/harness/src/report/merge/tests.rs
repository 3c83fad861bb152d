use super::*;
use crate::noop::Noop;
use crate::report::environment::Environment;
use crate::{Client, Extra, Failure, Fields, Kind, Next, Outcome, Reply, Request, Workload};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Clients that read. Every fifth request is of another kind.
struct Reads;

struct Reader(u64);

impl Workload for Reads {
    type Client = Reader;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ", "OTHER"]
    }

    fn counts(&self) -> &'static [&'static str] {
        &["things"]
    }

    fn client(&self, number: usize, _: usize) -> Reader {
        Reader(number as u64)
    }
}

impl Client for Reader {
    fn begin(&mut self) -> bool {
        self.0 += 1;
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(u8::from(self.0.is_multiple_of(5))), Request::Read { key: b"key", fields: Fields::All })
    }

    fn served(&mut self, _: Result<Outcome, &Failure>, _: &Reply, extra: &mut Extra<'_>) -> Next {
        extra.count(0, 3);
        Next::Done
    }
}

fn whole() -> Plan {
    Plan {
        clients: 6,
        workers: 1,
        warmup: Duration::from_millis(10),
        length: Length::Operations(6_000),
        interval: Duration::from_millis(5),
        ..Plan::default()
    }
}

/// Runs one share, and returns the run.
fn run_of(share: Share) -> Run {
    let plan = share.plan(&whole()).expect("each has clients");
    let part = share.part(&Reads, whole().clients);
    let stop = AtomicBool::new(false);
    let measured = crate::run(&Noop::flying(2), &part, &plan, &stop, &mut |_| {}).expect("it runs");
    let mut run = Run::new("reads", "noop:", &plan, measured);
    run.workload = vec![Pair::new("records", "100")];
    run.share = Some(share);
    run.seed = 7;
    run
}

fn three() -> Vec<Run> {
    (0..3).map(|number| run_of(Share::new(number, 3))).collect()
}

fn merged(runs: &[Run]) -> Result<Run, String> {
    let names = ["one", "two", "three"];
    Run::merged(&names.into_iter().zip(runs).collect::<Vec<_>>())
}

#[test]
fn a_merged_run_has_every_time_and_count_of_its_parts() {
    let runs = three();
    let whole_run = merged(&runs).expect("they are of one run");
    let measured = &whole_run.measured;
    assert_eq!(whole_run.plan, Plan { workers: 3, ..whole() }, "the shares are all of it");
    assert_eq!((measured.operations, measured.clients, whole_run.share), (6_000, 6, None));
    for (number, kind) in measured.kinds.iter().enumerate() {
        let parts = || runs.iter().map(|run| &run.measured.kinds[number]);
        assert_eq!(kind.service, Times::sum(parts().map(|part| &part.service)));
        assert_eq!(kind.oks, parts().map(|part| part.oks).sum::<u64>());
        assert_eq!(kind.times().count(), kind.done());
    }
    let window = || measured.window();
    assert_eq!(window().map(|interval| interval.operations).sum::<u64>(), 6_000);
    let in_kinds = Times::sum(window().map(|interval| &interval.kinds[0].service));
    assert_eq!(in_kinds, measured.kinds[0].service, "intervals add up to the whole");
    let things: u64 = runs.iter().map(|run| run.measured.counts[0].value).sum();
    assert_eq!(measured.counts, [Noted { name: "things".to_owned(), value: things }]);
    let used: u64 = runs.iter().map(|run| run.measured.cost.client_nanos).sum();
    assert_eq!(measured.cost.client_nanos, used);
    assert!(!whole_run.warnings.iter().any(|warning| warning.contains("missing")), "{:?}", whole_run.warnings);
    // A report is read as it was written. The shares may be merged in any order with the same result.
    let mut report = Report::new(Environment::default());
    report.runs.push(whole_run.clone());
    let read = Report::parse(&report.json()).expect("it was written");
    assert_eq!(read.runs[0].measured, whole_run.measured);
    let turned: Vec<Run> = runs.iter().rev().cloned().collect();
    let turned = merged(&turned).expect("they are of one run");
    assert_eq!(
        (turned.measured.kinds, turned.measured.intervals),
        (measured.kinds.clone(), measured.intervals.clone())
    );
}

#[test]
fn runs_that_differ_are_refused_by_what_differs() {
    let check = |change: fn(&mut Run), expected: &str| {
        let mut runs = three();
        change(&mut runs[1]);
        let why = merged(&runs).expect_err(expected);
        assert!(why.contains(expected) && why.contains("two"), "{expected:?} is not in {why:?}");
    };
    check(|run| run.name = "writes".to_owned(), "the workload is `reads` in one and `writes` in the other");
    check(|run| run.target = "larch:db".to_owned(), "the kind of target is `noop` in one and `larch` in the other");
    check(|run| run.workload[0].value = "9".to_owned(), "records is `100` in one and `9` in the other");
    check(|run| run.workload.clear(), "records is `100` in one and `not there` in the other");
    check(|run| run.plan.length = Length::Time(Duration::from_secs(3)), "the length is");
    check(|run| run.plan.pace = Pace::Open { per_second: 3.0 }, "the pace is `closed` in one and `open` in the other");
    check(|run| run.plan.warmup = Duration::ZERO, "the warm-up is `10ms` in one and `0ns` in the other");
    check(|run| run.plan.interval = Duration::from_secs(1), "the interval is");
    check(|run| run.measured.kinds[1].name = "SCAN".to_owned(), "what is counted is");
    check(|run| run.share = None, "is a whole run");
    check(|run| run.share = Some(Share::new(0, 3)), "are both share 1/3");
    check(|run| run.share = Some(Share::new(1, 2)), "is share 2/2");
}

#[test]
fn what_is_missing_or_was_not_together_is_said() {
    let mut runs = three();
    runs.remove(1);
    let without = merged(&runs).expect("two are there");
    assert!(without.warnings.contains(&"a part of the run is missing: share 2/3".to_owned()), "{:?}", without.warnings);

    let mut runs = three();
    runs[2].measured.began_unix_millis = runs[0].measured.began_unix_millis + 7_000;
    runs[1].error = Some("the disk is full".to_owned());
    runs[1].measured.interrupted = true;
    let apart = merged(&runs).expect("they are of one run");
    assert!(apart.warnings.iter().any(|warning| warning.contains("ms apart")), "{:?}", apart.warnings);
    assert_eq!(apart.error.as_deref(), Some("two: the disk is full"));
    assert!(apart.measured.interrupted);
}

#[test]
fn a_server_is_counted_once_and_stores_of_processes_add_up() {
    let with = |store: StoreUse, counted: u64| {
        let counter = |name: &str, before, gauge| Change { name: name.to_owned(), before, after: 5 + counted, gauge };
        let cost = Cost { store: Some(store), peak_bytes: 10, ..Cost::default() };
        Measured { cost, counters: vec![counter("reads", 5, false), counter("bytes", 0, true)], ..Measured::default() }
    };
    let server = |nanos| StoreUse::Server(ServerUse { nanos, read_bytes: Some(nanos), written_bytes: None });
    let merged = Measured::merged(&[with(server(100), 30), with(server(90), 40)]);
    assert_eq!(merged.cost.store, Some(server(100)));
    assert_eq!(merged.counters.iter().map(|change| change.after).collect::<Vec<_>>(), [45, 45]);
    assert_eq!(merged.cost.peak_bytes, 20);
    let merged = Measured::merged(&[with(StoreUse::InProcess, 30), with(StoreUse::InProcess, 40)]);
    assert_eq!(merged.counters[0].counted(), Some(70));
    let merged = Measured::merged(&[with(StoreUse::InProcess, 1), with(StoreUse::Unknown, 1)]);
    assert_eq!(merged.cost.store, Some(StoreUse::Unknown));
}

#[test]
fn requests_that_never_waited_have_their_service_time_as_response_time() {
    let plain = Measure { service: Times::zeros(3), oks: 3, ..Measure::default() };
    let queued = Measure { response: Some(Times::zeros(2)), waited: Some(Times::zeros(2)), oks: 2, ..plain.clone() };
    let sum = measure(&[&plain, &queued]);
    assert_eq!(sum.times().count(), 5);
    assert_eq!(sum.waited.map(|waited| waited.count()), Some(5));
}

#[test]
fn counts_of_a_file_that_cannot_be_are_no_panic() {
    let much = Measure { oks: u64::MAX, service: Times::zeros(u64::MAX - 1), ..Measure::default() };
    let part = Measured { operations: u64::MAX, kinds: vec![much], ..Measured::default() };
    let merged = Measured::merged([&part, &part]);
    assert_eq!((merged.operations, merged.kinds[0].service.count()), (u64::MAX, u64::MAX));
}
