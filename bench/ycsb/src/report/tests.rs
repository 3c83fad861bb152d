use super::java::{date, double, remaining, short};
use super::seed_line::seed_line;
use super::{Status, export, hdr_logs};
use crate::properties::Properties;
use crate::settings::{Output, Settings};
use crate::vectors::named;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness::{Interval, Measure, Measured, Times};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use std::collections::BTreeMap;

fn times(micros: impl IntoIterator<Item = u64>) -> Times {
    let mut histogram = Histogram::<u64>::new(3).expect("three digits");
    // The time is a little more than a whole microsecond or millisecond. Therefore rounding to three digits does
    // not change the whole part.
    let beyond = |micros: u64| if micros >= 1000 && micros.is_multiple_of(1000) { 5000 } else { 500 };
    micros.into_iter().for_each(|micros| histogram.record(micros * 1000 + beyond(micros)).expect("it grows"));
    Times::from_hdr(&histogram)
}

fn output(text: &str) -> Output {
    let mut properties = Properties::new();
    text.split_whitespace().for_each(|pair| properties.set_argument(pair).expect("a property"));
    Settings::new(&properties, &|_| Err("no file".to_owned())).expect("good values").output
}

/// The same measurements as in `Vectors.java`.
fn measured(unit: u64) -> Measured {
    let names = ["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE", "VERIFY"];
    let kind = |(place, name): (usize, &&str)| {
        let place = place as u64 + 1;
        let count = 500 * place;
        let most = if unit == 1 { 450 } else { 8 };
        let micros = move |twice: u64| (0..count).map(move |i| twice * (i * 7919 * place % 450 % most * unit));
        let mut measure = Measure {
            name: (*name).to_owned(),
            service: times(micros(1)),
            response: Some(times(micros(2))),
            oks: count,
            ..Measure::default()
        };
        if *name == "UPDATE" {
            measure.failed = times((0..50).map(|i| i * unit));
            measure.failures = BTreeMap::from([("error".to_owned(), 50)]);
        }
        if *name == "VERIFY" {
            measure.response = None;
            measure.failed = times([0; 50]);
            measure.failures = BTreeMap::from([("UNEXPECTED_STATE".to_owned(), 50)]);
        }
        measure
    };
    Measured {
        began_unix_millis: 1_711_455_503_042,
        nanos: 2_500_000_000,
        operations: 10_500,
        failed: 50,
        kinds: names.iter().enumerate().map(kind).collect(),
        ..Measured::default()
    }
}

/// Compares the output with what the original printed. The metrics `left_out` are not compared. The test adds half
/// a microsecond to each time. Averages and variances are computed from nanoseconds here, so they may differ by a
/// hundredth. Times in milliseconds have a relative error of up to a thousandth.
fn check(expected: &str, unit: u64, properties: &str, left_out: &[&str]) {
    let sorted = |text: &str| {
        let is_left_out = |line: &&str| left_out.iter().any(|metric| line.starts_with(&format!("[{metric}]")));
        let mut lines: Vec<String> = text.lines().filter(|line| !is_left_out(line)).map(str::to_owned).collect();
        // The original prints the `-FAILED` lines in any order, because it takes them from a hash table.
        lines.sort_by_key(|line| line.contains("-FAILED"));
        lines
    };
    let (wanted, ours) = (sorted(expected), sorted(&export(&measured(unit), &output(properties))));
    for (ours, wanted) in ours.iter().zip(&wanted) {
        let (our_name, our_value) = ours.rsplit_once(", ").expect("a value");
        let (wanted_name, wanted_value) = wanted.rsplit_once(", ").expect("a value");
        assert_eq!(our_name, wanted_name);
        let is_about = wanted.contains(", Average") || wanted.contains("LatencyVariance");
        if is_about || unit > 1 && wanted.contains("Latency(us)") {
            let base = if unit == 1 { 1.0 } else { 6.0 };
            let value = |text: &str| -> f64 { text.parse().expect("a number") };
            let (our_value, wanted_value) = (value(our_value), value(wanted_value));
            let slack = base + wanted_value.abs() * if is_about { 0.01 } else { 0.001 };
            assert!((our_value - wanted_value).abs() <= slack, "{ours}, not {wanted}");
        } else {
            assert_eq!(ours, wanted);
        }
    }
    assert_eq!(ours.len(), wanted.len());
}

