//! Tests what every database promises. Each database calls this test.

use crate::database::{
    Access, Counted, Database, Inside, JOBS_TABLE, Opening, ReadWay, RowAccessScheme, Seen, Statement, TableForm,
};
use crate::history::Job;
use crate::parameters::{RunParameters, SetupParameters};
use crate::run::{Manner, run};
use crate::setup::{Ended, setup};
use harness::Target;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const ROWS: u64 = 500;

/// Checks `scheme` on an empty `target`.
///
/// # Panics
///
/// Panics if the database does not keep a promise.
pub fn check(scheme: &RowAccessScheme, target: &str) {
    let target = Target::parse(target).expect("a good target");
    let open = |opening| (scheme.open)(&target, opening).expect("it opens");
    let database = open(Opening::OrCreate);
    assert!(!database.settings().is_empty());
    for index_as_pk in [false, true] {
        check_table(&*database, &form_of(index_as_pk));
    }
    check_jobs(&*database);
    database.close().expect("it closes");

    let database = open(Opening::ReadOnly);
    assert!(!database.jobs(10).expect("it reads").is_empty(), "a database opened for reading shows the runs");
    database.close().expect("it closes");

    let database = open(Opening::Existing);
    let mut dropped = database.clean("rows", false).expect("it drops");
    dropped.sort();
    assert_eq!(dropped, ["rows0001", "rows0002"], "the table of runs is left");
    assert_eq!(database.clean("rows", true).expect("it drops"), [JOBS_TABLE]);
    assert!(database.jobs(10).expect("it reads").is_empty());
    assert!(database.count("rows0001").is_err(), "a table that is not there cannot be counted");
    database.close().expect("it closes");
}

fn form_of(index_as_pk: bool) -> TableForm {
    parameters(index_as_pk).form()
}

fn parameters(index_as_pk: bool) -> SetupParameters {
    SetupParameters {
        tab_prefix: "rows".to_owned(),
        tab_num: 1 + u32::from(index_as_pk),
        tab_rows: ROWS,
        batch_size: 70,
        index_as_pk,
        filler: 50,
        ..SetupParameters::default()
    }
}

