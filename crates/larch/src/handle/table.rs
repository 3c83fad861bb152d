//! A table as its users see it. This module turns arguments into what reads and writes take, and does no work
//! itself.

use super::compaction::flush_and_compact;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::base::options::TableOptions;
use crate::base::table::{TableId, TableInfo};
use crate::base::watch::{GoOn, Progress, Watch};
use crate::compact;
use crate::core::Core;
use crate::core::background::warmth::Warmed;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::import::built::ingest::{self, IngestOptions, IngestReport};
use crate::import::{Import, share};
use crate::inspect::check::{self, CheckReport};
use crate::inspect::dump;
use crate::inspect::metrics::TableStats;
use crate::manifest::DbFile;
use crate::read::Reader;
use crate::view::part_list::PartList;
use crate::warm::loader::PageLoader;
use crate::write::{define, limits};
use os::sync::Arc;
use pages::{Admit, Reason};
use sst::DumpDetail;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// A table of a database: keys in byte order, each with a value. A clone is another handle of the same table.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// let fruit = db.table("fruit")?;
/// for name in ["apple", "banana", "cherry"] {
///     fruit.insert(name, b"ripe")?;
/// }
/// fruit.remove("banana")?;
/// let names: Vec<_> = fruit.range("a".."d").map(|row| row.map(|(key, _)| key)).collect::<Result<_, _>>()?;
/// assert_eq!(names, [b"apple"[..].into(), b"cherry"[..].into()]);
/// assert_eq!(fruit.last_key_value()?.expect("two rows are left").0[..], *b"cherry");
/// # Ok(())
/// # }
/// ```
///
/// A table lends the verbs of its [`Reader`], which sees the rows of now.
#[derive(Clone)]
pub struct Table {
    reader: Reader<'static>,
}

impl Deref for Table {
    type Target = Reader<'static>;

