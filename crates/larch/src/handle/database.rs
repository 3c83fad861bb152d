//! The database as its users see it: opening it, its tables, batches, snapshots and maintenance. This module only
//! calls the code that does the work.

use super::batch::Batch;
use super::cache::Cache;
use super::compaction::flush_and_compact;
use super::readable::Readable;
use super::selection::Selection;
use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::bounds::IntoKeyRange;
use crate::base::error::{Error, Result};
use crate::base::event::{Event, EventHook};
use crate::base::extractors::{Extractors, IndexKeys};
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
use crate::core::temporary::TemporaryDirectory;
use crate::import::built::builder::FileBuilder;
use crate::import::share;
use crate::inspect::check::{self, CheckReport};
use crate::inspect::metrics::Metrics;
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

/// A database in a directory. A clone is another handle of the same database. The database is closed when the last
/// handle of it, and of its tables, batches and snapshots, is dropped.
///
/// Dropping the last handle waits until the current step of background work ends, which is soon. In the waker of a
/// task it does not wait: a thread of the pool finishes the close. If this process opens the database earlier than
/// that, the open waits for the close.
///
/// One process at a time can have the database open for writing. Other processes can open it
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

/// Options of a database that is about to be opened, made by [`Database::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder opens nothing until `open`"]
pub struct Builder {
    home: Home,
    options: Options,
    machine: Option<Machine>,
    cache: Option<Cache>,
    threads: Option<Arc<ThreadPool>>,
}

/// Where a database lies.
#[derive(Clone, Debug)]
enum Home {
    Directory(PathBuf),
    /// In a new directory among the temporary files.
    Temporary,
    InMemory,
}

impl Builder {
    fn new(home: Home) -> Self {
        Self { home, options: Options::default(), machine: None, cache: None, threads: None }
    }

    /// Options for opening a new database in a new directory among the temporary files of the system. The directory
    /// is removed when the last handle of the database, and of its tables, batches and snapshots, is dropped. If the
    /// process is killed, the directory stays.
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

    /// Options for opening a new database that lies in the memory of this process, and ends with its last handle. It
    /// can do everything that a database in a directory can do.
    ///
    /// Each file takes its length in memory, compressed as the options of the table say. A file that is being
    /// written takes up to twice its length. The [cache](Builder::cache_bytes) and the [write
    /// buffer](Builder::write_buffer_bytes) take memory in addition: a page that is read is unpacked into the cache.
    /// A small cache is enough if pages need not be unpacked.
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

    /// The machine to run on.
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

    /// The directory that was named. An error if none was named.
    fn named_directory(&self) -> Result<&Path> {
        match &self.home {
            Home::Directory(directory) => Ok(directory),
            Home::Temporary | Home::InMemory => Err(Error::BadOptions(
                "this needs a directory that other databases find; name one with Database::builder".to_owned(),
            )),
        }
    }

