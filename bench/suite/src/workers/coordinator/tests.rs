use super::Board;
use harness::Interval;

fn interval(warming: bool, second: u64, operations: u64) -> Interval {
    let from_nanos = second * 1_000_000_000;
    Interval { warming, from_nanos, to_nanos: from_nanos + 1_000_000_000, operations, ..Interval::default() }
}

/// The intervals that the board shows now, as (warming, second, operations).
fn shown(board: &mut Board) -> Vec<(bool, u64, u64)> {
    let mut shown = Vec::new();
    board
        .show(&mut |interval| shown.push((interval.warming, interval.from_nanos / 1_000_000_000, interval.operations)));
    shown
}

#[test]
fn an_interval_is_shown_once_when_all_workers_have_sent_it() {
    let mut board = Board::new(2);
    board.add(0, interval(true, 0, 1));
    board.add(0, interval(false, 0, 2));
    assert_eq!(shown(&mut board), []);
    board.add(1, interval(true, 0, 10));
    assert_eq!(shown(&mut board), [(true, 0, 11)]);
    board.add(1, interval(false, 0, 20));
    board.add(1, interval(false, 1, 40));
    assert_eq!(shown(&mut board), [(false, 0, 22)]);
    board.end(0);
    assert_eq!(shown(&mut board), [(false, 1, 40)], "one that has ended is not waited for");
    board.end(1);
    assert_eq!(shown(&mut board), []);
}

#[test]
fn what_came_late_is_shown_with_the_next() {
    let mut board = Board::new(1);
    board.late.push(interval(false, 0, 7));
    board.add(0, interval(false, 1, 1));
    let mut late = 0;
    board.show(&mut |interval| late += interval.told_late.iter().map(|part| part.operations).sum::<u64>());
    assert_eq!(late, 7);
}
