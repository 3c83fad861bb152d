//! Tests a sync point under many thread schedules. Under shuttle, several threads run in random schedules. Under
//! loom, two threads and the worker run in all schedules with few preemptions.

use super::*;
use crate::base::record::{RecordForm, RecordWriter};
use os::File;
use os::sync::atomic::AtomicBool;
use os::sync::atomic::Ordering::SeqCst;
#[cfg(loom)]
use os::sync::loom::thread;
#[cfg(shuttle)]
use os::sync::shuttle::{self, thread};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Counts the syncs of all files.
#[derive(Debug, Default)]
struct Syncs {
    count: AtomicU64,
    /// The number of the first sync that fails, as do all later ones; 0 if none fails.
    failing: u64,
}

/// A file that stores only the offset of its end. A sync takes two steps: it reads this offset, and later makes the
/// bytes before it durable, but none that were written between the two steps.
#[derive(Debug)]
struct SyncEnds {
    written: AtomicU64,
    durable: AtomicU64,
    is_syncing: AtomicBool,
    syncs: Arc<Syncs>,
}

impl SyncEnds {
    fn new(syncs: &Arc<Syncs>) -> Arc<Self> {
        Arc::new(Self {
            written: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            is_syncing: AtomicBool::new(false),
            syncs: syncs.clone(),
        })
    }
}

impl File for SyncEnds {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        unreachable!("a log is not read while it is written")
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.written.store(offset + bytes.len() as u64, SeqCst);
        Ok(())
    }

    fn append(&self, _: &[u8]) -> io::Result<u64> {
        unreachable!("records are written at their offset")
    }

    fn sync(&self) -> io::Result<()> {
        assert!(!self.is_syncing.swap(true, SeqCst), "one sync at a time");
        let written = self.written.load(SeqCst);
        let number = self.syncs.count.fetch_add(1, SeqCst) + 1;
        self.is_syncing.store(false, SeqCst);
        if self.syncs.failing != 0 && number >= self.syncs.failing {
            return Err(io::ErrorKind::Other.into());
        }
        self.durable.store(written, SeqCst);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        unreachable!("a writer knows where it is")
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        unreachable!("a log only grows")
    }

    fn is_direct(&self) -> bool {
        false
    }
}

/// What the worker was told to do.
#[derive(Debug, Default)]
struct Told {
    is_woken: bool,
    is_stopped: bool,
}

/// A worker that runs on a thread of the model.
#[derive(Debug, Default)]
struct ModelWorker {
    told: Mutex<Told>,
    changed: Condvar,
}

impl ModelWorker {
    /// Does its work each time it is woken, until it is stopped.
    fn live(&self, point: &SyncPoint) {
        loop {
            let mut told = self.told.lock();
            while !told.is_woken {
                if told.is_stopped {
                    return;
                }
                told = self.changed.wait(told);
            }
            told.is_woken = false;
            drop(told);
            while !matches!(point.serve(), Ok(Polled::Idle)) {}
        }
    }
}

impl Worker for ModelWorker {
    fn wake(&self) {
        self.told.lock().is_woken = true;
        self.changed.notify_one();
    }

    fn wake_first(&self) {
        self.wake();
    }

    fn wake_after(&self, _: Duration) {
        unreachable!("syncs do not wait for a time")
    }

    fn drive(&self) {}

    fn stop(&self) {
        self.told.lock().is_stopped = true;
        self.changed.notify_one();
    }

    fn join(&self) {}
}

/// The log that takes commits now.
struct Active {
    ends: Arc<SyncEnds>,
    writer: RecordWriter,
    version: u64,
}

/// The state that all threads share.
struct Log {
    active: Mutex<Active>,
    point: SyncPoint,
    syncs: Arc<Syncs>,
    has_failed: AtomicBool,
    /// How many callbacks were called.
    called: Mutex<u64>,
    one_called: Condvar,
}

/// A commit that was appended.
struct Appended {
    version: Version,
    ends: Arc<SyncEnds>,
    end: u64,
    had_failed: bool,
}