/// Checks that the table has the rows that were inserted, and that statements see these rows.
fn check_table(database: &dyn Database, form: &TableForm) {
    let never = AtomicBool::new(false);
    for _ in 0..2 {
        let ended = setup(database, &parameters(form.index_as_pk), false, 1, &never, &|_| {});
        assert_eq!(ended.expect("it loads"), Ended::Loaded);
        let Counted { rows, scratch } = database.count(&form.name).expect("it counts");
        assert_eq!(rows, ROWS, "a table that is there is dropped");
        assert!(scratch.is_some_and(|most| (1..ROWS as i64).contains(&most)), "{scratch:?}");
    }
    let access = |index_only, prepared| Access { table: form.name.clone(), prepared, index_only };
    let max_scratch = database.count(&form.name).expect("it counts").scratch.expect("there are rows");
    for prepared in [true, false] {
        let mut rows = database.session(&access(false, prepared)).expect("a session");
        let mut keys = database.session(&access(true, prepared)).expect("a session");
        let (read, update) = (Statement::Read, Statement::Update);
        let all = rows.access(read, 1, ROWS as i64).expect("it reads");
        assert!(all.rows == ROWS && all.max >= Some(max_scratch), "{all:?}");
        assert_eq!(keys.access(read, 1, ROWS as i64).expect("it reads"), seen(ROWS, ROWS));
        assert_eq!(keys.access(read, 17, 20).expect("it reads"), seen(4, 20));
        assert_eq!(keys.access(read, ROWS as i64, ROWS as i64 + 9).expect("it reads"), seen(1, ROWS));
        let none = Seen { rows: 0, max: None };
        assert_eq!(keys.access(read, ROWS as i64 + 1, ROWS as i64 + 9).expect("it reads"), none);
        assert_eq!(rows.access(update, -9, 0).expect("it updates"), none);

        let before = rows.access(read, 40, 60).expect("it reads");
        let updated = rows.access(update, 40, 60).expect("it updates");
        let grown = Seen { rows: 21, max: before.max.map(|most| most + 1) };
        assert_eq!((before.rows, updated), (21, grown));
        assert_eq!(rows.access(read, 40, 60).expect("it reads"), grown);
        assert_eq!(keys.access(update, 40, 60).expect("it updates"), seen(21, 60));
        assert_eq!(rows.access(read, 40, 60).expect("it reads"), grown, "an update of keys leaves scratch");
        assert_eq!(rows.access(read, 61, 61).expect("it reads").rows, 1);
    }
    for way in [ReadWay::KnownIds, ReadWay::OneByOne] {
        let mut rows = database.session(&access(false, true)).expect("a session");
        let Some(mut other) = database.session_reading(&form.name, way).expect("a session") else { continue };
        for (first, last) in [(1, ROWS as i64), (40, 60), (61, 61), (0, 0)] {
            let [seen, expected] = [&mut other, &mut rows].map(|session| session.access(Statement::Read, first, last));
            assert_eq!(seen.expect("it reads"), expected.expect("it reads"), "{way:?} {first}-{last}");
        }
    }
    for statement in [Statement::Read, Statement::Update] {
        for index_only in [false, true] {
            let path = database.access_path(&access(index_only, true), statement, 1, 10).expect("it explains");
            assert!(path.lines().count() > 1 && path.ends_with('\n'), "{path}");
        }
    }
    let access = access(false, true);
    let (time, tab_rows) = (Duration::from_millis(20), ROWS);
    let inside = Inside { access: &access, tab_rows, batch_rows: 10, pct_update: 50, time, compat: false };
    if let Some(inside) = database.run_inside(&inside).expect("it runs") {
        assert!(inside.batches > 0 && inside.seen.rows == 10 * inside.batches, "{inside:?}");
        assert!((inside.updated as i64 - inside.seen.rows as i64 / 2).abs() <= 10, "{inside:?}");
    }
    let mut again = parameters(form.index_as_pk);
    again.recreate = false;
    let ended = setup(database, &again, false, 2, &never, &|_| {});
    if form.index_as_pk {
        assert!(ended.is_err(), "there is one row under a primary key");
    } else {
        assert_eq!(ended.expect("it loads"), Ended::Loaded);
        assert_eq!(database.count(&form.name).expect("it counts").rows, 2 * ROWS, "rows are added to those there are");
    }
}

fn seen(rows: u64, max: u64) -> Seen {
    Seen { rows, max: Some(max as i64) }
}

/// Checks that each run is written to the table of runs at the run's beginning and at its end.
fn check_jobs(database: &dyn Database) {
    let never = AtomicBool::new(false);
    let parameters = RunParameters {
        tab_prefix: "rows".to_owned(),
        tab_rows: ROWS,
        batch_size: 10,
        run_duration: Duration::ZERO,
        pct_update: 100,
        initial_count: true,
        comments: Some("it's a note".to_owned()),
        ..RunParameters::default()
    };
    let manner = Manner { compat: false, seed: 1, session: 0, in_server: false, line_every: Duration::ZERO };
    let first = run(database, &parameters, &manner, &never, &|_| {}).expect("it runs");
    assert_eq!((first.job.num_batches, first.job.num_rows.map(|rows| rows >= 10)), (Some(1), Some(true)));
    let too_many = RunParameters { tab_rows: 3 * ROWS, ..parameters.clone() };
    let failure = run(database, &too_many, &manner, &never, &|_| {}).expect_err("there are fewer rows");
    assert!(failure.text.contains("1500"), "{failure}");

    let begun = Job { end_time: None, num_batches: None, num_rows: None, max_scratch: None, ..first.job.clone() };
    let going_on = database.begin_job(&begun).expect("it writes");
    let jobs = database.jobs(10).expect("it reads");
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0], Job { job_id: going_on, ..begun }, "a run without an end is on top");
    assert_eq!(jobs[1], first.job, "the newest is on top");
    assert_eq!(database.jobs(1).expect("it reads").len(), 1);
}
