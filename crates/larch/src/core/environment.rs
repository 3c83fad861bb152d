//! The surroundings of a database: its machine, directory, options and cache, and counters of what it did. This
//! module does not know what the database does.

use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::options::Options;
use crate::core::scratch::Scratch;
use crate::gauge::Gauge;
use crate::log::resting::RestingDisk;
use crate::manifest::db_file::FileOpener;
use crate::manifest::directory::lease::Leases;
use crate::manifest::directory::place::Place;
use crate::memtable::row_memory::RowMemory;
use os::Machine;
use os::process::ProcessOrigin;
use os::sync::Arc;
use os::sync::atomic::AtomicU64;
use pages::{OwnMemory, PageCache};
use std::path::PathBuf;

/// The surroundings of one open database. The surroundings do not change while the database is open.
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
    /// How it was opened.
    pub options: Options,
    /// The cache of pages.
    pub cache: Arc<PageCache>,
    /// Turns edits into open files.
    pub opener: FileOpener,
    /// The place for temporary files. Each such file is read only by the work that has written it.
    pub scratch: Scratch,
    /// The number of this writer, which is part of the names of its files.
    pub epoch: u64,
    /// The leases of followers. A lease tells the writer which files a follower still reads.
    pub leases: Arc<Leases>,
    /// The bytes that were written, by cause.
    pub written: WriteCounts,
    /// The memory that running work takes.
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

    /// Reports the event that `event` returns to the event hook of the database.
    pub fn report(&self, event: impl FnOnce() -> Event) {
        self.options.events.report(event);
    }

    /// Fails in a forked child process. Callers use this before they take a lock. If another thread held the lock
    /// when the process was forked, no thread of the child would ever release it.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child of the process that opened the database.
    pub fn check_origin(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(Error::Forked) }
    }
}

/// Counts of what was written since the database was opened, for each cause.
#[derive(Debug, Default)]
pub struct WriteCounts {
    pub log: AtomicU64,
    pub flush: AtomicU64,
    pub compaction: AtomicU64,
    pub import: AtomicU64,
    /// How many files were moved to a deeper level without being rewritten.
    pub trivial_moves: AtomicU64,
    pub compactions: AtomicU64,
    pub flushes: AtomicU64,
    /// How often the manifest had grown too much and a new one could not be written. Each later install tries
    /// again.
    pub failed_renewals: AtomicU64,
    /// The sum of the times for which commits were slowed down, in nanoseconds.
    pub slowed_nanos: AtomicU64,
}

/// Memory that writing needs for a while, for each purpose. Memory that stays is counted elsewhere.
#[derive(Debug)]
pub struct WorkMemory {
    /// Memory of files that are being built, and of their range erases.
    pub builders: Arc<Gauge>,
    /// Memory of pages that compactions and merges of imports read.
    pub compactions: OwnMemory,
    /// Memory of rows of imports that still have to be sorted.
    pub imports: Arc<Gauge>,
    /// Memory of rows that are not in files yet, and of rows that values returned by reads keep in memory.
    pub rows: Arc<RowMemory>,
    /// The buffer in which the writer of the log encodes records.
    pub log: AtomicU64,
    /// The buffer in which the writer of the manifest encodes records.
    pub manifest: AtomicU64,
}

impl WorkMemory {
    /// Starts with no memory in use. Compactions may use half of [`Options::work_bytes`] for the pages that they
    /// read.
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
