//! The database as its users see it: open, tables, batches, snapshots, care. Wiring only.

use super::batch::Batch;
use super::cache::Cache;
use super::snapshot::Snapshot;
use super::table::Table;
use crate::bounds::IntoKeyRange;
use crate::cancel::Limit;
use crate::core::Core;
use crate::core::handle::DatabaseHandle;
use crate::error::{Error, Result};
use crate::event::{Event, EventHook};
use crate::inspect::check::{self, CheckProgress, CheckReport};
use crate::inspect::metrics::Metrics;
use crate::inspect::problem::Problem;
use crate::options::{Durability, LevelOptions, Options, TableOptions};
use crate::release::Release;
use crate::tables::define::{self, check_name};
use crate::tables::share;
use crate::warm::loader::Warmed;
use crate::write::{commit, flush};
use crate::{compact, open, warm};
use os::Machine;
use os::real::ThreadPool;
use os::sync::Arc;
use sst::Version;
use std::path::{Path, PathBuf};

/// A database in a directory. Cloning shares it; it is closed when the last handle of it and of its tables is dropped.
///
/// Dropping the last handle waits for the piece of background work that is under way to end, which is soon. The waker of a
/// task may drop it, too: there nobody waits, a thread of the pool finishes the close, and an open in this process that
/// comes before that waits.
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

/// Options of a database about to be opened.
#[derive(Clone, Debug)]
#[must_use = "a builder opens nothing until `open`"]
pub struct Builder {
    directory: PathBuf,
    options: Options,
    machine: Option<Machine>,
    cache: Option<Cache>,
    threads: Option<Arc<ThreadPool>>,
}

