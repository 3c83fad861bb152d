//! Tests commits in flight: one thread makes many commits, and threads, futures and callbacks wait for them, while
//! the simulated disk crashes and fails. Some tests run on a machine without threads, some with threads.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the program that commits has threads, channels and an executor of its own"
)]

use larch::machine::{SimDisk, ThreadPool};
use larch::{Batch, Commit, Database, Durability, Error, Table, Version};
use os::Machine;
use os::sync::atomic::{AtomicUsize, Ordering};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};

/// A database without threads.
fn simulated(disk: &Arc<SimDisk>, write_buffer_bytes: u64) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    Database::builder("db").machine(machine).write_buffer_bytes(write_buffer_bytes).open().expect("it opens")
}

/// A database with threads, on a simulated disk.
fn threaded(disk: &Arc<SimDisk>, write_buffer_bytes: u64) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let builder = Database::builder("db").machine(machine).thread_pool(&ThreadPool::new(2));
    builder.write_buffer_bytes(write_buffer_bytes).open().expect("it opens")
}

fn batch(db: &Database, table: &Table, key: u64) -> Batch {
    let mut batch = db.batch();
    batch.insert(table, key.to_be_bytes(), key.to_be_bytes());
    batch
}

fn submit(db: &Database, table: &Table, key: u64) -> Commit {
    batch(db, table, key).submit().expect("the disk works")
}

