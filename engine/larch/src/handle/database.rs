//! The public face of a database: a program opens one, gets tables, batches and snapshots from it, and starts
//! maintenance work. The work itself is done elsewhere.

use super::batch::Batch;
use super::cache::Cache;
use super::compaction::flush_and_compact;
use super::readable::Readable;
use super::selection::Selection;
use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::bounds::IntoKeyRange;
use crate::base::budget::Budget;
use crate::base::error::{Error, Result};
use crate::base::event::{Event, EventHook};
use crate::base::expiry::{ExpiryTime, ExpiryTimes};
use crate::base::extractors::{Extractors, IndexKeys};
use crate::base::kept::AsOf;
use crate::base::operand::MergeFunction;
use crate::base::options::{Durability, Follow, LevelOptions, Options, TableOptions};
use crate::base::release::Release;
use crate::base::watch::{GoOn, Progress, Watch};
use crate::copies::backup::BackupReport;
use crate::copies::backups::Backups;
use crate::copies::checkpoint::CheckpointReport;
use crate::copies::{backup, checkpoint};
use crate::core::Core;
use crate::core::background::problem::Problem;
use crate::core::background::warmth::Warmed;
use crate::core::handle::DatabaseHandle;
use crate::core::page_cache;
use crate::core::temporary::TemporaryDirectory;
use crate::import::built::builder::FileBuilder;
use crate::import::share;
use crate::inspect::check::{self, CheckReport};
use crate::inspect::metrics::Metrics;
use crate::inspect::published::WriterMetrics;
use crate::manifest::db_file::sst_name;
use crate::read::Reader;
use crate::view::value::Parts;
use crate::workers::worker::CompactionWorker;
use crate::write::define::check_name;
use crate::write::{commit, define, flush};
use crate::{compact, open, warm};
use os::Machine;
use os::real::ThreadPool;
use os::sync::Arc;
use sst::Version;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A database in a directory. A clone is another handle to the same database. Tables, batches and snapshots are
/// handles too: the database closes when the last handle of any kind is dropped.
///
/// Dropping the last handle waits for the current step of background work, which ends soon. If a task's waker drops
/// the last handle, the drop does not wait, and a thread of the pool finishes the close. Opening the database again
/// in the same process waits until the close has finished.
///
/// Only one process at a time can have the database open for writing. Other processes can open it
/// [read-only](Builder::read_only).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// let db = larch::Database::open(&directory)?;
/// let users = db.table("users")?;
/// users.insert(b"ada", b"1815")?;
/// assert_eq!(users.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// db.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Database {
    handle: Arc<DatabaseHandle>,
}

/// Options for opening a database. [`Database::builder`] returns one.
#[derive(Clone, Debug)]
#[must_use = "a builder opens nothing until `open`"]
pub struct Builder {
    home: Home,
    options: Options,
    machine: Option<Machine>,
    cache: Option<Cache>,
    threads: Option<Arc<ThreadPool>>,
}

/// Where the files of a database are.
#[derive(Clone, Debug)]
enum Home {
    Directory(PathBuf),
    /// A new directory among the system's temporary files.
    Temporary,
    InMemory,
}

impl Builder {
    fn new(home: Home) -> Self {
        Self { home, options: Options::default(), machine: None, cache: None, threads: None }
    }

