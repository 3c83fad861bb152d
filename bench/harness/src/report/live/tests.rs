use super::*;
use crate::times::Times;

/// A hundred requests of each time.
fn times(nanos: [u64; 3]) -> Times {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    for nanos in nanos {
        histogram.record_n(nanos, 100).expect("it grows");
    }
    Times::from_hdr(&histogram)
}

#[test]
fn the_table_has_the_columns_of_scylla_bench() {
    assert_eq!(head(Shown::Service), " time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean\n");
    assert_eq!(head(Shown::Nothing), " time   ops/s  rows/s errors\n");
    let kind = Measure {
        service: times([850_000, 3_400_000, 35_000_000]),
        response: Some(times([1_000_000_000; 3])),
        rows: 4706,
        ..Measure::default()
    };
    let interval = Interval {
        from_nanos: 2_000_000_000,
        to_nanos: 3_100_000_000,
        operations: 4706,
        failed: 2,
        kinds: vec![kind],
        ..Interval::default()
    };
    let counts = " 3.1s    4278    4278      2";
    let service = format!("{counts} 35ms   -      -      35ms   35ms   3.4ms  13ms\n");
    assert_eq!(line(&interval, Shown::Service), service);
    let response = format!("{counts} 1.0s   -      -      1.0s   1.0s   1.0s   1.0s\n");
    assert_eq!(line(&interval, Shown::Response), response);
    assert_eq!(line(&interval, Shown::Nothing), format!("{counts}\n"));
    let empty = Interval { to_nanos: 1_000_000_000, ..Interval::default() };
    let nothing = "   1s       0       0      0 -      -      -      -      -      -      -\n";
    assert_eq!(line(&empty, Shown::Response), nothing);
}
