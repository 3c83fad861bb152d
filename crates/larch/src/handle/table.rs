//! A table as its users see it. It turns arguments into what reads and writes take, and does no work itself.

use super::compaction::flush_and_compact;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::cancel::{Cancel, Limit};
use crate::base::error::Result;
use crate::base::options::TableOptions;
use crate::base::table::{TableId, TableInfo};
use crate::core::Core;
use crate::core::background::warmth::Warmed;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::core::snapshots::PinnedVersion;
use crate::import::built::ingest::{IngestOptions, IngestReport};
use crate::import::{Import, share};
use crate::inspect::check::{CheckProgress, CheckReport};
use crate::inspect::metrics::TableStats;
use crate::inspect::{check, dump};
use crate::manifest::DbFile;
use crate::read::{Cursor, Range, Reader, Scan, Tried};
use crate::view::part_list::PartList;
use crate::view::precharge::Prefetched;
use crate::view::value::{Key, Value};
use crate::warm::loader::PageLoader;
use crate::write::{define, limits};
use os::sync::Arc;
use pages::{Admit, Reason};
use sst::{Direction, DumpDetail, Groups, Limits};
use std::io;
use std::path::Path;

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

    /// The same table, through a handle whose reads admit to the cache only what `admit` says. Use it for reads that
    /// will not come again, so that they evict no pages that other reads use: [`Admit::Nodes`] admits index nodes only,
    /// [`Admit::Pass`] admits nothing. Everything that is made of the handle, such as a range, reads in the same way.
    ///
    /// Pages that are in memory already are used in any case. Other reads can use a page that is not admitted only
    /// while it is being read. [`Table::prefetch`] admits what it reads, whatever the handle says. Writes do not
    /// change.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::{Admit, PageKind};
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

    /// The random number that its database got when it was made. Copies and branches of the database have it, too.
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
        self.inner.info().options.clone()
    }

    /// Changes how the table is stored from now on. Everything but its column groups can be changed. The change is
    /// durable when this returns.
    ///
    /// Existing files stay as they are and can still be read. Files that are begun later are written under the new
    /// options. Compactions rewrite the old files little by little; [`Table::compact`] rewrites all that are left.
    /// `change` receives the present options. Other tables cannot be altered before it returns, so it should be short,
    /// and it must not use the database.
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

    /// Reads whole values of now.
    pub(crate) fn reader(&self) -> Reader<'_> {
        self.reader_at(None)
    }

    /// Reads whole values of now, or as they were at a pinned version.
    pub(crate) fn reader_at<'r>(&'r self, pin: Option<&'r Arc<PinnedVersion>>) -> Reader<'r> {
        Reader::new(&self.inner, pin, PartList::whole())
    }

    /// The value of `key`, or `None` if the key has no value.
    ///
    /// If all pages are in memory, the call takes no lock of the cache, allocates nothing and usually copies nothing:
    /// the [`Value`] refers to its page. Otherwise the call waits for the disk. It reads at most one page of each level
    /// of the index and one data page in each file that may have the key, and one more page if the value is large.
    /// Filters spare most files that do not have the key.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// assert!(fruit.get("banana")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::Grouped`](crate::Error::Grouped) if the values of the table are split into several column groups.
    ///   Read them with [`Table::select`].
    /// * [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped after this handle was made.
    /// * [`Error::Page`](crate::Error::Page) if a page cannot be read, or if its bytes are not those that were written.
    ///   The error names the file. A read that does not need this page still succeeds.
    ///   [`Database::check`](crate::Database::check) finds all damage.
    /// * [`Error::Log`](crate::Error::Log) and [`Error::Outdated`](crate::Error::Outdated) only in a database that was
    ///   opened [read-only](crate::Builder::read_only), while a writer replaces its files. The read can be tried again.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.reader().get(key.as_ref())
    }

    /// As [`Table::get`], but only with what is in memory: it reads nothing from disk and waits for nothing. If a page
    /// is missing, the answer is [`Tried::WouldFault`]. Pages that it finds count as used, as with [`Table::get`].
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
    ///     Tried::WouldFault => println!("ask the disk, with `get` or `get_async`"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
    pub fn try_get(&self, key: impl AsRef<[u8]>) -> Result<Tried<Option<Value>>> {
        self.reader().try_get(key.as_ref())
    }

    /// As [`Table::get`], as a future for any executor. While pages are read from disk no thread waits, so one thread
    /// can have thousands of such reads under way. The read sees the rows of the moment at which it is first polled,
    /// and keeps the memory and the files of that moment until it is done or dropped. It can be dropped at any time.
    ///
    /// A value that is in memory is ready at the first poll, and nothing is allocated.
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
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
    pub async fn get_async(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.reader().get_async(key.as_ref()).await
    }

    /// Whether `key` has a value. It costs what [`Table::get`] costs, without loading the value. It works for tables
    /// with column groups, too.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert!(fruit.contains_key("apple")?);
    /// assert!(!fruit.contains_key("banana")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::get`], without [`Error::Grouped`](crate::Error::Grouped).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader().contains_key(key.as_ref())
    }

    /// As [`Table::contains_key`], but only with what is in memory, see [`Table::try_get`].
    ///
    /// # Errors
    ///
    /// As [`Table::contains_key`].
    pub fn try_contains_key(&self, key: impl AsRef<[u8]>) -> Result<Tried<bool>> {
        self.reader().try_contains_key(key.as_ref())
    }

    /// As [`Table::contains_key`], as a future, see [`Table::get_async`].
    ///
    /// # Errors
    ///
    /// As [`Table::contains_key`].
    pub async fn contains_key_async(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.reader().contains_key_async(key.as_ref()).await
    }

    /// The values of `keys`, in the order of the keys, all as of one moment. The keys are looked up together: the pages
    /// that they miss are read from disk at the same time, level by level of the index, and a page that several keys
    /// need is read once. At most 256 keys are looked up at once, and fewer if their pages would take more than a
    /// quarter of the cache.
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
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Value>>> {
        self.reader().multi_get(&Vec::from_iter(keys))
    }

    /// As [`Table::multi_get`], as a future, see [`Table::get_async`].
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
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
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
    /// [`Error::TableExists`](crate::Error::TableExists) if there is a table `name`,
    /// [`Error::BadTableName`](crate::Error::BadTableName) if no table can have this name. Otherwise as
    /// [`Table::insert`], and the cause if a flush or a compaction that this waits for fails.
    pub fn clone_as(&self, name: &str) -> Result<Self> {
        self.shared(name, share::SharedPart::Copy)
    }

    /// Makes a new table `name` with the rows whose keys are not less than `key`, and takes them from this table, in
    /// one commit. Snapshots that were made before still see these rows in this table. No row is copied, see
    /// [`Table::clone_as`].
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

    /// Makes a new table `name` that sees `part` of this one.
    pub(super) fn shared(&self, name: &str, part: share::SharedPart<'_>) -> Result<Self> {
        let info = share::share(self.core(), self.identity(), define::check_new_name(name)?, part)?;
        Ok(Self::new(self.inner.handle.clone(), info))
    }

    /// The rows with keys in `range` as of now, in the order of the keys. The range can be read from both ends.
    ///
    /// A range sees the rows of the moment at which it was made. It keeps this version until it is dropped, so
    /// compactions do not remove older versions that it needs: do not keep a range open for long while much is
    /// overwritten. Between two rows it holds neither files nor memtables that were replaced. The first row costs about
    /// what a [`Table::get`] costs. After that the range reads ahead, up to an eighth of the cache and 128 MiB.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, "ripe")?;
    /// }
    /// for row in fruit.range("b"..) {
    ///     let (key, value) = row?;
    ///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
    /// }
    /// assert_eq!(fruit.range("a"..="banana").rev().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Making a range never fails. The range answers with the errors of [`Table::get`], and goes on answering with its
    /// first error.
    pub fn range(&self, range: impl IntoKeyRange) -> Range {
        self.reader().range(bounds::owned(&range))
    }

    /// As [`Table::range`], for futures. The version is kept from now on; files and memory are held only while a future
    /// waits for a row.
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

    /// The rows whose keys begin with `prefix`, see [`Table::range`]. If the table has [filters over
    /// prefixes](crate::TableOptions::filter_prefix_bytes), files without such keys are not read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple/red", "Gala")?;
    /// fruit.insert("apple/green", "Granny Smith")?;
    /// fruit.insert("banana", "Cavendish")?;
    /// assert_eq!(fruit.prefix("apple/").count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.reader().range(bounds::of_prefix(prefix.as_ref()))
    }

    /// All rows, see [`Table::range`].
    pub fn iter(&self) -> Range {
        self.range(..)
    }

    /// A cursor over all rows, which seeks and moves both ways. It shows the rows of this moment.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, "ripe")?;
    /// }
    /// let mut cursor = fruit.cursor();
    /// assert!(cursor.seek("b")? && cursor.next()?);
    /// assert_eq!(cursor.key(), Some(&b"cherry"[..]));
    /// assert!(cursor.prev()? && cursor.prev()?);
    /// assert_eq!(cursor.key(), Some(&b"apple"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Making a cursor never fails. Its moves answer with the errors of [`Table::get`].
    pub fn cursor(&self) -> Cursor {
        self.cursor_in(..)
    }

    /// As [`Table::cursor`], over the rows with keys in `range`. A seek to a key outside of the range goes to the first or the
    /// last row in it, or finds no row. Nothing is read ahead beyond the range.
    pub fn cursor_in(&self, range: impl IntoKeyRange) -> Cursor {
        self.reader().cursor(bounds::owned(&range))
    }

    /// The row with the least key, or `None` if the table is empty.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("banana", "yellow")?;
    /// fruit.insert("apple", "red")?;
    /// let (key, value) = fruit.first_key_value()?.expect("there are two rows");
    /// assert_eq!((&key[..], &value[..]), (&b"apple"[..], &b"red"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
    pub fn first_key_value(&self) -> Result<Option<(Key, Value)>> {
        self.iter().next().transpose()
    }

    /// The row with the greatest key, or `None` if the table is empty.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let (key, _) = fruit.last_key_value()?.expect("there are two rows");
    /// assert_eq!(key[..], *b"banana");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
    pub fn last_key_value(&self) -> Result<Option<(Key, Value)>> {
        self.iter().next_back().transpose()
    }

    /// Loads what reading `range` from its start will need, up to `limits`: index nodes, pages of all column groups,
    /// and large values. It needs one round of reads from disk for each level of the index. Of a large range it loads
    /// at most what a quarter of the cache holds. The pages are not pinned.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// db.flush()?;
    /// fruit.prefetch("a".., larch::Limits::rows(100))?;
    /// assert!(fruit.try_get("apple")?.ready().is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
    pub fn prefetch(&self, range: impl IntoKeyRange, limits: Limits) -> Result<Prefetched> {
        self.reader().prefetch(bounds::owned(&range), limits, Direction::Forward, self.all_groups())
    }

    /// As [`Table::prefetch`], for reading from the end of `range`.
    ///
    /// # Errors
    ///
    /// As [`Table::get`].
    pub fn prefetch_back(&self, range: impl IntoKeyRange, limits: Limits) -> Result<Prefetched> {
        self.reader().prefetch(bounds::owned(&range), limits, Direction::Backward, self.all_groups())
    }

    /// All column groups of the table.
    pub(super) fn all_groups(&self) -> Groups {
        Groups::first(self.identity().options.groups.len().max(1))
    }

    /// Begins an import: rows that are written straight into files, without the log and the memtables. They become
    /// visible together when the import is finished; an import that is dropped leaves nothing. It takes any number of
    /// rows, in any order; ascending keys are fastest.
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
    /// let report = import.finish(&mut |_, _| {})?;
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
        Import::new(&self.inner, Limit::none(&self.core().env.machine.clock))
    }

    /// Makes the files in `directories`, which were built [without a database](crate::Builder::build_files), part of the table. All rows
    /// become visible at once, and are durable then; after an error or a crash the table has none of them. A row replaces one of the
    /// table that has its key, and where several of the directories have a key, the last of them counts. No row is read or written: the
    /// files get second names where the file system has that, and are copied elsewhere. Other commits go on meanwhile.
    ///
    /// Files whose keys the table does not have yet go to its deepest level. Files whose keys are in every level go to level 0, and if
    /// there are many of these, writes wait for compactions as after any import. The same files may be taken in again, and by several
    /// databases.
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
    ///     files.finish(&mut |_, _| {})?;
    /// }
    /// let fruit = larch::Database::open(&here)?.table("fruit")?;
    /// fruit.ingest(&[&north, &south], larch::IngestOptions::default())?;
    /// assert_eq!(fruit.get("fig")?.as_deref(), Some(south.as_os_str().as_encoded_bytes()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotBuiltFiles`](crate::Error::NotBuiltFiles), [`Error::BadBuiltFiles`](crate::Error::BadBuiltFiles),
    /// [`Error::NewerBuiltFiles`](crate::Error::NewerBuiltFiles), [`Error::OtherGroups`](crate::Error::OtherGroups) if the files cannot be
    /// used here; [`Error::HasIndexes`](crate::Error::HasIndexes) if the table has indexes;
    /// [`Error::BadOptions`](crate::Error::BadOptions) if the release that the database is written for cannot read the files; otherwise
    /// as [`Table::import`] and [`Import::finish`].
    pub fn ingest(&self, directories: &[impl AsRef<Path>], options: IngestOptions) -> Result<IngestReport> {
        self.until(&Cancel::new()).ingest(directories, options, &mut |_, _| {})
    }

    /// Writes what is in memory to files and merges all files of the table into its deepest level, so that erased and
    /// overwritten rows take no space, except those that a snapshot sees. This rewrites the whole table, and returns
    /// when it is done. The engine compacts by itself: call this only before a long time without writes, or after
    /// [`Table::alter`]. Until then [`Database::compact_due`](crate::Database::compact_due) is far less work.
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
        self.compact_with(&mut |_, _| {})
    }

    /// As [`Table::compact`]. `progress` receives the bytes that were read so far and the bytes to read. It is called
    /// by the thread that compacts and must not write to the database: a write that waits for room in level 0 would
    /// wait for its own thread.
    ///
    /// # Errors
    ///
    /// As [`Table::compact`].
    pub fn compact_with(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.core().views.newest().files_of(self.identity())?;
        flush_and_compact(self.core(), self.id(), &Limit::none(&self.core().env.machine.clock), progress)
    }

    /// Reads every page of the table's files and compares them with each other and with the manifest. See
    /// [`Database::check`](crate::Database::check).
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`](crate::Error::TableDropped); [`Error::Outdated`](crate::Error::Outdated) in a database
    /// opened read-only. Damage is not an error: it is in the report.
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        check::check(self.core(), Some(self.identity()), &Limit::none(&self.core().env.machine.clock), progress)
    }

    /// Prints every tree, column group and history of the table's files to `out`, as text for people. With
    /// [`DumpDetail::Loaded`] nothing is read from disk, and pages that are not in memory are only named.
    ///
    /// # Errors
    ///
    /// As [`Table::get`], without [`Error::Grouped`](crate::Error::Grouped); [`Error::Page`](crate::Error::Page) also
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

    /// Loads the pages of a range, up to half of the cache: first the index nodes of all files, then the data pages. It
    /// returns when this is done. Reads that other threads wait for come before its own.
    ///
    /// Values that lie outside their data pages and older versions are not loaded. Nothing is pinned: pages that are
    /// not used are evicted later like any other page.
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
    /// As [`Table::get`], without [`Error::Grouped`](crate::Error::Grouped). Pages that were loaded before stay.
    pub fn warm(&self, range: impl IntoKeyRange) -> Result<Warmed> {
        let most_bytes = self.core().env.cache.budget_bytes() / 2;
        self.warm_with(range, most_bytes, |_| true)
    }

    /// As [`Table::warm`], with at most `most_bytes` of memory. `progress` receives the bytes that were loaded so far,
    /// and returns whether to go on.
    ///
    /// # Errors
    ///
    /// As [`Table::warm`].
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
        let mut loader = PageLoader::new(&self.core().env, Reason::Warm, most_bytes, &mut progress);
        let is_whole = loader.files(&files, &keys).map_err(|error| self.core().outdated(error, at))?;
        Ok(Warmed { bytes: loader.bytes, page_reads: loader.page_reads(), is_whole })
    }
}

#[cfg(test)]
mod tests;