    /// Memory for pages in bytes: index nodes and data alike. Default 64 MiB. It is ignored with [`Builder::cache`].
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.options.cache_bytes = bytes;
        self
    }

    /// A cache shared with other databases of this process.
    pub fn cache(mut self, cache: &Cache) -> Self {
        self.cache = Some(cache.clone());
        self
    }

    /// The threads that flush, compact and warm in the background. By default all databases of a process share one
    /// pool. It has one thread more than the machine has processors. It has yet another thread while
    /// [`Commit`](crate::Commit)s in flight wait for a sync and all other threads are busy. Databases that share a
    /// pool take turns. A pool of its own separates the background work of one or a few databases from the work of
    /// the others.
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

    /// Memory for rows that are not in files yet, in bytes, from 1 KiB to 8 GiB. Default 64 MiB. A value has at most a
    /// quarter of it.
    pub fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.options.write_buffer_bytes = bytes;
        self
    }

    /// Memory for merging and reading ahead, in bytes. Default 16 MiB.
    pub fn work_bytes(mut self, bytes: u64) -> Self {
        self.options.work_bytes = bytes;
        self
    }

    /// What commits wait for. Default [`Durability::Synced`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// Share of the cache for tables that are [to be in memory](TableOptions::in_memory), in bytes. It is at most
    /// half of the cache. Default a quarter. It is ignored with [`Builder::cache`], see
    /// [`Cache::set_in_memory_bytes`].
    pub fn in_memory_bytes(mut self, bytes: u64) -> Self {
        self.options.in_memory_bytes = Some(bytes);
        self
    }

    /// Whether to write down at close which pages are in memory, and to load these pages again in the background
    /// after open, while the cache has free room. Opening does not wait for this. Default false: a program that
    /// opens a database only for a moment would read more than it needs, and would write down a poorer state than it
    /// found.
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

    /// Disk space in bytes that is kept back in a file of the directory, so that erases can be written when the disk is
    /// full; 0 for none. Default 256 KiB, room for a few thousand erases.
    ///
    /// When the disk is full, commits that contain a put fail, and commits that only erase take from this space.
    /// When the space is used up, these commits fail as well. Puts succeed again when the disk has room for them and
    /// for the reserve. If a database is opened on a full disk, it takes from this space what the open has to write.
    /// It keeps the rows of its logs in memory until the disk has room for files.
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.options.reserve_bytes = bytes;
        self
    }

    /// By how many bytes a manifest may grow beyond its initial length before a new manifest is begun. Default 4
    /// MiB. Programs need not change this. Tests use a smaller value.
    #[doc(hidden)]
    pub fn manifest_slack_bytes(mut self, bytes: u64) -> Self {
        self.options.manifest_slack_bytes = bytes;
        self
    }

    /// Whether to create the database if it is missing. Default true.
    pub fn create(mut self, create: bool) -> Self {
        self.options.create = create;
        self
    }

    /// Whether to open without lock, threads and log replay. Reads then show what is in files, see
    /// [`Database::version`]. Default false.
    ///
    /// Another process may write to the database meanwhile. As long as the files that this process shows exist,
    /// reads show them. When a writer has removed such a file, the read that misses it takes the newest files. If
    /// the read begins with this call, as [`Table::get`](crate::Reader::get) does, it shows the newest files and
    /// succeeds. A snapshot or a range goes on if the newest files show the same version. Otherwise it ends with
    /// [`Error::Outdated`]. No read ever shows a part of one version and a part of another version.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.options.read_only = read_only;
        self
    }

    /// Opens the database read-only and follows the process that writes to it. `follow` says what reads show; they
    /// show it some milliseconds after the writer has done it. Default none.
    ///
    /// A follower needs no lock, and any number of followers follow one writer, which may end and begin again. As
    /// long as a follower lives, the writer keeps the files that the follower reads, so no read ends with
    /// [`Error::Outdated`]. In a store the writer keeps a file for ten minutes after the file was replaced, or until
    /// the writer is closed. If a snapshot or a range needs the file for longer, it ends with [`Error::Outdated`]. A
    /// snapshot or a range of a follower keeps the files of its moment on the disk of the writer. Tables that are
    /// created, dropped, renamed or cloned are seen together with the next files. Before the follower shows new
    /// files, it loads those of their pages that its own reads will look for, within its cache. For this it writes a
    /// small file to the directory of the database. Follower and writer must be allowed to write each other's files
    /// there. A follower reads even if it cannot write this file, because the file system is read-only or full, or
    /// because it has no right to. Then the writer does not know about the follower: a snapshot or a range that
    /// needs a file which the writer has removed ends with [`Error::Outdated`].
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

    /// Whether a follower loads pages of new files before it shows these files. Default true. Programs need not
    /// change this. It is there to measure what the loading is worth.
    #[doc(hidden)]
    pub fn follow_preloads(mut self, preloads: bool) -> Self {
        self.options.follow_preloads = preloads;
        self
    }

    /// Whether compactions are left to [workers](Builder::compaction_worker) in other processes as long as at least
    /// one worker lives. Default false.
    ///
    /// Compactions that a program asks for, as with [`Table::compact`], are done in this process. Files are moved
    /// down a level in this process, too, because a move reads nothing. If a worker dies or fails, the database
    /// merges itself. Workers write files to the directory of the database: they must be allowed to do so, and they
    /// are trusted.
    pub fn compaction_workers(mut self, workers: bool) -> Self {
        self.options.compaction_workers = workers;
        self
    }

    /// Whether to read the flat index of files that have both kinds of index. Default false.
    pub fn prefer_flat_index(mut self, flat: bool) -> Self {
        self.options.prefer_flat_index = flat;
        self
    }

    /// Whether the thread that polls a future reads a page itself. It does so if the future misses only this page
    /// and no other future of the database waits for the disk. Default false: other threads read the page, and no
    /// poll waits.
    ///
    /// A future that is alone then takes as long as [`Table::get`](crate::Reader::get). Otherwise it takes two more
    /// changes of threads. But its poll blocks for one read of the disk. So this is for a program that awaits one
    /// read after the other, and whose executor has nothing else to do on that thread. Many futures that are polled
    /// in turn are read one by one.
    pub fn reads_in_poll(mut self, in_poll: bool) -> Self {
        self.options.reads_in_poll = in_poll;
        self
    }

    /// The largest number of SSTs that are open for reading at a time; at least one. Default 512.
    ///
    /// Files that are kept open and files that are being read count together, for any number of reads. If a read
    /// needs one more file, it waits until another file is no longer read. Files that a flush, a compaction or an
    /// import writes are not counted.
    pub fn open_files(mut self, files: usize) -> Self {
        self.options.open_files = files;
        self
    }

    /// The shape of the levels.
    pub fn levels(mut self, levels: LevelOptions) -> Self {
        self.options.levels = levels;
        self
    }

    /// Calls `hook` with each [`Event`]: flushes, compactions, waiting commits, errors, retries, recovery.
    ///
    /// The thread that does the work calls the hook, and may hold locks of the database. So the hook must return
    /// soon and must not use the database. If the hook panics, the panic is caught, the event is lost and the engine
    /// goes on.
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

    /// Registers what makes the keys of indexes. `make` gets the declaration of an index. It returns the extractor
    /// that makes the keys of this index, or why it cannot. `make` is called when the database is opened and when an
    /// index is created.
    ///
    /// If `make` has no extractor for an index, the database opens all the same. Then all tables can be read, also
    /// by this index. Writes to the table of the index fail with [`Error::NoExtractor`].
    ///
    /// Do not use the database in `make` or in the extractors that it returns.
    pub fn extractors(
        mut self,
        make: impl Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync + 'static,
    ) -> Self {
        self.options.extractors = Extractors::new(make);
        self
    }

    /// How many bytes a second a scrub reads in the background. 0, the default, means no scrub. A scrub reads every
    /// page of every file from disk and compares it with its checksum. A new round through all files begins at most
    /// once an hour. Damage is counted in [`Metrics::damaged_pages`], listed by [`Database::damage`], and reported
    /// as an [`Event`].
    pub fn scrub_bytes_per_second(mut self, bytes: u64) -> Self {
        self.options.scrub_bytes_per_second = bytes;
        self
    }

    /// The oldest release that must be able to read what this process writes, so that this release can open the
    /// database again. Default [`Release::NEWEST`], which is this release. The choice does not bind a later open: a
    /// process that opens the database without `compat` may write what only newer releases read. If it is then
    /// opened with `compat`, the open refuses the database and names the file.
    pub fn compat(mut self, release: Release) -> Self {
        self.options.compat = release;
        self
    }

    /// The machine to run on. Default the real machine. Tests give a simulated machine.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Opens the database. It reads the manifest and the log, but no page of any SST, so the time does not depend on
    /// the size of the data. Before it returns, the rows of the log are written to files.
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
    /// * [`Error::WithinDatabase`] if it is to be created in the directory of another database.
    /// * [`Error::Locked`] if the database is open for writing already, in this process or in another one.
    /// * [`Error::BadOptions`] if an option cannot be used. The message says which.
    /// * [`Error::NoThreads`] if the system refuses a thread for background work. Nothing was created.
    /// * [`Error::Log`] if the log or the manifest is damaged, or was written by a newer release.
    ///   [`repair`](crate::repair::repair()) saves what it can from a damaged database.
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
    /// Begins to build files for a table that is stored as `table` says. They are built in the directory, which does
    /// not exist yet or is empty. No database is needed, and none is made: later [`Table::ingest`] takes the files
    /// into a table of any database. Of this builder's options, only those that say how files are written count:
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
    /// [`Error::CopyTarget`] if the directory is not empty; [`Error::CopyLocked`]; [`Error::BadOptions`] if an option
    /// cannot be used; [`Error::NoThreads`]; what the disk refuses. A directory that was not finished is cleared first.
    pub fn build_files(self, table: TableOptions) -> Result<FileBuilder> {
        FileBuilder::begin(self.machine_to_run_on(), self.named_directory()?, self.options.clone(), table)
    }
}

