use super::*;
use harness::{Noted, Times};

#[test]
fn a_line_stands_under_its_head() {
    let mut times = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    times.record_n(4_000_000, 90).expect("it grows");
    let service = Times::from_hdr(&times);
    let kinds = vec![Measure { name: "NewOrder".to_owned(), service, oks: 89, rolled_back: 1, ..Measure::default() }];
    let counts = vec![Noted { name: COUNTS[ATTEMPTS].to_owned(), value: 3 }];
    let interval =
        Interval { to_nanos: 2_000_000_000, operations: 200, failed: 4, kinds, counts, ..Interval::default() };
    let (head, line) = (head(), line(&interval));
    assert_eq!(head.len(), line.len(), "{head}\n{line}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let expected = ["2.0", "s", "measured", "2700", "100", "4", "3", "4.00", "-", "-", "-", "-", "-", "-"];
    assert_eq!(words.len(), expected.len(), "{line}");
    for (word, expected) in words.iter().zip(expected) {
        // The histograms have only three significant digits.
        let is_near =
            word.parse::<f64>().ok().zip(expected.parse::<f64>().ok()).is_some_and(|(is, be)| (is - be).abs() < 0.05);
        assert!(*word == expected || is_near, "{word} for {expected} in {line}");
    }
}
