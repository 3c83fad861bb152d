//! Tests tasks that wait at a sync point. The tests poll the worker themselves. For threads, see `log/tests.rs`.

use super::*;
use crate::base::record::{Header, LogKind, RecordWriter};
use os::sim::SimDisk;
use std::io::ErrorKind;
use std::path::Path;
use std::task::Wake;
use std::time::Duration;

/// A waker that counts its wakes and does nothing else.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl Worker for Counted {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn wake_first(&self) {
        self.wake();
    }
    fn wake_after(&self, _: Duration) {}
    fn drive(&self) {}
    fn stop(&self) {}
    fn join(&self) {}
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counted {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Fixture {
    disk: Arc<SimDisk>,
    writer: RecordWriter,
    point: SyncPoint,
    worker: Arc<Counted>,
    version: u64,
}

impl Fixture {
    fn new() -> Self {
        let disk = SimDisk::new(1);
        let header = Header::new(LogKind::WriteAhead, 5, 3, None);
        let writer = RecordWriter::create(&*disk, Path::new("log"), &header).expect("the disk works");
        let point = SyncPoint::new(Version(0));
        point.continue_in(writer.file());
        let worker = Arc::new(Counted::default());
        point.begin(worker.clone());
        Self { disk, writer, point, worker, version: 0 }
    }

    fn append(&mut self) -> Version {
        self.writer.append(&[b"a commit"]).expect("the disk works");
        self.version += 1;
        self.point.note_appended(Version(self.version));
        Version(self.version)
    }

    /// Polls until the worker has nothing to do. Returns the errors of the polls.
    fn serve(&self) -> Vec<LogError> {
        let mut errors = Vec::new();
        loop {
            match self.point.serve() {
                Ok(Polled::Idle) => return errors,
                Ok(Polled::Worked) => {}
                Err(error) => errors.push(error),
            }
        }
    }
}

#[test]
fn a_thousand_tasks_wake_the_worker_once_and_cost_one_sync() {
    let mut at = Fixture::new();
    let woken = Arc::new(Counted::default());
    let versions: Vec<Version> = (0..1000).map(|_| at.append()).collect();
    let mut tickets = vec![None; 1000];
    for (version, ticket) in versions.iter().zip(&mut tickets) {
        assert!(at.point.wake_later(*version, ticket, woken.clone().into()));
        assert!(at.point.wake_later(*version, ticket, woken.clone().into()), "a task that waits is polled again");
    }
    assert_eq!((at.worker.count(), woken.count()), (1, 0));
    let before = at.disk.sync_count();
    assert!(at.serve().is_empty());
    assert_eq!(at.disk.sync_count() - before, 1);
    assert_eq!(woken.count(), 1000, "each task is woken once");
    assert!(!at.point.wake_later(versions[3], &mut tickets[3], woken.into()), "there is nothing to wait for");
}

#[test]
fn a_task_that_was_forgotten_is_neither_woken_nor_synced_for() {
    let mut at = Fixture::new();
    let woken = Arc::new(Counted::default());
    let version = at.append();
    let mut ticket = None;
    at.point.wake_later(version, &mut ticket, woken.clone().into());
    at.point.forget(ticket.expect("it waits"));
    let before = at.disk.sync_count();
    at.serve();
    assert_eq!((at.disk.sync_count(), woken.count()), (before, 0));
    assert_eq!(Arc::strong_count(&woken), 1, "its waker is gone");
}

#[test]
fn a_sync_of_a_thread_wakes_the_tasks_that_it_covers() {
    let mut at = Fixture::new();
    let woken = Arc::new(Counted::default());
    let versions = [at.append(), at.append()];
    at.point.wake_later(versions[0], &mut None, woken.clone().into());
    at.point.wait(versions[1]).expect("the disk works");
    assert_eq!(woken.count(), 0, "only the worker calls what belongs to the program");
    let before = at.disk.sync_count();
    at.serve();
    assert_eq!((at.disk.sync_count(), woken.count()), (before, 1));
}

#[test]
fn rows_in_files_end_waits_without_a_sync() {
    let mut at = Fixture::new();
    let woken = Arc::new(Counted::default());
    let versions = [at.append(), at.append()];
    for version in versions {
        at.point.wake_later(version, &mut None, woken.clone().into());
    }
    let before = at.disk.sync_count();
    at.point.note_durable(versions[0]);
    assert_eq!(at.point.serve().expect("no sync is needed"), Polled::Worked);
    assert_eq!((at.disk.sync_count(), woken.count()), (before, 1), "the later one still waits");
    at.serve();
    assert_eq!((at.disk.sync_count(), woken.count()), (before + 1, 2));
}

#[test]
fn after_a_failed_sync_tasks_are_woken_and_later_ones_do_not_wait() {
    let mut at = Fixture::new();
    let durable = at.append();
    at.point.wait(durable).expect("the disk works");
    let woken = Arc::new(Counted::default());
    let version = at.append();
    at.point.wake_later(version, &mut None, woken.clone().into());
    at.disk.fail_sync(1, ErrorKind::Other);
    assert_eq!(at.serve().len(), 1);
    assert_eq!(woken.count(), 1);
    assert!(matches!(at.point.outcome(version), Some(Err(_))));
    assert!(matches!(at.point.outcome(durable), Some(Ok(()))), "what was durable stays so");
    assert!(!at.point.wake_later(version, &mut None, woken.into()));
    let callback = at.point.call_later(version, Box::new(|| ()));
    assert!(callback.is_some(), "it is given back");
    assert!(at.serve().is_empty(), "the error is reported once");
}

#[test]
fn a_failure_elsewhere_ends_all_waits() {
    let mut at = Fixture::new();
    let woken = Arc::new(Counted::default());
    let version = at.append();
    at.point.wake_later(version, &mut None, woken.clone().into());
    at.point.fail(&LogError::corrupt(Path::new("log"), 0, "a cut could not be synced"));
    at.serve();
    assert_eq!(woken.count(), 1);
    at.point.wait(version).expect_err("it is unknown");
}

#[test]
fn a_log_without_commits_is_synced_too() {
    let mut at = Fixture::new();
    let end = at.writer.append(&[b"no commit"]).expect("the disk works");
    at.point.sync_log(at.writer.file(), end).expect("the disk works");
    assert_eq!((at.writer.file().synced_end(), at.point.durable()), (end, Version(0)));
    let before = at.disk.sync_count();
    at.point.sync_log(at.writer.file(), end).expect("it is durable");
    assert_eq!(at.disk.sync_count(), before);
}
