//! What changes an open database: the writer, the manifest, and the locks that order changes of tables and levels.
//!
//! Locks, in the order in which they may be taken: `levels`, the lock of picks, `altering`, `writer`, `manifest`,
//! `numbering`. No lock is poisoned: what can panic under `writer` or `manifest`, the disk and the memtables, is
//! guarded by [`StopOnPanic`](super::StopOnPanic).

use super::ahead::LogAhead;
use super::fill::Fill;
use super::pace::Pace;
use super::reserve::Reserve;
use super::writer::Writer;
use crate::base::error::{Error, Result};
use crate::conflicts::recent::Recent;
use crate::conflicts::reserved::Reserved;
use crate::levels::levels_lock::LevelsLock;
use crate::levels::offers::Offers;
use crate::levels::picks::Picks;
use crate::log::SyncPoint;
use crate::manifest::ManifestLog;
use crate::view::View;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, OnceLock, RwLock};
use sst::Version;
use std::ops::Range;

/// What changes one open database.
#[derive(Debug)]
pub struct Writes {
    /// The log, the memtables that take rows, and the next version; `None` in a database opened read-only.
    pub writer: Mutex<Option<Writer>>,
    /// `None` in a database opened read-only, where the lock is held while a newer manifest is read.
    pub manifest: Mutex<Option<ManifestLog>>,
    next_number: AtomicU64,
    /// Numbers of files end here.
    numbers_end: AtomicU64,
    /// One alter at a time, from reading the options to changing them.
    pub altering: Mutex<()>,
    /// The lock is shared while a file gets its number and its options are read. An alter takes a number that
    /// separates old files from new files. It holds the lock alone from then until it shows the new options.
    pub numbering: RwLock<()>,
    /// Held while levels change.
    pub levels: Arc<LevelsLock>,
    /// Disk space that is kept back for erases.
    pub reserve: Reserve,
    /// Compactions that workers in other processes are to do.
    pub offers: Arc<Offers>,
    /// The tables that a compaction has to look at.
    pub picks: Arc<Picks>,
    /// The rate of slowed commits.
    pub pace: Pace,
    /// How full memtables get.
    pub fill: Fill,
    /// Makes commits durable.
    pub sync: Arc<SyncPoint>,
    /// What is done ahead of the next rotation of the log.
    pub ahead: LogAhead,
    /// The commits that running transactions are compared with and that are not in memory any more.
    pub recent: Arc<Recent>,
    /// Keys that transactions have reserved.
    pub reserved: Reserved,
    /// Why writes are refused, if they are.
    stopped: OnceLock<String>,
}

/// After their rows were flushed, some keys are kept for running transactions. These keys may take the write buffer
/// divided by this number.
const RECENT_SHARE: u64 = 16;

/// They may always take this number of bytes.
const LEAST_RECENT_BYTES: u64 = 64 << 10;

impl Writes {
    /// No writer and no manifest yet. Everything up to `durable` is in files.
    pub fn new(view: &View, durable: Version, reserve: Reserve, write_buffer_bytes: u64) -> Self {
        Self {
            writer: Mutex::new(None),
            manifest: Mutex::new(None),
            next_number: AtomicU64::new(view.files.next_number),
            numbers_end: AtomicU64::new(u64::MAX),
            altering: Mutex::new(()),
            numbering: RwLock::new(()),
            levels: Arc::default(),
            reserve,
            offers: Arc::default(),
            picks: Picks::of(&view.files),
            pace: Pace::default(),
            fill: Fill::default(),
            sync: Arc::new(SyncPoint::new(durable)),
            ahead: LogAhead::new(write_buffer_bytes),
            recent: Arc::new(Recent::new((write_buffer_bytes / RECENT_SHARE).max(LEAST_RECENT_BYTES))),
            reserved: Reserved::default(),
            stopped: OnceLock::new(),
        }
    }

    /// Takes the next free file number.
    pub fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::AcqRel)
    }

    /// Takes `count` free file numbers, one after the other.
    pub fn new_numbers(&self, count: u64) -> Range<u64> {
        let first = self.next_number.fetch_add(count, Ordering::AcqRel);
        first..first + count
    }

    /// From now on no number from `end` on may be taken, see [`Writes::check_number`].
    pub fn end_numbers_at(&self, end: u64) {
        self.numbers_end.store(end, Ordering::Release);
    }

    /// Refuses a number that is greater than the last allowed number.
    ///
    /// # Errors
    ///
    /// [`Error::NumbersUsedUp`].
    pub fn check_number(&self, number: u64) -> Result<()> {
        if number < self.numbers_end.load(Ordering::Acquire) { Ok(()) } else { Err(Error::NumbersUsedUp) }
    }

    /// The next free file number, which stays free.
    pub fn next_number(&self) -> u64 {
        self.next_number.load(Ordering::Acquire)
    }

    /// Refuses writes from now on, because of `cause`; false if they were refused before. The first cause is kept.
    pub fn stop(&self, cause: &Error) -> bool {
        self.stopped.set(cause.to_string()).is_ok()
    }

    /// Whether writes are taken.
    ///
    /// # Errors
    ///
    /// [`Error::WritesStopped`] with the cause if they are refused.
    pub fn check(&self) -> Result<()> {
        match self.stopped.get() {
            Some(why) => Err(Error::WritesStopped(why.clone())),
            None => Ok(()),
        }
    }
}