impl Log {
    /// Appends a commit. Returns `None` if a sync has failed.
    fn append(&self) -> Option<Appended> {
        let had_failed = self.has_failed.load(SeqCst);
        let mut active = self.active.lock();
        let Ok(end) = active.writer.append(&[b"a commit"]) else {
            // A write to this file never fails. The writer returns an error only after a failed sync.
            self.has_failed.store(true, SeqCst);
            return None;
        };
        active.version += 1;
        let version = Version(active.version);
        self.point.note_appended(version);
        Some(Appended { version, ends: active.ends.clone(), end, had_failed })
    }

    /// Begins the next log.
    fn rotate(&self) {
        let mut active = self.active.lock();
        let ends = SyncEnds::new(&self.syncs);
        let mut writer = RecordWriter::after_header(ends.clone(), Path::new("next log"), RecordForm::full(2));
        writer.follow(active.writer.file().clone());
        writer.append(&[b"the log before"]).expect("this log has not failed");
        self.point.continue_in(writer.file());
        (active.ends, active.writer) = (ends, writer);
    }

    /// Checks the outcome that a waiter got for a commit.
    fn check(&self, commit: &Appended, outcome: &Result<()>) {
        match outcome {
            Ok(()) => {
                assert!(!commit.had_failed, "a commit succeeded after a sync had failed");
                assert!(commit.ends.durable.load(SeqCst) >= commit.end, "acknowledged and not durable");
                assert!(self.point.is_durable(commit.version));
            }
            Err(_) => self.has_failed.store(true, SeqCst),
        }
    }

    /// Commits, and waits for the commit.
    fn commit(&self) {
        if let Some(commit) = self.append() {
            self.check(&commit, &self.point.wait(commit.version));
        }
    }

    /// Commits, and asks for a callback. Returns the number of callbacks that will be called: 0 or 1.
    fn submit(self: &Arc<Self>) -> u64 {
        let Some(commit) = self.append() else { return 0 };
        let (log, version) = (self.clone(), commit.version);
        let callback = Box::new(move || {
            log.check(&commit, &log.point.outcome(commit.version).expect("it is called when there is an outcome"));
            *log.called.lock() += 1;
            log.one_called.notify_one();
        });
        if let Some(callback) = self.point.call_later(version, callback) {
            callback();
        }
        1
    }

    /// Commits, lets a task wait for the commit, and drops the task.
    #[cfg(shuttle)]
    fn give_up(&self) {
        let Some(commit) = self.append() else { return };
        let mut ticket = None;
        self.point.wake_later(commit.version, &mut ticket, Waker::noop().clone());
        if let Some(ticket) = ticket {
            self.point.forget(ticket);
        }
    }

    /// Makes the current log durable up to its end, even without commits, as the log job does.
    fn sync_log(&self) {
        let (log, end) = {
            let active = self.active.lock();
            (active.writer.file().clone(), active.writer.end())
        };
        match self.point.sync_log(&log, end) {
            Ok(()) => assert!(log.synced_end() >= end),
            Err(_) => self.has_failed.store(true, SeqCst),
        }
    }
}

/// One act of a thread, which returns how many callbacks it has asked for.
type Act = fn(&Arc<Log>) -> u64;

const COMMIT: Act = |log| {
    log.commit();
    0
};
const SUBMIT: Act = |log| log.submit();
#[cfg(shuttle)]
const GIVE_UP: Act = |log| {
    log.give_up();
    0
};
#[cfg(shuttle)]
const ROTATE: Act = |log| {
    log.rotate();
    0
};
const SYNC_LOG: Act = |log| {
    log.sync_log();
    0
};