impl Builder {
    /// Begins to do compactions for the process that writes to the database. This process must have opened it with
    /// [`Builder::compaction_workers`]. Any number of workers do compactions of one database. Each worker does one
    /// at a time. A worker may end, or die, at any point. Of this builder's options, only those that say how much
    /// memory is used, and the machine, count.
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
    /// [`Error::NotADatabase`]; [`Error::BadOptions`]; [`Error::NoThreads`]; what the disk refuses.
    pub fn compaction_worker(self) -> Result<CompactionWorker> {
        CompactionWorker::begin(self.machine_to_run_on(), self.named_directory()?.to_owned(), self.options.clone())
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
    /// Opens the database in `directory` with default options, and creates it if none exists.
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
    /// As [`Builder::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::builder(directory).open()
    }

    /// Opens a new database in memory, with default options, see [`Builder::in_memory`].
    ///
    /// # Errors
    ///
    /// As [`Builder::open`].
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

    /// The table `name`. It is created with default options if none exists.
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
    /// As [`Database::table_with`].
    pub fn table(&self, name: &str) -> Result<Table> {
        self.table_with(name, TableOptions::default())
    }

    /// The table `name`. It is created with `options` if none exists. An existing table keeps its own options. When
    /// this returns, the creation is durable.
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
    /// [`Error::BadTableName`] if the name is empty or longer than 255 bytes, or new with control characters in it;
    /// [`Error::BadOptions`] if an option cannot be used; [`Error::NoSuchTable`] if the table is missing and the
    /// database was opened read-only. If the table has to be created: [`Error::Log`] if the manifest cannot be written,
    /// and the errors of [`Table::insert`] that say that the database takes no writes.
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

