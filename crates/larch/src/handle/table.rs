//! A table as its users see it.

use crate::bounds::{self, IntoKeyRange};
use crate::cancel::Limit;
use crate::compact;
use crate::core::Core;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::core::snapshots::PinnedVersion;
use crate::error::Result;
use crate::inspect::check::{self, CheckProgress, CheckReport};
use crate::inspect::dump;
use crate::inspect::metrics::TableStats;
use crate::manifest::{DbFile, TableId, TableInfo};
use crate::options::TableOptions;
use crate::read::{Key, PartList, Prefetched, Range, Reader, Scan, Tried, Value};
use crate::tables::import::Import;
use crate::tables::{define, share};
use crate::warm::loader::{PageLoader, Warmed};
use crate::write::batch::BatchOps;
use crate::write::{commit, limits};
use os::sync::Arc;
use pages::{Admit, Reason};
use sst::KeyRange;
use sst::{Direction, DumpDetail, Groups, Limits};
use std::io;

/// A table of a database: keys in byte order, each with a value. Cloning shares it.
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
#[derive(Clone, Debug)]
pub struct Table {
    inner: TableHandle,
}

impl Table {
    pub(crate) fn new(handle: Arc<DatabaseHandle>, info: Arc<TableInfo>) -> Self {
        Self { inner: TableHandle::new(handle, info) }
    }

    /// What reads and writes hold of it.
    #[inline]
    pub(crate) fn inner(&self) -> &TableHandle {
        &self.inner
    }

    /// The same table, of whose reads through this handle, and through what is made of it, the cache keeps what `admit`
    /// says. As a rule everything; for reads that will not come again, index nodes only ([`Admit::Nodes`]) or nothing
    /// ([`Admit::Pass`]), so that they drive out nothing that others use. What is in memory is used in any case. Pages that
    /// pass through are there for others only while they are being read.
    ///
    /// [`Table::prefetch`] keeps what it reads: that is what it is for. Writes are not concerned.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// use larch::{Admit, PageKind};
    ///
    /// let fruit = db.table("fruit")?;
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
        Self { inner: TableHandle { admit, ..self.inner.clone() } }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core> {
        self.inner.core()
    }

    pub(crate) fn id(&self) -> TableId {
        self.inner.id()
    }

    /// What never changes: identity, name and groups.
    pub(crate) fn identity(&self) -> &Arc<TableInfo> {
        &self.inner.identity
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.identity().name
    }

    /// How files of it are written now; those from before an [`alter`](Table::alter) may differ.
    pub fn options(&self) -> TableOptions {
        self.inner.info().options.clone()
    }

