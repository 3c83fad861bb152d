//! The database as programs use it. A program opens a database. With the database it gets tables, batches and
//! snapshots, and starts maintenance work. This module only calls the code that does the work.

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

/// A database in a directory. A clone is another handle to the same database. Handles of tables, batches and
/// snapshots keep the database open, too. The database is closed when the last of all these handles is dropped.
///
/// The drop of the last handle waits until the current step of background work has ended, which is soon. If the
/// waker of a task drops the last handle, this drop does not wait, and a thread of the pool finishes the close. If
/// this process opens the database again before the close is finished, the open waits for the close.
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

/// Options for opening a database. [`Database::builder`] makes this value.
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
    /// The database gets a new directory among the system's temporary files.
    Temporary,
    InMemory,
}

impl Builder {
    fn new(home: Home) -> Self {
        Self { home, options: Options::default(), machine: None, cache: None, threads: None }
    }

    /// Options for opening a new database in a new directory among the system's temporary files. The directory is
    /// removed when the database is closed. This is when the last of its handles is dropped; tables, batches and
    /// snapshots of the database are also such handles. If the process is killed, the directory stays.
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
    /// is dropped. Such a database can do everything that a database in a directory can do.
    ///
    /// Each file takes as much memory as it is long. A file is compressed as the options of its table say. While a
    /// file is being written, it takes up to twice its length. The [cache](Builder::cache_bytes) and the [write
    /// buffer](Builder::write_buffer_bytes) take memory in addition to the files. When a page is read, the cache
    /// gets an uncompressed copy of it. If the pages in files are not compressed, a small cache is enough.
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

    /// The directory that the program has named for the database. Fails if the program has not named one.
    fn named_directory(&self) -> Result<&Path> {
        match &self.home {
            Home::Directory(directory) => Ok(directory),
            Home::Temporary | Home::InMemory => Err(Error::BadOptions(
                "this needs a directory that other databases find; name one with Database::builder".to_owned(),
            )),
        }
    }