    /// The table `name`, or `None` if none exists.
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

    /// Refuses a table of another database.
    pub(super) fn check_table(&self, table: &Table) -> Result<()> {
        table.inner().check_handle(&self.handle)
    }

    /// Names of all tables, sorted.
    pub fn tables(&self) -> Vec<String> {
        let view = self.core().views.newest();
        view.files.tables.names().map(str::to_owned).collect()
    }

    /// Drops the table `name` with all its rows and indexes. Snapshots lose them, too. False if no such table
    /// exists. The space of its files is returned when no read and no clone of the table uses them.
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
    /// [`Error::BadTableName`] if no table can have this name; [`Error::Log`] if the manifest cannot be written; the
    /// table is there still. Otherwise the errors of [`Table::insert`] that say that the database takes no writes.
    pub fn drop_table(&self, name: &str) -> Result<bool> {
        define::drop_table(self.core(), check_name(name)?)
    }

    /// Gives the table `name` the name `new`, in one step: after a crash the table has either the old or the new
    /// name, with all rows. No row is copied.
    ///
    /// The result is a new table with the rows and options of the old table. The old table is dropped: its handles
    /// answer with [`Error::TableDropped`]. Rows in memory are written to a file first.
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
    /// [`Error::NoSuchTable`] if no table `name` exists, [`Error::TableExists`] if a table `new` exists, even if `new`
    /// is `name`. Otherwise as [`Table::clone_as`].
    pub fn rename_table(&self, name: &str, new: &str) -> Result<Table> {
        let table = self.existing_table(name)?.ok_or_else(|| Error::NoSuchTable(name.to_owned()))?;
        table.shared(new, share::SharedPart::Whole)
    }

