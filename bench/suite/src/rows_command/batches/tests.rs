use super::{Batches, Seconds, rows};
use harness::Interval;
use row_access::run::BatchDone;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A batch of ten rows.
fn batch(is_update: bool, millis: u64, is_last: bool) -> BatchDone {
    BatchDone { is_update, rows: 10, nanos: millis * 1_000_000, is_last }
}

/// The groups in which a session reports its batches.
fn groups(batches: &[BatchDone]) -> Vec<Interval> {
    let groups = RefCell::new(Vec::new());
    let each = |group: &Interval| groups.borrow_mut().push(group.clone());
    let session = Batches::new(&each);
    batches.iter().for_each(|batch| session.add(*batch));
    groups.into_inner()
}

#[test]
fn a_session_reports_its_batches_each_quarter_of_a_second_and_at_its_end() {
    let groups =
        groups(&[batch(false, 100, false), batch(true, 149, false), batch(false, 1, false), batch(true, 7, true)]);
    let counts = |group: &Interval| (group.operations, group.kinds.iter().map(|kind| kind.oks).collect::<Vec<_>>());
    assert_eq!(groups.iter().map(counts).collect::<Vec<_>>(), [(3, vec![2, 1]), (1, vec![0, 1])]);
    assert_eq!(groups.iter().map(rows).collect::<Vec<_>>(), [30, 10]);
    assert_eq!(groups[0].kinds[1].service.max() / 1_000_000, 149);
}

#[test]
fn an_interval_is_the_sum_of_all_sessions_and_counts_those_that_wait() {
    let seconds = Seconds::begin(3);
    let group = groups(&[batch(false, 2, true)]).remove(0);
    [0, 2, 2].into_iter().for_each(|session| seconds.add(session, &group));
    let first = seconds.ended();
    assert_eq!((first.from_nanos, first.to_nanos), (0, 1_000_000_000));
    assert_eq!((first.operations, rows(&first), first.late), (3, 30, 1));
    assert_eq!(first.client_nanos, 3 * group.client_nanos);
    let empty = seconds.ended();
    assert_eq!((empty.from_nanos, empty.operations, empty.late), (1_000_000_000, 0, 3));
    assert_eq!(seconds.last(), None);
    seconds.add(1, &group);
    let last = seconds.last().expect("a batch is in it");
    assert_eq!((last.from_nanos, last.operations, last.late), (2_000_000_000, 1, 0));
}

#[test]
fn a_watcher_gets_all_that_was_done_and_the_result_of_the_work() {
    let seconds = Seconds::begin(1);
    let group = groups(&[batch(true, 2, true)]).remove(0);
    let mut watched = 0;
    let done = seconds.watched(
        || {
            seconds.add(0, &group);
            seconds.add(0, &group);
            "done"
        },
        &mut |interval| watched += interval.operations,
    );
    assert_eq!((done, watched), ("done", 2));
}

#[test]
fn a_panic_of_the_work_reaches_the_caller() {
    let seconds = Seconds::begin(1);
    let caught = catch_unwind(AssertUnwindSafe(|| seconds.watched(|| panic!("no"), &mut |_| {})));
    let panic = caught.expect_err("the work did not end well");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"no"));
}