/// Polls a commit once, with a waker that counts how often it is woken.
fn poll(commit: &mut Commit, wakes: &Arc<Wakes>) -> Poll<larch::Result<Version>> {
    let waker = Waker::from(wakes.clone());
    Pin::new(commit).poll(&mut Context::from_waker(&waker))
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn is_unknown(outcome: &larch::Result<Version>) -> bool {
    matches!(outcome, Err(Error::OutcomeUnknown { .. }))
}

#[test]
fn a_commit_is_visible_before_it_is_durable_and_says_so() {
    let disk = SimDisk::new(1);
    let db = simulated(&disk, 1 << 20);
    let table = db.table("t").expect("the disk works");
    table.insert("before", "it").expect("the disk works");
    let before = db.durable_version();
    assert_eq!(before, db.version(), "a synced commit is durable when it returns");
    let commit = submit(&db, &table, 1);
    assert_eq!((commit.version(), db.version()), (Version(before.0 + 1), commit.version()));
    assert!(table.contains_key(1u64.to_be_bytes()).expect("the disk works"));
    assert!(!commit.is_durable() && db.durable_version() == before);
    assert_eq!(commit.wait().expect("the disk works"), commit.version());
    assert!(commit.is_durable() && db.durable_version() == commit.version());
    let empty = db.batch().submit().expect("the disk works");
    assert_eq!((empty.version(), empty.is_durable()), (commit.version(), true));
}

#[test]
fn a_thousand_commits_in_flight_cost_one_sync_however_they_are_waited_for() {
    for way in 0..3 {
        let disk = SimDisk::new(1);
        let db = simulated(&disk, 1 << 20);
        let table = db.table("t").expect("the disk works");
        let commits: Vec<Commit> = (0..1000).map(|key| submit(&db, &table, key)).collect();
        let before = disk.sync_count();
        let called = Arc::new(AtomicUsize::new(0));
        for mut commit in commits {
            match way {
                0 => _ = commit.wait().expect("the disk works"),
                1 => assert!(poll(&mut commit, &Arc::default()).is_ready(), "without threads, a poll syncs"),
                _ => {
                    let called = called.clone();
                    commit.on_durable(move |outcome| {
                        outcome.expect("the disk works");
                        called.fetch_add(1, Ordering::SeqCst);
                    });
                }
            }
        }
        assert_eq!(disk.sync_count() - before, 1, "way {way}");
        assert_eq!(called.load(Ordering::SeqCst), if way == 2 { 1000 } else { 0 });
    }
}

#[test]
fn one_thread_awaits_a_thousand_commits_with_few_syncs() {
    let disk = SimDisk::new(1);
    let db = threaded(&disk, 1 << 20);
    let table = db.table("t").expect("the disk works");
    let commits: Vec<Commit> = (0..1000).map(|key| submit(&db, &table, key)).collect();
    let before = disk.sync_count();
    let executor = smol::LocalExecutor::new();
    let tasks: Vec<_> = commits.into_iter().map(|commit| executor.spawn(commit)).collect();
    let versions = smol::block_on(executor.run(async {
        let mut versions = Vec::new();
        for task in tasks {
            versions.push(task.await.expect("the disk works"));
        }
        versions
    }));
    assert!(versions.is_sorted() && versions.len() == 1000);
    // One sync makes all these commits durable. The job that prepares the next log adds one or two.
    let syncs = disk.sync_count() - before;
    assert!((1..=4).contains(&syncs), "{syncs} syncs");
}

#[test]
fn threads_futures_and_callbacks_wait_beside_each_other_while_logs_end() {
    let disk = SimDisk::new(1);
    let db = threaded(&disk, 16 << 10);
    let table = db.table("t").expect("the disk works");
    let (sender, called) = channel();
    let ended: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6u64)
            .map(|thread| {
                let (db, table, sender) = (&db, &table, sender.clone());
                scope.spawn(move || {
                    let mut ended = 0;
                    for round in 0..40 {
                        let commits = (0..5).map(|i| submit(db, table, thread << 32 | round << 8 | i));
                        match thread % 3 {
                            0 => commits.for_each(|commit| _ = commit.wait().expect("the disk works")),
                            1 => commits.for_each(|commit| _ = smol::block_on(commit).expect("the disk works")),
                            _ => commits.for_each(|commit| {
                                let sender = sender.clone();
                                commit.on_durable(move |outcome| sender.send(outcome).expect("the test waits"));
                            }),
                        }
                        ended += 5;
                    }
                    ended
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
    });
    drop(sender);
    let called: Vec<Version> = called.into_iter().map(|outcome| outcome.expect("the disk works")).collect();
    assert_eq!((ended, called.len()), (1200, 400));
    assert_eq!(db.durable_version(), db.version());
    assert_eq!(table.iter().count(), 1200);
}

/// After a crash, only the newest commits may be lost, and none of them was reported as durable.
#[test]
fn a_crash_leaves_a_prefix_with_all_that_was_said_to_be_durable() {
    let mut lost = 0;
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed);
        let db = simulated(&disk, 16 << 10);
        let table = db.table("t").expect("the disk works");
        if random.random_bool(0.3) {
            disk.crash_at_sync(random.random_range(1..8));
        }
        let (mut commits, mut first) = (Vec::new(), None);
        for key in 0..random.random_range(1..300u64) {
            let Ok(commit) = batch(&db, &table, key).submit() else { break };
            first.get_or_insert(commit.version());
            commits.push(commit);
            if random.random_bool(0.03) {
                let i = random.random_range(0..commits.len());
                let outcome = match random.random_range(0..3) {
                    0 => commits[i].wait(),
                    1 => match poll(&mut commits[i], &Arc::default()) {
                        Poll::Ready(outcome) => outcome,
                        Poll::Pending => panic!("seed {seed}: without threads, a poll syncs"),
                    },
                    _ => db.sync().map(|()| db.version()),
                };
                if outcome.is_err() {
                    break;
                }
                assert!(commits[..=i].iter().all(Commit::is_durable), "seed {seed}: older ones are durable, too");
            }
        }
        let said = commits.iter().filter(|commit| commit.is_durable()).count();
        assert!(commits[..said].iter().all(Commit::is_durable), "seed {seed}: what is durable is a prefix");
        let (all, durable) = (commits.len(), db.durable_version());
        assert_eq!(said as u64, first.map_or(0, |first| (durable.0 + 1).saturating_sub(first.0)), "seed {seed}");
        disk.crash();
        drop((commits, table, db));
        disk.clear_faults();
        let db = simulated(&disk, 16 << 10);
        assert!(db.version() >= durable, "seed {seed}");
        assert_eq!(db.durable_version(), db.version(), "seed {seed}: what a recovery finds is durable");
        let rows = db.table("t").expect("it is there").iter().enumerate();
        let left = rows.map(|(i, row)| assert_eq!(*row.expect("the disk works").0, (i as u64).to_be_bytes())).count();
        assert!((said..=all).contains(&left), "seed {seed}: {left} rows of {all}, {said} of them durable");
        lost += all - left;
    }
    assert!(lost > 500, "{lost} commits were lost, so the test tests little");
}

