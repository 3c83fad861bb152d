//! Tests work that is retried after conflicts, in several threads and tasks.
#![allow(clippy::disallowed_methods, reason = "threads beside each other are what is tested")]

use super::*;
use crate::conflicts::reserved::Reservation;
use crate::handle::attempt::Attempt;
use crate::{Durability, Table};
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

fn real() -> (tempfile::TempDir, Database, Table) {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::builder(&directory).durability(Durability::Buffered).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    (directory, db, table)
}

fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(value.try_into().expect("eight bytes")))
}

fn increment(tx: &mut Transaction, table: &Table, key: &str) -> Result<()> {
    let before = number(tx.get(table, key)?.as_deref());
    tx.insert(table, key, (before + 1).to_be_bytes())
}

#[test]
fn no_increment_is_lost_among_threads() {
    let (_directory, db, table) = real();
    const THREADS: u64 = 4;
    const TIMES: u64 = 500;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let isolation = if thread % 2 == 0 { Isolation::Serializable } else { Isolation::Snapshot };
                let options = TransactionOptions { isolation, attempts: u32::MAX, ..TransactionOptions::default() };
                for i in 0..TIMES {
                    let key = if i % 3 == 0 { "a" } else { "b" };
                    match thread {
                        0 | 1 => db.transact_with(&options, |tx| increment(tx, table, key)).expect("the disk works"),
                        2 => smol::block_on(
                            db.transact_async_with(&options, async |mut tx| increment(&mut tx, table, key)),
                        )
                        .expect("the disk works"),
                        _ => {
                            let add = |now: Option<&[u8]>| Some((number(now) + 1).to_be_bytes().to_vec());
                            table.fetch_update(key, add).map(drop).expect("the disk works");
                        }
                    }
                }
            });
        }
    });
    let values = table.multi_get(["a", "b"]).expect("the disk works");
    let sum: u64 = values.iter().map(|value| number(value.as_deref())).sum();
    assert_eq!(sum, THREADS * TIMES);
    assert_eq!(db.core().writes.reserved.count(), 0);
    assert_eq!(db.core().writes.recent.running(), 0);
}

#[test]
fn after_eight_conflicts_the_keys_are_reserved_and_the_work_is_done() {
    let db = simulated(1);
    let table = db.table("t").expect("the disk works");
    let mut reserved = Vec::new();
    let done: Result<usize> = db.transact(|tx| {
        reserved.push(db.core().writes.reserved.count());
        increment(tx, &table, "a")?;
        // In each of the first twelve attempts, a commit of this thread makes the transaction conflict. It does not
        // wait for the reservation of the key, because threads cannot wait on this machine.
        if reserved.len() <= 12 {
            table.insert("a", [0; 8])?;
        }
        Ok(reserved.len())
    });
    assert_eq!(done.expect("the thirteenth is alone"), 13);
    assert_eq!(reserved, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(db.core().writes.reserved.count(), 0);
}

#[test]
fn work_that_reads_a_busy_range_is_done_in_the_end_because_other_commits_wait() {
    let (_directory, db, table) = real();
    let (commits, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let holds = || db.core().writes.reserved.is_held();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let number = commits.load(Ordering::SeqCst);
                table.insert(number.to_be_bytes(), "1").expect("the disk works");
                commits.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut attempts = 0;
        let done: Result<()> = db.transact(|tx| {
            attempts += 1;
            let rows = tx.iter(&table).count();
            // Wait for two more commits of the other thread, or until it has to wait. The second of them began
            // after the transaction had read the rows, so it conflicts.
            let begun = commits.load(Ordering::SeqCst);
            while commits.load(Ordering::SeqCst) < begun + 2 && !holds() {
                thread::yield_now();
            }
            // Commits of this thread do not wait for this thread.
            db.table("other")?.insert("a", "1")?;
            tx.insert(&table, "rows", rows.to_string())
        });
        is_over.store(true, Ordering::SeqCst);
        done.expect("it has the database for itself at last");
        // A commit that the other thread began before the transaction held the writer may cause one more conflict.
        assert!((3..30).contains(&attempts), "{attempts}");
    });
    assert!(table.contains_key("rows").expect("the disk works") && !holds());
    assert_eq!(db.core().writes.reserved.count(), 0);
}

#[test]
fn a_writer_that_is_held_too_long_goes_on() {
    let (_directory, db, table) = real();
    let reserved = &db.core().writes.reserved;
    let clock = &*db.core().env.machine.clock;
    let (mut forgotten, mut next) = (Reservation::default(), Reservation::default());
    // The thread that holds the writer does not wait for itself, so another thread has to hold it.
    thread::scope(|scope| {
        scope.spawn(|| reserved.hold_writer(&mut forgotten, std::time::Duration::from_millis(20), clock));
    });
    table.insert("a", "1").expect("it ends though nobody frees the writer");
    reserved.hold_writer(&mut next, std::time::Duration::from_millis(20), clock);
    reserved.free(&mut forgotten);
    assert_eq!(reserved.count(), 1, "what another one holds by now it does not free");
    reserved.free(&mut next);
    assert_eq!(reserved.count(), 0);
}

