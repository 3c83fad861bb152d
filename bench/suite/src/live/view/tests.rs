#![allow(clippy::disallowed_methods, reason = "a test that is asked to rewrites its file")]

use super::{Head, KnownBy, View};
use harness::{Counted, Interval, Length, Measure, Pace, Plan, Times};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

fn head(pace: Pace, noop_nanos: Option<f64>) -> Head {
    let length = Length::Time(Duration::from_secs(60));
    let plan = Plan { clients: 2, pace, length, ..Plan::default() };
    let (name, target) = ("workload a".to_owned(), "larch:db".to_owned());
    Head { name, target, plan, processors: 2, noop_nanos, known_by: None }
}

/// `count` requests that took `micros`, and one that took `longest_micros`.
fn kind(name: &str, count: u64, micros: u64, longest_micros: u64) -> Measure {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    histogram.record_n(micros * 1000, count - 1).expect("it grows");
    histogram.record(longest_micros * 1000).expect("it grows");
    Measure { name: name.to_owned(), service: Times::from_hdr(&histogram), oks: count, ..Measure::default() }
}

/// Second `number` of the window, in which writes waited `waited_micros` since the beginning.
fn interval(number: u64, count: u64, longest_micros: u64, waited_micros: u64) -> Interval {
    let counters = [
        ("stopped micros", waited_micros),
        ("flushes", number / 4),
        ("compactions", number / 8),
        ("cache hits", 900 * number),
        ("page reads", 100 * number),
    ];
    let counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
    Interval {
        from_nanos: number * SECOND,
        to_nanos: (number + 1) * SECOND,
        operations: 2 * count,
        client_nanos: SECOND * 5 / 4,
        pausing_nanos: SECOND / 10,
        kinds: vec![kind("READ", count, 20, longest_micros), kind("UPDATE", count, 40, longest_micros)],
        counted: Some(Counted { at_nanos: (number + 1) * SECOND, counters }),
        ..Interval::default()
    }
}

/// A recorded run of a store that stalls every ten seconds.
fn stalling(pace: Pace, noop_nanos: Option<f64>, seconds: u64) -> View {
    let mut view = View::new(head(pace, noop_nanos));
    let mut waited_micros = 0;
    for number in 0..seconds {
        let stalls = number % 10 == 9;
        waited_micros += if stalls { 600_000 } else { 0 };
        let (count, longest) = if stalls { (2000, 600_000) } else { (10_000, 900) };
        view.add(&interval(number, count, longest, waited_micros));
    }
    view
}

/// What a terminal shows.
fn screen(view: &View, message: Option<&str>, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("it is in memory");
    terminal.draw(|frame| view.draw(message, frame.area(), frame.buffer_mut())).expect("it is in memory");
    let buffer = terminal.backend().buffer();
    let line = |row| (0..columns).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..rows).map(|row| line(row).trim_end().to_owned() + "\n").collect()
}

/// Compares a screen with the one of the file beside this one. `REWRITE=1` writes the file.
fn check(shown: &str, name: &str, expected: &str) {
    if std::env::var_os("REWRITE").is_some() {
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/live/view").join(name);
        std::fs::write(place, shown).expect("the tree is ours");
        return;
    }
    assert_eq!(shown, expected, "\n{shown}");
}

#[test]
fn a_screen_of_80_by_24_shows_a_recorded_run() {
    let view = stalling(Pace::Open { per_second: 20_000.0 }, None, 42);
    let shown = screen(&view, None, 80, 24);
    check(&shown, "80x24.txt", include_str!("80x24.txt"));
    assert_eq!(view.text(80, 24), shown, "a picture that is printed is the one of the terminal");
}

#[test]
fn a_larger_screen_has_larger_charts_and_a_small_one_has_all_parts() {
    let view = stalling(Pace::Closed, Some(5000.0), 42);
    check(&screen(&view, None, 120, 40), "120x40.txt", include_str!("120x40.txt"));
    let small = screen(&view, None, 60, 16);
    for part in ["closed loop", "operations a second", "times: p50", "stalls: writes", "READ", "client threads"] {
        assert!(small.contains(part), "{part:?} is not in\n{small}");
    }
    for size in [(1, 1), (20, 5), (300, 100)] {
        screen(&view, None, size.0, size.1);
    }
}