impl Builder {
    /// Memory for pages in bytes: index nodes and data alike. Default 64 MiB. Ignored with [`Builder::cache`].
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.options.cache_bytes = bytes;
        self
    }

    /// A cache shared with other databases of this process.
    pub fn cache(mut self, cache: &Cache) -> Self {
        self.cache = Some(cache.clone());
        self
    }

    /// The threads that flush, compact and warm in the background. Default one pool for the whole process, of one thread more
    /// than the machine has processors. Databases that share a pool take turns; a pool of its own keeps the work of a
    /// database, or of a few, apart from that of others.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let pool = larch::ThreadPool::new(2);
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

    /// Memory for rows not yet in files, in bytes. Default 64 MiB. A value may have a quarter of it.
    pub fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.options.write_buffer_bytes = bytes;
        self
    }

    /// Memory for merging and reading ahead in bytes. Default 16 MiB.
    pub fn work_bytes(mut self, bytes: u64) -> Self {
        self.options.work_bytes = bytes;
        self
    }

    /// What commits wait for. Default [`Durability::Synced`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// Share of the cache for tables that are [to be in memory](TableOptions::in_memory), in bytes; at most half of it.
    /// Default a quarter. Ignored with [`Builder::cache`], see [`Cache::set_in_memory_bytes`].
    pub fn in_memory_bytes(mut self, bytes: u64) -> Self {
        self.options.in_memory_bytes = Some(bytes);
        self
    }

    /// Whether to write down at close which pages are in memory, and to bring those back in the background after open, as
    /// far as the cache has room. Opening does not wait for it. Default false: a program that opens a database for a moment
    /// would read more than it needs, and leave a poorer state than it found.
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
    /// // What was read is in memory again, or soon will be.
    /// let db = open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn warm_from_last(mut self, warm: bool) -> Self {
        self.options.warm_from_last = warm;
        self
    }

    /// Disk space kept back in a file of the directory, in bytes, so that erases can be written when the disk is full; 0 for
    /// none. Default 256 KiB, room for a few thousand erases.
    ///
    /// When the disk is full, writes that hold a put fail, and those of erases alone take from this space. Once it is used up
    /// they fail as well. Puts succeed again when there is room for them and for the reserve.
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.options.reserve_bytes = bytes;
        self
    }

    /// By how many bytes a manifest may grow, besides its initial length, before a new one is begun. Default 4 MiB, which
    /// leaves nothing to tune; tests want it smaller.
    #[doc(hidden)]
    pub fn manifest_slack_bytes(mut self, bytes: u64) -> Self {
        self.options.manifest_slack_bytes = bytes;
        self
    }

    /// Whether a missing database is created. Default true.
    pub fn create(mut self, create: bool) -> Self {
        self.options.create = create;
        self
    }

    /// Whether to open without lock, threads and log replay: reads show what is in files, see [`Database::version`].
    ///
    /// Another process may write to the database meanwhile. As long as the files that are shown here exist, reads show
    /// them. When a writer has removed one, the read that misses it takes the newest files: a read that begins there, such as
    /// [`Table::get`], shows them and succeeds. A snapshot and a range go on if the newest files show the same
    /// version, and otherwise end with [`Error::Outdated`]; no read ever shows a part of one version and a part of another.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.options.read_only = read_only;
        self
    }

    /// Whether to read the flat index of files that have both. Default false.
    pub fn prefer_flat_index(mut self, flat: bool) -> Self {
        self.options.prefer_flat_index = flat;
        self
    }

    /// Most SSTs open for reading at a time, and at least one. Default 512.
    ///
    /// Files that are kept open and files that are being read count together, however many reads are under way: a read of one
    /// more file waits until another file is not read any more. Files that a flush, a compaction or an import writes come on top.
    pub fn open_files(mut self, files: usize) -> Self {
        self.options.open_files = files;
        self
    }

    /// Shape of the levels.
    pub fn levels(mut self, levels: LevelOptions) -> Self {
        self.options.levels = levels;
        self
    }

    /// Calls `hook` with each [`Event`]: flushes, compactions, waiting commits, errors, retries, recovery.
    ///
    /// The hook runs on the thread that does the work, which may hold locks of the database: it must return soon and must
    /// not use the database. A panic of the hook is caught; the event is lost then and the engine goes on.
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

    /// Reads every page of every file from disk in the background, so many bytes a second, and compares it with its checksum;
    /// a round through all files begins at most once an hour. 0, the default, for no such scrub. Damage is counted in
    /// [`Metrics::damaged_pages`], listed by [`Database::damage`], and is an [`Event`].
    pub fn scrub_bytes_per_second(mut self, bytes: u64) -> Self {
        self.options.scrub_bytes_per_second = bytes;
        self
    }

    /// The oldest release that is to read what this process writes, so that the database can be opened by it again.
    /// Default [`Release::NEWEST`], this one. Nothing binds a later open: without `compat` it may write what only newer
    /// releases read, and an open with `compat` then refuses the database and names the file.
    pub fn compat(mut self, release: Release) -> Self {
        self.options.compat = release;
        self
    }

    /// The machine to run on. Default the real one.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Opens the database. Reads the manifest and the log, and no page of any SST.
    pub fn open(self) -> Result<Database> {
        let mut machine = self.machine.unwrap_or_else(Machine::real);
        if let Some(pool) = self.threads {
            machine.threads = pool;
        }
        let core = open::open(machine, self.directory, self.options, self.cache.as_ref().map(Cache::inner))?;
        Ok(Database { handle: DatabaseHandle::new(core) })
    }
}

