//! Everything that changes an open database: the writer, the manifest, and the locks that order changes of tables
//! and levels.
//!
//! Lock order: `levels`, the lock of picks, `altering`, `writer`, `manifest`, `numbering`. No lock is ever poisoned.
//! Only the disk and the memtables can panic under `writer` or `manifest`, and [`StopOnPanic`](super::StopOnPanic)
//! guards against this.

use super::acknowledged::Acknowledged;
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
use crate::manifest::times::Times;
use crate::view::View;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::sync::{Arc, Mutex, OnceLock, RwLock};
use sst::Version;
use std::ops::Range;

/// Everything that changes one open database.
#[derive(Debug)]
pub struct Writes {
    /// The log, the memtables that commits go to, and the next version. `None` in a read-only database.
    pub writer: Mutex<Option<Writer>>,
    /// The manifest. `None` in a read-only database, where a thread holds this lock while it reads a newer manifest.
    pub manifest: Mutex<Option<ManifestLog>>,
    next_number: AtomicU64,
    /// Numbers of new files must be below this.
    numbers_end: AtomicU64,
    /// Held by an alter from reading the options to changing them, so that only one alter runs at a time.
    pub altering: Mutex<()>,
    /// Shared by a thread while it takes a number for a new file and reads the options for it. An alter takes a
    /// number, too: files with smaller numbers have the old options, files with greater numbers the new ones. It
    /// holds the lock exclusively from taking this number until its new options are visible.
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
    /// Decides how full memtables get before they are frozen.
    pub fill: Fill,
    /// Makes commits durable.
    pub sync: Arc<SyncPoint>,
    /// What is prepared for the next rotation of the log.
    pub ahead: LogAhead,
    /// Keys of commits whose rows are no longer in memory, but with which running transactions still have to be
    /// compared.
    pub recent: Arc<Recent>,
    /// Keys that transactions have reserved.
    pub reserved: Reserved,
    /// When versions were made that a flush has not noted in the manifest yet. Used only if the past is kept.
    pub times: Mutex<Times>,
    /// Whether it was reported that older rows take more than the disk has left.
    pub past_fills_disk: AtomicBool,
    /// What was acknowledged and is not in the manifest yet. No other lock is taken while this one is held.
    pub acknowledged: Mutex<Acknowledged>,
    /// Why writes are refused. Unset while writes are allowed.
    stopped: OnceLock<String>,
}

/// Keys that are kept for running transactions after a flush may take this share of the write buffer: 1/16.
const RECENT_SHARE: u64 = 16;

/// They may take this many bytes even if the write buffer is small.
const LEAST_RECENT_BYTES: u64 = 64 << 10;

impl Writes {
    /// Starts without a writer and without a manifest. All commits up to `durable` are in files.
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
            times: Mutex::default(),
            past_fills_disk: AtomicBool::new(false),
            acknowledged: Mutex::default(),
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

    /// From now on, new files must have numbers less than `end`, see [`Writes::check_number`].
    pub fn end_numbers_at(&self, end: u64) {
        self.numbers_end.store(end, Ordering::Release);
    }

    /// Checks that `number` may be given to a new file.
    ///
    /// # Errors
    ///
    /// [`Error::NumbersUsedUp`] if the number is not below [`Writes::end_numbers_at`].
    pub fn check_number(&self, number: u64) -> Result<()> {
        if number < self.numbers_end.load(Ordering::Acquire) { Ok(()) } else { Err(Error::NumbersUsedUp) }
    }

    /// The next free file number, without taking it.
    pub fn next_number(&self) -> u64 {
        self.next_number.load(Ordering::Acquire)
    }

    /// Refuses writes from now on because of `cause`. Returns false if writes were refused already: only the first
    /// cause is kept.
    pub fn stop(&self, cause: &Error) -> bool {
        self.stopped.set(cause.to_string()).is_ok()
    }

    /// Checks that writes are allowed.
    ///
    /// # Errors
    ///
    /// [`Error::WritesStopped`], with the cause, if writes are refused.
    pub fn check(&self) -> Result<()> {
        match self.stopped.get() {
            Some(why) => Err(Error::WritesStopped(why.clone())),
            None => Ok(()),
        }
    }
}
