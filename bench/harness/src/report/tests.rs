use super::*;
use crate::measured::{Change, Interval, Measure, Noted};
use crate::noop::Noop;
use crate::plan::{Length, Pace};
use crate::times::{Tally, Times};
use crate::{Client, Cost, Extra, Failure, Fields, Kind, Next, Outcome, Reply, Request, Workload};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Clients that read. Every fifth read is reported as failed.
struct Reads;

struct Reader(u64);

impl Workload for Reads {
    type Client = Reader;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ", "OTHER"]
    }

    fn client(&self, _: usize, _: usize) -> Reader {
        Reader(0)
    }
}

impl Client for Reader {
    fn begin(&mut self) -> bool {
        self.0 += 1;
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(0), Request::Read { key: b"key", fields: Fields::All })
    }

    fn served(&mut self, _: Result<Outcome, &Failure>, _: &Reply, extra: &mut Extra<'_>) -> Next {
        match self.0 % 5 {
            0 => {
                extra.note(Kind(1), 100, Err("not_as_written"));
                Next::Failed
            }
            _ => Next::Done,
        }
    }
}

/// Makes a real run, and returns it.
fn real(pace: Pace) -> Run {
    let plan = Plan {
        clients: 3,
        pace,
        warmup: Duration::from_millis(20),
        length: Length::Operations(500),
        interval: Duration::from_millis(10),
        ..Plan::default()
    };
    let measured = crate::run(&Noop::waiting(), &Reads, &plan, &AtomicBool::new(false), &mut |_| {}).expect("runs");
    let mut run = Run::new("reads", "noop:", &plan, measured);
    run.settings.push(Pair::new("engine", "none"));
    run.workload.push(Pair::new("readproportion", "1.0"));
    run.seed = u64::MAX;
    run.noop_nanos = Some(59.5);
    run
}

/// A run in which every number is known.
pub(super) fn known() -> Run {
    let times = |nanos: &[u64]| {
        let mut tally = Tally::<u64>::new();
        nanos.iter().for_each(|nanos| tally.add_times(&one(*nanos)));
        tally.times()
    };
    let measure = Measure {
        name: "READ".to_owned(),
        service: times(&[1_000, 2_000, 1_000_000]),
        response: Some(times(&[1_500, 3_000, 2_000_000])),
        waited: Some(times(&[500, 1_000, 1_000_000])),
        failed: times(&[7_000]),
        oks: 2,
        not_found: 1,
        failures: BTreeMap::from([("io".to_owned(), 1)]),
        rows: 2,
        bytes: 200,
        ..Measure::default()
    };
    let none = Measure { name: "SCAN".to_owned(), response: Some(Times::default()), ..Measure::default() };
    let kinds = vec![measure, none];
    let counts = vec![Noted { name: "lines of orders".to_owned(), value: 12_345 }];
    let interval = Interval {
        from_nanos: 0,
        to_nanos: 500_000_000,
        operations: 3,
        failed: 1,
        client_nanos: 4_000_000,
        kinds: kinds.clone(),
        counts: counts.clone(),
        ..Interval::default()
    };
    let cost = Cost {
        user_nanos: 5_000_000,
        system_nanos: 1_000_000,
        client_nanos: 4_000_000,
        background_nanos: 1_500_000,
        client_threads: 2,
        voluntary_switches: 12_345,
        involuntary_switches: 6,
        resident_bytes: 64 << 20,
        peak_bytes: 65 << 20,
        peak_of_window: true,
        ..Cost::default()
    };
    let change = |name: &str, before, after, gauge| Change { name: name.to_owned(), before, after, gauge };
    let measured = Measured {
        began_unix_millis: 1_700_000_000_123,
        nanos: 500_000_000,
        clients: 2,
        operations: 3,
        failed: 1,
        retries: 4,
        kinds,
        counts,
        intervals: vec![interval],
        warmed: 1,
        cut: 2,
        unsent: 1_000,
        interrupted: true,
        cost,
        counters: vec![change("page reads", 10, 1_244, false), change("bytes cached", 0, 4_096, true)],
        failures: BTreeMap::from([("io".to_owned(), "page 7 of a file is torn".to_owned())]),
    };
    let mut run = Run::new("workload a", "postgres://me:secret@host/base?pool=2", &Plan::default(), measured);
    run.settings = vec![Pair::new("engine", "PostgreSQL 17"), Pair::new("durability", "off")];
    run.noop_nanos = Some(250_000.0);
    run.warnings.push("the client threads were busy".to_owned());
    run
}