    /// Memory for pages, in bytes. Index nodes and data pages share it. The default is 64 MiB. This option is
    /// ignored if [`Builder::cache`] is set.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.options.cache_bytes = bytes;
        self
    }

    /// Uses this cache, which other databases of this process may share.
    pub fn cache(mut self, cache: &Cache) -> Self {
        self.cache = Some(cache.clone());
        self
    }

    /// The threads that flush, compact and load pages in the background. By default, all databases of a process
    /// share one pool. The shared pool has one more thread than the machine has processors. If all these threads
    /// are busy and a [`Commit`](crate::Commit) waits for a sync, the shared pool starts one more thread for a
    /// while. Databases that share a pool take turns. If some databases have a separate pool, their background
    /// work does not wait for that of other databases.
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

    /// Memory for rows that are not in files yet, in bytes. It is between 1 KiB and 8 GiB. The default is 64 MiB. A
    /// value may take at most a quarter of this memory.
    pub fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.options.write_buffer_bytes = bytes;
        self
    }

    /// Memory for merging files and for reading ahead, in bytes. The default is 16 MiB.
    pub fn work_bytes(mut self, bytes: u64) -> Self {
        self.options.work_bytes = bytes;
        self
    }

    /// What a commit waits for before it returns. The default is [`Durability::Synced`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// How many bytes of the cache may be used by the tables that should [stay in
    /// memory](TableOptions::in_memory). The limit is half of the cache. The default is a quarter of the cache.
    /// This option is ignored if [`Builder::cache`] is set, see [`Cache::set_in_memory_bytes`].
    pub fn in_memory_bytes(mut self, bytes: u64) -> Self {
        self.options.in_memory_bytes = Some(bytes);
        self
    }

    /// If this is true, a close writes down which pages are in memory. The next open then loads these pages again
    /// in the background, as long as the cache has free room. The open does not wait for this. The default is
    /// false, because some programs open a database only for a moment. Such a program would load more pages than
    /// it needs. When it closes the database, it would replace a good list of pages by a poorer one.
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

    /// Disk space in bytes that is reserved, so that erases can be written when the disk is full. A file in the
    /// directory of the database takes this space. 0 means that there is no such file. The default is 256 KiB,
    /// which is enough for a few thousand erases.
    ///
    /// When the disk is full, commits with a put fail, but commits that only erase can use this space. When the
    /// space is used up, commits that only erase fail, too. Puts succeed again when the disk has room for the puts
    /// and also for the reserved space. If a database is opened on a full disk, the open uses the reserved space
    /// for the few bytes that it has to write. Such an open keeps the rows of the logs in memory until the disk
    /// has room for files.
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.options.reserve_bytes = bytes;
        self
    }

    /// When the manifest has grown by this many bytes beyond its initial length, a new manifest is begun. The
    /// default is 4 MiB. Programs do not need to change this. Tests use smaller values.
    #[doc(hidden)]
    pub fn manifest_slack_bytes(mut self, bytes: u64) -> Self {
        self.options.manifest_slack_bytes = bytes;
        self
    }

    /// Whether the database is created if it does not exist. The default is true.
    pub fn create(mut self, create: bool) -> Self {
        self.options.create = create;
        self
    }

    /// Whether the database is opened only for reading. Such an open takes no lock, starts no threads, and does
    /// not read the logs. So reads see only rows in files, see [`Database::version`]. The default is false.
    ///
    /// Another process may write to the database at the same time. Reads show the files as they were at the open,
    /// as long as these files exist. If a writer has removed such a file, a read that needs the file uses the
    /// newest files instead. A call such as [`Table::get`](crate::Reader::get) then returns what the newest files
    /// have. A snapshot or a range has a version, and its reads go on if the newest files can still show this
    /// version. Otherwise the read fails with [`Error::Outdated`]. No read ever mixes two versions.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.options.read_only = read_only;
        self
    }

    /// Opens the database read-only, and follows the process that writes to it. `follow` says which rows of the
    /// writer the reads show. A follower shows the writer's changes some milliseconds after the writer has made
    /// them. By default, the database follows no other process.
    ///
    /// A follower needs no lock, and a writer may have any number of followers. The writer may close the database
    /// and open it again while followers run. As long as a follower lives, the writer keeps all files that the
    /// follower reads. So, except in a store, no read of a follower fails with [`Error::Outdated`]. A writer in a
    /// store keeps a file for ten minutes after the file was replaced, or until the writer closes. If a snapshot
    /// or a range needs the file longer than that, its reads fail with [`Error::Outdated`]. As long as a follower
    /// has a snapshot or a range, the files that this snapshot or range reads stay on the writer's disk. If the
    /// writer creates, drops, renames or clones a table, the follower shows this together with the next files.
    /// Before the follower shows new files, it loads the pages of these files that its own reads are likely to
    /// need, as far as its cache has room. A follower writes a small file to the directory of the database. So the
    /// follower and the writer must be allowed to write to each other's files in this directory. If the file
    /// system is read-only or full, or if the user may not write, the follower cannot write this file. It can
    /// still read, but the writer does not know about it. If a snapshot or a range needs a file that the writer
    /// has removed, its reads fail with [`Error::Outdated`].
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

    /// Whether a follower loads pages of new files before it shows the files. The default is true. Programs do not
    /// need to change this. The option exists so that the effect of loading can be measured.
    #[doc(hidden)]
    pub fn follow_preloads(mut self, preloads: bool) -> Self {
        self.options.follow_preloads = preloads;
        self
    }

    /// Whether [workers](Builder::compaction_worker) in other processes do the compactions of this database, as
    /// long as at least one worker lives. The default is false.
    ///
    /// If the program asks for a compaction itself, for example with [`Table::compact`], this process does it.
    /// This process also moves files to a deeper level, because a move reads no files. If a worker dies or fails,
    /// this process does the compaction of that worker. Workers write files to the directory of the database.
    /// Workers must be allowed to write there, and this process trusts them.
    pub fn compaction_workers(mut self, workers: bool) -> Self {
        self.options.compaction_workers = workers;
        self
    }

    /// Whether reads use the flat index of a file that has both kinds of index. The default is false.
    pub fn prefer_flat_index(mut self, flat: bool) -> Self {
        self.options.prefer_flat_index = flat;
        self
    }

    /// Whether a thread that polls a future may read a page from the disk itself. It does so only if the future
    /// needs just one page, and if no other future of the database waits for the disk. The default is false: other
    /// threads read the page, and no poll waits for the disk.
    ///
    /// If this option is true, a future that runs alone takes as long as [`Table::get`](crate::Reader::get). If
    /// this option is false, the system has to switch between threads twice more. On the other hand, if this
    /// option is true, the thread that polls the future is blocked during the read from the disk. So true is good
    /// for a program that awaits one read after the other, if its executor has nothing else to do on this thread.
    /// If a thread polls many futures in turn, true makes these futures read one after the other.
    pub fn reads_in_poll(mut self, in_poll: bool) -> Self {
        self.options.reads_in_poll = in_poll;
        self
    }

    /// The largest number of SSTs that are open for reading at a time. It is at least one. The default is 512.
    ///
    /// This limit holds for all reads together, and includes files that are only kept open. If a read needs one
    /// more file, it waits until some other file is no longer being read. It does not include files that a flush,
    /// a compaction or an import is writing.
    pub fn open_files(mut self, files: usize) -> Self {
        self.options.open_files = files;
        self
    }

    /// The shape of the levels.
    pub fn levels(mut self, levels: LevelOptions) -> Self {
        self.options.levels = levels;
        self
    }

    /// Calls `hook` with each [`Event`]. Events report flushes, compactions, waiting commits, errors, retries and
    /// recovery.
    ///
    /// The thread that does the work calls the hook, and it may hold locks of the database. So the hook must return
    /// soon and must not use the database. If the hook panics, the panic is caught, the event is lost, and the
    /// engine goes on.
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

    /// Registers the extractors, which make the keys of indexes. `make` gets the declaration of an index. `make`
    /// returns the extractor of this index, or an error that says why there is none. `make` is called when the
    /// database is opened and when an index is created.
    ///
    /// If `make` returns an error for an index, the database is opened nevertheless, and all tables and indexes
    /// can be read, including this index. But writes to the table that has this index fail with
    /// [`Error::NoExtractor`].
    ///
    /// Neither `make` nor the extractors may use the database.
    pub fn extractors(
        mut self,
        make: impl Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync + 'static,
    ) -> Self {
        self.options.extractors = Extractors::new(make);
        self
    }

    /// How many bytes a background scrub reads in a second. The default is 0, which means no scrub. A scrub reads
    /// every page of every file from the disk, and compares the page with its checksum. A scrub begins to read all
    /// files again at most once an hour. [`Metrics::damaged_pages`] counts the damage, [`Database::damage`] lists
    /// it, and an [`Event`] reports it.
    pub fn scrub_bytes_per_second(mut self, bytes: u64) -> Self {
        self.options.scrub_bytes_per_second = bytes;
        self
    }

    /// The oldest release that must be able to read what this process writes, so that this release can open the
    /// database later. The default is [`Release::NEWEST`], which is this release. This option is not stored in the
    /// database. If another process opens the database without `compat`, it may write files that the older release
    /// cannot read. If the database is then opened with `compat`, the open fails, and its error names such a file.
    pub fn compat(mut self, release: Release) -> Self {
        self.options.compat = release;
        self
    }

    /// The machine on which the database runs. The default is the real machine. Tests use a simulated machine.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Opens the database. An open reads the manifest and the log, but no page of an SST. So the time of an open
    /// does not depend on the size of the data. An open writes the rows of the log to files before it returns.
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
    /// * [`Error::Locked`] if this or another process has the database open for writing.
    /// * [`Error::BadOptions`] if an option has a value that cannot be used. The message names the option.
    /// * [`Error::NoThreads`] if the system refuses to start a thread for background work. Nothing is created in
    ///   this case.
    /// * [`Error::Log`] if the log or the manifest is damaged, or was written by a newer release.
    ///   [`repair`](crate::repair::repair()) makes a database from what is readable in a damaged one.
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
    /// Begins to build files for a table with the options `table`. The files are built in the directory of this
    /// builder, which must be empty or not exist yet. No database is needed for this, and none is made. Later,
    /// [`Table::ingest`] makes the files part of a table in any database. Of the options of this builder, only
    /// those that say how files are written are used: memory, threads, machine, levels and [`Builder::compat`].
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
    /// [`Error::CopyTarget`] if the directory is not empty; [`Error::CopyLocked`]; [`Error::BadOptions`] if an
    /// option cannot be used; [`Error::NoThreads`]; an error if the disk refuses something. This call first
    /// removes files in this directory that an earlier call has not finished.
    pub fn build_files(self, table: TableOptions) -> Result<FileBuilder> {
        FileBuilder::begin(self.machine_to_run_on(), self.named_directory()?, self.options.clone(), table)
    }
}