    /// Options for opening a new database in a new directory among the system's temporary files. The directory is
    /// removed when the database closes, that is, when its last handle is dropped (tables, batches and snapshots
    /// are handles too). If the process is killed, the directory stays.
    ///
    /// ```
    /// # fn main() -> larch::Result<()> {
    /// let db = larch::Builder::temporary().cache_bytes(1 << 20).open()?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn temporary() -> Self {
        Self::new(Home::Temporary)
    }

    /// Options for opening a new database in the memory of this process. The database is gone when its last handle
    /// is dropped. It can do everything that a database in a directory can do.
    ///
    /// A file takes its length in memory; it is compressed as the options of its table say. While a file is being
    /// written, it takes up to twice its length. The [cache](Builder::cache_bytes) and the [write
    /// buffer](Builder::write_buffer_bytes) come on top of that. Reading a page puts an uncompressed copy of it
    /// into the cache. If files are not compressed, a small cache is enough.
    ///
    /// ```
    /// # fn main() -> larch::Result<()> {
    /// let db = larch::Builder::in_memory().cache_bytes(1 << 20).open()?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_memory() -> Self {
        Self::new(Home::InMemory)
    }

    /// The machine on which the database will run.
    fn machine_to_run_on(&self) -> Machine {
        let mut machine = match (&self.machine, &self.home) {
            (Some(machine), _) => machine.clone(),
            (None, Home::InMemory) => Machine::in_memory(),
            (None, _) => Machine::real(),
        };
        if let Some(pool) = &self.threads {
            machine.threads = pool.clone();
        }
        machine
    }

    /// The directory that the program named for the database. Fails for a temporary or in-memory database.
    fn named_directory(&self) -> Result<&Path> {
        match &self.home {
            Home::Directory(directory) => Ok(directory),
            Home::Temporary | Home::InMemory => Err(Error::BadOptions(
                "this needs a directory that other databases find; name one with Database::builder".to_owned(),
            )),
        }
    }

    /// Sets the size of the page cache: a number of bytes, or [`Budget::free`] for what is free on the machine. Index
    /// nodes and data pages share it. The default is 64 MiB. Ignored if [`Builder::cache`] is set.
    pub fn cache_bytes(mut self, budget: impl Into<Budget>) -> Self {
        self.options.cache = budget.into();
        self
    }

    /// Uses `cache`, which other databases of this process may share.
    pub fn cache(mut self, cache: &Cache) -> Self {
        self.cache = Some(cache.clone());
        self
    }

    /// Sets the threads that flush, compact and load pages in the background. By default, all databases of a
    /// process share one pool, which has one more thread than the machine has processors. If all of them are busy
    /// and a [`Commit`](crate::Commit) waits for a sync, the shared pool starts one more thread for a while.
    /// Databases that share a pool take turns. Give a database its own pool so that its background work never waits
    /// for that of other databases.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let pool = larch::machine::ThreadPool::new(2);
    /// let db = larch::Database::builder(&directory).thread_pool(&pool).open()?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// db.close()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn thread_pool(mut self, pool: &Arc<ThreadPool>) -> Self {
        self.threads = Some(pool.clone());
        self
    }

    /// Sets the size of the write buffer: the memory, in bytes, for rows that are not in files yet. The size must
    /// be between 1 KiB and 8 GiB. The default is 64 MiB. A value may take at most a quarter of it.
    pub fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.options.write_buffer_bytes = bytes;
        self
    }

    /// Sets the memory for merging files and for reading ahead, in bytes. The default is 16 MiB.
    pub fn work_bytes(mut self, bytes: u64) -> Self {
        self.options.work_bytes = bytes;
        self
    }

    /// Sets what a commit waits for before it returns. The default is [`Durability::Synced`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// Sets how many bytes of the cache may hold tables that should [stay in memory](TableOptions::in_memory): at
    /// most half of the cache, and a quarter by default. Ignored if [`Builder::cache`] is set; use
    /// [`Cache::set_in_memory_bytes`] then.
    pub fn in_memory_bytes(mut self, bytes: u64) -> Self {
        self.options.in_memory_bytes = Some(bytes);
        self
    }

    /// If true, closing the database saves a list of the pages in memory, and the next open loads them again in the
    /// background while the cache has free room. The open does not wait for this. The default is false, because a
    /// program that opens the database only for a moment would load pages that it does not need, and on close
    /// replace a good list of pages with a poor one.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let open = || larch::Database::builder(&directory).warm_from_last(true).open();
    /// let db = open()?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// db.flush()?;
    /// assert!(db.table("fruit")?.get("apple")?.is_some());
    /// db.close()?;
    /// // The pages that were read are in memory again, or soon will be.
    /// let db = open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn warm_from_last(mut self, warm: bool) -> Self {
        self.options.warm_from_last = warm;
        self
    }

    /// Reserves disk space, in bytes, so that erases can still be written when the disk is full. A file in the
    /// directory of the database holds this space; with 0 there is no such file. The default is 256 KiB, enough for
    /// a few thousand erases.
    ///
    /// When the disk is full, commits that put a row fail, but commits that only erase use the reserve until it is
    /// used up. Puts succeed again once the disk has room for them and for the whole reserve. Opening a database on
    /// a full disk takes the few bytes that it has to write from the reserve, and keeps the rows of the logs in
    /// memory until the disk has room for files.
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.options.reserve_bytes = bytes;
        self
    }

    /// A new manifest is started when the current one has grown by this many bytes beyond its initial length. The
    /// default is 4 MiB. Only tests need to change it.
    #[doc(hidden)]
    pub fn manifest_slack_bytes(mut self, bytes: u64) -> Self {
        self.options.manifest_slack_bytes = bytes;
        self
    }

    /// Whether to create the database if it does not exist. The default is true.
    pub fn create(mut self, create: bool) -> Self {
        self.options.create = create;
        self
    }

    /// Whether to open the database read-only. A read-only open takes no lock, starts no threads and does not read
    /// the logs, so reads see only rows in files (see [`Database::version`]). The default is false.
    ///
    /// Another process may write to the database at the same time. Reads use the files as of the open while these
    /// exist. When the writer has removed a file that a read needs, the read switches to the newest files:
    /// [`Table::get`](crate::Reader::get) and the like then return what the newest files have. A snapshot or a
    /// range is bound to a version; its reads go on if the newest files can still show that version, and fail with
    /// [`Error::Outdated`] otherwise. No read ever mixes two versions.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.options.read_only = read_only;
        self
    }

    /// Opens the database read-only as a follower of the process that writes to it: reads show the writer's changes
    /// a few milliseconds after they were made. `follow` says which of the writer's rows they show. By default, a
    /// database follows no other process.
    ///
    /// A follower needs no lock, and a writer may have any number of followers. The writer may close and reopen the
    /// database while followers run. If the writer creates, drops, renames or clones a table, the follower shows
    /// this together with the next files. Before it shows new files, it loads those of their pages that its own
    /// reads are likely to need, while its cache has room.
    ///
    /// While a follower lives, the writer keeps all files that the follower reads, so an open snapshot or range of
    /// a follower holds space on the writer's disk. In exchange, reads of a follower never fail with
    /// [`Error::Outdated`], with two exceptions. In a store, the writer keeps a replaced file for only ten minutes,
    /// or until it closes. And the writer does not know a follower that could not announce itself: a follower does
    /// so with a small file in the directory of the database, which it cannot write if the file system is read-only
    /// or full, or if its user may not write there. Such a follower can still read. In both cases, the reads of a
    /// snapshot or a range that needs a removed file fail with [`Error::Outdated`]. Follower and writer must be
    /// allowed to write to each other's files in the directory.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use larch::{Database, Follow};
    ///
    /// let db = Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// // Mostly in another process:
    /// let follower = Database::builder(&directory).follow(Follow::Commits).open()?;
    /// fruit.insert("apple", "red")?;
    /// follower.catch_up()?;
    /// assert!(follower.table("fruit")?.get("apple")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(mut self, follow: Follow) -> Self {
        self.options.read_only = true;
        self.options.follow = Some(follow);
        self
    }

    /// Whether a follower loads pages of new files before it shows these files. The default is true. Only
    /// benchmarks that measure the effect of loading need to change it.
    #[doc(hidden)]
    pub fn follow_preloads(mut self, preloads: bool) -> Self {
        self.options.follow_preloads = preloads;
        self
    }

    /// Whether to leave compactions to [workers](Builder::compaction_worker) in other processes while at least one
    /// worker lives. The default is false.
    ///
    /// This process still does the compactions that the program asks for, for example with [`Table::compact`], the
    /// moves of files to a deeper level (they read no files), and the compaction of a worker that dies or fails.
    /// Workers write files to the directory of the database: they must be allowed to write there, and this process
    /// trusts them.
    pub fn compaction_workers(mut self, workers: bool) -> Self {
        self.options.compaction_workers = workers;
        self
    }

    /// Whether this process publishes its [metrics](Database::metrics) while it has the database open for writing, so
    /// that other processes can read them with [`Builder::writer_metrics`]. The default is false.
    ///
    /// Once a second, a background job looks at the metrics and, if they have changed, writes them to a file of about
    /// 15 KiB in the directory of the database, which is removed at the close. Reads and writes do nothing for it. In a
    /// store, nothing is published.
    pub fn publish_metrics(mut self, publish: bool) -> Self {
        self.options.publish_metrics = publish;
        self
    }

    /// Whether reads use the flat index of a file that has both a tree index and a flat one. The default is false.
    pub fn prefer_flat_index(mut self, flat: bool) -> Self {
        self.options.prefer_flat_index = flat;
        self
    }

    /// Whether a thread that polls a future may read a page from the disk itself. It does so only if the future
    /// needs just one page and no other future of the database waits for the disk. The default is false: other
    /// threads read the page, and no poll waits for the disk.
    ///
    /// With true, a future that runs alone is as fast as [`Table::get`](crate::Reader::get), because it saves two
    /// thread switches, but the polling thread is blocked during the disk read. So true suits a program that awaits
    /// one read after the other on a thread that has nothing else to do. On a thread that polls many futures in
    /// turn, it makes them read one after the other.
    pub fn reads_in_poll(mut self, in_poll: bool) -> Self {
        self.options.reads_in_poll = in_poll;
        self
    }

    /// Sets how many SSTs may be open for reading at a time. The least is one, the default is 512.
    ///
    /// The limit covers all reads together, and files that are only kept open for later reads. A read that needs
    /// one more file waits until some other file is not being read. Files that a flush, a compaction or an import
    /// is writing do not count.
    pub fn open_files(mut self, files: usize) -> Self {
        self.options.open_files = files;
        self
    }

    /// Sets the shape of the levels.
    pub fn levels(mut self, levels: LevelOptions) -> Self {
        self.options.levels = levels;
        self
    }

    /// Calls `hook` with each [`Event`]: flushes, compactions, waiting commits, errors, retries and recovery.
    ///
    /// The hook runs on the thread that does the work, which may hold locks of the database. So it must return soon
    /// and must not use the database. A panic in the hook is caught: the event is lost, and the engine goes on.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let builder = larch::Database::builder(&directory);
    /// let db = builder.on_event(|event| eprintln!("{:?} {event}", event.level())).open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.options.events = EventHook::new(hook);
        self
    }

    /// Registers the extractors, which make the keys of indexes. `make` gets the declaration of an index and
    /// returns its extractor, or an error that says why there is none. It is called when the database is opened and
    /// when an index is created.
    ///
    /// If `make` returns an error for an index, the database still opens, and all tables and indexes can be read,
    /// including this one. But writes to the indexed table fail with [`Error::NoExtractor`].
    ///
    /// Neither `make` nor the extractors may use the database.
    pub fn extractors(
        mut self,
        make: impl Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync + 'static,
    ) -> Self {
        self.options.extractors = Extractors::new(make);
        self
    }

    /// Registers the extractors that compute until when the rows of a table are there, for tables with
    /// [`Expiry::By`](crate::options::Expiry::By). `make` gets the declaration of a table and returns its extractor, or
    /// an error that says why there is none. It is called when the database is opened, when a table is created, when
    /// its option is altered, and when files are built for it.
    ///
    /// If `make` returns an error for a table, or panics, everything works but writes to this table of rows without a
    /// time of their own: these fail with [`Error::NoExpiryTime`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use larch::options::{Expiry, ExpiryTime};
    /// use larch::{Database, TableOptions};
    /// use std::time::Duration;
    ///
    /// /// The first eight bytes of a value are seconds since 1970.
    /// fn head(_key: &[u8], value: &[u8]) -> Result<Option<Duration>, String> {
    ///     let head = value.first_chunk().ok_or("it has fewer than eight bytes")?;
    ///     Ok(Some(Duration::from_secs(u64::from_be_bytes(*head))))
    /// }
    ///
    /// let times = |declaration: &[u8]| match declaration {
    ///     b"head" => Ok(Box::new(head) as Box<dyn ExpiryTime>),
    ///     _ => Err("it is not `head`".to_owned()),
    /// };
    /// let db = Database::builder(&directory).expiry_times(times).open()?;
    /// let expiry = Expiry::By(b"head".to_vec());
    /// let sessions = db.table_with("sessions", TableOptions { expiry, ..TableOptions::default() })?;
    /// sessions.insert("ada", 4_102_444_800_u64.to_be_bytes())?;
    /// assert_eq!(sessions.until("ada")?, Some(Duration::from_secs(4_102_444_800)));
    /// assert!(sessions.insert("bob", "short").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Neither `make` nor the extractors may use the database.
    pub fn expiry_times(
        mut self,
        make: impl Fn(&[u8]) -> Result<Box<dyn ExpiryTime>, String> + Send + Sync + 'static,
    ) -> Self {
        self.options.expiry_times = ExpiryTimes::new(make);
        self
    }

    /// Registers a function that [merges](Table::merge) may call by its name, see [`MergeOp::Call`](crate::MergeOp::Call). The database also
    /// opens without the functions whose merges it has: then reads of the keys in question fail with [`Error::Merge`],
    /// and everything else works.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use larch::{Database, MergeOp};
    ///
    /// let longest = |_: &[u8], value: Option<&[u8]>, operand: &[u8]| {
    ///     Ok(value.filter(|value| value.len() >= operand.len()).unwrap_or(operand).to_vec())
    /// };
    /// let db = Database::builder(&directory).merge_function("longest", longest).open()?;
    /// let words = db.table("words")?;
    /// for word in ["fig", "cherry", "apple"] {
    ///     words.merge("longest", MergeOp::Call { function: "longest", operand: word.as_bytes() })?;
    /// }
    /// assert_eq!(words.get("longest")?.expect("there are words"), "cherry");
    /// # Ok(())
    /// # }
    /// ```
    pub fn merge_function(mut self, name: &str, function: impl MergeFunction + 'static) -> Self {
        self.options.merge_functions.add(name, Arc::new(function));
        self
    }

    /// Sets how many bytes per second a background scrub reads. The default is 0: no scrub. The scrub reads every
    /// page of every file from the disk and verifies its checksum. It starts over at most once an hour.
    /// [`Metrics::damaged_pages`] counts the damage, [`Database::damage`] lists it, and an [`Event`] reports it.
    pub fn scrub_bytes_per_second(mut self, bytes: u64) -> Self {
        self.options.scrub_bytes_per_second = bytes;
        self
    }

    /// Sets the oldest release that must be able to read what this process writes, so that you can go back to it.
    /// The default is [`Release::NEWEST`], which is this release. The option is not stored in the database: a
    /// process that opens it without `compat` may write files that the older release cannot read. Opening with
    /// `compat` then fails, with an error that names such a file. A log never makes the open fail: the open writes its
    /// rows to other files, and removes it. If the disk has no room for that, the log stays until the disk has room.
    /// Until then, only this release can open the database.
    pub fn compat(mut self, release: Release) -> Self {
        self.options.compat = release;
        self
    }

    /// Sets the machine on which the database runs. The default is the real machine; tests use a simulated one.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Opens the database. This reads the manifest and the logs, but no page of an SST, so the time does not depend
    /// on the size of the data. The rows of the logs are written to files before the call returns.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::builder(&directory).cache_bytes(16 << 20).create(true).open()?;
    /// assert!(db.tables().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::NotADatabase`] if the directory has no database and [`Builder::create`] is false, or
    ///   [`Builder::read_only`] is true.
    /// * [`Error::WithinDatabase`] if the database would be created inside the directory of another database.
    /// * [`Error::UnfinishedCopy`] if the directory has a copy of a database, or built files, that were not
    ///   finished.
    /// * [`Error::Locked`] if this or another process has the database open for writing.
    /// * [`Error::BadOptions`] if an option has a value that cannot be used. The message names the option.
    /// * [`Error::NoThreads`] if the system refuses to start a thread for background work. Nothing is created then.
    /// * [`Error::Log`] if the log or the manifest is damaged, or was written by a newer release.
    ///   [`repair`](crate::repair::repair()) makes a new database from the readable part of a damaged one.
    /// * [`Error::Page`] if the disk fails or is full.
    pub fn open(self) -> Result<Database> {
        let machine = self.machine_to_run_on();
        let (directory, temporary) = match self.home {
            Home::Directory(directory) => (directory, None),
            Home::InMemory => (PathBuf::from("memory"), None),
            Home::Temporary => {
                let temporary = TemporaryDirectory::new(&machine)?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let core = open::open(machine, directory, self.options, self.cache.as_ref().map(Cache::inner))?;
        if let Some(temporary) = temporary {
            core.temporary.set(temporary).expect("a database is opened once");
        }
        Ok(Database { handle: DatabaseHandle::new(core) })
    }
}

impl Builder {
    /// Begins to build files for a table with the options `table`, in the directory of this builder, which must be
    /// empty or not exist yet. This needs no database and makes none. Later, [`Table::ingest`] makes the files part
    /// of a table in any database. Only those options of this builder matter that say how files are written:
    /// memory, threads, machine, levels and [`Builder::compat`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let (shard, here) = (directory.path().join("shard"), directory.path().join("here"));
    /// let mut files = larch::Database::builder(&shard).build_files(larch::TableOptions::default())?;
    /// for number in 0..1000_u32 {
    ///     files.add(&number.to_be_bytes(), b"apple")?;
    /// }
    /// files.finish(|_| {})?;
    ///
    /// let db = larch::Database::open(&here)?;
    /// let fruit = db.table("fruit")?;
    /// let report = fruit.ingest(&[&shard], larch::bulk::IngestOptions::default())?;
    /// assert_eq!(report.rows, 1000);
    /// assert_eq!(fruit.iter().count(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::CopyTarget`] if the directory is not empty. Unfinished files of an earlier call are removed first,
    /// but in a store the call fails with [`Error::UnfinishedCopy`] instead. [`Error::CopyLocked`] if another call
    /// is filling the directory; [`Error::WithinDatabase`] if the directory lies in that of a database;
    /// [`Error::BadOptions`] if an option cannot be used, or if the builder has no directory; [`Error::NoThreads`]
    /// if the system refuses to start a thread; an error if the disk fails or is full.
    pub fn build_files(self, table: TableOptions) -> Result<FileBuilder> {
        FileBuilder::begin(self.machine_to_run_on(), self.named_directory()?, self.options.clone(), table)
    }
}

impl Builder {
    /// Returns a worker, which does compactions for the process that writes to the database. That process must have
    /// opened the database with [`Builder::compaction_workers`]. A database may have any number of workers, and a
    /// worker may end or die at any time. Each does one compaction at a time. Of the options of this builder, a
    /// worker uses the machine and the limits on memory and open files.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::builder(&directory).compaction_workers(true).open()?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// // Mostly in another process, where `run` does jobs until it is cancelled:
    /// let mut worker = larch::Database::builder(&directory).compaction_worker()?;
    /// assert!(worker.work_once()?.is_none(), "there is nothing to compact");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotADatabase`] if the directory has no database; [`Error::BadOptions`] if an option cannot be used,
    /// or if the builder has no directory; [`Error::NoThreads`] if the system refuses to start a thread; an error
    /// if the disk fails or is full.
    pub fn compaction_worker(self) -> Result<CompactionWorker> {
        CompactionWorker::begin(self.machine_to_run_on(), self.named_directory()?.to_owned(), self.options.clone())
    }
}

impl Builder {
    /// The metrics of the process that has the database open for writing, as they were at most about a second ago.
    /// Returns `None` if no such process [publishes its metrics](Builder::publish_metrics), or if this process may not
    /// lock files in the directory, so that it cannot know whether the process lives. Nothing is opened.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::builder(&directory).publish_metrics(true).open()?;
    /// // Mostly in another process:
    /// match larch::Database::builder(&directory).writer_metrics()? {
    ///     Some(metrics) => println!("process {}: {}", metrics.process, metrics.json),
    ///     None => println!("no process writes, or the writer has just begun"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] if the builder has no directory; an error if the file cannot be read.
    pub fn writer_metrics(&self) -> Result<Option<WriterMetrics>> {
        WriterMetrics::read(&*self.machine_to_run_on().disk, self.named_directory()?)
    }
}

impl Readable for Database {
    fn reader<'r>(&'r self, table: &'r Table) -> Result<Reader<'r>> {
        self.check_table(table)?;
        Ok(table.seen_at(None))
    }

    fn select<'r>(&'r self, selection: &'r Selection) -> Result<Reader<'r, Parts>> {
        selection.handle().check_handle(&self.handle)?;
        Ok(selection.seen_at(None))
    }
}

impl Database {
    /// Opens the database in `directory` with default options, creating it if it does not exist.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::open(&directory)?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// db.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Builder::open`] does.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::builder(directory).open()
    }

    /// Opens a new database in memory, with default options, see [`Builder::in_memory`].
    ///
    /// # Errors
    ///
    /// Fails as [`Builder::open`] does.
    pub fn in_memory() -> Result<Self> {
        Builder::in_memory().open()
    }

    /// Options for opening the database in `directory`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::builder(&directory).cache_bytes(256 << 20).write_buffer_bytes(32 << 20).open()?;
    /// assert_eq!(db.cache().budget_bytes(), 256 << 20);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(directory: impl AsRef<Path>) -> Builder {
        Builder::new(Home::Directory(directory.as_ref().to_owned()))
    }

    pub(super) fn handle(&self) -> &Arc<DatabaseHandle> {
        &self.handle
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.handle.core()
    }

    /// Returns the table `name`, creating it with default options if it does not exist.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// assert_eq!(fruit.name(), "fruit");
    /// assert_eq!(db.tables(), ["fruit"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Database::table_with`] does.
    pub fn table(&self, name: &str) -> Result<Table> {
        self.table_with(name, TableOptions::default())
    }

    /// Returns the table `name`, creating it with `options` if it does not exist. An existing table keeps its own
    /// options. A new table is durable when the call returns.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let options = larch::TableOptions { compression: larch::Compression::Lz4, ..Default::default() };
    /// let fruit = db.table_with("fruit", options)?;
    /// assert_eq!(fruit.options().compression, larch::Compression::Lz4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadTableName`] if the name is empty or longer than 255 bytes, or if the table would be new and its
    /// name has control characters; [`Error::BadOptions`] if an option cannot be used; [`Error::NoSuchTable`] if
    /// the table does not exist and the database was opened read-only. If the table has to be created, the call
    /// also fails with [`Error::Log`] if the manifest cannot be written, and like [`Table::insert`] if the
    /// database takes no writes.
    pub fn table_with(&self, name: &str, options: TableOptions) -> Result<Table> {
        if let Some(table) = self.existing_table(name)? {
            return Ok(table);
        }
        options.check_for(self.core().env.options.compat)?;
        if self.core().env.options.read_only {
            return Err(Error::NoSuchTable(name.to_owned()));
        }
        let info = define::create(self.core(), name, options)?;
        Ok(Table::new(self.handle.clone(), info))
    }

    /// Returns the table `name`, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::BadTableName`] if no table can have this name.
    pub fn existing_table(&self, name: &str) -> Result<Option<Table>> {
        check_name(name)?;
        let view = self.core().views.newest();
        let found = view.files.tables.named(name);
        Ok(found.map(|table| Table::new(self.handle.clone(), table.info.clone())))
    }

    /// Checks that a table belongs to this database.
    pub(super) fn check_table(&self, table: &Table) -> Result<()> {
        table.inner().check_handle(&self.handle)
    }

    /// The names of all tables, sorted.
    pub fn tables(&self) -> Vec<String> {
        let view = self.core().views.newest();
        view.files.tables.names().map(str::to_owned).collect()
    }

    /// Drops the table `name` with all its rows and indexes. Snapshots no longer show these rows either. Returns
    /// false if the table does not exist. The disk space of the files is freed once no read and no clone of the
    /// table uses them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// assert!(db.drop_table("fruit")?);
    /// assert!(!db.drop_table("fruit")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadTableName`] if no table can have this name; [`Error::Log`] if the manifest cannot be written,
    /// and then the table still exists. If the database takes no writes, the call fails like [`Table::insert`].
    pub fn drop_table(&self, name: &str) -> Result<bool> {
        define::drop_table(self.core(), check_name(name)?)
    }

    /// Renames the table `name` to `new` atomically: after a crash, the table has either the old or the new name,
    /// and all of its rows. No rows are copied.
    ///
    /// Internally, this makes a new table with the files and options of the old one and drops the old table. So
    /// handles of the old table fail with [`Error::TableDropped`] from then on. Rows in memory are flushed first.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// let food = db.rename_table("fruit", "food")?;
    /// assert_eq!(food.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(db.tables(), ["food"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`] if the table `name` does not exist; [`Error::TableExists`] if the table `new` exists,
    /// or if `new` is the same name as `name`. Otherwise fails as [`Table::clone_as`] does, but not because of
    /// indexes, which the new table takes over.
    pub fn rename_table(&self, name: &str, new: &str) -> Result<Table> {
        let table = self.existing_table(name)?.ok_or_else(|| Error::NoSuchTable(name.to_owned()))?;
        table.shared(new, share::SharedPart::Whole)
    }

    /// Returns an empty batch. All writes that are added to it are committed together.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let (fruit, colours) = (db.table("fruit")?, db.table("colours")?);
    /// let mut batch = db.batch();
    /// batch.insert(&fruit, "apple", "red");
    /// batch.insert(&colours, "red", "apple");
    /// batch.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch(&self) -> Batch {
        Batch::new(&self.handle)
    }

    /// Takes a snapshot of everything that reads see now. Until it is dropped, compactions keep the rows that it
    /// shows.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::Readable;
    ///
    /// fruit.insert("apple", "red")?;
    /// let snapshot = db.snapshot();
    /// fruit.remove("apple")?;
    /// assert!(fruit.get("apple")?.is_none());
    /// assert!(snapshot.get(&fruit, "apple")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.handle)
    }

    /// The random number that the database got when it was created. Copies and branches of it have the same number.
    pub fn id(&self) -> u64 {
        self.core().views.newest().files.database
    }

    /// The time by which rows expire, since the beginning of 1970: see
    /// [`Table::insert_until`](crate::Table::insert_until). It is the wall clock of the machine, but it never goes back
    /// while the database is open, and not behind a time at which the database has dropped rows.
    pub fn clock(&self) -> Duration {
        Duration::from_millis(self.core().env.row_clock.now())
    }

    /// Whether rows of the database may expire: some row was once written with a time, see
    /// [`Table::insert_until`](crate::Table::insert_until).
    pub fn may_expire(&self) -> bool {
        let core = self.core();
        core.env.row_clock.has_times() || core.views.newest().files.has_times()
    }

    /// The newest version that reads see. In a read-only database, this is the newest version in files; if it
    /// [follows](Builder::follow) commits, the newest version in files and logs.
    pub fn version(&self) -> Version {
        self.core().views.visible()
    }

    /// The newest durable version: the commit with this version and all earlier ones survive a power failure. In a
    /// read-only database, this is the newest version that reads see; if it [follows](Builder::follow) commits,
    /// that version may not be durable yet.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut batch = db.batch();
    /// batch.insert(&fruit, "apple", "red");
    /// let commit = batch.submit()?;
    /// assert!(db.durable_version() < commit.version());
    /// db.sync()?;
    /// assert_eq!(db.durable_version(), commit.version());
    /// # Ok(())
    /// # }
    /// ```
    pub fn durable_version(&self) -> Version {
        let core = self.core();
        if core.env.options.read_only { core.views.visible() } else { core.writes.sync.durable() }
    }

    /// In a [follower](Builder::follow), shows everything that the writer has done up to now, and returns the
    /// newest version that reads see. A follower catches up by itself; this call is for a reader that knows of a
    /// commit and must see it. In other databases, it only returns the version.
    ///
    /// # Errors
    ///
    /// [`Error::Log`] if the manifest or a log cannot be read; reads then go on with what was shown before.
    /// [`Error::Forked`] in a child of the process that opened the database.
    pub fn catch_up(&self) -> Result<Version> {
        self.core().catch_up()
    }

    /// Makes all commits up to now durable, including those with [`Durability::Buffered`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::builder(&directory).durability(larch::Durability::Buffered).open()?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?; // Survives the end of the process.
    /// db.sync()?; // Survives a power failure from now on.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if the sync fails. Then some commits may be durable and others not, and the
    /// database refuses writes until it is opened again. If the database takes no writes, the call fails like
    /// [`Table::insert`].
    pub fn sync(&self) -> Result<()> {
        commit::sync(self.core(), Durability::Synced).map(drop)
    }

    /// Writes all rows in memory to files of level 0, and returns when this is done. The engine does this by itself
    /// when the write buffer fills up.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// db.flush()?;
    /// assert_eq!(db.metrics().files, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Full`], which names the cause, if the flush or a compaction that it waits for fails. If the
    /// database takes no writes, the call fails like [`Table::insert`].
    pub fn flush(&self) -> Result<()> {
        flush::flush_all(self.core())
    }

    /// Merges each table into its deepest level, one table after the other, see [`Table::compact`]. This rewrites
    /// all data.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove("apple")?;
    /// db.compact()?;
    /// assert_eq!(fruit.iter().count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::compact`] does. After an error, the tables that were already merged stay merged.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| {})
    }

    /// Like [`Database::compact`], but tells `watch` how many bytes of a table were read. `watch` decides whether
    /// the work goes on. It must not write to the database, see [`Table::compact_with`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Database::compact`] does.
    pub fn compact_with<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<()> {
        let (view, watch) = (self.core().views.newest(), Watch::new(compact::WORK, watch));
        view.files.tables.keys().try_for_each(|table| flush_and_compact(self.core(), *table, &watch))
    }

    /// Flushes all rows in memory and runs all compactions that are due, including those that would become due
    /// after some seconds without writes. After that, background work has nothing left to do, and the files of a
    /// table are at most about a quarter larger than its live rows and the rows that snapshots show: the rest of
    /// the space of erased and overwritten rows is freed. That quarter is an estimate, which assumes that all rows
    /// have the same length. If most of the data has not changed, this is far less work than [`Database::compact`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// db.compact_due()?;
    /// assert_eq!(db.metrics().files, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Database::flush`] does, or if a compaction fails.
    pub fn compact_due(&self) -> Result<()> {
        flush::flush_all(self.core())?;
        compact::compact_due(self.core())
    }

    /// Loads the pages that were in memory at the last close, while the cache has free room, and returns when they
    /// are loaded. The close must have [saved](Builder::warm_from_last) the list of these pages. If the list is
    /// missing or damaged, nothing is loaded, and this is no error.
    pub fn warm_up(&self) -> Warmed {
        let core = self.core();
        let restored = warm::state::restore(&core.env, &core.views.newest(), &mut |_| true);
        core.background.warmth.count(&restored);
        restored.warmed
    }

    /// Loads the pages of `range` in `table`, see [`Table::warm`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the table belongs to another database; otherwise fails as [`Table::warm`] does.
    pub fn warm(&self, table: &Table, range: impl IntoKeyRange) -> Result<Warmed> {
        self.check_table(table)?;
        table.warm(range)
    }

    /// Lists the first 64 damaged pages that the background scrub has found since the database was opened, see
    /// [`Builder::scrub_bytes_per_second`].
    pub fn damage(&self) -> Vec<Problem> {
        self.core().background.damage.problems()
    }

    /// Makes a checkpoint, a complete copy of the database, in `directory`, which must be empty or not exist yet.
    /// SSTs are hard-linked or reflinked, which takes no space. They are copied only if neither is possible, for
    /// example on another file system.
    ///
    /// The checkpoint shows one version, which the report states: it has every commit up to that version, including
    /// all that reads saw when the call began, and none after it. All its commits are also durable in this
    /// database. Commits and reads do not wait for the checkpoint. Rows that are only in memory are written to a
    /// file of the checkpoint, and stay in memory until then. Opening a checkpoint reads no log.
    ///
    /// The checkpoint is durable when the call returns. It is a separate database: writes to one do not change the
    /// other. It has the [subscriptions](Database::subscribe) of this one, which hold its past once it is opened for
    /// writing: [end](Database::unsubscribe) there those that have no reader. If the call ends with an error or a
    /// crash, `directory` has no checkpoint. Files that a crash leaves there are never opened, and the next checkpoint
    /// in the same directory removes them.
    ///
    /// If this database is [read-only](Builder::read_only), the checkpoint also has the commits that are only in
    /// the writer's log, although reads of this database do not see them: all commits that the writer had passed to
    /// the operating system when the call began, even if no writer runs any more.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let (here, there) = (directory.path().join("here"), directory.path().join("there"));
    /// let db = larch::Database::open(&here)?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// let report = db.checkpoint(&there)?;
    /// assert_eq!(report.version, db.version());
    /// let copy = larch::Database::open(&there)?;
    /// assert!(copy.table("fruit")?.contains_key("apple")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::CopyTarget`] if `directory` is not empty; [`Error::UnfinishedCopy`] if it is in a store and has an
    /// unfinished copy; [`Error::CopyLocked`] if another call is filling it; [`Error::WithinDatabase`] if it lies
    /// in the directory of this or another database; an error if the disk fails or is full, or, in a read-only
    /// database, if the log is damaged; [`Error::OutcomeUnknown`] if a sync of the log has failed;
    /// [`Error::Forked`] in a child of the process that opened the database.
    pub fn checkpoint(&self, directory: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.checkpoint_with(directory, |_| {})
    }

    /// Like [`Database::checkpoint`], but tells `watch` how many bytes are done so far. `watch` decides whether the
    /// work goes on. This takes long only if files have to be copied.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Database::checkpoint`] does.
    pub fn checkpoint_with<G: GoOn>(
        &self,
        directory: impl AsRef<Path>,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<CheckpointReport> {
        checkpoint::checkpoint(self.core(), directory.as_ref(), None, &Watch::new("the checkpoint", watch))
    }

    /// Like [`Database::checkpoint`], but the checkpoint is the database as it was at an older version: `when` is a
    /// name, a version or a time as for [`Database::at`]. Later rows are not in the checkpoint, and its next commit
    /// gets the version after that one. A file that has only rows up to this version is shared, one that has only later
    /// rows is left out, and one that has both is written again.
    ///
    /// The checkpoint has the tables of now. An index that was made after this version is not in it, because it lacks
    /// entries of rows of then; [`CheckpointReport::left_out_indexes`] counts them. Versions with names and the past
    /// that is retained are there up to this version, so are the changes that a [feed](Database::changes) gives.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let (here, there) = (directory.path().join("here"), directory.path().join("there"));
    /// let db = larch::Database::open(&here)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// let kept = db.keep("before the summer")?;
    /// fruit.insert("apple", "red")?;
    /// db.checkpoint_at(&there, "before the summer")?;
    /// let copy = larch::Database::open(&there)?;
    /// assert_eq!(copy.version(), kept.version);
    /// assert_eq!(copy.table("fruit")?.get("apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Database::checkpoint`] and [`Database::at`]. If this database is [read-only](Builder::read_only), the
    /// version must be kept or be the newest, and snapshots of this process count for nothing.
    pub fn checkpoint_at(&self, directory: impl AsRef<Path>, when: impl Into<AsOf>) -> Result<CheckpointReport> {
        self.checkpoint_at_with(directory, when, |_| {})
    }

    /// Like [`Database::checkpoint_at`], but tells `watch` how many bytes are done so far. `watch` decides whether the
    /// work goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Database::checkpoint_at`] does.
    pub fn checkpoint_at_with<G: GoOn>(
        &self,
        directory: impl AsRef<Path>,
        when: impl Into<AsOf>,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<CheckpointReport> {
        let (when, watch) = (when.into(), Watch::new("the checkpoint", watch));
        checkpoint::checkpoint(self.core(), directory.as_ref(), Some(&when), &watch)
    }

    /// Adds a backup to the backups in `directory`, which must not exist yet, be empty, or have backups of this
    /// database. Files of a database never change, so a backup takes time and space only for the files that no
    /// earlier backup has, and for the rows that are not in files yet. [`Backups`] lists, verifies and restores
    /// backups.
    ///
    /// Like a checkpoint, a backup has all commits up to one version, and no commit waits for it (see
    /// [`Database::checkpoint`]). The backup is durable when the call returns. If the call ends with an error or a
    /// crash, the earlier backups are unchanged, and the next backup removes what is left of the failed one.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`] if `directory` has other files; [`Error::OtherDatabase`] if it has backups of another
    /// database; [`Error::BackupsLocked`] if another call or process is changing its backups;
    /// [`Error::WithinDatabase`] if it lies in the directory of a database; an error if the disk fails or is full,
    /// or, in a read-only database, if the log is damaged; [`Error::OutcomeUnknown`] if a sync of the log has
    /// failed; [`Error::Forked`] in a child of the process that opened the database.
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_to(&Backups::at(directory).on(&self.core().env.machine), |_| {})
    }

    /// Like [`Database::backup`], but adds the backup to `backups` and tells `watch` how many bytes are done so
    /// far. `watch` decides whether the work goes on. The backups may be on another machine than the database: for
    /// example, the database in a store and the backups on a disk, or the other way round.
    ///
    /// If another backup is being made or removed in the same store, this call takes over, and the other work ends
    /// with an error.
    ///
    /// If this database is read-only and the writer removes a file before it was copied, the backup starts again,
    /// but keeps the files that it has copied already. If the writer replaces files faster than they can be copied,
    /// only `watch` ends the backup.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Database::backup`] does.
    pub fn backup_to<G: GoOn>(&self, backups: &Backups, watch: impl FnMut(Progress) -> G) -> Result<BackupReport> {
        backup::backup(self.core(), backups.store()?, None, &Watch::new("the backup", watch))
    }

    /// Like [`Database::backup_to`], but the backup is of an older version, as a checkpoint made by
    /// [`Database::checkpoint_at`] is. Files with newer rows are written again for this backup alone. It gets the
    /// next number, so [`Backups::restore`] takes it for the newest backup, and [`Backups::keep`] keeps it rather
    /// than backups of newer versions that were made before.
    ///
    /// # Errors
    ///
    /// As [`Database::backup_to`] and [`Database::checkpoint_at`].
    pub fn backup_at<G: GoOn>(
        &self,
        backups: &Backups,
        when: impl Into<AsOf>,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<BackupReport> {
        let (when, watch) = (when.into(), Watch::new("the backup", watch));
        backup::backup(self.core(), backups.store()?, Some(&when), &watch)
    }

    /// The names of all SSTs that the tables have now, each with its length in bytes. To copy a database while
    /// nobody writes to it, copy these files and all files that are not SSTs.
    pub fn sst_files(&self) -> Vec<(String, u64)> {
        let files = self.core().views.newest().files.files_by_number();
        let mut files: Vec<_> = files.values().map(|file| (sst_name(file.number, file.epoch), file.bytes())).collect();
        files.sort_unstable();
        files
    }

    /// Reads every page of every file from the disk, and compares the pages with their checksums, with each other,
    /// and with the manifest. The reads put nothing into the cache, and the database can be used meanwhile. `watch`
    /// is told how many bytes were checked, and decides whether the check goes on.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// db.flush()?;
    /// let report = db.check(|progress| println!("{} of {} bytes", progress.done, progress.total))?;
    /// assert!(report.problems.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Damage is no error: [`CheckReport::problems`] lists it. [`Error::Outdated`] if the database is read-only and
    /// a writer has removed a file meanwhile; then check again. [`Error::Cancelled`] if `watch` ends the check.
    pub fn check<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<CheckReport> {
        check::check(self.core(), None, &Watch::new(check::WORK, watch))
    }

    /// Counters since the database was opened, and current sizes. The call looks at every page in the cache, so use
    /// it for dashboards and not in each request.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let reads = db.metrics().page_reads;
    /// fruit.insert("apple", "red")?;
    /// assert!(fruit.get("apple")?.is_some());
    /// assert_eq!(db.metrics().page_reads, reads);
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        Metrics::of(self.core())
    }

    /// Changes the size of the page cache, for all databases that share it, to a number of bytes or to another
    /// [`Budget`]. If it shrinks, pages are evicted, and their memory is given back to the operating system before the call returns. Pages that are pinned, being
    /// read, or used by a [`Value`](crate::Value) cannot be evicted at once. After their release, they are evicted
    /// when memory is needed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// db.set_cache_bytes(16 << 20);
    /// assert_eq!(db.metrics().cache.budget_bytes, 16 << 20);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_cache_bytes(&self, budget: impl Into<Budget>) {
        let env = &self.core().env;
        page_cache::set_budget(&env.cache, budget.into(), &env.machine);
    }

    /// The page cache, which other databases may share.
    pub fn cache(&self) -> Cache {
        Cache::of(&self.core().env.cache)
    }

    /// Flushes all rows in memory, so that the next open need not read a log, and drops this handle. The database
    /// closes when its last handle is dropped. Dropping the last handle without this call is safe, too, because the
    /// commits are in the log. If the disk has no room for the files, this call syncs the log instead and succeeds,
    /// and the next open reads the log.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = larch::Database::open(&directory)?;
    /// db.table("fruit")?.insert("apple", "red")?;
    /// db.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Database::flush`] and [`Database::sync`] do, but a full disk is no error. Durable commits stay
    /// durable after an error.
    pub fn close(self) -> Result<()> {
        if self.core().env.options.read_only {
            return Ok(());
        }
        match self.flush() {
            Err(error) if error.is_disk_full() => self.sync(),
            flushed => flushed,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
