//! The surroundings of a database: its machine, directory, options and cache, and counters of what it wrote. This
//! module does not know what the database does.

use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::options::Options;
use crate::base::record::{LEAN_RECORDS, LogKind, TIMES};
use crate::base::row_clock::RowClock;
use crate::core::scratch::Scratch;
use crate::gauge::Gauge;
use crate::log::resting::RestingDisk;
use crate::manifest::db_file::FileOpener;
use crate::manifest::directory::lease::Leases;
use crate::manifest::directory::place::Place;
use crate::memtable::row_memory::RowMemory;
use crate::view::ReadRules;
use os::Machine;
use os::process::ProcessOrigin;
use os::sync::Arc;
use os::sync::atomic::AtomicU64;
use pages::{OwnMemory, PageCache};
use std::path::PathBuf;

/// The surroundings of one open database. They do not change while it is open.
#[derive(Debug)]
pub struct Environment {
    /// The disk, the clock, the randomness and the threads.
    pub machine: Machine,
    /// A copy of `machine` for the log and the manifest: its disk closes these files while nothing is written to
    /// them.
    pub log_machine: Machine,
    /// The disk of `log_machine`.
    pub log_disk: Arc<RestingDisk>,
    /// The directory with the files of the database.
    pub directory: PathBuf,
    /// The clock by which rows expire.
    pub row_clock: Arc<RowClock>,
    /// The options it was opened with.
    pub options: Options,
    /// The cache of pages.
    pub cache: Arc<PageCache>,
    /// Turns edits into open files.
    pub opener: FileOpener,
    /// Where temporary files go. Only the work that has written such a file reads it.
    pub scratch: Scratch,
    /// The number of this writer, which is part of the names of its files.
    pub epoch: u64,
    /// The leases of followers, which tell the writer which files followers still read.
    pub leases: Arc<Leases>,
    /// Bytes written since the open, by cause.
    pub written: WriteCounts,
    /// Memory that running work takes.
    pub held: WorkMemory,
    /// The process that opened the database.
    origin: ProcessOrigin,
}

impl Environment {
    /// The surroundings of a database in `directory`.
    pub fn new(machine: Machine, directory: PathBuf, options: Options, opener: FileOpener, epoch: u64) -> Self {
        let log_disk = Arc::new(RestingDisk::new(machine.disk.clone()));
        Self {
            leases: Arc::new(Leases::of(machine.disk.clone(), &directory)),
            log_machine: Machine { disk: log_disk.clone(), ..machine.clone() },
            log_disk,
            scratch: Scratch::new(&machine, &directory, &opener),
            row_clock: RowClock::new(machine.clock.clone()),
            machine,
            directory,
            held: WorkMemory::new(&options),
            options,
            cache: opener.cache.clone(),
            opener,
            epoch,
            written: WriteCounts::default(),
            origin: ProcessOrigin::here(),
        }
    }

    /// The directory of the database.
    pub fn place(&self) -> Place {
        Place {
            disk: self.machine.disk.clone(),
            directory: self.directory.clone(),
            leftovers: self.opener.leftovers.clone(),
        }
    }

    /// What decides of rows when they are read.
    pub fn read_rules(&self) -> Arc<ReadRules> {
        let (clock, functions) = (self.row_clock.clone(), self.options.merge_functions.clone());
        Arc::new(ReadRules { clock, functions, memory: self.held.rows.clone() })
    }

    /// The feature bits in the header of a new log, without that of the begin record. Logs announce rows with times
    /// only once the database may have some.
    pub fn log_features(&self) -> u32 {
        let times = if self.row_clock.has_times() { TIMES } else { 0 };
        LogKind::WriteAhead.features_for(self.options.compat) & (LEAN_RECORDS | times)
    }

    /// Calls `event` and reports the result to the event hook of the database, if anybody listens.
    pub fn report(&self, event: impl FnOnce() -> Event) {
        self.options.events.report(event);
    }

    /// Fails in a forked child process. Called before a lock is taken: if another thread held the lock during the
    /// fork, no thread of the child would ever release it.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child of the process that opened the database.
    pub fn check_origin(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(Error::Forked) }
    }
}

/// Bytes written and work done since the database was opened, by cause.
#[derive(Debug, Default)]
pub struct WriteCounts {
    pub log: AtomicU64,
    pub flush: AtomicU64,
    pub compaction: AtomicU64,
    pub import: AtomicU64,
    /// Files that were moved to a deeper level without being rewritten.
    pub trivial_moves: AtomicU64,
    pub compactions: AtomicU64,
    pub flushes: AtomicU64,
    /// How often the manifest was overgrown and a new one could not be written. Each later install tries again.
    pub failed_renewals: AtomicU64,
    /// Total time for which commits were slowed down, in nanoseconds.
    pub slowed_nanos: AtomicU64,
    /// Total time for which compactions yielded, in nanoseconds.
    pub yielded_nanos: AtomicU64,
}

/// Memory that writing needs for a while, by purpose. Memory that stays is counted elsewhere.
#[derive(Debug)]
pub struct WorkMemory {
    /// Files that are being built, and their range erases.
    pub builders: Arc<Gauge>,
    /// Pages that compactions and merges of imports read.
    pub compactions: OwnMemory,
    /// Rows of imports that still have to be sorted.
    pub imports: Arc<Gauge>,
    /// Rows that are not in files yet, and rows that values returned by reads keep in memory.
    pub rows: Arc<RowMemory>,
    /// The buffer in which the writer of the log encodes records.
    pub log: AtomicU64,
    /// The buffer in which the writer of the manifest encodes records.
    pub manifest: AtomicU64,
}

impl WorkMemory {
    /// No memory in use yet. Compactions may use half of [`Options::work_bytes`] for the pages that they read.
    fn new(options: &Options) -> Self {
        Self {
            builders: Arc::default(),
            compactions: OwnMemory::new(options.work_bytes / 2),
            imports: Arc::default(),
            rows: Arc::new(RowMemory::new(options.write_buffer_bytes)),
            log: AtomicU64::new(0),
            manifest: AtomicU64::new(0),
        }
    }
}