    #[inline]
    fn deref(&self) -> &Reader<'static> {
        &self.reader
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Table {
    pub(crate) fn new(handle: Arc<DatabaseHandle>, info: Arc<TableInfo>) -> Self {
        Self::of(TableHandle::new(handle, info))
    }

    fn of(handle: TableHandle) -> Self {
        Self { reader: Reader::keeping(handle, None, PartList::whole()) }
    }

    /// What reads and writes hold of the table.
    #[inline]
    pub(crate) fn inner(&self) -> &TableHandle {
        self.reader.handle()
    }

    /// The same table, through a handle whose reads admit to the cache only what `admit` says. Use it for reads that
    /// will not come again, so that they do not evict pages that other reads use. [`Admit::Nodes`] admits index
    /// nodes only. [`Admit::Pass`] admits nothing. Everything that is made from the handle, such as a range, reads
    /// in the same way.
    ///
    /// Pages that are in memory already are used in any case. Other reads can use a page that is not admitted only
    /// while this page is being read. [`Reader::prefetch`] admits what it reads, whatever the handle says. Writes
    /// are the same with such a handle.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::stats::{Admit, PageKind};
    ///
    /// let mut batch = db.batch();
    /// for number in 0..1000 {
    ///     batch.insert(&fruit, format!("apple {number}"), [b'.'; 100]);
    /// }
    /// batch.commit()?;
    /// db.flush()?;
    /// assert_eq!(fruit.admitting(Admit::Nodes).iter().count(), 1000);
    /// assert_eq!(db.metrics().cached_bytes(PageKind::Data), 0);
    /// assert!(db.metrics().cached_bytes(PageKind::Index) > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn admitting(&self, admit: Admit) -> Self {
        Self::of(TableHandle { admit, ..self.inner().clone() })
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core> {
        self.inner().core()
    }

    pub(crate) fn id(&self) -> TableId {
        self.inner().id()
    }

    /// What never changes in a table: identity, name and groups.
    pub(crate) fn identity(&self) -> &Arc<TableInfo> {
        &self.inner().identity
    }

    /// The random number that the database of this table got when it was made. Copies and branches of the database
    /// have the same number.
    pub fn database_id(&self) -> u64 {
        self.core().views.newest().files.database
    }

    /// The number of the table, which no other table of its database ever has.
    pub fn number(&self) -> u32 {
        self.identity().id.0
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.identity().name
    }

    /// The options under which files of the table are written now. Older files may have been written under other
    /// options, see [`Table::alter`].
    pub fn options(&self) -> TableOptions {
        self.inner().info().options.clone()
    }

    /// Changes how the table is stored from now on. Everything but its column groups can be changed. The change is
    /// durable when this returns.
    ///
    /// Existing files stay as they are and can still be read. Files that are begun later are written under the new
    /// options. Compactions rewrite the old files little by little. [`Table::compact`] rewrites all old files that
    /// are left. `change` receives the present options. Other tables cannot be altered before `change` returns, so
    /// it should be short, and it must not use the database.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.alter(|options| options.compression = larch::Compression::Lz4)?;
    /// assert_eq!(fruit.options().compression, larch::Compression::Lz4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`](crate::Error::BadOptions) if the new options cannot be used, or if they have other groups.
    /// [`Error::Log`](crate::Error::Log) if the manifest cannot be written; the options have not changed then.
    /// Otherwise the errors of [`Table::insert`] that say that the database takes no writes.
    pub fn alter(&self, change: impl FnOnce(&mut TableOptions)) -> Result<()> {
        define::alter(self.core(), self.identity(), change)?;
        self.core().warm_kept_tables();
        Ok(())
    }

    /// Refuses a row with a whole value that the table cannot take.
    pub(super) fn check_row(&self, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check_row(&self.core().env.options, self.identity(), key, value)
    }

    /// Refuses a row with a value in parts that the table cannot take.
    pub(super) fn check_parts(&self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        limits::check_parts(&self.core().env.options, self.identity(), key, parts)
    }

    /// Makes a new table `name` with the rows and the options that this table has now. From then on the two tables
    /// change independently. No row is copied: both tables see the same files, whose space is returned when neither
    /// table needs it.
    ///
    /// Rows in memory are written to a file first. The rest takes the same short time for a table of any size.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let trial = fruit.clone_as("trial")?;
    /// trial.remove_range(..)?;
    /// assert!(fruit.contains_key("apple")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TableExists`](crate::Error::TableExists) if a table `name` exists,
    /// [`Error::BadTableName`](crate::Error::BadTableName) if no table can have this name. Otherwise as
    /// [`Table::insert`], and the cause if a flush or a compaction that this waits for fails.
    pub fn clone_as(&self, name: &str) -> Result<Self> {
        self.shared(name, share::SharedPart::Copy)
    }

    /// Makes a new table `name` with the rows whose keys are not less than `key`, and takes these rows from this
    /// table, in one commit. Snapshots that were made earlier still see these rows in this table. No row is copied,
    /// see [`Table::clone_as`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, "ripe")?;
    /// }
    /// let rest = fruit.split_off("b", "rest")?;
    /// assert_eq!((fruit.iter().count(), rest.iter().count()), (1, 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::clone_as`]; [`Error::KeyTooLong`](crate::Error::KeyTooLong).
    pub fn split_off(&self, key: impl AsRef<[u8]>, name: &str) -> Result<Self> {
        limits::check_key(key.as_ref())?;
        self.shared(name, share::SharedPart::From(key.as_ref()))
    }

    /// Makes a new table `name` that sees `part` of this table.
    pub(super) fn shared(&self, name: &str, part: share::SharedPart<'_>) -> Result<Self> {
        let info = share::share(self.core(), self.identity(), define::check_new_name(name)?, part)?;
        Ok(Self::new(self.inner().handle.clone(), info))
    }

    /// Begins an import: rows are written straight into files, without the log and the memtables. They become
    /// visible together when the import is finished. An import that is dropped leaves nothing. It takes any number
    /// of rows, in any order. Ascending keys are fastest.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut import = fruit.import()?;
    /// for number in 0..1000_u32 {
    ///     import.add(&number.to_be_bytes(), b"apple")?;
    /// }
    /// let report = import.finish(|_| {})?;
    /// assert_eq!((report.rows, report.sorted), (1000, true));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), [`Error::WritesStopped`](crate::Error::WritesStopped) or
    /// [`Error::Forked`](crate::Error::Forked) if the database takes no writes,
    /// [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped, [`Error::Log`](crate::Error::Log)
    /// or [`Error::Page`](crate::Error::Page) if the disk is full.
    pub fn import(&self) -> Result<Import> {
        Import::new(self.inner())
    }

    /// Makes the files in `directories`, which were built [without a database](crate::Builder::build_files), part of
    /// the table. All rows become visible at once, and are then durable. After an error or a crash the table has
    /// none of them. A row replaces the row of the table that has the same key. If several of the directories have a
    /// key, the last of these directories counts. No row is read or written: the files get second names. They are
    /// copied if the file system has no second names. Other commits go on meanwhile.
    ///
    /// Files whose keys the table does not have yet go to its deepest level. Files whose keys are in every level go
    /// to level 0. If many files go there, writes wait for compactions as after any import. The same files may be
    /// taken in again, and by several databases.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let (north, south, here) = ["north", "south", "here"].map(|name| directory.path().join(name)).into();
    /// for (shard, keys) in [(&north, ["apple", "fig"]), (&south, ["fig", "mango"])] {
    ///     let mut files = larch::Database::builder(shard).build_files(larch::TableOptions::default())?;
    ///     for key in keys {
    ///         files.add(key.as_bytes(), shard.as_os_str().as_encoded_bytes())?;
    ///     }
    ///     files.finish(|_| {})?;
    /// }
    /// let fruit = larch::Database::open(&here)?.table("fruit")?;
    /// fruit.ingest(&[&north, &south], larch::bulk::IngestOptions::default())?;
    /// assert_eq!(fruit.get("fig")?.as_deref(), Some(south.as_os_str().as_encoded_bytes()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotBuiltFiles`](crate::Error::NotBuiltFiles), [`Error::BadBuiltFiles`](crate::Error::BadBuiltFiles),
    /// [`Error::NewerBuiltFiles`](crate::Error::NewerBuiltFiles), [`Error::OtherGroups`](crate::Error::OtherGroups) if
    /// the files cannot be used here; [`Error::HasIndexes`](crate::Error::HasIndexes) if the table has indexes;
    /// [`Error::BadOptions`](crate::Error::BadOptions) if the release that the database is written for cannot read the
    /// files; otherwise as [`Table::import`] and [`Import::finish`].
    pub fn ingest(&self, directories: &[impl AsRef<Path>], options: IngestOptions) -> Result<IngestReport> {
        self.ingest_with(directories, options, |_| {})
    }

    /// As [`Table::ingest`]. `watch` sees how many bytes are in place, and says whether the work goes on. The work
    /// takes time only if files have to be copied or verified.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if `watch` ends it, otherwise as [`Table::ingest`].
    pub fn ingest_with<G: GoOn>(
        &self,
        directories: &[impl AsRef<Path>],
        options: IngestOptions,
        mut watch: impl FnMut(Progress) -> G,
    ) -> Result<IngestReport> {
        let directories: Vec<&Path> = directories.iter().map(AsRef::as_ref).collect();
        let mut goes_on = |progress| watch(progress).goes_on();
        ingest::ingest(self.inner(), &directories, options, &Watch::new(ingest::WORK, &mut goes_on))
    }

    /// Writes what is in memory to files and merges all files of the table into its deepest level. After that,
    /// erased and overwritten rows take no space, except rows that a snapshot sees. This rewrites the whole table,
    /// and returns when it is done. The engine compacts by itself: call this only before a long time without writes,
    /// or after [`Table::alter`]. Otherwise [`Database::compact_due`](crate::Database::compact_due) is far less
    /// work.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove("apple")?;
    /// fruit.compact()?;
    /// assert_eq!(db.metrics().files, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`](crate::Error::TableDropped); [`Error::Page`](crate::Error::Page) if a file cannot be
    /// read or written, for example because the disk is full; [`Error::Log`](crate::Error::Log) if the manifest cannot
    /// be written. What was merged before stays. Otherwise the errors of [`Table::insert`] that say that the database
    /// takes no writes.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| {})
    }

