//! All that changes an open database: the writer, the manifest, and the locks that order changes of tables and
//! levels.
//!
//! If a thread takes several locks, it takes them in this order: `levels`, the lock of picks, `altering`,
//! `writer`, `manifest`, `numbering`. No lock is ever poisoned. Only the disk and the memtables can panic under
//! `writer` or `manifest`, and [`StopOnPanic`](super::StopOnPanic) guards against this.

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
    /// The log, the memtables to which commits go, and the next version. It is `None` in a read-only database.
    pub writer: Mutex<Option<Writer>>,
    /// The manifest. In a read-only database the value is `None`, but a thread still holds this lock while it
    /// reads a newer manifest.
    pub manifest: Mutex<Option<ManifestLog>>,
    next_number: AtomicU64,
    /// Every number that a new file gets must be smaller than this number.
    numbers_end: AtomicU64,
    /// An alter holds this lock from reading the options to changing them, so that only one alter runs at a time.
    pub altering: Mutex<()>,
    /// A thread shares this lock while it takes a number for a new file and reads the options for this file. An
    /// alter also takes a number: files with smaller numbers have the old options, and files with greater numbers
    /// have the new ones. The alter holds the lock exclusively while it takes this number and until its new
    /// options are visible.
    pub numbering: RwLock<()>,
    /// Held while levels change.
    pub levels: Arc<LevelsLock>,
    /// Disk space that is kept back for erases.
    pub reserve: Reserve,
    /// Compactions that are offered to workers in other processes.
    pub offers: Arc<Offers>,
    /// The tables that may need a compaction.
    pub picks: Arc<Picks>,
    /// Slows commits down to the rate that background work allows.
    pub pace: Pace,
    /// How full memtables get before they are frozen.
    pub fill: Fill,
    /// Makes commits durable.
    pub sync: Arc<SyncPoint>,
    /// What is prepared for the next rotation of the log.
    pub ahead: LogAhead,
    /// Keys of commits whose rows are no longer in memory. Running transactions still have to be compared with
    /// these commits.
    pub recent: Arc<Recent>,
    /// Keys that transactions have reserved.
    pub reserved: Reserved,
    /// The reason why writes are refused. It is not set as long as writes are allowed.
    stopped: OnceLock<String>,
}

/// After rows were flushed, some of their keys are kept for running transactions. These kept keys may take as much
/// memory as the write buffer divided by this number.
const RECENT_SHARE: u64 = 16;

/// The keys that are kept after a flush may take this many bytes even if the write buffer is small.
const LEAST_RECENT_BYTES: u64 = 64 << 10;

impl Writes {
    /// Begins without a writer and without a manifest. All commits up to `durable` are in files.
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

    /// Takes `count` consecutive free file numbers.
    pub fn new_numbers(&self, count: u64) -> Range<u64> {
        let first = self.next_number.fetch_add(count, Ordering::AcqRel);
        first..first + count
    }

    /// After this call, new files must have numbers less than `end`, see [`Writes::check_number`].
    pub fn end_numbers_at(&self, end: u64) {
        self.numbers_end.store(end, Ordering::Release);
    }

    /// Refuses a number that is too great.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::NumbersUsedUp`].
    pub fn check_number(&self, number: u64) -> Result<()> {
        if number < self.numbers_end.load(Ordering::Acquire) { Ok(()) } else { Err(Error::NumbersUsedUp) }
    }

    /// The next free file number. This call does not take it.
    pub fn next_number(&self) -> u64 {
        self.next_number.load(Ordering::Acquire)
    }

    /// From now on refuses writes because of `cause`. Returns false if writes were refused already. Only the first
    /// cause is kept.
    pub fn stop(&self, cause: &Error) -> bool {
        self.stopped.set(cause.to_string()).is_ok()
    }

    /// Checks that writes are allowed.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::WritesStopped`] and the cause if writes are refused.
    pub fn check(&self) -> Result<()> {
        match self.stopped.get() {
            Some(why) => Err(Error::WritesStopped(why.clone())),
            None => Ok(()),
        }
    }
}