    /// An empty batch, for writes that are committed together.
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

    /// A snapshot of what reads see now. Compactions keep the rows that it shows until it is dropped.
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

    /// The newest version that reads see. In a database opened read-only, it is the newest version that is in files.
    /// If the database [follows](Builder::follow) commits, it is the newest version that is in files and logs.
    pub fn version(&self) -> Version {
        self.core().views.visible()
    }

    /// The newest version that is durable: this commit and all earlier commits survive a power failure. In a
    /// database opened read-only, it is the newest version that reads see. A [follower](Builder::follow) of commits
    /// may see a version before it is durable.
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

    /// If this process [follows](Builder::follow) the process that writes to the database, shows everything that the
    /// writer has done by now. Returns the newest version that reads see. A follower does so by itself all the time.
    /// This function is for a reader that must see a commit of which it knows. Any other database shows what it has.
    ///
    /// # Errors
    ///
    /// [`Error::Log`] if the manifest or a log cannot be read. Reads go on with what was shown before.
    pub fn catch_up(&self) -> Result<Version> {
        self.core().catch_up()
    }

    /// Makes all commits so far durable, also commits with [`Durability::Buffered`].
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
    /// [`Error::OutcomeUnknown`] if the sync failed: some commits may be durable and others not, and the database
    /// refuses writes until it is opened again. Otherwise the errors of [`Table::insert`] that say that the database
    /// takes no writes.
    pub fn sync(&self) -> Result<()> {
        commit::sync(self.core(), Durability::Synced).map(drop)
    }

    /// Writes all rows in memory to files of level 0, and returns when this is done. The engine does this by itself
    /// when the write buffer is full.
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
    /// [`Error::Full`] with the cause if a flush, or a compaction that it waits for, fails. Otherwise the errors of
    /// [`Table::insert`] that say that the database takes no writes.
    pub fn flush(&self) -> Result<()> {
        flush::flush_all(self.core())
    }

