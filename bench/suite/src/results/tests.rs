use super::*;
use harness::report::figures::said;
use harness::{Change, Cost, Interval, Measure, Measured, Noted, Plan, Times};

/// A run with `kinds` of requests, in which hardly two numbers are equal.
pub fn run(name: &str, kinds: &[&str], counts: &[&str]) -> Run {
    // A Lehmer generator, so that the run is the same each time.
    let mut state = 48_271_u64;
    let mut random = move |most: u64| {
        state = state * 48_271 % 2_147_483_647;
        state % most
    };
    let mut times = |count: u64| {
        let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
        (0..count).for_each(|_| histogram.record(1_000 + random(9_000_000)).expect("it grows"));
        Times::from_hdr(&histogram)
    };
    let mut number = 1_000;
    let mut next = || {
        number = number * 11 / 10 + 13;
        number
    };
    let mut kind = |name: &&str| {
        let done = 20_000 + next();
        let service = times(done);
        let (retries, failed, rolled_back) = (next() % 5_000, next() % 3_000, next() % 200);
        Measure {
            name: (*name).to_owned(),
            oks: done - rolled_back,
            rolled_back,
            response: Some(Times::sum([&service, &service])),
            waited: Some(times(done)),
            service,
            retries,
            failures: [("conflict".to_owned(), failed + retries)].into(),
            rows: next(),
            bytes: next() * 1_000,
            ..Measure::default()
        }
    };
    let kinds: Vec<Measure> = kinds.iter().map(&mut kind).collect();
    let operations = kinds.iter().map(Measure::done).sum();
    let interval = Interval { to_nanos: 12_345_678_901, operations, kinds: kinds.clone(), ..Interval::default() };
    let cost = Cost {
        user_nanos: 5_123_456_789,
        system_nanos: 1_987_654_321,
        client_nanos: 4_321_000_000,
        background_nanos: 1_230_000_000,
        client_threads: 2,
        voluntary_switches: 314_159,
        involuntary_switches: 2_718,
        resident_bytes: 77 << 20,
        peak_bytes: 99 << 20,
        disk_read_bytes: Some(123_456_789),
        disk_written_bytes: Some(987_654_321),
        ..Cost::default()
    };
    let change = |name: &str, after, gauge| Change { name: name.to_owned(), before: 0, after, gauge };
    let measured = Measured {
        began_unix_millis: 1_700_000_000_123,
        nanos: 12_345_678_901,
        clients: 37,
        operations,
        failed: 4_711,
        retries: kinds.iter().map(|kind| kind.retries).sum(),
        kinds,
        counts: counts
            .iter()
            .zip(321_u64..)
            .map(|(name, at)| Noted { name: (*name).to_owned(), value: 17 * at })
            .collect(),
        intervals: vec![interval],
        warmed: 61,
        cut: 73,
        unsent: 5_557,
        cost,
        counters: vec![
            change("page reads", 654_321, false),
            change("cache bytes", 13_579_000, true),
            change("file bytes", 1_234_567_890, true),
            change("memtable bytes", 98_765_432, true),
        ],
        failures: [("conflict".to_owned(), "key 83 was changed".to_owned())].into(),
        ..Measured::default()
    };
    let mut run = Run::new(name, "larch:db", &Plan::default(), measured);
    (run.noop_nanos, run.settled_nanos, run.price) = (Some(1_234.5), Some(8_765_432_100), Some(0.0417));
    run
}

/// Checks that the JSON, the table and the page of `run` have every number of `text`, which its command prints.
#[track_caller]
pub fn check(run: &Run, text: &str) {
    let mut report = Report::new(Environment::default());
    report.runs = vec![with_figures(run)];
    let json: serde_json::Value = serde_json::from_str(&report.json()).expect("it is JSON");
    let table = csv::csv(&report.runs);
    let page = report_page::page(&[("a".to_owned(), report.clone())], None).html();
    check_outputs(text, &json["runs"][0], &table, &page);
}

/// Checks that three outputs of a result have every number of `text`.
#[track_caller]
pub fn check_outputs(text: &str, json: &serde_json::Value, table: &str, page: &str) {
    let (none, text) = (Vec::<String>::new(), &said::without_labels(text));
    assert!(said::numbers(text).len() > 12, "{text}");
    assert_eq!(said::missing(text, &said::of_json(json)), none, "not in the JSON:\n{text}");
    assert_eq!(said::missing(text, &said::of_csv(table)), none, "not in the table:\n{text}");
    let (_, figures) = page.split_once("<details><summary>All figures of").expect("the page has a list");
    let figures: String =
        figures.split('<').filter_map(|part| Some(part.split_once('>')?.1)).collect::<Vec<_>>().join(" ");
    assert_eq!(said::missing_in_text(text, &figures.replace("&#39;", "'")), none, "not on the page:\n{text}");
}

#[test]
fn a_number_that_a_file_lacks_is_found() {
    let run = run("workload a", &["READ"], &[]);
    let told = harness::report::text::text(&run);
    let caught = std::panic::catch_unwind(|| check(&run, &format!("{told}\n  forgotten: 424,243\n")));
    assert!(caught.is_err(), "the check would not notice a new figure");
}

#[test]
fn the_same_file_is_not_written_twice() {
    let (one, other) = (Path::new("/tmp/a.json"), Path::new("/tmp/a.json"));
    let failure = check_all([("--out", one), ("--csv", other)]).expect_err("one would replace the other");
    assert!(failure.to_string().contains("--out and --csv both name /tmp/a.json"), "{failure}");
}