impl Builder {
    /// Begins to do compactions for another process, which writes to the database. The other process must have
    /// opened the database with [`Builder::compaction_workers`]. A database may have any number of workers. Each
    /// worker does one compaction at a time. A worker may end or die at any time. Of the options of this builder,
    /// only two kinds are used: the machine, and the options that say how much memory may be used.
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
    /// [`Error::NotADatabase`]; [`Error::BadOptions`]; [`Error::NoThreads`]; an error if the disk refuses something.
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
    /// Opens the database in `directory` with default options. Creates the database if it does not exist.
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

    /// The table `name`. If the table does not exist, this creates it with default options.
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

    /// The table `name`. If the table does not exist, this creates it with `options`. An existing table keeps its
    /// own options. A new table is durable when this returns.
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

    /// The table `name`, or `None` if no such table exists.
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

    /// Drops the table `name` with all its rows and indexes. After that, snapshots do not show these rows any
    /// more. Returns false if no such table exists. The disk space of the dropped files is freed when no read and
    /// no clone of the table uses them any more.
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

    /// Renames the table `name` to `new`, in one step: after a crash, the table has either the old or the new name,
    /// and all of its rows. This copies no rows.
    ///
    /// In fact, the call makes a new table with the rows and options of the old one, and drops the old table. So
    /// all calls of the old table's handles then fail with [`Error::TableDropped`]. The call first writes rows in
    /// memory to a file.
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
    /// [`Error::NoSuchTable`] if the table `name` does not exist; [`Error::TableExists`] if the table `new`
    /// exists, or if `new` is the same name as `name`. Otherwise fails as [`Table::clone_as`] does.
    pub fn rename_table(&self, name: &str, new: &str) -> Result<Table> {
        let table = self.existing_table(name)?.ok_or_else(|| Error::NoSuchTable(name.to_owned()))?;
        table.shared(new, share::SharedPart::Whole)
    }