    /// Merges every table into its deepest level, one after the other, see [`Table::compact`]. This rewrites all data.
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
    /// As [`Table::compact`]. Tables that were merged before the error stay merged.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| {})
    }

    /// As [`Database::compact`]. `watch` sees how many bytes of a table were read, and says whether the work goes
    /// on. It must not write to the database, see [`Table::compact_with`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends it, otherwise as [`Database::compact`].
    pub fn compact_with<G: GoOn>(&self, mut watch: impl FnMut(Progress) -> G) -> Result<()> {
        let mut goes_on = |progress| watch(progress).goes_on();
        let (view, watch) = (self.core().views.newest(), Watch::new(compact::WORK, &mut goes_on));
        view.files.tables.keys().try_for_each(|table| flush_and_compact(self.core(), *table, &watch))
    }

    /// Writes all rows in memory to files and runs all compactions that are due, so that the background has nothing
    /// left to do. Compactions that would be due after some seconds without a write are also run. Then the files of
    /// a table take at most about a quarter more than its rows. Further space of erased and overwritten rows is
    /// given back, except what a snapshot sees. How many bytes of older rows are hidden by newer rows is estimated,
    /// with rows of average length. If much of the data has not changed, this is far less work than
    /// [`Database::compact`].
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
    /// As [`Database::flush`]; the error of a compaction that fails.
    pub fn compact_due(&self) -> Result<()> {
        flush::flush_all(self.core())?;
        compact::compact_due(self.core())
    }

    /// Loads the pages that were in memory when the database was last closed, if [they were written
    /// down](Builder::warm_from_last), while the cache has free room. It returns when this is done. If the saved
    /// state is missing or damaged, nothing is loaded. This is not an error.
    pub fn warm_up(&self) -> Warmed {
        let core = self.core();
        let restored = warm::state::restore(&core.env, &core.views.newest(), &mut |_| true);
        core.background.warmth.count(&restored);
        restored.warmed
    }

    /// Loads the pages of a range of `table`, see [`Table::warm`].
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the table belongs to another database; otherwise as [`Table::warm`].
    pub fn warm(&self, table: &Table, range: impl IntoKeyRange) -> Result<Warmed> {
        self.check_table(table)?;
        table.warm(range)
    }

    /// The damaged pages that the background scrub has found since the database was opened, at most the first 64; see
    /// [`Builder::scrub_bytes_per_second`].
    pub fn damage(&self) -> Vec<Problem> {
        self.core().background.damage.problems()
    }

    /// Makes a checkpoint: a whole copy of the database in `directory`, which does not exist yet or is empty. Files
    /// of rows get a second name there, and take no more space. They are copied if the directory is on another file
    /// system, or if the file system has no second names.
    ///
    /// The checkpoint shows one version, which the report names. It has all commits that reads saw when the call
    /// began, perhaps some later commits up to this version, and no commit after it. A commit in the checkpoint is
    /// durable in this database, too. Commits and reads go on and do not wait. Rows that are not in files yet are
    /// written to a file of the checkpoint. Until that is done, their memory is kept. Opening a checkpoint reads no
    /// log.
    ///
    /// When the call returns, the checkpoint is durable. It is a database of its own: a write to one of the two
    /// databases does not change the other one. If a crash or an error ends the call, `directory` has no checkpoint.
    /// Files that a crash has left there are not opened, and the next checkpoint in the same directory removes them.
    ///
    /// In a database opened [read-only](Builder::read_only), beside a writer or not, the checkpoint has all commits
    /// that the operating system had when the call began. It even has commits that reads of that database do not
    /// show because these commits are only in the log.
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
    /// [`Error::CopyTarget`] if `directory` is not empty; [`Error::WithinDatabase`] if it lies in this or another
    /// database; what the disk refuses, for example because it is full; damage of the log in a database opened
    /// read-only; [`Error::OutcomeUnknown`] if a sync of the log has failed; [`Error::Forked`].
    pub fn checkpoint(&self, directory: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.checkpoint_with(directory, |_| {})
    }

    /// As [`Database::checkpoint`]. `watch` sees how many bytes are in place, and says whether the work goes on. The
    /// work takes time only if files have to be copied.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends it, otherwise as [`Database::checkpoint`].
    pub fn checkpoint_with<G: GoOn>(
        &self,
        directory: impl AsRef<Path>,
        mut watch: impl FnMut(Progress) -> G,
    ) -> Result<CheckpointReport> {
        let mut goes_on = |progress| watch(progress).goes_on();
        checkpoint::checkpoint(self.core(), directory.as_ref(), &Watch::new("the checkpoint", &mut goes_on))
    }

    /// Adds a backup to the backups in `directory`. The directory does not exist yet, is empty, or has backups of
    /// this database. It copies only files that no earlier backup has: files never change. So a backup takes time
    /// and space only for new files, and for the rows that are not in files yet. [`Backups`] lists, verifies and
    /// restores backups.
    ///
    /// Like a checkpoint, it has all commits up to one version, and no commit waits for it ([`Database::checkpoint`]).
    /// When the call returns, the backup is durable. If a crash or an error ends the call, the earlier backups are as
    /// they were, and the next backup removes what was left.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`], [`Error::OtherDatabase`], [`Error::BackupsLocked`] or [`Error::WithinDatabase`] if
    /// `directory` cannot take it; what the disk refuses, for example because it is full; damage of the log in a
    /// database opened read-only; [`Error::OutcomeUnknown`] if a sync of the log has failed; [`Error::Forked`].
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_to(&Backups::at(directory).on(&self.core().env.machine), |_| {})
    }

    /// As [`Database::backup`], added to `backups`. The backups may lie on another machine than the database: in a
    /// store, or on this machine if the database is in a store. `watch` sees how many bytes are in place, and says
    /// whether the work goes on.
    ///
    /// In a store, a backup that is begun while another backup is being made or removed takes over: the other work
    /// ends with an error.
    ///
    /// In a database opened read-only, a backup begins again if the writer has removed a file before it was copied. It
    /// keeps the files that it has copied. Beside a writer that replaces files faster than they can be copied, only
    /// `watch` ends it.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends it, otherwise as [`Database::backup`].
    pub fn backup_to<G: GoOn>(&self, backups: &Backups, mut watch: impl FnMut(Progress) -> G) -> Result<BackupReport> {
        let mut goes_on = |progress| watch(progress).goes_on();
        backup::backup(self.core(), backups.store()?, &Watch::new("the backup", &mut goes_on))
    }

    /// The names in the directory and the lengths in bytes of all SSTs of the newest version of all tables. To copy
    /// a database to which nobody writes, copy these files and the files that are no SSTs.
    pub fn sst_files(&self) -> Vec<(String, u64)> {
        let files = self.core().views.newest().files.files_by_number();
        let mut files: Vec<_> = files.values().map(|file| (sst_name(file.number, file.epoch), file.bytes())).collect();
        files.sort_unstable();
        files
    }

    /// Reads every page of every file from disk and compares the pages with their checksums, with each other and
    /// with the manifest. It admits nothing to the cache. `watch` sees how many bytes were checked, and says whether
    /// the check goes on. The database can be used meanwhile.
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
    /// Damage is not an error: it is in [`CheckReport::problems`]. [`Error::Outdated`] in a database opened read-only,
    /// if a writer has removed a file meanwhile; check again then.
    pub fn check<G: GoOn>(&self, mut watch: impl FnMut(Progress) -> G) -> Result<CheckReport> {
        let mut goes_on = |progress| watch(progress).goes_on();
        check::check(self.core(), None, &Watch::new(check::WORK, &mut goes_on))
    }

    /// Counters since the database was opened, and the present sizes. The call looks at every page in the cache, so
    /// use it for dashboards and not for each request.
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

    /// Changes the memory for pages while the database is in use. All databases that share the cache get the new
    /// budget. If the new budget is smaller, pages are evicted, and the system has their memory back before this
    /// returns. Pages that are pinned, being read, or referred to by a [`Value`](crate::Value) are evicted when they
    /// are released.
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
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.core().env.cache.set_budget(bytes);
    }

    /// The cache of pages, which other databases may share.
    pub fn cache(&self) -> Cache {
        Cache::of(&self.core().env.cache)
    }

    /// Writes all rows in memory to files, so that the next open has no log to read, and gives up this handle. The
    /// database is closed when its last handle is dropped. It is also safe to drop the last handle without this
    /// call: the commits stay in the log. If the disk has no room for the files, all commits are made durable in the
    /// log, and the close succeeds. Then the next open reads the log.
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
    /// As [`Database::flush`], but for a full disk, and as [`Database::sync`]. Commits that were durable stay durable.
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