#[test]
fn a_failed_sync_ends_every_handle_as_unknown_and_stops_writes() {
    for has_threads in [false, true] {
        let disk = SimDisk::new(1);
        let db = if has_threads { threaded(&disk, 1 << 20) } else { simulated(&disk, 1 << 20) };
        let table = db.table("t").expect("the disk works");
        let durable = submit(&db, &table, 0);
        durable.wait().expect("the disk works");
        let commits: Vec<Commit> = (1..40).map(|key| submit(&db, &table, key)).collect();
        disk.fail_sync(1, ErrorKind::Other);
        let (sender, outcomes) = channel();
        for (i, commit) in commits.into_iter().enumerate() {
            match i % 3 {
                0 => {
                    let sender = sender.clone();
                    commit.on_durable(move |outcome| sender.send(outcome).expect("the test waits"));
                }
                1 => sender.send(commit.wait()).expect("the test waits"),
                _ => sender.send(smol::block_on(commit)).expect("the test waits"),
            }
        }
        drop(sender);
        let outcomes: Vec<_> = outcomes.into_iter().collect();
        assert_eq!(outcomes.len(), 39);
        assert!(outcomes.iter().all(is_unknown), "{outcomes:?}");
        assert_eq!(durable.wait().expect("it was durable before"), durable.version());
        let error = batch(&db, &table, 99).submit().expect_err("writes are refused");
        assert!(matches!(error, Error::WritesStopped(_)), "{error}");
        assert!(matches!(db.sync(), Err(Error::WritesStopped(_))));
        assert_eq!(table.iter().count(), 40, "reads go on");
    }
}

#[test]
fn handles_keep_the_database_open_until_their_wait_is_over() {
    for has_threads in [false, true] {
        let disk = SimDisk::new(1);
        let open = || if has_threads { threaded(&disk, 1 << 20) } else { simulated(&disk, 1 << 20) };
        let db = open();
        let table = db.table("t").expect("the disk works");
        let (waits, awaits, calls) = (submit(&db, &table, 1), submit(&db, &table, 2), submit(&db, &table, 3));
        drop((table, db));
        waits.wait().expect("it is open");
        smol::block_on(awaits).expect("it is open");
        drop(waits);
        let (sender, called) = channel();
        calls.on_durable(move |outcome| sender.send(outcome).expect("the test waits"));
        called.recv().expect("it is called").expect("it is open");
        drop(called);
        // The thread that has called the last callback may still be closing the database.
        let db = (0..).find_map(|_| {
            std::thread::yield_now();
            let machine = Machine::simulated_on(disk.clone(), 1);
            match Database::builder("db").machine(machine).open() {
                Err(Error::Locked(_)) => None,
                outcome => Some(outcome.expect("it opens")),
            }
        });
        assert_eq!(db.expect("it is closed some day").table("t").expect("it is there").iter().count(), 3);
    }
}

#[test]
fn a_close_makes_the_commits_in_flight_durable() {
    let disk = SimDisk::new(1);
    let db = threaded(&disk, 1 << 20);
    let table = db.table("t").expect("the disk works");
    let commits: Vec<Commit> = (0..10).map(|key| submit(&db, &table, key)).collect();
    db.close().expect("the disk works");
    assert!(commits.iter().all(Commit::is_durable));
    for commit in commits {
        smol::block_on(commit).expect("it is durable");
    }
}

