//! Where a database lives and how it was opened: machine, directory, options, cache; and its counters. It does not know
//! what the database does.

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

/// The surroundings of one open database. They stay as they are while it is open.
#[derive(Debug)]
pub struct Environment {
    /// Disk, clock, randomness and threads.
    pub machine: Machine,
    /// The same machine with a disk that closes log and manifest while nothing is written to them.
    pub log_machine: Machine,
    /// That disk.
    pub log_disk: Arc<RestingDisk>,
    /// Where the files are.
    pub directory: PathBuf,
    /// How it was opened.
    pub options: Options,
    /// Pages in memory.
    pub cache: Arc<PageCache>,
    /// Makes live files of edits.
    pub opener: FileOpener,
    /// Where work writes what it reads itself.
    pub scratch: Scratch,
    /// Which writer this is: part of the names of its files.
    pub epoch: u64,
    /// What followers of the database tell its writer.
    pub leases: Arc<Leases>,
    /// Bytes written, by cause.
    pub written: WriteCounts,
    /// Memory of work that is under way.
    pub held: WorkMemory,
    /// The process that opened the database.
    origin: ProcessOrigin,
}

impl Environment {
    /// What the database in `directory` runs on.
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

    /// Reports what `event` makes to the hook of the database.
    pub fn report(&self, event: impl FnOnce() -> Event) {
        self.options.events.report(event);
    }

    /// Refuses a forked child. It is called before any lock is taken: another thread may have held the lock when the
    /// process was forked, and no thread of the child releases it.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child of the process that opened the database.
    pub fn check_origin(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(Error::Forked) }
    }
}

/// Bytes written since the database was opened, by cause.
#[derive(Debug, Default)]
pub struct WriteCounts {
    pub log: AtomicU64,
    pub flush: AtomicU64,
    pub compaction: AtomicU64,
    pub import: AtomicU64,
    /// Files moved down a level without being rewritten.
    pub trivial_moves: AtomicU64,
    pub compactions: AtomicU64,
    pub flushes: AtomicU64,
    /// How many attempts to renew an overgrown manifest have failed. Each later install tries again.
    pub failed_renewals: AtomicU64,
    /// How long commits were slowed, in nanoseconds.
    pub slowed_nanos: AtomicU64,
}

/// Memory that writing needs for a while, by purpose. Memory that stays is counted where it is.
#[derive(Debug)]
pub struct WorkMemory {
    /// Files that are being built, and the range erases for them.
    pub builders: Arc<Gauge>,
    /// Pages that compactions and merges of imports read.
    pub compactions: OwnMemory,
    /// Rows of imports that have to be sorted.
    pub imports: Arc<Gauge>,
    /// Rows that are not in files yet, and rows that values keep in memory.
    pub rows: Arc<RowMemory>,
    /// The buffer in which the log lays out records.
    pub log: AtomicU64,
    /// The buffer in which the manifest lays out records.
    pub manifest: AtomicU64,
}

impl WorkMemory {
    /// No memory yet. Half of the working memory is for reading.
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