impl Database {
    /// Opens the database in `directory` with default options, creating it if there is none.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::builder(directory).open()
    }

    /// Options for opening the database in `directory`.
    pub fn builder(directory: impl AsRef<Path>) -> Builder {
        let directory = directory.as_ref().to_owned();
        Builder { directory, options: Options::default(), machine: None, cache: None, threads: None }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.handle.core()
    }

    /// The table `name`, created with default options if there is none.
    pub fn table(&self, name: &str) -> Result<Table> {
        self.table_with(name, TableOptions::default())
    }

    /// The table `name`, created with `options` if there is none. An existing table keeps the options it has.
    pub fn table_with(&self, name: &str, options: TableOptions) -> Result<Table> {
        if let Some(table) = self.existing_table(name)? {
            return Ok(table);
        }
        options.check()?;
        if self.core().env.options.read_only {
            return Err(Error::NoSuchTable(name.to_owned()));
        }
        let info = define::create(self.core(), name, options)?;
        Ok(Table::new(self.handle.clone(), info))
    }

    /// The table `name`, if there is one.
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

    /// Drops the table `name` with all its rows, for snapshots too; false if there is none.
    pub fn drop_table(&self, name: &str) -> Result<bool> {
        define::drop_table(self.core(), check_name(name)?)
    }

    /// Gives the table `name` the name `new`, in one step: a crash leaves one of the two, with all rows. No row is copied.
    ///
    /// The result is a new table with the rows and options of the old one, which is dropped; handles of the old one are of
    /// no more use. What is in memory is written to a file first.
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
    /// [`Error::NoSuchTable`] if there is no table `name`, [`Error::TableExists`] if there is a table `new`, `name` itself
    /// included.
    pub fn rename_table(&self, name: &str, new: &str) -> Result<Table> {
        let table = self.existing_table(name)?.ok_or_else(|| Error::NoSuchTable(name.to_owned()))?;
        table.shared(new, share::SharedPart::Whole)
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch {
        Batch::new(&self.handle)
    }

    /// What reads see now, kept until the snapshot is dropped.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.handle)
    }

    /// The newest version that reads see. In a database opened read-only, the newest that is in files.
    pub fn version(&self) -> Version {
        self.core().views.visible()
    }

    /// Makes every commit so far durable, buffered ones too.
    pub fn sync(&self) -> Result<()> {
        commit::sync(self.core(), Durability::Synced).map(drop)
    }

    /// Writes everything in memory to files.
    pub fn flush(&self) -> Result<()> {
        flush::flush_all(self.core())
    }

    /// Merges every table into its deepest level.
    pub fn compact(&self) -> Result<()> {
        let view = self.core().views.newest();
        for table in view.files.tables.keys() {
            compact::compact_table(self.core(), *table, &Limit::none(&self.core().env.machine.clock), &mut |_, _| {})?;
        }
        Ok(())
    }

    /// Writes everything in memory to files and waits until the levels are in shape, so that nothing is left for the
    /// background to do. Far less work than [`Database::compact`] where much of the data has not changed.
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
    pub fn compact_due(&self) -> Result<()> {
        flush::flush_all(self.core())?;
        compact::compact_due(self.core())
    }

    /// Brings back what was in memory when the database was closed last, if [that was written down](Builder::warm_from_last),
    /// as far as the cache has room that nobody uses. Returns when that is done. A state that is missing or damaged brings
    /// nothing; an error is none.
    pub fn warm_up(&self) -> Warmed {
        let core = self.core();
        let restored = warm::state::restore(&core.env, &core.views.newest(), &mut |_| true);
        core.background.warmth.count(&restored);
        restored.warmed
    }

    /// Brings a range of `table` to memory. See [`Table::warm`].
    pub fn warm(&self, table: &Table, range: impl IntoKeyRange) -> Result<Warmed> {
        self.check_table(table)?;
        table.warm(range)
    }

    /// What the background scrub found damaged since the database was opened, the first 64 pages; see
    /// [`Builder::scrub_bytes_per_second`].
    pub fn damage(&self) -> Vec<Problem> {
        self.core().background.damage.problems()
    }

    /// Reads every page of every file and compares them with each other and with the manifest.
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        check::check(self.core(), None, &Limit::none(&self.core().env.machine.clock), progress)
    }

    /// Counters and sizes.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(self.core())
    }

    /// Changes the memory for pages while the database is in use; for all databases that share its cache. Given less, the
    /// cache lets pages go and the system has their memory back before this returns, but for pages that are being looked
    /// at or read, or that values handed out refer to: those follow when they are let go.
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

    /// Writes everything to files and makes it durable, so that the next open has no log to read. Dropping the last
    /// handle closes too, without that: commits stay in the log.
    pub fn close(self) -> Result<()> {
        if self.core().env.options.read_only {
            return Ok(());
        }
        self.flush()
    }
}