fn one(nanos: u64) -> Times {
    let mut tally = Tally::<u64>::new();
    tally.record(nanos);
    tally.times()
}

#[test]
fn a_report_comes_back_from_json() {
    let mut report = Report::new(Environment::gather("0.1.0", Path::new(".")));
    report.runs.push(real(Pace::Closed));
    report.runs.push(real(Pace::Open { per_second: 12_345.6 }));
    report.runs.push(known());
    let json = report.json();
    assert_eq!(Report::parse(&json).expect("reads"), report);
    let value: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let client = value["runs"][2]["million"]["client_cpu_seconds"].as_f64().expect("it is written with each run");
    assert!((249.9..250.1).contains(&client), "{client}");
    assert!(!json.contains("secret"));
}

#[test]
fn counts_of_clients_are_left_out_where_there_are_none() {
    let mut run = known();
    assert!(text::text(&run).contains("lines of orders"));
    assert!(serde_json::to_string(&run).expect("it is JSON").contains(r#""counts":[{"name":"lines of orders""#));
    run.measured.counts.clear();
    run.measured.intervals[0].counts.clear();
    assert!(!text::text(&run).contains("lines of orders"));
    assert!(!serde_json::to_string(&run).expect("it is JSON").contains("\"counts\""));
}

#[test]
fn a_report_comes_back_from_a_file() {
    let folder = crate::conformance::Scratch::new("report");
    let path = folder.path().join("result.json");
    let mut report = Report::new(Environment::default());
    report.runs.push(known());
    report.write(&path).expect("writes");
    assert_eq!(Report::read(&path).expect("reads"), report);
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("lists").collect();
    assert_eq!(names.len(), 1, "nothing else is left there");
    let error = Report::read(&folder.path().join("none.json")).expect_err("is not there");
    assert!(error.to_string().contains("none.json"), "{error}");
}

#[test]
fn results_of_older_releases_are_read() {
    fn without(value: &mut serde_json::Value, members: &[&str]) {
        match value {
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| without(value, members)),
            serde_json::Value::Object(object) => {
                members.iter().for_each(|member| drop(object.remove(*member)));
                object.values_mut().for_each(|value| without(value, members));
            }
            _ => {}
        }
    }
    let mut report = Report::new(Environment::gather("0.1.0", Path::new(".")));
    report.runs.push(real(Pace::Closed));
    let mut json = serde_json::from_str(&report.json()).expect("it is JSON");
    let newer = ["file_system", "disk", "huge_pages", "governor", "counted", "million", "store", "disk_read_bytes"];
    without(&mut json, &newer);
    without(&mut json, &["disk_written_bytes", "slack_nanos", "counts"]);
    let read = Report::parse(&json.to_string()).expect("it lacks nothing that it must have");
    assert_eq!(read.runs[0].measured.operations, report.runs[0].measured.operations);
    let million = read.runs[0].million(None);
    assert!(
        million.store_cpu_seconds.is_some(),
        "the client was subtracted, so the store was in the process: {million:?}"
    );
}

#[test]
fn a_request_that_was_retried_is_no_failure() {
    let mut run = known();
    run.measured.failed = 0;
    run.measured.intervals[0].failed = 0;
    for kinds in [&mut run.measured.kinds, &mut run.measured.intervals[0].kinds] {
        kinds.iter_mut().for_each(|kind| kind.retries = kind.failures.values().sum());
    }
    assert!(!run.measured.has_failed());
    let told = text::text(&run);
    assert!(told.contains("first io of those that were retried: page 7"), "{told}");
    run.measured.kinds[0].retries = 0;
    assert!(run.measured.has_failed());
}

#[test]
fn what_is_no_report_is_refused() {
    let good = Report::new(Environment::default()).json();
    let refused = |text: &str| Report::parse(text).expect_err("is no report");
    assert!(refused("").contains("EOF"), "empty");
    assert!(refused("{}").contains("format"));
    assert!(refused(&good.replace("larch-bench-result", "something")).contains("`something`"));
    assert!(refused(&good.replace("\"version\": 1", "\"version\": 9")).contains("newer Larch: version 9"));
    let with = |member: &str| good.replace("\"version\": 1,", &format!("\"version\": 1, {member},"));
    assert!(refused(&with("\"requires\": [\"sketches\"]")).contains("newer Larch: sketches"));
    assert!(Report::parse(&with("\"sketches\": [1, 2]")).is_ok(), "a member that is not required is passed over");
    assert!(refused(&good.replace("\"runs\": []", "\"runs\": 5")).contains("invalid type"));
    for length in 0..good.trim_end().len() {
        assert!(Report::parse(&good[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn a_table_of_intervals_has_a_line_for_each_kind() {
    let run = known();
    let table = csv::csv([&run]);
    let lines: Vec<&str> = table.lines().collect();
    let columns = "run,target,warming,from_seconds,to_seconds,kind,oks,not_found,batched,failed,per_second,times,\
                   mean_nanos,min_nanos,p50_nanos,p90_nanos,p95_nanos,p99_nanos,p99_9_nanos,p99_99_nanos,max_nanos,\
                   rolled_back,retries,figure,value,unit,note";
    let place = "workload a,postgres://me:***@host/base?pool=2,0,0.000,0.500";
    let operations = format!("{place},OPERATIONS,3,,,1,6.0,,,,,,,,,,,,0,,,,");
    let read = format!("{place},READ,2,1,0,1,6.0,response,668295.0,1500,,,,,,,2000895,0,0,,,,");
    let scan = format!("{place},SCAN,0,0,0,0,0.0,response,,,,,,,,,,0,0,,,,");
    assert_eq!(lines[..4], [columns, &operations, &read, &scan]);
    let window = "workload a,postgres://me:***@host/base?pool=2,,,,run,,,,,,,,,,,,,,,,,,window,500000000,ns,";
    assert_eq!(lines[4], window);
    assert_eq!(lines.len(), 4 + figures::figures(&run).len());
}

#[test]
fn a_log_of_histograms_is_read_by_its_own_library() {
    let run = real(Pace::Open { per_second: 5_000.0 });
    let log = hdr_log::hdr_log(&run);
    let mut response = Tally::<u64>::new();
    let mut service = Tally::<u64>::new();
    let mut decoder = hdrhistogram::serialization::Deserializer::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(interval) = entry.expect("a line that is understood") else { continue };
        use base64::Engine;
        let bytes = base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram()).expect("base64");
        let times = Times::from_hdr(&decoder.deserialize::<u64, _>(&mut bytes.as_slice()).expect("a histogram"));
        match interval.tag().map(|tag| tag.as_str()) {
            Some("READ") => response.add_times(&times),
            Some("READ-service") => service.add_times(&times),
            other => panic!("{other:?}"),
        }
    }
    let read = run.measured.kind("READ").expect("reads");
    assert_eq!(Some(response.times()), read.response);
    assert_eq!(service.times(), read.service);
}

#[test]
fn a_run_is_told_to_people() {
    let expected = "\
workload a on postgres://me:***@host/base?pool=2
  engine: PostgreSQL 17; durability: off
  INTERRUPTED: what follows is what there was until then
  3 operations in 500 ms: 6.00/s, 1 failed, 2 clients
                     count  per second    mean  p50  p95  p99  p99.9      max  retries  rolled back  failed
    READ                 3        6.00  668 us    -    -    -      -  2.00 ms        0            0       1
      of it service      3        6.00  334 us    -    -    -      -  1.00 ms        0            0       1
  1 requests met no row, 1 began before the window, 2 ended after it, 1,000 should have begun in it and did not, 4 retries
  lines of orders: 12,345, 24,690/s
  processor: 6.00 ms (5.00 ms user, 1.00 ms system); clients 1.00 ms an operation, of which 25 % (250 us) are the client's own; background 1.50 ms
  memory: 64.0 MiB at the end, 65.0 MiB at most; context switches: 12,345 to wait, 6 forced
  a million operations: processors: client 250 s, store 1250 s; disk: read not known, written not known
  store: 1,234 page reads, 4,096 bytes cached now
  first io: page 7 of a file is torn
  WARNING: SHORT WINDOW of 500 ms: it is below ten seconds, so another run may give other figures
  WARNING: the client threads were busy
";
    assert_eq!(text::text(&known()), expected);
    let line = text::line(&known().measured.intervals[0]);
    assert_eq!(line, "    0.5 s       6.00/s  READ 3 (mean 668 us, p99 -, max 2.00 ms)  1 failed");
}

#[test]
fn numbers_for_people_have_three_digits() {
    let nanos = [0.4, 999.4, 999.6, 1_234.0, 45_678.0, 999_600.0, 2_345_678.0, 60e9].map(text::nanos);
    assert_eq!(nanos, ["0 ns", "999 ns", "1.00 us", "1.23 us", "45.7 us", "1.00 ms", "2.35 ms", "60.0 s"]);
    assert_eq!([0, 1023, 1024, 5 << 30].map(text::bytes), ["0 B", "1023 B", "1.00 KiB", "5.00 GiB"]);
    assert_eq!([0.0, 12.345, 99.96, 1234.5].map(text::rate), ["0.00", "12.3", "100", "1,235"]);
    assert_eq!([0, 999, 1_000, 1_234_567].map(text::grouped), ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn a_property_that_is_a_password_is_not_written_down() {
    assert_eq!(Pair::property("db.passwd", "secret").value, "***");
    assert_eq!(Pair::property("recordcount", "1000").value, "1000");
}

#[test]
fn what_is_no_file_is_written_to_and_not_replaced() {
    let scratch = crate::conformance::Scratch::new("special");
    let place = scratch.path();
    let sink = place.join("sink");
    std::os::unix::fs::symlink("/dev/null", &sink).expect("a link");
    check_place(&sink).expect("it takes all");
    write_whole(&sink, b"a result").expect("it takes all");
    assert!(sink.is_symlink(), "it is what it was");
    let file = place.join("result");
    check_place(&file).expect("there is room");
    assert!(!file.exists());
    write_whole(&file, b"a result").expect("there is room");
    assert_eq!(std::fs::read(&file).expect("it was written"), b"a result");
    for nowhere in [place.join("no/such/place"), place.to_path_buf()] {
        assert!(check_place(&nowhere).is_err() && write_whole(&nowhere, b"a result").is_err());
    }
    assert_eq!(std::fs::read_dir(place).expect("it is there").count(), 2, "nothing else is left");
}

#[test]
fn a_load_whose_rows_were_gathered_has_counts_and_no_times() {
    let mut run = known();
    let kind = &mut run.measured.kinds[0];
    (kind.name, kind.oks, kind.not_found, kind.batched) = ("INSERT".to_owned(), 0, 0, 1_000);
    (kind.service, kind.response, kind.waited) = (Times::default(), None, None);
    let told = text::text(&run);
    let line = told.lines().find(|line| line.trim_start().starts_with("INSERT  ")).expect("it is in the table");
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells[0..2], ["INSERT", "1,000"], "{told}");
    assert_eq!(cells[3..9], ["-"; 6], "{told}");
    assert!(
        told.contains("1,000 rows were gathered in memory and written with others, so there are no times"),
        "{told}"
    );
    let interval = Interval { to_nanos: 1_000_000_000, kinds: run.measured.kinds.clone(), ..Interval::default() };
    let line = text::line(&interval);
    assert!(line.contains("INSERT 1,000") && !line.contains("p99"), "{line}");
}
