use super::*;

#[test]
fn times_are_read_and_printed_as_go_does() {
    for (text, nanos, printed) in [
        ("80ms", 80_000_000, "80ms"),
        ("1s", 1_000_000_000, "1s"),
        ("1m30s", 90_000_000_000, "1m30s"),
        ("1h0m1.5s", 3_601_500_000_000, "1h0m1.5s"),
        ("0", 0, "0s"),
        ("5", 5_000_000_000, "5s"),
        ("1.5ms", 1_500_000, "1.5ms"),
        ("20us", 20_000, "20µs"),
        ("7ns", 7, "7ns"),
    ] {
        let time = duration(text).expect("it is a time");
        assert_eq!((time.as_nanos(), go_time(time).as_str()), (nanos, printed), "{text}");
    }
    for bad in ["", "s", "-1s", "1d", "5 s", "1m5", "1e99h"] {
        assert!(duration(bad).is_err(), "{bad}");
    }
    let second = Duration::from_secs(1);
    assert_eq!(Retries::parse_interval("80ms, 1s"), Ok((Duration::from_millis(80), second)));
    assert_eq!(Retries::parse_interval("1"), Ok((second, second)));
    assert!(Retries::parse_interval("2s,1s").is_err());
}

#[test]
fn options_that_do_not_go_together_are_named() {
    let complaint = |options: Options| options.check().expect_err("it is wrong");
    let base = Options::new(Mode::Read, Workload::Uniform);
    assert_eq!(base.check(), Ok(()));
    assert!(complaint(Options { workload: Workload::Scan, ..base.clone() }).contains("-mode scan"));
    assert!(complaint(Options { mode: Mode::Scan, ..base.clone() }).contains("-workload"));
    assert!(complaint(Options { partition_count: 0, ..base.clone() }).contains("-partition-count"));
    assert!(complaint(Options { partition_count: 1 << 60, ..base.clone() }).contains("2^63"));
    assert!(complaint(Options { partition_offset: i64::MAX, ..base.clone() }).contains("-partition-offset"));
    let restricted = Options { restriction: Restriction::In, ..base.clone() };
    assert_eq!(restricted.check(), Ok(()));
    assert!(complaint(Options { mode: Mode::Write, ..restricted }).contains("-in-restriction"));
    let series = Options { workload: Workload::Timeseries, ..base };
    assert!(complaint(series.clone()).contains("-write-rate"));
    assert_eq!(Options { write_rate: Some(0.1), start_timestamp: 1, ..series.clone() }.check(), Ok(()));
    let writer = Options { mode: Mode::Write, ..series.clone() };
    assert!(complaint(writer.clone()).contains("-max-rate"));
    let writer = Options { max_rate: Some(100.0), ..writer };
    assert_eq!(writer.check(), Ok(()));
    assert!(complaint(Options { partition_count: 15, ..writer.clone() }).contains("-concurrency"));
    assert!(complaint(Options { mode: Mode::CounterRead, ..series }).contains("timeseries"));
}