    /// An empty batch. The writes that are added to a batch are committed together.
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

    /// A snapshot of everything that reads see now. Until the snapshot is dropped, compactions keep the rows that it
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

    /// The newest version that reads see. In a read-only database, this is the newest version in files. In a
    /// database that [follows](Builder::follow) commits, this is the newest version in files and logs.
    pub fn version(&self) -> Version {
        self.core().views.visible()
    }

    /// The newest version that is durable. The commit with this version and all earlier commits survive a power
    /// failure. In a read-only database, this is the newest version that reads see. But a
    /// [follower](Builder::follow) of commits may see a version before it is durable.
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

    /// In a [follower](Builder::follow), shows everything that the writer has done up to now. Returns the newest
    /// version that reads see. A follower shows the writer's changes sooner or later without this call. The call is
    /// for a reader that knows of a commit and must see it. In other databases, this changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Log`] if the manifest or a log cannot be read. After an error, reads go on with what was shown
    /// before.
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

    /// Writes all rows in memory to files of level 0, and returns when this is done. The engine does this without a
    /// call when the write buffer is full.
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
    /// [`Error::Full`], with the cause, if the flush fails, or if the flush has to wait for a compaction that
    /// fails. If the database takes no writes, the call fails like [`Table::insert`].
    pub fn flush(&self) -> Result<()> {
        flush::flush_all(self.core())
    }