#[test]
fn the_clients_own_share_is_shown_where_it_is_known() {
    // 20,000 operations of 5 us and a tenth of a second of waiting are a fifth of a second.
    let known = screen(&stalling(Pace::Closed, Some(5000.0), 9), None, 120, 24);
    assert!(known.contains("1.25 of 2 processors") && known.contains("the client's own share 0.20"), "{known}");
    let unknown = screen(&stalling(Pace::Closed, None, 9), None, 120, 24);
    assert!(!unknown.contains("own share"), "{unknown}");
}

#[test]
fn a_message_stands_in_the_last_row_below_the_view() {
    let shown = screen(&stalling(Pace::Closed, None, 3), Some("larch: ending"), 80, 24);
    assert_eq!(shown.lines().last(), Some("larch: ending"));
    assert!(shown.contains("client threads: 1.25 of 2 processors"), "{shown}");
}

#[test]
fn the_first_chart_is_of_the_rate_that_the_workload_is_known_by() {
    let updates =
        |interval: &Interval| interval.kinds.iter().filter(|kind| kind.name == "UPDATE").map(Measure::done).sum();
    let known_by = Some(KnownBy { name: "tpmC", count: updates, unit_seconds: 60.0 });
    let mut view = View::new(Head { known_by, ..head(Pace::Closed, None) });
    view.add(&interval(0, 100, 900, 0));
    let late = Interval { counted: None, ..interval(0, 20, 900, 0) };
    view.add(&Interval { told_late: vec![late], ..interval(1, 200, 900, 0) });
    let shown = screen(&view, None, 80, 24);
    assert!(shown.contains("tpmC: 12,000 now, 9,600 mean; 400 op/s ─"), "{shown}");
    assert!(shown.contains("    12,000│") && !shown.contains("operations a second"), "{shown}");
}

#[test]
fn the_warm_up_is_shown_and_left_out_of_the_sums() {
    let mut view = View::new(head(Pace::Closed, None));
    let warming = Interval { warming: true, ..interval(0, 500, 900, 0) };
    view.add(&warming);
    assert!(screen(&view, None, 80, 24).starts_with("workload a on larch:db") && view.seconds() == 1.0);
    assert!(screen(&view, None, 80, 24).contains("warm-up, 1.00 s"));
    view.add(&interval(0, 10_000, 900, 0));
    let shown = screen(&view, None, 80, 24);
    assert!(shown.contains("1.00 s of 60.0 s") && shown.contains("20,000 operations, 0 failed"), "{shown}");
    assert!(view.seconds() == 2.0, "time goes on where the window begins");
}

#[test]
fn late_reports_reach_the_interval_that_they_are_of() {
    let mut view = View::new(head(Pace::Closed, None));
    view.add(&Interval { late: 2, ..interval(0, 100, 900, 0) });
    assert!(screen(&view, None, 80, 24).contains("2 threads wait for the store"));
    let late = Interval { counted: None, ..interval(0, 50, 2000, 0) };
    view.add(&Interval { told_late: vec![late], ..interval(1, 100, 900, 0) });
    let shown = screen(&view, None, 80, 24);
    assert!(shown.contains("500 operations") && shown.contains("2.00 ms"), "{shown}");
}

#[test]
fn a_long_run_fits_into_few_points() {
    let view = stalling(Pace::Closed, None, 5000);
    let line = view.line(|point| point.times[2], |values| values.fold(0.0, f64::max));
    assert!(line.len() <= super::MOST_POINTS && line.len() > super::MOST_POINTS / 2, "{}", line.len());
    assert!(line.iter().all(|(_, longest)| *longest > 5e8), "each of them has its stall");
}

#[test]
fn a_store_without_counters_says_so() {
    let mut view = View::new(head(Pace::Closed, None));
    view.add(&Interval { counted: None, ..interval(0, 100, 900, 0) });
    assert!(screen(&view, None, 80, 24).contains("the store does not count how long writes wait"));
}
