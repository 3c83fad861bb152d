//! Tests that the future of a commit never blocks the thread of its executor, whatever the commit waits for.
#![allow(clippy::disallowed_methods, reason = "the database lies on the machine's disk, and has threads")]

use super::*;
use crate::base::event::{Event, StallReason};
use crate::options::LevelOptions;
use crate::{Durability, Table};
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A test polls whether a task on another thread has made progress. After this many polls in vain, it takes the
/// task to be stuck.
const PATIENCE: u32 = 3_000_000;

/// Calls `is_done` until it returns true. Returns false if it still has not after [`PATIENCE`] calls.
fn looks_until(is_done: impl Fn() -> bool) -> bool {
    for _ in 0..PATIENCE {
        if is_done() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Runs `work` on one thread beside a task that keeps calling `tick`.
fn beside_a_tick<T>(work: impl Future<Output = T>, tick: impl Fn()) -> T {
    let ticks = async {
        loop {
            tick();
            smol::future::yield_now().await;
        }
    };
    smol::block_on(smol::future::or(work, ticks))
}

#[test]
fn a_task_whose_commit_has_no_room_lets_other_tasks_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let (may_flush, gave_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (flushes, failed) = (may_flush.clone(), gave_up.clone());
    let builder = Database::builder(&directory).durability(Durability::Buffered).write_buffer_bytes(64 << 10);
    let builder = builder.on_event(move |event| {
        if matches!(event, Event::FlushStarted { .. }) && !looks_until(|| flushes.load(Ordering::SeqCst)) {
            failed.store(true, Ordering::SeqCst);
        }
    });
    let db = builder.open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let commits = async {
        for i in 0..100_u32 {
            let mut tx = db.begin().expect("it begins");
            tx.insert(&table, i.to_be_bytes(), [7; 4000]).expect("it is taken");
            tx.commit_async().await.expect("the disk works").expect("nothing else happens");
        }
    };
    beside_a_tick(commits, || {
        // The flush may run as soon as a commit waits for it.
        if db.core().background.stalls.totals(StallReason::WriteBuffer).0 > 0 {
            may_flush.store(true, Ordering::SeqCst);
        }
    });
    assert!(!gave_up.load(Ordering::SeqCst), "the tick was stopped");
    assert_eq!(table.iter().count(), 100);
}

#[test]
fn a_task_whose_commit_is_slowed_lets_other_tasks_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let levels = LevelOptions { level0_files: 1000, slow_files: 1, ..LevelOptions::default() };
    let builder = Database::builder(&directory).durability(Durability::Buffered).levels(levels);
    let db = builder.open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    for i in 0..4_u32 {
        table.insert(i.to_be_bytes(), "1").expect("it is taken");
        db.flush().expect("the disk works");
    }
    let commit = |key: u32| {
        let mut tx = db.begin().expect("it begins");
        tx.insert(&table, key.to_be_bytes(), [7; 30_000]).expect("it is taken");
        tx.commit_async()
    };
    let (mut first, mut second) = (pin!(commit(10)), pin!(commit(11)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(first.as_mut().poll(&mut context), Poll::Ready(Ok(Ok(_)))), "nobody was before it");
    assert!(second.as_mut().poll(&mut context).is_pending(), "it waits for the share of the first one");
    assert!(db.core().env.written.slowed_nanos.load(Ordering::Relaxed) > 0);
    smol::block_on(second).expect("the disk works").expect("nothing else happens");
    assert_eq!(table.iter().count(), 6);
}

#[test]
fn a_task_whose_commit_writes_files_lets_other_tasks_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::builder(&directory).write_buffer_bytes(64 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    for i in 0..1000_u32 {
        tx.insert(&table, i.to_be_bytes(), [7; 100]).expect("it is taken");
    }
    assert!(tx.work().writes.in_runs() > 0);
    // No files can be installed while the test holds the lock of levels.
    let levels = std::cell::Cell::new(Some(db.core().writes.levels.own()));
    let ticks = std::cell::Cell::new(0);
    let committed = beside_a_tick(tx.commit_async(), || {
        ticks.set(ticks.get() + 1);
        if ticks.get() == 100 {
            drop(levels.take());
        }
    });
    committed.expect("the disk works").expect("nothing else happens");
    assert!(ticks.get() >= 100);
    assert_eq!(table.iter().count(), 1000);
}

#[test]
fn a_task_whose_commit_waits_for_the_lock_of_the_writer_lets_other_tasks_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::open(&directory).expect("the disk works");
    let table: Table = db.table("t").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", "1").expect("it is taken");
    let core = db.core();
    let (writer, ticks) = (std::cell::Cell::new(Some(core.writes.writer.lock())), std::cell::Cell::new(0));
    let committed = beside_a_tick(tx.commit_async(), || {
        ticks.set(ticks.get() + 1);
        if ticks.get() == 100 {
            drop(writer.take());
        }
    });
    committed.expect("the disk works").expect("nothing else happens");
    assert!(ticks.get() >= 100);
}

#[test]
fn without_threads_a_task_does_the_work_that_its_commit_waits_for() {
    let levels = LevelOptions { level0_files: 2, slow_files: 1, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(Machine::simulated(1).0).levels(levels);
    let db = builder.write_buffer_bytes(64 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    smol::block_on(async {
        for i in 0..200_u32 {
            let mut tx = db.begin().expect("it begins");
            tx.insert(&table, i.to_be_bytes(), [7; 8000]).expect("it is taken");
            tx.commit_async().await.expect("the disk works").expect("nothing else happens");
        }
        db.transact_async(async |mut tx| (0..1000_u32).try_for_each(|i| tx.insert(&table, i.to_be_bytes(), [8; 100])))
            .await
            .expect("the disk works");
    });
    assert_eq!(table.iter().count(), 1000);
}