#[test]
fn the_attempts_are_limited_and_the_last_conflict_is_named() {
    let db = simulated(1);
    let table = db.table("t").expect("the disk works");
    let options = TransactionOptions { attempts: 3, ..TransactionOptions::default() };
    let mut attempts = 0;
    let outcome: Result<()> = db.transact_with(&options, |tx| {
        attempts += 1;
        increment(tx, &table, "a")?;
        table.insert("a", [0; 8])
    });
    let error = outcome.expect_err("each attempt conflicts");
    assert!(
        error
            .to_string()
            .starts_with("the transaction conflicted 3 times, the last time because another commit has changed key a")
    );
    assert_eq!(attempts, 3);
}

#[test]
fn an_error_of_the_work_commits_nothing_and_comes_back_as_it_is() {
    #[derive(Debug, PartialEq)]
    enum Mine {
        Refused,
        Engine(String),
    }
    impl From<Error> for Mine {
        fn from(error: Error) -> Self {
            Self::Engine(error.to_string())
        }
    }
    let db = simulated(1);
    let table = db.table("t").expect("the disk works");
    let outcome: Result<(), Mine> = db.transact(|tx| {
        tx.insert(&table, "a", "1")?;
        Err(Mine::Refused)
    });
    assert_eq!(outcome, Err(Mine::Refused));
    assert!(table.iter().next().is_none());
}

#[test]
fn a_commit_waits_for_a_reserved_key_but_not_for_ever() {
    let (_directory, db, table) = real();
    let mut forgotten = db.begin().expect("it begins");
    forgotten.get_for_update(&table, "a").expect("the disk works");
    // The transaction `forgotten` still has the key reserved, but this commit does not wait forever.
    table.insert("a", "1").expect("the disk works");
    let mut other = db.begin().expect("it begins");
    other.get_for_update(&table, "a").expect("the disk works");
    assert_eq!(db.core().writes.reserved.count(), 1, "the first one still has it");
    drop(forgotten);
    assert_eq!(db.core().writes.reserved.count(), 0);
    other.get_for_update(&table, "a").expect("the disk works");
    assert_eq!(db.core().writes.reserved.count(), 1);
    drop(other);
    assert_eq!(db.core().writes.reserved.count(), 0);
}

#[test]
fn a_task_that_waits_for_a_reserved_key_lets_the_task_run_that_has_it() {
    let (_directory, db, table) = real();
    let (times, is_over) = (std::cell::Cell::new(0_u32), std::cell::Cell::new(false));
    let executor = smol::LocalExecutor::new();
    // The task `holder` keeps the key reserved until it has run ten times. Both tasks are on one thread, so
    // `holder` runs only when the other task yields.
    let holder = executor.spawn(async {
        let mut tx = db.begin().expect("it begins");
        tx.get_for_update_async(&table, "a").await.expect("the disk works");
        while times.get() < 10 {
            times.set(times.get() + 1);
            smol::future::yield_now().await;
        }
        increment(&mut tx, &table, "a").expect("the disk works");
        is_over.set(tx.commit_async().await.expect("the disk works").is_ok());
    });
    let other = async {
        while times.get() == 0 {
            smol::future::yield_now().await;
        }
        let mut tx = db.begin().expect("it begins");
        tx.get_for_update_async(&table, "a").await.expect("the disk works");
        assert!(is_over.get(), "it has the key when the other one has ended");
        increment(&mut tx, &table, "a").expect("the disk works");
        tx.commit_async().await.expect("the disk works").expect("it saw what the other one wrote");
    };
    smol::block_on(executor.run(smol::future::zip(holder, other)));
    assert_eq!(number(table.get("a").expect("the disk works").as_deref()), 2);
}

#[test]
fn the_body_of_a_future_is_spawned_in_each_of_its_forms() {
    let (_directory, db, table) = real();
    let task = smol::spawn({
        let (db, table) = (db.clone(), table.clone());
        async move {
            let borrows = async |mut tx: Attempt| increment(&mut tx, &table, "a");
            db.transact_async(borrows).await?;
            db.transact_async(move |mut tx| {
                let table = table.clone();
                async move { increment(&mut tx, &table, "a") }
            })
            .await
        }
    });
    smol::block_on(task).expect("the disk works");
    assert_eq!(number(table.get("a").expect("the disk works").as_deref()), 2);
}

#[test]
fn an_attempt_that_is_kept_commits_nothing() {
    let (_directory, db, table) = real();
    let kept = std::cell::Cell::new(None);
    let done = smol::block_on(db.transact_async(async |mut tx| {
        tx.insert(&table, "a", "1")?;
        kept.set(Some(tx));
        Ok::<_, Error>(())
    }));
    assert!(matches!(done, Err(Error::AttemptKept)), "{done:?}");
    drop(kept);
    assert!(!table.contains_key("a").expect("the disk works"));
    assert_eq!(db.core().writes.recent.running(), 0);
}

#[test]
fn a_body_that_fails_commits_nothing_and_says_why() {
    let (_directory, db, table) = real();
    let done = smol::block_on(db.transact_async(async |mut tx| {
        tx.insert(&table, "a", "1")?;
        Err::<(), _>(Error::NoSuchSavepoint)
    }));
    assert!(matches!(done, Err(Error::NoSuchSavepoint)), "{done:?}");
    assert!(!table.contains_key("a").expect("the disk works"));
}