macro_rules! printed {
    ($name:literal) => {
        include_str!(concat!("../../vectors/output-", $name, ".txt"))
    };
}

#[test]
fn text_is_that_of_the_original() {
    let percentiles = "hdrhistogram.percentiles=50,95,99,99.9";
    check(printed!("hdr"), 1, &format!("measurement.interval=both {percentiles}"), &["Intended-UPDATE-FAILED"]);
    check(printed!("hdr-verbose"), 1, "measurement.histogram.verbose=true", &[]);
    // If only intended times are wanted, the original does not count checks.
    check(printed!("intended"), 1, "measurement.interval=intended", &["UPDATE-FAILED", "VERIFY"]);
}

#[test]
fn text_of_buckets_is_that_of_the_original() {
    check(printed!("buckets"), 1000, "measurementtype=histogram histogram.buckets=5", &[]);
    let verbose = "measurementtype=histogram histogram.buckets=5 measurement.histogram.verbose=true";
    check(printed!("buckets-verbose"), 1000, verbose, &[]);
    check(printed!("two"), 1, "measurementtype=hdrhistogram+histogram", &[]);
}

#[test]
fn text_of_single_times_is_that_of_the_original() {
    check(printed!("raw"), 1, "measurementtype=raw", &[]);
    check(printed!("raw-no-summary"), 1, "measurementtype=raw measurement.raw.no_summary=true", &[]);
    let left_out = ["HdrIntended-UPDATE-FAILED", "RawIntended-UPDATE-FAILED"];
    check(printed!("hdr-and-raw"), 1, "measurementtype=hdrhistogram+raw measurement.interval=both", &left_out);
}

/// A histogram in a log: its start in seconds, its length in seconds, and its values with their counts.
type Logged = (f64, f64, Vec<(u64, u64)>);

fn histograms(log: &str) -> Vec<Logged> {
    let lines = log.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let histogram = |line: &str| {
        let mut parts = line.splitn(4, ',');
        let mut part = || parts.next().expect("four parts");
        let (from, length, max) = (part(), part(), part());
        let number = |text: &str| -> f64 { text.parse().expect("a number") };
        let bytes = STANDARD.decode(part()).expect("base64");
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).expect("a histogram");
        assert!((number(max) - histogram.max() as f64 / 1e6).abs() < 0.001, "{max}");
        let values = histogram.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()));
        (number(from), number(length), values.collect())
    };
    lines.map(histogram).collect()
}

