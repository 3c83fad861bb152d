use super::*;

fn sample(operations: u64, overwritten: Overwritten) -> Sample {
    Sample { operations, nanos: 1_000_000, process_bytes: Some(600 * operations), overwritten, ..Sample::default() }
}

#[test]
fn a_long_stall_misses_its_goal_and_bytes_count_for_each_write() {
    let mut table = Table::new(["larch"]);
    rows().into_iter().for_each(|row| table.add(row));
    let times = Overwritten { longest_nanos: 21_000_000, log_bytes: Some(1500), ..Overwritten::default() };
    let closed = sample(20, Overwritten::default());
    let filled = sample(1000, Overwritten::default());
    let measured = Measured { filled, closed, open: sample(10, times), settled_bytes: 150_000 };
    put(&mut table, 0, 1000, &measured);
    let figure = |table: &mut Table, name: &str| table.row(name).figures[0].clone();
    assert_eq!(figure(&mut table, LONGEST), [21.0]);
    assert_eq!(figure(&mut table, WRITTEN), [600.0]);
    assert_eq!(figure(&mut table, "  log"), [150.0]);
    assert_eq!(figure(&mut table, "  flushes"), [0.0; 0], "an engine that does not count leaves its place empty");
    assert_eq!(figure(&mut table, "files once it rests"), [1.25]);
    let verdicts = table.verdicts();
    let reached = |row: &str| verdicts.iter().find(|it| it.row == row).map(|it| it.reached);
    assert_eq!(reached(LONGEST), Some(false));
    assert_eq!(reached(WRITTEN), None, "there is no other engine to compare with");
}