    /// Compacts all tables, one after the other: merges each table into its deepest level, see [`Table::compact`].
    /// This rewrites all data.
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

    /// Does the same as [`Database::compact`], but calls `watch`. `watch` is told how many bytes of a table were
    /// read, and says whether the work goes on. `watch` must not write to the database, see
    /// [`Table::compact_with`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Database::compact`] does.
    pub fn compact_with<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<()> {
        let (view, watch) = (self.core().views.newest(), Watch::new(compact::WORK, watch));
        view.files.tables.keys().try_for_each(|table| flush_and_compact(self.core(), *table, &watch))
    }

    /// Writes all rows in memory to files and runs all compactions that are due. It also runs compactions that
    /// would become due after some seconds without writes, so background work has nothing left to do. After the
    /// call, the files of a table are at most about a quarter larger than its rows. The rest of the space of
    /// erased and overwritten rows is freed, except for rows that a snapshot shows. How many bytes of older rows
    /// are hidden by newer rows is only estimated, as if all rows had the same length. If most of the data has not
    /// changed, this is far less work than [`Database::compact`].
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

    /// Loads the pages that were in memory at the last close, as long as the cache has free room. The close must
    /// have [written down](Builder::warm_from_last) which pages these were. The call returns when all of them are
    /// loaded. If the list of these pages is missing or damaged, the call loads nothing and does not fail.
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
    /// [`Error::ForeignTable`] if the table belongs to another database; otherwise fails as [`Table::warm`] does.
    pub fn warm(&self, table: &Table, range: impl IntoKeyRange) -> Result<Warmed> {
        self.check_table(table)?;
        table.warm(range)
    }

    /// Damaged pages that the background scrub has found since the database was opened. At most the first 64 are
    /// listed, see [`Builder::scrub_bytes_per_second`].
    pub fn damage(&self) -> Vec<Problem> {
        self.core().background.damage.problems()
    }

    /// Makes a checkpoint, which is a complete copy of the database, in `directory`. The directory must be empty or
    /// not exist yet. SSTs are not copied but get a second name in `directory`, which takes no more space. SSTs are
    /// copied only if the directory is on another file system, or if the file system does not allow second names.
    ///
    /// The checkpoint shows one version, which the report states. The checkpoint has all commits that reads saw
    /// when the call began. The checkpoint may have some later commits up to its version, but none after it. All
    /// commits in the checkpoint are also durable in this database. Commits and reads do not wait for the
    /// checkpoint. Rows that are only in memory are written to a file of the checkpoint. Until then, these rows
    /// stay in memory. Opening a checkpoint reads no log.
    ///
    /// The checkpoint is durable when the call returns. A checkpoint is a separate database: writes to one of the
    /// two databases do not change the other. If the call ends with an error or a crash, `directory` has no
    /// checkpoint. If a crash leaves files in `directory`, no open uses them, and the next checkpoint in the same
    /// directory removes them.
    ///
    /// If this database is [read-only](Builder::read_only), a writer in another process may have commits that are
    /// only in the log. Reads of this database do not see these commits. But the checkpoint has all commits that
    /// the writer had passed to the operating system when the call began, even if no writer runs any more.
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
    /// [`Error::CopyTarget`] if `directory` is not empty; [`Error::WithinDatabase`] if `directory` lies in this or
    /// another database; an error if the disk refuses something, for example because it is full; damage of the log
    /// if this database is read-only; [`Error::OutcomeUnknown`] if a sync of the log has failed; [`Error::Forked`].
    pub fn checkpoint(&self, directory: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.checkpoint_with(directory, |_| {})
    }

