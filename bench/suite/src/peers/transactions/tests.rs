use super::super::orders::Transacted;
use super::super::table::Row;
use super::*;

fn table(rows: Vec<Row>) -> Table {
    let mut table = Table::new(["larch", "rocksdb", "disk"]);
    rows.into_iter().for_each(|row| table.add(row));
    table
}

/// Fills in the engines' figures, and compares the goals' results (row, reached) with `expected`.
fn check(rows: Vec<Row>, figures: &[(&'static str, &[f64])], expected: &[(&str, bool)]) {
    let mut table = table(rows);
    for (name, of_engines) in figures {
        for (at, figure) in of_engines.iter().enumerate() {
            table.row(name).figures[at].push(*figure);
        }
    }
    let verdicts = table.verdicts();
    let reached: Vec<(&str, bool)> = verdicts.iter().map(|it| (it.row.as_str(), it.reached)).collect();
    assert_eq!(reached, expected);
}

#[test]
fn a_transaction_is_held_against_its_own_calls_and_against_rocksdb() {
    let figures = |rate, two_threads, time| {
        [
            ("transaction, reads checked", [rate, 100.0]),
            ("transaction, 2 threads", [two_threads, 150.0]),
            ("time of a get and a put", [2.0, 5.0]),
            ("time of a transaction", [time, 9.0]),
        ]
    };
    let names = ["transaction, reads checked", "transaction, 2 threads", "time of a transaction"];
    for (measured, reached) in [(figures(200.0, 260.0, 2.6), true), (figures(199.0, 258.0, 2.61), false)] {
        let measured: Vec<(&str, &[f64])> = measured.iter().map(|(name, figures)| (*name, &figures[..])).collect();
        check(mixed::rows(), &measured, &names.map(|name| (name, reached)));
    }
}

#[test]
fn more_threads_commit_at_least_half_of_what_one_does() {
    let figures: [(&str, &[f64]); 4] = [
        ("uniform, 1 thread", &[300.0]),
        ("uniform, 8 threads", &[400.0]),
        ("zipfian, 1 thread", &[300.0]),
        ("zipfian, 8 threads", &[149.0]),
    ];
    check(increments::rows(), &figures, &[("uniform, 8 threads", true), ("zipfian, 8 threads", false)]);
}

#[test]
fn synced_commits_are_held_against_the_disk_and_rocksdb_and_those_in_flight_against_one_by_one() {
    let one = "synced transactions, 1 thread";
    let many = "synced transactions, 16 threads";
    let (one_by_one, in_flight) = ("durable puts, one by one", "durable puts, 1,000 in flight");
    let figures: [(&str, &[f64]); 4] =
        [(one, &[0.9, 5.0, 1.0]), (many, &[4.9, 5.0, 9.0]), (one_by_one, &[2.0, 1.0]), (in_flight, &[40.0])];
    check(synced::rows(), &figures, &[(one, true), (many, false), (in_flight, true)]);
}

#[test]
fn every_row_can_be_found_by_its_name() {
    for rows in [mixed::rows(), increments::rows(), synced::rows(), indexed::rows()] {
        let mut names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
    let transacted =
        Transacted { conflicts: 5, p50_nanos: 1500, p99_nanos: 20_000, p99_conflicts: 3, most_conflicts: 9 };
    let sample = Sample { operations: 10, transacted, ..Sample::default() };
    let mut table = table(increments::rows());
    increments::put(&mut table, &increments::TASKS[4], 0, &sample);
    for (name, figure) in [
        ("zipfian, 8: 50 % within", 1.5),
        ("zipfian, 8: 99 % within", 20.0),
        ("zipfian, 8: conflicts a commit", 0.5),
        ("zipfian, 8: conflicts, 99 % within", 3.0),
        ("zipfian, 8: most conflicts of one", 9.0),
    ] {
        assert_eq!(table.row(name).figures[0], [figure], "{name}");
    }
}

#[test]
fn writes_while_an_index_is_built_are_held_against_quiet_ones() {
    let sample = |p999_nanos| {
        let overwritten = super::super::orders::Overwritten { p999_nanos, longest_nanos: 9_000, ..Default::default() };
        let beside = super::super::orders::WorkDone { rows: 5_000, nanos: 1_000_000_000 };
        Sample { overwritten, beside, ..Sample::default() }
    };
    for (p999, reached) in [(6_000, true), (6_100, false)] {
        let mut table = table(indexed::rows());
        indexed::put(&mut table, &sample(2_000), &sample(p999));
        assert_eq!(table.row("index built: rows").figures[0], [5.0]);
        assert_eq!(table.verdicts().iter().map(|it| it.reached).collect::<Vec<_>>(), [reached]);
    }
}
