//! What a sync point promises whatever the order in which its threads run: under shuttle several threads in random
//! schedules, under loom two in all of them.

use super::SyncPoint;
use crate::log::record::RecordWriter;
use os::File;
use os::sync::atomic::Ordering::SeqCst;
#[cfg(loom)]
use os::sync::loom::thread;
#[cfg(shuttle)]
use os::sync::shuttle::{self, thread};
use os::sync::{Arc, Mutex, atomic};
use std::io;
use std::path::Path;

/// A file of which only the end is kept. A sync takes two steps, and what is written between them is not durable.
#[derive(Debug, Default)]
struct SyncEnds {
    written: atomic::AtomicU64,
    durable: atomic::AtomicU64,
    is_syncing: atomic::AtomicBool,
    syncs: atomic::AtomicU64,
    /// Which sync fails, and all after it; 0 is none.
    failing_sync: u64,
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
        let number = self.syncs.fetch_add(1, SeqCst) + 1;
        self.is_syncing.store(false, SeqCst);
        if self.failing_sync != 0 && number >= self.failing_sync {
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

/// What the threads share.
struct Log {
    ends: Arc<SyncEnds>,
    writer: Mutex<RecordWriter>,
    point: SyncPoint,
    has_failed: atomic::AtomicBool,
}

impl Log {
    /// Appends a record and waits for it.
    fn commit(&self) {
        let had_failed = self.has_failed.load(SeqCst);
        let Ok(end) = self.writer.lock().append(&[b"a commit"]) else {
            // Writes do not fail, but after a failed sync there are no more of them.
            self.has_failed.store(true, SeqCst);
            return;
        };
        match self.point.durable(end) {
            Ok(()) => {
                assert!(!had_failed, "a commit succeeded after a sync had failed");
                assert!(self.ends.durable.load(SeqCst) >= end, "acknowledged and not durable");
            }
            Err(_) => self.has_failed.store(true, SeqCst),
        }
    }
}

/// `threads` threads of `commits` commits each.
fn check(threads: usize, commits: u64, failing_sync: u64) {
    let ends = Arc::new(SyncEnds { failing_sync, ..SyncEnds::default() });
    let writer = RecordWriter::after_header(ends.clone(), Path::new("log"), 1);
    let point = SyncPoint::new(writer.file().clone());
    let log = Arc::new(Log { ends, writer: Mutex::new(writer), point, has_failed: atomic::AtomicBool::new(false) });
    let all: Vec<_> = (0..threads)
        .map(|_| {
            let log = log.clone();
            thread::spawn(move || (0..commits).for_each(|_| log.commit()))
        })
        .collect();
    all.into_iter().for_each(|thread| thread.join().expect("it does not panic"));

    let syncs = log.ends.syncs.load(SeqCst);
    if failing_sync == 0 {
        assert!((1..=threads as u64 * commits).contains(&syncs), "{syncs} syncs");
    } else {
        assert!(log.has_failed.load(SeqCst) == (syncs == failing_sync), "nobody syncs after a failure");
        assert_eq!(log.writer.lock().file().check().is_err(), syncs == failing_sync);
    }
}

#[cfg(shuttle)]
fn check_schedules(threads: usize, commits: u64, failing_sync: u64) {
    shuttle::check_random(move || check(threads, commits, failing_sync), 5_000);
    shuttle::check_pct(move || check(threads, commits, failing_sync), 5_000, 3);
}

#[cfg(loom)]
fn check_schedules(_: usize, _: u64, failing_sync: u64) {
    os::sync::loom::model(move || check(2, 1, failing_sync));
}

#[test]
fn what_is_acknowledged_is_durable_in_every_schedule() {
    check_schedules(4, 2, 0);
}

#[test]
fn nothing_is_acknowledged_after_a_failed_sync_in_any_schedule() {
    check_schedules(3, 3, 1);
    check_schedules(3, 3, 2);
}