#[test]
fn a_callback_may_use_the_database_panic_and_be_the_last_to_hold_it() {
    for has_threads in [false, true] {
        let disk = SimDisk::new(1);
        let db = if has_threads { threaded(&disk, 1 << 20) } else { simulated(&disk, 1 << 20) };
        let table = db.table("t").expect("the disk works");
        let commits: Vec<Commit> = (0..3).map(|key| submit(&db, &table, key)).collect();
        let [panics, writes, last] = commits.try_into().expect("there are three");
        let (sender, called) = channel();
        panics.on_durable(|_| panic!("asked for by the test"));
        let (second, in_callback) = (sender.clone(), (db.clone(), table.clone()));
        writes.on_durable(move |outcome| {
            outcome.expect("the disk works");
            let (db, table) = in_callback;
            table.insert("from", "the callback").expect("a callback may write");
            submit(&db, &table, 7).wait().expect("a callback may wait as a thread");
            let third = second.clone();
            submit(&db, &table, 8).on_durable(move |outcome| third.send(outcome).expect("the test waits"));
            second.send(Ok(db.version())).expect("the test waits");
        });
        last.on_durable(move |outcome| {
            drop((table, db));
            sender.send(outcome).expect("the test waits");
        });
        let outcomes: Vec<_> = called.into_iter().collect();
        assert_eq!(outcomes.len(), 3, "the other callbacks are called");
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
}

#[test]
fn a_callback_for_a_durable_commit_is_called_at_once() {
    let disk = SimDisk::new(1);
    let db = threaded(&disk, 1 << 20);
    let table = db.table("t").expect("the disk works");
    let commit = submit(&db, &table, 1);
    commit.wait().expect("the disk works");
    let here = std::thread::current().id();
    let (sender, called) = channel();
    commit.on_durable(move |_| sender.send(std::thread::current().id()).expect("the test waits"));
    assert_eq!(called.try_recv().expect("it was called"), here);
}

#[test]
fn a_future_may_be_dropped_polled_again_and_given_another_waker() {
    let disk = SimDisk::new(1);
    let db = threaded(&disk, 1 << 20);
    let table = db.table("t").expect("the disk works");
    for key in 0..200 {
        let (mut dropped, mut kept) = (submit(&db, &table, key), submit(&db, &table, key));
        let (first, second) = (Arc::<Wakes>::default(), Arc::<Wakes>::default());
        drop(poll(&mut dropped, &first));
        let was_pending = poll(&mut kept, &first).is_pending() && poll(&mut kept, &second).is_pending();
        drop(dropped);
        while was_pending && second.0.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..2 {
            assert!(matches!(poll(&mut kept, &second), Poll::Ready(Ok(version)) if version == kept.version()));
        }
        assert!(first.0.load(Ordering::SeqCst) <= 2, "a waker is called once for each time that it was given");
    }
}

#[test]
fn the_durability_of_the_batch_says_what_commit_waits_for_and_not_submit() {
    let disk = SimDisk::new(1);
    let db = simulated(&disk, 1 << 20);
    let table = db.table("t").expect("the disk works");
    for (key, durability) in [(1, Durability::Buffered), (2, Durability::Synced)] {
        let before = disk.sync_count();
        let commit = batch(&db, &table, key).durability(durability).submit().expect("the disk works");
        assert_eq!(disk.sync_count(), before, "nobody asked");
        assert!(!commit.is_durable());
        commit.wait().expect("the disk works");
        assert_eq!(disk.sync_count(), before + 1);
    }
    batch(&db, &table, 3).durability(Durability::Buffered).commit().expect("the disk works");
    assert!(db.durable_version() < db.version());
    db.flush().expect("the disk works");
    assert_eq!(db.durable_version(), db.version(), "what is in files is durable");
    let read_only = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 2)).read_only(true);
    let read_only = read_only.open().expect("it opens");
    assert_eq!(read_only.durable_version(), read_only.version());
    assert!(matches!(read_only.batch().submit(), Err(Error::ReadOnly)));
}

#[test]
fn handles_are_sent_between_threads() {
    fn sent<T: Send + Sync + 'static>(_: &T) {}
    let disk = SimDisk::new(1);
    let db = simulated(&disk, 1 << 20);
    let table = db.table("t").expect("the disk works");
    sent(&submit(&db, &table, 1));
}