    /// As [`Table::compact`]. `watch` sees how many bytes were read, and says whether the work goes on. The thread
    /// that compacts calls it, so it must not write to the database: a write that waits for room in level 0 would
    /// wait for its own thread.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if `watch` ends it, otherwise as [`Table::compact`].
    pub fn compact_with<G: GoOn>(&self, mut watch: impl FnMut(Progress) -> G) -> Result<()> {
        self.core().views.newest().files_of(self.identity())?;
        let mut goes_on = |progress| watch(progress).goes_on();
        flush_and_compact(self.core(), self.id(), &Watch::new(compact::WORK, &mut goes_on))
    }

    /// Reads every page of the table's files and compares the pages with each other and with the manifest. See
    /// [`Database::check`](crate::Database::check).
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`](crate::Error::TableDropped); [`Error::Outdated`](crate::Error::Outdated) in a database
    /// opened read-only; [`Error::Cancelled`](crate::Error::Cancelled) if `watch` ends it. Damage is not an error: it is
    /// in the report.
    pub fn check<G: GoOn>(&self, mut watch: impl FnMut(Progress) -> G) -> Result<CheckReport> {
        let mut goes_on = |progress| watch(progress).goes_on();
        check::check(self.core(), Some(self.identity()), &Watch::new(check::WORK, &mut goes_on))
    }

    /// Prints every tree, column group and history of the table's files to `out`, as text for people. With
    /// [`DumpDetail::Loaded`] nothing is read from disk, and pages that are not in memory are only named.
    ///
    /// # Errors
    ///
    /// As [`Reader::get`], without [`Error::Grouped`](crate::Error::Grouped); [`Error::Page`](crate::Error::Page) also
    /// if `out` cannot be written.
    pub fn dump(&self, detail: DumpDetail, out: &mut dyn io::Write) -> Result<()> {
        let (view, at) = self.core().views.now();
        let dumped = dump::dump_table(view.files_of(self.identity())?, &self.core().env.cache, detail, out);
        dumped.map_err(|error| self.core().outdated(error, at))
    }

    /// Sizes of the table, from the manifest and the cache; no page is read. The call looks at every page in the cache,
    /// so use it for dashboards and not for each request.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// db.flush()?;
    /// assert_eq!(fruit.stats()?.rows, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped after this handle was made.
    pub fn stats(&self) -> Result<TableStats> {
        TableStats::of(self.core(), self.identity())
    }

    /// Loads the pages of a range, up to half of the cache: first the index nodes of all files, then the data pages.
    /// It returns when this is done. If reads of other threads wait, they come before the reads of this call.
    ///
    /// Older versions, and values that lie outside their data pages, are not loaded. Nothing is pinned: pages that
    /// are not used are evicted later like any other page.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, b"ripe")?;
    /// }
    /// db.flush()?;
    /// let warmed = fruit.warm("a".."c")?;
    /// assert!(warmed.is_whole && warmed.bytes > 0);
    /// let reads = db.metrics().page_reads;
    /// assert!(fruit.get("banana")?.is_some());
    /// assert_eq!(db.metrics().page_reads, reads);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Reader::get`], without [`Error::Grouped`](crate::Error::Grouped). Pages that were loaded before stay.
    pub fn warm(&self, range: impl IntoKeyRange) -> Result<Warmed> {
        let most_bytes = self.core().env.cache.budget_bytes() / 2;
        self.warm_with(range, most_bytes, |_| {})
    }

    /// As [`Table::warm`], with at most `most_bytes` of memory. `watch` sees how many bytes were loaded, and says
    /// whether the work goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if `watch` ends it before all is loaded, otherwise as
    /// [`Table::warm`].
    pub fn warm_with<G: GoOn>(
        &self,
        range: impl IntoKeyRange,
        most_bytes: u64,
        mut watch: impl FnMut(Progress) -> G,
    ) -> Result<Warmed> {
        let mut goes_on = |progress| watch(progress).goes_on();
        let watch = Watch::new("loading pages", &mut goes_on);
        let (view, at) = self.core().views.now();
        let files: Vec<Arc<DbFile>> = view.files_of(self.identity())?.files().map(|(_, file)| file.clone()).collect();
        let Some(keys) = bounds::keys(&range) else {
            return Ok(Warmed { is_whole: true, ..Warmed::default() });
        };
        let mut tell = |bytes| watch.tell(bytes, 0);
        let mut loader = PageLoader::new(&self.core().env, Reason::Warm, most_bytes, &mut tell);
        let is_whole = loader.files(&files, &keys).map_err(|error| self.core().outdated(error, at))?;
        // If everything was loaded, the work was not ended early.
        if !is_whole {
            watch.check()?;
        }
        Ok(Warmed { bytes: loader.bytes, page_reads: loader.page_reads(), is_whole })
    }
}

#[cfg(test)]
mod tests;