/// Runs one thread for each element of `threads`, and a worker. Each thread does all of its acts.
fn check(threads: &[&[Act]], failing: u64) {
    let syncs = Arc::new(Syncs { count: AtomicU64::new(0), failing });
    let ends = SyncEnds::new(&syncs);
    let writer = RecordWriter::after_header(ends.clone(), Path::new("log"), RecordForm::full(1));
    let point = SyncPoint::new(Version(0));
    point.continue_in(writer.file());
    let worker = Arc::new(ModelWorker::default());
    point.begin(worker.clone());
    let log = Arc::new(Log {
        active: Mutex::new(Active { ends, writer, version: 0 }),
        point,
        syncs,
        has_failed: AtomicBool::new(false),
        called: Mutex::new(0),
        one_called: Condvar::new(),
    });
    let serving = {
        let (log, worker) = (log.clone(), worker.clone());
        thread::spawn(move || worker.live(&log.point))
    };
    let all: Vec<_> = threads
        .iter()
        .map(|acts| {
            let (log, acts) = (log.clone(), acts.to_vec());
            thread::spawn(move || acts.into_iter().map(|act| act(&log)).sum::<u64>())
        })
        .collect();
    let asked: u64 = all.into_iter().map(|thread| thread.join().expect("it does not panic")).sum();
    let mut called = log.called.lock();
    while *called < asked {
        called = log.one_called.wait(called);
    }
    assert_eq!(*called, asked, "each callback is called once");
    drop(called);
    worker.stop();
    serving.join().expect("it does not panic");

    let count = log.syncs.count.load(SeqCst);
    if failing == 0 {
        let acts: usize = threads.iter().map(|acts| acts.len()).sum();
        assert!(count <= acts as u64 + 1, "{count} syncs of {acts} acts");
    } else {
        assert!(count <= failing, "nobody syncs after a failure");
        assert!(!log.has_failed.load(SeqCst) || count == failing);
    }
}

#[cfg(shuttle)]
fn check_schedules(threads: &'static [&'static [Act]], failing: u64) {
    shuttle::check_random(move || check(threads, failing), 5_000);
    shuttle::check_pct(move || check(threads, failing), 5_000, 3);
}

#[cfg(loom)]
fn check_schedules(threads: &'static [&'static [Act]], failing: u64) {
    let mut model = os::sync::loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || check(threads, failing));
}

#[test]
#[cfg(loom)]
fn what_is_acknowledged_is_durable_and_every_wait_ends() {
    check_schedules(&[&[COMMIT], &[COMMIT]], 0);
    check_schedules(&[&[COMMIT], &[SUBMIT]], 0);
    check_schedules(&[&[SUBMIT], &[SYNC_LOG]], 0);
}

#[test]
#[cfg(loom)]
fn a_failed_sync_ends_every_wait_with_its_error() {
    check_schedules(&[&[COMMIT], &[COMMIT]], 1);
    check_schedules(&[&[COMMIT], &[SUBMIT]], 1);
}

#[test]
#[cfg(shuttle)]
fn what_is_acknowledged_is_durable_in_every_schedule() {
    check_schedules(&[&[COMMIT, COMMIT], &[COMMIT, COMMIT], &[COMMIT, COMMIT], &[COMMIT, COMMIT]], 0);
}

#[test]
#[cfg(shuttle)]
fn threads_tasks_and_callbacks_share_syncs_in_every_schedule() {
    check_schedules(&[&[COMMIT, SUBMIT], &[SUBMIT, SUBMIT], &[COMMIT, GIVE_UP], &[GIVE_UP, COMMIT]], 0);
}

#[test]
#[cfg(shuttle)]
fn every_wait_ends_though_logs_end_in_every_schedule() {
    check_schedules(&[&[COMMIT, SUBMIT], &[SUBMIT, COMMIT], &[ROTATE, SYNC_LOG]], 0);
}

#[test]
#[cfg(shuttle)]
fn nothing_is_acknowledged_after_a_failed_sync_in_any_schedule() {
    for failing in [1, 2] {
        check_schedules(&[&[COMMIT, COMMIT, COMMIT], &[COMMIT, COMMIT, COMMIT], &[COMMIT, COMMIT, COMMIT]], failing);
        check_schedules(&[&[COMMIT, SUBMIT], &[SUBMIT, COMMIT], &[SUBMIT, GIVE_UP], &[SYNC_LOG]], failing);
    }
}