    /// Does the same as [`Database::checkpoint`], but calls `watch`. `watch` is told how many bytes are done so
    /// far, and says whether the work goes on. The work takes long only if files have to be copied.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Database::checkpoint`] does.
    pub fn checkpoint_with<G: GoOn>(
        &self,
        directory: impl AsRef<Path>,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<CheckpointReport> {
        checkpoint::checkpoint(self.core(), directory.as_ref(), &Watch::new("the checkpoint", watch))
    }

    /// Adds a backup to the backups in `directory`. The directory must not exist yet, be empty, or have backups of
    /// this database. Files of a database never change, so a backup copies only the files that no earlier backup
    /// has. A backup takes time and space only for new files, and for the rows that are not in files yet.
    /// [`Backups`] lists, verifies and restores backups.
    ///
    /// Like a checkpoint, a backup has all commits up to one version, and no commit waits for it (see
    /// [`Database::checkpoint`]). The backup is durable when the call returns. If the call ends with an error or a
    /// crash, the earlier backups are unchanged, and the next backup removes what is left of the failed one.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`], [`Error::OtherDatabase`], [`Error::BackupsLocked`] or [`Error::WithinDatabase`] if the
    /// backup cannot be made in `directory`; an error if the disk refuses something, for example because it is full;
    /// damage of the log if this database is read-only; [`Error::OutcomeUnknown`] if a sync of the log has failed;
    /// [`Error::Forked`].
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_to(&Backups::at(directory).on(&self.core().env.machine), |_| {})
    }

    /// Does the same as [`Database::backup`], but adds the backup to `backups` and calls `watch`. The backups may
    /// be on another machine than the database. For example, the database may be in a store and the backups on a
    /// disk, or the other way round. `watch` is told how many bytes are done so far, and says whether the work
    /// goes on.
    ///
    /// If another backup is being made or removed in the same store at this moment, this call takes over: the other
    /// work ends with an error.
    ///
    /// If this database is read-only and the writer removes a file before it was copied, the backup starts again.
    /// The files that the backup has already copied are kept. If the writer replaces files faster than they can be
    /// copied, the backup ends only when `watch` ends it.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Database::backup`] does.
    pub fn backup_to<G: GoOn>(&self, backups: &Backups, watch: impl FnMut(Progress) -> G) -> Result<BackupReport> {
        backup::backup(self.core(), backups.store()?, &Watch::new("the backup", watch))
    }

    /// The names of the SSTs that all tables have now. Each comes with its length in bytes. To copy a database
    /// while nobody writes to it, copy these files and all files that are not SSTs.
    pub fn sst_files(&self) -> Vec<(String, u64)> {
        let files = self.core().views.newest().files.files_by_number();
        let mut files: Vec<_> = files.values().map(|file| (sst_name(file.number, file.epoch), file.bytes())).collect();
        files.sort_unstable();
        files
    }

    /// Reads every page of every file from the disk. Compares the pages with their checksums, with each other, and
    /// with the manifest. These reads put nothing into the cache. `watch` is told how many bytes were checked, and
    /// says whether the check goes on. The database can be used during the check.
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
    /// Damage does not make the call fail: [`CheckReport::problems`] lists it. [`Error::Outdated`] if the database
    /// is read-only and a writer has removed a file meanwhile. Then check again.
    pub fn check<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<CheckReport> {
        check::check(self.core(), None, &Watch::new(check::WORK, watch))
    }

    /// Counters of what has happened since the database was opened, and current sizes. The call looks at every page
    /// in the cache. So use this call for dashboards, and not in each request.
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

    /// Changes the size of the cache of pages while the database is in use. The new size holds for all databases
    /// that share the cache. If the new size is smaller, pages are evicted. Before the call returns, the memory of
    /// the evicted pages is given back to the operating system. Some pages cannot be evicted at once: those that
    /// are pinned, being read, or used by a [`Value`](crate::Value). Once they are released, they are evicted when
    /// memory is needed.
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

    /// Writes all rows in memory to files, so that the next open does not have to read a log. Then gives up this
    /// handle. The database is closed when its last handle is dropped. Even without this call it is safe to drop
    /// the last handle, because the commits are in the log. If the disk has no room for the files, the log is made
    /// durable instead, and this call succeeds. Then the next open has to read the log.
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
    /// Fails as [`Database::flush`] and [`Database::sync`] do, but a full disk is no error. After an error, all
    /// durable commits stay durable.
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
