use super::*;
use harness::Times;

/// The only kind of a run with `count` reads of 7 us each.
fn of(count: u64) -> Kind {
    let mut times = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    times.record_n(7000, count).expect("it grows");
    let read = Measure { name: "READ".to_owned(), oks: count, service: Times::from_hdr(&times), ..Measure::default() };
    kinds(&Measured { kinds: vec![read], ..Measured::default() }).remove(0)
}

#[test]
fn a_percentile_of_too_few_requests_is_null() {
    let percentiles = |count| (of(count).percentile_95.map(f64::round), of(count).percentile_99.map(f64::round));
    assert_eq!([199, 200, 999].map(percentiles), [(None, None), (Some(7.0), None), (Some(7.0), None)]);
    assert_eq!(percentiles(1000), (Some(7.0), Some(7.0)));
    let run = YcsbRun { kinds: vec![of(999)], ..YcsbRun::default() };
    assert_eq!(run.percentile_99(), None);
    assert!(serde_json::to_value(&run).expect("names are texts")["kinds"][0]["percentile_99"].is_null());
}

#[test]
fn a_run_that_an_older_version_kept_is_read() {
    let kept = r#"{"name":"READ","count":5,"average":2.5,"least":1.0,"percentile_95":3.0,"percentile_99":null}"#;
    let kind: Kind = serde_json::from_str(kept).expect("it is as it was written");
    assert_eq!((kind.percentile_95, kind.percentile_99), (Some(3.0), None));
}
