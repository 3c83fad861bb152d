//! Tests that are specific to Larch. The tests of `kv` check what every database promises.

use super::*;
use ::kv::{Mode, Options, Work, Workload, conformance};
use harness::{Length, Plan};
use kit::Scratch;
use std::sync::atomic::AtomicBool;

fn check(options: &str) {
    let directory = Scratch::new("partitions");
    conformance::check(&SCHEME, &format!("larch:{}{options}", directory.join("db").display()));
}

#[test]
fn it_keeps_the_promises_of_every_database() {
    check("");
}

#[test]
fn it_does_so_with_synced_commits_and_small_pages() {
    check("?durability=synced&write_buffer=1MiB&cache=1MiB&page=4KiB&index=flat&settle=compact");
}

#[test]
fn keys_have_the_order_of_numbers() {
    let numbers = [i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX];
    let pairs: Vec<(i64, i64)> = numbers.iter().flat_map(|pk| numbers.map(|ck| (*pk, ck))).collect();
    let keys: Vec<Key> = pairs.iter().map(|(pk, ck)| key(*pk, *ck)).collect();
    assert!(keys.is_sorted());
    assert_eq!(keys.iter().map(|key| keys_of(key).expect("it is ours")).collect::<Vec<_>>(), pairs);
    assert!(keys_of(b"short").is_none() && keys_of(&[0; 17]).is_none());
}

/// Runs `options` until no client has an operation left.
fn run(database: &dyn ::kv::Database, options: Options) -> (harness::Measured, ::kv::Findings) {
    options.check().expect("the options go together");
    let plan = Plan { clients: options.concurrency, length: Length::All, ..Plan::default() };
    let work = Work::new(options);
    let measured = harness::run(database, &work, &plan, &AtomicBool::new(false), &mut |_| {}).expect("it runs");
    (measured, work.findings())
}

#[test]
fn a_partition_may_be_wider_than_the_cache() {
    let directory = Scratch::new("partitions");
    let target = format!("larch:{}?cache=1MiB&write_buffer=1MiB&settle=compact", directory.join("db").display());
    let target = Target::parse(&target).expect("a good target");
    let setup = Setup { concurrency: 8, ..Setup::default() };
    let database = open(&target, &setup).expect("it opens");
    let rows = 40_000;
    let write = Options {
        partition_count: 1,
        clustering_row_count: rows,
        clustering_row_size: ::kv::RowSize::Fixed(200),
        filler: ::kv::Filler::Checked,
        rows_per_request: 100,
        concurrency: 8,
        ..Options::new(Mode::Write, Workload::Sequential)
    };
    let (written, _) = run(&*database, write.clone());
    assert_eq!((written.kinds[0].rows, written.failed), (rows as u64, 0));
    database.settle().expect("it settles");

    // Reads a thousand rows from every 10,000th row on: more than the cache holds.
    let read = Options { mode: Mode::Read, rows_per_request: 1000, ..write.clone() };
    let clock = Clock::start();
    let Session::Flights(mut session) = database.session(clock).expect("a session") else { panic!("many under way") };
    for slot in 0..8 {
        let from = PartitionRows::From { ck: i64::from(slot) * 5000, limit: 1000 };
        let order = (slot % 2 == 1).then_some(Order::Descending);
        let request = PartitionRequest::Read { pk: 0, rows: from, order };
        session.start(slot, &Request::Partition(request)).expect("it starts");
    }
    let mut answered = 0;
    while answered < 8 {
        let waited = session.wait(None, &mut |served| {
            answered += 1;
            assert_eq!(served.result.expect("it reads"), Outcome::Ok);
            let from = i64::from(served.slot) * 5000;
            let expected: Vec<i64> = match served.slot % 2 {
                0 => (from..from + 1000).collect(),
                _ => (rows - 1000..rows).rev().collect(),
            };
            let given: Vec<i64> = served.reply.partition_rows().map(|(ck, _)| ck).collect();
            assert_eq!(given, expected);
            for (ck, value) in served.reply.partition_rows() {
                ::kv::value::check(0, ck, value).expect("the value is as it was written");
            }
        });
        waited.expect("it waits");
    }
    drop(session);
    let spread = Options { clustering_row_count: 100, ..read };
    let (measured, findings) = run(&*database, spread);
    assert_eq!((measured.operations, measured.kinds[0].rows), (100, 100 * 1000));
    assert_eq!((findings.wrong_rows, measured.failed), (0, 0));

    let scan = Options { range_count: 4, ..Options::new(Mode::Scan, Workload::Scan) };
    let (scanned, _) = run(&*database, Options { concurrency: 4, ..scan });
    assert_eq!(scanned.kinds[0].rows, rows as u64, "a partition is not divided, and read once");
    let cache = database.counters().into_iter().find(|counter| counter.name == "cache bytes");
    assert!(cache.is_some_and(|cache| cache.value <= 2 << 20), "the cache has kept to its memory: {cache:?}");
    database.close().expect("it closes");
}

#[test]
fn a_scan_is_divided_between_partitions() {
    let directory = Scratch::new("partitions");
    let target = format!("larch:{}?settle=compact", directory.join("db").display());
    let database = open(&Target::parse(&target).expect("a good target"), &Setup::default()).expect("it opens");
    let options = Options {
        partition_count: 500,
        clustering_row_count: 20,
        clustering_row_size: ::kv::RowSize::Fixed(200),
        rows_per_request: 20,
        ..Options::new(Mode::Write, Workload::Sequential)
    };
    run(&*database, options);
    database.settle().expect("it settles");
    let Session::Flights(mut session) = database.session(Clock::start()).expect("a session") else { panic!() };
    let mut rows = Vec::new();
    for part in 0..4 {
        session.start(0, &Request::Partition(PartitionRequest::Scan { part, parts: 4 })).expect("it starts");
        session.wait(None, &mut |served| rows.push(served.reply.rows())).expect("it waits");
        while rows.len() <= part as usize {
            session.wait(None, &mut |served| rows.push(served.reply.rows())).expect("it waits");
        }
    }
    assert_eq!(rows.iter().sum::<u64>(), 10_000);
    assert!(rows.iter().all(|rows| rows % 20 == 0 && *rows > 1000), "parts are of about equal size: {rows:?}");
}