    /// Changes how the table is stored from here on: everything but its groups. Durable when it returns.
    ///
    /// Files that are there stay as they are and readable; those begun afterwards are written under the new options.
    /// Compactions rewrite the old ones by and by, [`Table::compact`] rewrites all that are left. `change` is given the
    /// options of now; no other table is altered before it returns, so it should neither take long nor use the database.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.alter(|options| options.compression = larch::Compression::Lz4)?;
    /// assert_eq!(fruit.options().compression, larch::Compression::Lz4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn alter(&self, change: impl FnOnce(&mut TableOptions)) -> Result<()> {
        define::alter(self.core(), self.identity(), change)?;
        self.core().warm_kept_tables();
        Ok(())
    }

    /// Reads whole values of now.
    pub(crate) fn reader(&self) -> Reader<'_> {
        self.reader_at(None)
    }

    /// Reads whole values of now, or as they were at a pinned version.
    pub(crate) fn reader_at<'r>(&'r self, pin: Option<&'r Arc<PinnedVersion>>) -> Reader<'r> {
        Reader::new(&self.inner, pin, PartList::whole())
    }

    /// The value of `key`, if it has one. A value found in memory is not copied and nothing is allocated.
    ///
    /// This and all that reads values whole is for tables without column groups, or with one; where values are split in
    /// several the answer is [`Error::Grouped`], and [`Table::select`] the way to read.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.reader().get(key.as_ref())
    }

    /// The value of `key` if all that it takes to know it is in memory: touches no disk and waits for nothing. What is found
    /// is warmer for it, as by [`Table::get`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::Tried;
    ///
    /// fruit.insert("apple", "red")?;
    /// match fruit.try_get("apple")? {
    ///     Tried::Ready(Some(colour)) => assert_eq!(colour[..], *b"red"),
    ///     Tried::Ready(None) => println!("there is no such fruit"),
    ///     Tried::WouldFault => println!("the disk must be asked: with `get`, or `get_async`"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_get(&self, key: impl AsRef<[u8]>) -> Result<Tried<Option<Value>>> {
        self.reader().try_get(key.as_ref())
    }

    /// As [`Table::get`], as a future, for any executor: while pages are on their way no thread waits, and thousands of such
    /// reads can be under way on one. It sees what there is when it is first polled, and keeps memory and files of that moment
    /// until it is done or dropped, which may be at any time.
    ///
    /// A value that is found in memory is there at the first poll, and nothing is allocated.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.get_async("apple").await?.as_deref(), Some(&b"red"[..]));
    /// # Ok(()) }) }
    /// ```
    pub async fn get_async(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.reader().get_async(key.as_ref()).await
    }

    /// Whether `key` has a value. No value is read for it, and no part of one.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader().contains_key(key.as_ref())
    }

    /// As [`Table::contains_key`], if all that it takes to know it is in memory, see [`Table::try_get`].
    pub fn try_contains_key(&self, key: impl AsRef<[u8]>) -> Result<Tried<bool>> {
        self.reader().try_contains_key(key.as_ref())
    }

    /// As [`Table::contains_key`], as a future, see [`Table::get_async`].
    pub async fn contains_key_async(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader().contains_key_async(key.as_ref()).await
    }

    /// The values of `keys`, in their order, all as of one moment. The keys are looked up together: what they miss is read
    /// from disk at the same time, in a round for each page of the longest way down, and a page that several of them need
    /// once.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let colours = fruit.multi_get(["banana", "cherry", "apple"])?;
    /// assert_eq!(colours[0].as_deref(), Some(&b"yellow"[..]));
    /// assert!(colours[1].is_none());
    /// assert_eq!(colours[2].as_deref(), Some(&b"red"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Value>>> {
        self.reader().multi_get(&Vec::from_iter(keys))
    }

    /// As [`Table::multi_get`], as a future, see [`Table::get_async`]. All keys are on their way together.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let colours = fruit.multi_get_async(["banana", "apple"]).await?;
    /// assert!(colours[0].is_none());
    /// assert_eq!(colours[1].as_deref(), Some(&b"red"[..]));
    /// # Ok(()) }) }
    /// ```
    pub fn multi_get_async<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> impl Future<Output = Result<Vec<Option<Value>>>> {
        let keys = Vec::from_iter(keys);
        async move { self.reader().multi_get_async(&keys).await }
    }

    /// Refuses a row with a whole value that the table cannot take.
    pub(super) fn check_row(&self, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check_row(&self.core().env.options, self.identity(), key, value)
    }

    /// Refuses a row with a value in parts that the table cannot take.
    pub(super) fn check_parts(&self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        limits::check_parts(&self.core().env.options, self.identity(), key, parts)
    }

    fn write(&self, fill: impl FnOnce(&mut BatchOps)) -> Result<()> {
        let mut ops = BatchOps::new();
        fill(&mut ops);
        let tables = std::slice::from_ref(self.identity());
        commit::commit(self.core(), &mut ops, tables, self.core().env.options.durability)?;
        Ok(())
    }

    /// Sets `key` to `value`. Keys have at most 64 KiB, values at most a quarter of the write buffer. Refused where values
    /// are split in groups: see [`Table::insert_parts`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.check_row(key, value)?;
        self.write(|ops| ops.put(self.id().0, key, value))
    }

    /// Sets `key` to a value in parts: one for each [group](TableOptions::groups) of the table, in their order, and a
    /// single one without groups. Together they have at most a quarter of the write buffer.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let groups = ["name", "photo"].map(str::to_owned).to_vec();
    /// let users = db.table_with("users", larch::TableOptions { groups, ..Default::default() })?;
    /// users.insert_parts("ada", &[&b"Ada Lovelace"[..], &[0xff; 10_000]])?;
    /// assert!(users.insert("ada", "in one piece").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert_parts(&self, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>]) -> Result<()> {
        let key = key.as_ref();
        self.check_parts(key, parts)?;
        self.write(|ops| ops.put_parts(self.id().0, key, parts))
    }

    /// Removes `key`, if it is there.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        limits::check_key(key.as_ref())?;
        self.write(|ops| ops.erase(self.id().0, key.as_ref()))
    }

    /// Removes every key in `range`, in one write whatever the number of rows.
    pub fn remove_range(&self, range: impl IntoKeyRange) -> Result<()> {
        let Some(KeyRange { start, end }) = bounds::keys(&range) else {
            return self.core().views.newest().files_of(self.identity()).map(drop);
        };
        let end = end.unwrap_or_default();
        limits::check_key(&start)?;
        limits::check_key(&end)?;
        self.write(|ops| ops.range_erase(self.id().0, &start, &end))
    }

    /// A new table `name` with the rows and the options of this one, as they are now; from here on each goes its own way.
    /// No row is copied: both see the same files, whose space is returned when neither does.
    ///
    /// What is in memory is written to a file first; then it takes as long whatever the table holds.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let trial = fruit.clone_as("trial")?;
    /// trial.remove_range(..)?;
    /// assert!(fruit.contains_key("apple")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clone_as(&self, name: &str) -> Result<Self> {
        self.shared(name, share::SharedPart::Copy)
    }

    /// A new table `name` with the rows whose keys are not less than `key`, which leave this one, in one commit. Snapshots
    /// from before it still see them here. No row is copied, see [`Table::clone_as`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, "ripe")?;
    /// }
    /// let rest = fruit.split_off("b", "rest")?;
    /// assert_eq!((fruit.iter().count(), rest.iter().count()), (1, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn split_off(&self, key: impl AsRef<[u8]>, name: &str) -> Result<Self> {
        limits::check_key(key.as_ref())?;
        self.shared(name, share::SharedPart::From(key.as_ref()))
    }

    /// A new table `name` that sees `part` of this one.
    pub(super) fn shared(&self, name: &str, part: share::SharedPart<'_>) -> Result<Self> {
        let info = share::share(self.core(), self.identity(), define::check_name(name)?, part)?;
        Ok(Self::new(self.inner.handle.clone(), info))
    }

    /// The rows with keys in `range` as of now, in order, from either end.
    pub fn range(&self, range: impl IntoKeyRange) -> Range {
        self.reader().range(bounds::owned(&range))
    }

    /// As [`Table::range`], for futures. Its version is kept from now on, files and memory only while a row is waited for.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let mut rows = fruit.scan_async("a".."c").limit(10);
    /// while let Some(row) = rows.next().await {
    ///     let (key, value) = row?;
    ///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
    /// }
    /// # Ok(()) }) }
    /// ```
    pub fn scan_async(&self, range: impl IntoKeyRange) -> Scan {
        self.range(range).into()
    }

    /// The rows whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.reader().range(bounds::of_prefix(prefix.as_ref()))
    }

    /// All rows.
    pub fn iter(&self) -> Range {
        self.range(..)
    }

    /// The row with the least key.
    pub fn first_key_value(&self) -> Result<Option<(Key, Value)>> {
        self.iter().next().transpose()
    }

    /// The row with the greatest key.
    pub fn last_key_value(&self) -> Result<Option<(Key, Value)>> {
        self.iter().next_back().transpose()
    }

    /// Brings what reading `range` from its start will need into memory: pages of the index and of all column groups, and
    /// large values, in one round of the disk a level of the index. Of a large range as much as a quarter of the cache
    /// holds.
    pub fn prefetch(&self, range: impl IntoKeyRange, limits: Limits) -> Result<Prefetched> {
        self.reader().prefetch(bounds::owned(&range), limits, Direction::Forward, self.all_groups())
    }

    /// As [`Table::prefetch`], for reading from the end.
    pub fn prefetch_back(&self, range: impl IntoKeyRange, limits: Limits) -> Result<Prefetched> {
        self.reader().prefetch(bounds::owned(&range), limits, Direction::Backward, self.all_groups())
    }

    fn all_groups(&self) -> Groups {
        Groups::first(self.identity().options.groups.len().max(1))
    }

    /// Starts an import: rows written straight into files, all of them visible at its end or none.
    pub fn import(&self) -> Result<Import> {
        Import::new(&self.inner, Limit::none(&self.core().env.machine.clock))
    }

    /// Merges everything into the deepest level.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(&mut |_, _| {})
    }

    /// As [`Table::compact`]; `progress` is told bytes read and bytes to read. It is called by the thread that compacts, and
    /// must not write to the database: a write that waits for room in level 0 would wait for its own thread.
    pub fn compact_with(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.core().views.newest().files_of(self.identity())?;
        compact::compact_table(self.core(), self.id(), &Limit::none(&self.core().env.machine.clock), progress)
    }

    /// Reads every page of the table's files and compares them with each other and with the manifest.
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        check::check(self.core(), Some(self.identity()), &Limit::none(&self.core().env.machine.clock), progress)
    }

    /// Prints every tree, column group and history of the table's files to `out`, as text for people. With
    /// [`DumpDetail::Loaded`] nothing is read from disk: pages that are not in memory are named.
    pub fn dump(&self, detail: DumpDetail, out: &mut dyn io::Write) -> Result<()> {
        let (view, at) = self.core().views.now();
        let dumped = dump::dump_table(view.files_of(self.identity())?, &self.core().env.cache, detail, out);
        dumped.map_err(|error| self.core().outdated(error, at))
    }

    /// Sizes from the manifest and the cache; no page is read. Looks at every page in the cache: for people and
    /// dashboards, not for hot paths.
    pub fn stats(&self) -> Result<TableStats> {
        TableStats::of(self.core(), self.identity())
    }

    /// Brings a range to memory, all of it that fits in half of the cache: first the index nodes of all files, then their
    /// rows. Returns when that is done; reads of others go before its own.
    ///
    /// Values that lie outside their pages, and versions that are no longer the newest, are not brought. Nothing is pinned:
    /// what is not used then goes in time, as anything else.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// let fruit = db.table("fruit")?;
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
    pub fn warm(&self, range: impl IntoKeyRange) -> Result<Warmed> {
        let most_bytes = self.core().env.cache.budget_bytes() / 2;
        self.warm_with(range, most_bytes, |_| true)
    }

    /// As [`Table::warm`], at most `most_bytes` of memory. `progress` is told how many bytes are in memory by now and says
    /// whether to go on.
    pub fn warm_with(
        &self,
        range: impl IntoKeyRange,
        most_bytes: u64,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Warmed> {
        let (view, at) = self.core().views.now();
        let files: Vec<Arc<DbFile>> = view.files_of(self.identity())?.files().map(|(_, file)| file.clone()).collect();
        let Some(keys) = bounds::keys(&range) else {
            return Ok(Warmed { is_whole: true, ..Warmed::default() });
        };
        let mut loader = PageLoader::new(&self.core().env.cache, Reason::Warm, most_bytes, &mut progress);
        let is_whole = loader.files(&files, &keys).map_err(|error| self.core().outdated(error, at))?;
        Ok(Warmed { bytes: loader.bytes, page_reads: loader.page_reads(), is_whole })
    }
}

#[cfg(test)]
mod tests;