#[test]
fn logs_of_histograms_are_those_of_the_original() {
    let mut measured = measured(1);
    let interval =
        |warming| Interval { warming, to_nanos: measured.nanos, kinds: measured.kinds.clone(), ..Interval::default() };
    measured.intervals = vec![interval(true), interval(false)];
    let output = output("hdrhistogram.fileoutput=true hdrhistogram.output.path=dir/x- measurement.interval=both");
    let mut logs = hdr_logs(&measured, &output);
    logs.sort();
    let mut expected: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in include_str!("../../vectors/logs.txt").lines() {
        match line.strip_prefix("  ") {
            None => expected.push((line, Vec::new())),
            Some(line) => expected.last_mut().expect("a file").1.push(line),
        }
    }
    expected.retain(|(name, _)| *name != "Intended-UPDATE-FAILED.hdr");
    assert_eq!(logs.len(), expected.len());
    let mut compared = 0;
    for ((path, ours), (name, expected)) in logs.iter().zip(&expected) {
        assert_eq!(path.strip_prefix("dir/x-"), Some(*name));
        assert_eq!(ours.lines().next(), Some(expected[0]));
        let ours = histograms(ours);
        assert_eq!((ours[0].0, ours[0].1, ours.len()), (0.0, 2.5, 1), "{path}");
        if let Some(values) = expected.get(1) {
            let pairs = ours[0].2.iter().map(|(value, count)| format!("{value} {count}"));
            assert_eq!(pairs.collect::<Vec<_>>().join(" "), *values, "{path}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
}

#[test]
fn logs_are_written_only_if_they_are_asked_for() {
    assert_eq!(hdr_logs(&measured(1), &output("hdrhistogram.output.path=dir/")), []);
    assert_eq!(hdr_logs(&measured(1), &output("hdrhistogram.fileoutput=true measurementtype=raw")), []);
    let two = hdr_logs(&measured(1), &output("hdrhistogram.fileoutput=true measurementtype=hdrhistogram+histogram"));
    assert_eq!(two[0].0, "HdrREAD.hdr");
}

#[test]
fn json_has_the_form_of_the_original() {
    // The numbers are those of the text, which are compared elsewhere. Therefore the test compares only the rest
    // of the format here.
    let form = |json: &str| {
        let lines = json.lines().filter(|line| !line.contains("\"value\""));
        let mut objects: Vec<String> = Vec::new();
        lines.collect::<Vec<_>>().join("\n").split('}').for_each(|object| objects.push(object.to_owned()));
        let last = objects.pop();
        objects.sort_by_key(|object| object.contains("-FAILED"));
        (objects, last)
    };
    for (expected, exporter) in
        [(printed!("hdr-json"), "JSONMeasurementsExporter"), (printed!("hdr-array"), "JSONArrayMeasurementsExporter")]
    {
        let ours = export(&measured(1), &output(&format!("exporter=site.ycsb.measurements.exporter.{exporter}")));
        assert_eq!(form(&ours), form(expected));
    }
}

#[test]
fn averages_are_of_nanoseconds() {
    let measured = Measured {
        nanos: 1_000_000_000,
        operations: 2,
        kinds: vec![Measure { name: "READ".to_owned(), service: times([3, 6]), oks: 2, ..Measure::default() }],
        ..Measured::default()
    };
    let text = export(&measured, &output(""));
    assert!(text.contains("[READ], AverageLatency(us), 5.0"), "{text}");
}

#[test]
fn a_series_has_a_line_for_each_interval_of_the_window() {
    let interval = |warming, second: u64, micros: u64| Interval {
        warming,
        from_nanos: second * 1_000_000_000,
        to_nanos: (second + 1) * 1_000_000_000,
        kinds: vec![Measure { name: "READ".to_owned(), service: times([micros]), oks: 1, ..Measure::default() }],
        ..Interval::default()
    };
    let measured = Measured {
        nanos: 2_000_000_000,
        operations: 2,
        kinds: vec![Measure { name: "READ".to_owned(), service: times([10, 20]), oks: 2, ..Measure::default() }],
        intervals: vec![interval(true, 0, 500), interval(false, 0, 10), interval(false, 1, 20)],
        ..Measured::default()
    };
    let text = export(&measured, &output("measurementtype=timeseries"));
    let expected = "\
[OVERALL], RunTime(ms), 2000
[OVERALL], Throughput(ops/sec), 1.0
[READ], Operations, 2
[READ], AverageLatency(us), 15.5
[READ], MinLatency(us), 10
[READ], MaxLatency(us), 20
[READ], Return=OK, 2
[READ], 0, 10.5
[READ], 1000, 20.5
";
    // Times have a relative error of up to a thousandth.
    let rounded = text.replace("15.502", "15.5").replace("20.504", "20.5");
    assert_eq!(rounded, expected);
}

#[test]
fn numbers_are_those_of_java() {
    let file = include_str!("../../vectors/numbers.txt");
    let number = |bits: &str| f64::from_bits(u64::from_str_radix(bits, 16).expect("bits"));
    for (bits, expected) in named(file, "double")[0].entries() {
        assert_eq!(double(number(bits)), *expected);
    }
    for (bits, expected) in named(file, "short")[0].entries() {
        assert_eq!(short(number(bits)), *expected);
    }
    for (seconds, expected) in named(file, "remaining")[0].entries() {
        assert_eq!(remaining(seconds.parse().expect("seconds")) + "|", *expected);
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(date(0), [1970, 1, 1, 0, 0, 0, 0]);
    assert_eq!(date(951_782_399_999), [2000, 2, 28, 23, 59, 59, 999]);
    assert_eq!(date(951_782_400_000), [2000, 2, 29, 0, 0, 0, 0]);
    assert_eq!(date(951_868_800_000), [2000, 3, 1, 0, 0, 0, 0]);
    assert_eq!(date(1_711_455_503_042), [2024, 3, 26, 12, 18, 23, 42]);
    assert_eq!(date(4_107_542_399_000), [2100, 2, 28, 23, 59, 59, 0]);
    assert_eq!(date(4_107_542_400_000), [2100, 3, 1, 0, 0, 0, 0]);
}

#[test]
fn a_status_line_comes_when_it_is_time() {
    let interval = |second: u64| Interval {
        from_nanos: second * 1_000_000_000,
        to_nanos: (second + 1) * 1_000_000_000,
        operations: 90,
        failed: 10,
        kinds: vec![
            Measure { name: "READ".to_owned(), service: times([3, 5]), oks: 2, ..Measure::default() },
            Measure { name: "UPDATE".to_owned(), failed: times([7]), ..Measure::default() },
        ],
        ..Interval::default()
    };
    let mut status = Status::new(&output("status.interval=2 label=run:"), Some(1000));
    let warming = Interval { warming: true, ..interval(0) };
    assert_eq!(status.interval(0, &warming), None);
    assert_eq!(status.interval(1_711_455_503_042, &interval(0)), None);
    let line = status.interval(1_711_455_504_042, &interval(1));
    assert_eq!(
        line.as_deref(),
        Some(
            "run:2024-03-26 12:18:24:042 2 sec: 200 operations; 100 current ops/sec; est completion in 8 seconds \
             [READ: Count=4, Max=5, Min=3, Avg=4.5, 90=5, 99=5, 99.9=5, 99.99=5] \
             [UPDATE-FAILED: Count=2, Max=7, Min=7, Avg=7.5, 90=7, 99=7, 99.9=7, 99.99=7] "
        )
    );
    assert_eq!(status.interval(0, &interval(2)), None);
    assert!(status.last(0).is_some_and(|line| line.contains("3 sec: 300 operations; 100 current")));
    assert_eq!(status.last(0), None);
}

#[test]
fn the_line_of_a_workload_has_its_form() {
    let mut measured = measured(1);
    measured.nanos = 1_201_089_000_000;
    measured.operations = 414_848_700;
    measured.failed = 398;
    assert_eq!(
        seed_line(&measured, "zipfian", "a"),
        "2024-03-26 12:18 UTC zipfian workload a: 345.4K Op/s, latency 99% 0.888 ms: 414848.7K oks, 0 not_found, \
         448 errors, 1201089 ms run time"
    );
    measured.kinds[0].not_found = 9_900;
    measured.failed = 1850;
    measured.operations = 74_000_000 + 9_900;
    assert_eq!(
        seed_line(&measured, "latest", "d"),
        "2024-03-26 12:18 UTC latest workload d: 61.6K Op/s, latency 99% 0.888 ms: 74000K oks, 9.9K not_found, \
         1.9K errors, 1201089 ms run time"
    );
}

#[test]
fn rows_that_were_written_with_others_are_counted_without_times() {
    let insert = Measure { name: "INSERT".to_owned(), batched: 500, ..Measure::default() };
    let measured = Measured { nanos: 1_000_000_000, operations: 500, kinds: vec![insert], ..Measured::default() };
    for measure in ["hdrhistogram", "histogram", "timeseries", "hdrhistogram+raw"] {
        let lines = export(&measured, &output(&format!("measurementtype={measure}")));
        let inserts: Vec<&str> = lines.lines().filter(|line| line.contains("INSERT")).collect();
        assert_eq!(inserts, ["[INSERT], Operations, 500", "[INSERT], Return=BATCHED_OK, 500"], "{measure}");
    }
}
