//! The public face of a table. This module only translates arguments into calls of the code that does the work.

use super::compaction::flush_and_compact;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::base::operand::MergeOp;
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

/// A table of a database: a sorted map from keys, in byte order, to values. A clone is another handle to the same
/// table.
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
/// assert!(names.iter().eq(["apple", "cherry"]));
/// assert_eq!(fruit.last_key_value()?.expect("two rows are left").0[..], *b"cherry");
/// # Ok(())
/// # }
/// ```
///
/// A table derefs to a [`Reader`], so it has all reads of one. Each call sees the newest rows.
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

    /// The table's internal handle, which reads and writes work with.
    #[inline]
    pub(crate) fn inner(&self) -> &TableHandle {
        self.reader.handle()
    }

    /// Returns a handle to the same table whose reads admit to the cache only the pages that `admit` allows:
    /// [`Admit::Nodes`] only index nodes, [`Admit::Pass`] none. Use it for reads that will not be repeated, so that
    /// they do not evict pages that other reads need. The setting also holds for ranges and everything else made
    /// from the handle.
    ///
    /// The handle still uses pages that are in memory already. A page that is not admitted can be shared with other
    /// reads only while it is being read. [`Reader::prefetch`] always admits the pages that it reads. The setting
    /// does not affect writes.
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

    /// The table's description when this handle was made. Its id, name and column groups never change.
    pub(crate) fn identity(&self) -> &Arc<TableInfo> {
        &self.inner().identity
    }

    /// The random number that the table's database got when it was created. Copies and branches of a database have
    /// the same number.
    pub fn database_id(&self) -> u64 {
        self.core().views.newest().files.database
    }

    /// The number of the table. No other table of the database ever gets it.
    pub fn number(&self) -> u32 {
        self.identity().id.0
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.identity().name
    }

    /// The current options of the table. New files are written with them; older files may have been written with
    /// others, see [`Table::alter`].
    pub fn options(&self) -> TableOptions {
        self.inner().info().options.clone()
    }

    /// Changes the options with which the table is stored from now on. `change` gets the current options and edits
    /// them. It can change everything except the column groups. The change is durable when the call returns.
    ///
    /// Existing files stay as they are and can still be read. New files get the new options, and compactions rewrite
    /// the old files over time. To rewrite them all at once, call [`Table::compact`]. Another
    /// [expiry](TableOptions::expiry) holds for rows that are written from then on, and not for those that are in a
    /// batch or a transaction already. No table can be altered while `change` runs, so it should return soon, and it
    /// must not use the database.
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
    /// [`Error::BadOptions`](crate::Error::BadOptions) if the new options cannot be used, or if they have different
    /// column groups; [`Error::Log`](crate::Error::Log) if the manifest cannot be written (the options are
    /// unchanged then). If the database takes no writes, the call fails like [`Table::insert`].
    pub fn alter(&self, change: impl FnOnce(&mut TableOptions)) -> Result<()> {
        define::alter(self.core(), self.identity(), change)?;
        self.core().warm_kept_tables();
        Ok(())
    }

    /// Checks that the table can take this row, whose value is not split into parts.
    pub(super) fn check_row(&self, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check_row(&self.core().env.options, self.identity(), key, value)
    }

    /// Checks that the table can take this merge.
    pub(super) fn check_merge(&self, key: &[u8], op: &MergeOp<'_>) -> Result<()> {
        limits::check_merge(&self.core().env.options, self.identity(), key, op)
    }

    /// Checks that the table can take this row, whose value consists of `parts`.
    pub(crate) fn check_parts(&self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        limits::check_parts(&self.core().env.options, self.identity(), key, parts)
    }

    /// Clones the table: makes a new table `name` with the current rows and options of this one. Later writes to
    /// one do not affect the other. No row is copied: both tables use the same files, and a file's disk space is
    /// freed when neither needs it.
    ///
    /// Rows in memory are flushed first. The rest is fast, whatever the size of the table.
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
    /// [`Error::TableExists`](crate::Error::TableExists) if the table `name` exists;
    /// [`Error::BadTableName`](crate::Error::BadTableName) if no table can have this name;
    /// [`Error::HasIndexes`](crate::Error::HasIndexes) if this table has indexes. Otherwise fails as
    /// [`Table::insert`] does, or if a flush or a compaction that the call waits for fails.
    pub fn clone_as(&self, name: &str) -> Result<Self> {
        self.shared(name, share::SharedPart::Copy)
    }

    /// Moves all rows with keys at or after `key` from this table to a new table `name`, in one commit. Older
    /// snapshots still show these rows in this table. No row is copied, see [`Table::clone_as`].
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
    /// [`Error::KeyTooLong`](crate::Error::KeyTooLong) if `key` is too long; otherwise fails as [`Table::clone_as`]
    /// does.
    pub fn split_off(&self, key: impl AsRef<[u8]>, name: &str) -> Result<Self> {
        limits::check_key(key.as_ref())?;
        self.shared(name, share::SharedPart::From(key.as_ref()))
    }

    /// Makes a new table `name` that shares the rows of this table that `part` names.
    pub(super) fn shared(&self, name: &str, part: share::SharedPart<'_>) -> Result<Self> {
        let info = share::share(self.core(), self.identity(), define::check_new_name(name)?, part)?;
        Ok(Self::new(self.inner().handle.clone(), info))
    }

    /// Begins an import, which writes rows straight to files and bypasses the log and the memtables. It takes any
    /// number of rows in any order, but ascending keys are fastest. All rows become visible together when the
    /// import is finished. Dropping it before that leaves nothing behind.
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
    /// [`Error::Forked`](crate::Error::Forked) if the database takes no writes;
    /// [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped;
    /// [`Error::HasIndexes`](crate::Error::HasIndexes) if it has indexes; [`Error::Log`](crate::Error::Log) or
    /// [`Error::Page`](crate::Error::Page) if the disk is full.
    pub fn import(&self) -> Result<Import> {
        Import::new(self.inner())
    }

    /// Adds the files in `directories`, which were built [without a database](crate::Builder::build_files), to the
    /// table. Their rows become visible all at once, and are durable when the call returns. After an error or a
    /// crash, the table has none of them. A new row replaces the table's row with the same key. If several of the
    /// directories have a key, the last one wins. No row is read or written: the files are hard-linked or reflinked
    /// into the directory of the database, or copied if neither is possible. Other commits go on during the call.
    ///
    /// A file goes to the deepest level if the table has no rows in its key range yet, and to level 0 if every
    /// level has rows there. If many files go to level 0, writes wait for compactions, as they do after any import.
    /// The same files may be ingested several times, into one database or into several.
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
    /// [`Error::NewerBuiltFiles`](crate::Error::NewerBuiltFiles) or [`Error::OtherGroups`](crate::Error::OtherGroups)
    /// if this table cannot use the files; [`Error::HasIndexes`](crate::Error::HasIndexes) if the table has indexes;
    /// [`Error::BadOptions`](crate::Error::BadOptions) if the database is for an older release that cannot read the
    /// files, or if the table [gives times](TableOptions::expiry) to its rows and the files were built without this
    /// option. Otherwise fails as [`Table::import`] and [`Import::finish`] do.
    pub fn ingest(&self, directories: &[impl AsRef<Path>], options: IngestOptions) -> Result<IngestReport> {
        self.ingest_with(directories, options, |_| {})
    }

    /// Like [`Table::ingest`], but tells `watch` how many bytes are done so far. `watch` decides whether the work
    /// goes on. This takes long only if files have to be copied or verified.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if `watch` ends the work; otherwise fails as [`Table::ingest`]
    /// does.
    pub fn ingest_with<G: GoOn>(
        &self,
        directories: &[impl AsRef<Path>],
        options: IngestOptions,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<IngestReport> {
        let directories: Vec<&Path> = directories.iter().map(AsRef::as_ref).collect();
        ingest::ingest(self.inner(), &directories, options, &Watch::new(ingest::WORK, watch))
    }

    /// Flushes all rows in memory, and then merges all files of the table into its deepest level. After that,
    /// erased and overwritten rows take no space, except those that a snapshot shows. The call rewrites the whole
    /// table, and returns when this is done. The engine compacts by itself, so call this only before a long time
    /// without writes, or after [`Table::alter`]. In other cases,
    /// [`Database::compact_due`](crate::Database::compact_due) does far less work.
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
    /// [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped;
    /// [`Error::Page`](crate::Error::Page) if a file cannot be read or written, for example because the disk is
    /// full; [`Error::Log`](crate::Error::Log) if the manifest cannot be written. What was merged before the error
    /// stays merged. If the database takes no writes, the call fails like [`Table::insert`].
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| {})
    }

    /// Like [`Table::compact`], but tells `watch` how many bytes were read. `watch` decides whether the work goes
    /// on. It must not write to the database: the write may have to wait until this compaction makes room in level
    /// 0, and the compaction waits for `watch`.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if `watch` ends the work; otherwise fails as [`Table::compact`]
    /// does.
    pub fn compact_with<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<()> {
        self.core().views.newest().files_of(self.identity())?;
        flush_and_compact(self.core(), self.id(), &Watch::new(compact::WORK, watch))
    }

    /// Checks the table's files as [`Database::check`](crate::Database::check) checks those of all tables.
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped; otherwise fails as
    /// [`Database::check`](crate::Database::check) does. Damage is no error: the report lists it.
    pub fn check<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<CheckReport> {
        check::check(self.core(), Some(self.identity()), &Watch::new(check::WORK, watch))
    }

    /// Prints all trees, column groups and histories of the table's files to `out`, as text for people. With
    /// [`DumpDetail::Loaded`], nothing is read from the disk, and pages that are not in memory are printed by name
    /// only.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::get`] does, but never with [`Error::Grouped`](crate::Error::Grouped).
    /// [`Error::Page`](crate::Error::Page) also if `out` cannot be written.
    pub fn dump(&self, detail: DumpDetail, out: &mut dyn io::Write) -> Result<()> {
        let (view, at) = self.core().views.now();
        let dumped = dump::dump_table(view.files_of(self.identity())?, &self.core().env.cache, detail, out);
        dumped.map_err(|error| self.core().outdated(error, at))
    }

    /// Sizes of the table, from the manifest and the cache. No page is read, but the call looks at every page in
    /// the cache, so use it for dashboards and not in each request.
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

    /// Loads the pages of a range, up to half of the cache: first the index nodes of all files, then the data
    /// pages. The call returns when they are loaded. Reads that other threads wait for go first.
    ///
    /// Older versions of rows are not loaded, and neither are values that are stored outside of their data pages.
    /// The loaded pages are not pinned: if nobody uses them, they are evicted like all other pages.
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
    /// Fails as [`Reader::get`] does, but never with [`Error::Grouped`](crate::Error::Grouped). Pages that were
    /// loaded before the error stay in memory.
    pub fn warm(&self, range: impl IntoKeyRange) -> Result<Warmed> {
        let most_bytes = self.core().env.cache.budget_bytes() / 2;
        self.warm_with(range, most_bytes, |_| {})
    }

    /// Like [`Table::warm`], but loads at most `most_bytes`, and tells `watch` how many bytes were loaded. `watch`
    /// decides whether the work goes on.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if `watch` ends the work before all pages are loaded; otherwise
    /// fails as [`Table::warm`] does.
    pub fn warm_with<G: GoOn>(
        &self,
        range: impl IntoKeyRange,
        most_bytes: u64,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<Warmed> {
        let watch = Watch::new("loading pages", watch);
        let (view, at) = self.core().views.now();
        let files: Vec<Arc<DbFile>> = view.files_of(self.identity())?.files().map(|(_, file)| file.clone()).collect();
        let Some(keys) = bounds::keys(&range) else {
            return Ok(Warmed { is_whole: true, ..Warmed::default() });
        };
        let mut tell = |bytes| watch.tell(bytes, 0);
        let mut loader = PageLoader::new(&self.core().env, Reason::Warm, most_bytes, &mut tell);
        let is_whole = loader.files(&files, &keys).map_err(|error| self.core().outdated(error, at))?;
        // If all pages were loaded, the call succeeds, even if `watch` has asked to end the work.
        if !is_whole {
            watch.check()?;
        }
        Ok(Warmed { bytes: loader.bytes, page_reads: loader.page_reads(), is_whole })
    }
}

#[cfg(test)]
mod tests;
