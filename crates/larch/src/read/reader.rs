//! One table as one reader sees it: as of now, at a pinned version or in a transaction; with whole values or with
//! some parts of them. Every read of rows goes through a reader, in the form that the caller chose: the read waits
//! for pages, it never waits, or it is a future.

use super::content::Content;
use super::cursor::Cursor;
use super::forms::{ManyKeys, OneKey, ReadAt, Tried, content_of};
use super::multi::AnswerBytes;
use super::range::{Range, RangeRows};
use super::scan::Scan;
use super::work::Work;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::conflicts::read_set::ReadSet;
use crate::core::handle::TableHandle;
use crate::core::snapshots::PinnedVersion;
use crate::view::own_writes::OwnRows;
use crate::view::part_list::PartList;
use crate::view::point::PointRead;
use crate::view::precharge::Prefetched;
use crate::view::value::{Key, Parts, Value};
use crate::view::{TableView, precharge};
use os::sync::{Arc, Mutex};
use pages::{Reason, Session, Stop};
use sst::precharge::ReadPlan;
use sst::{AtMost, Direction, Version};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// Reads one table. It has the verbs of all reads. A [`Table`](crate::Table) has a reader that sees the rows of now,
/// and lends its verbs: `table.get(…)`. [`Reader::at`] gives a reader that sees what a snapshot shows.
/// [`Readable::reader`](crate::Readable::reader) gives a reader that sees what a snapshot or a transaction shows,
/// and borrows it. `V` is what a read gives for each row: the row's [`Value`], or [`Parts`](crate::Parts) of it if
/// column groups were [selected](crate::Table::select).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// use larch::{Readable, Reader};
///
/// fn colours(fruit: &Reader<'_>) -> larch::Result<usize> {
///     Ok(fruit.prefix("apple").count() + usize::from(fruit.contains_key("banana")?))
/// }
///
/// fruit.insert("apple", "red")?;
/// let snapshot = db.snapshot();
/// fruit.insert("banana", "yellow")?;
/// assert_eq!(colours(&fruit)?, 2);
/// assert_eq!(colours(&fruit.at(&snapshot)?)?, 1);
/// let mut tx = db.begin()?;
/// tx.insert(&fruit, "apple/green", "Granny Smith")?;
/// assert_eq!(colours(&tx.reader(&fruit)?)?, 3);
/// # Ok(())
/// # }
/// ```
pub struct Reader<'r, V = Value> {
    table: Lent<'r, TableHandle>,
    /// Keeps the version that is read; `None` to read the newest version when a read begins.
    pin: Option<Lent<'r, Arc<PinnedVersion>>>,
    wanted: PartList,
    /// The transaction that reads.
    work: Option<&'r Work>,
    content: PhantomData<fn() -> V>,
}

/// A value that a reader has, or that it has borrowed.
#[derive(Clone, Debug)]
enum Lent<'r, T> {
    Own(T),
    Of(&'r T),
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Own(value) => value,
            Self::Of(value) => value,
        }
    }
}

/// Reads rows of one table later, for a read that finds the keys of these rows little by little. It reads at the
/// version of that read. If a transaction reads, it also sees the transaction's own writes as they were then.
#[derive(Clone, Debug)]
pub(crate) struct LaterReader {
    table: TableHandle,
    pin: Arc<PinnedVersion>,
    wanted: PartList,
    own: Option<OwnRows>,
    /// Where a transaction notes the keys.
    reads: Option<Arc<Mutex<ReadSet>>>,
}

impl LaterReader {
    /// The wanted contents of the first rows among `keys`, in the order of the keys. It returns as many as a round
    /// holds, and at least one.
    pub fn multi_get_some<V: Content, K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        self.note(keys);
        self.reader().multi_get_under(keys, AnswerBytes::ROUND, self.own.as_ref())
    }

    /// As [`LaterReader::multi_get_some`], as a future.
    pub async fn multi_get_some_async<V: Content, K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        self.note(keys);
        self.reader().multi_get_under_async(keys, AnswerBytes::ROUND, self.own.as_ref()).await
    }

    fn note<K: AsRef<[u8]>>(&self, keys: &[K]) {
        if let Some(reads) = &self.reads {
            let mut reads = reads.lock();
            keys.iter().for_each(|key| reads.add_key(self.table.id(), key.as_ref()));
        }
    }

    fn reader<V: Content>(&self) -> Reader<'_, V> {
        Reader::new(&self.table, Some(&self.pin), self.wanted)
    }
}

impl<V> Clone for Reader<'_, V> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), pin: self.pin.clone(), content: PhantomData, ..*self }
    }
}

impl<V> fmt::Debug for Reader<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, version) = (&self.table.identity.name, self.version());
        f.debug_struct("Reader").field("table", table).field("version", &version).finish_non_exhaustive()
    }
}

impl<V> Reader<'static, V> {
    /// Reads parts of the rows of a table, which the reader keeps. It reads at the version that `pin` keeps, or now.
    pub(crate) fn keeping(table: TableHandle, pin: Option<Arc<PinnedVersion>>, wanted: PartList) -> Self {
        Self { table: Lent::Own(table), pin: pin.map(Lent::Own), wanted, work: None, content: PhantomData }
    }
}

impl<'r, V> Reader<'r, V> {
    /// Reads parts of the rows of a borrowed table, at the version that `pin` keeps, or now.
    pub(crate) fn new(table: &'r TableHandle, pin: Option<&'r Arc<PinnedVersion>>, wanted: PartList) -> Self {
        Self { table: Lent::Of(table), pin: pin.map(Lent::Of), wanted, work: None, content: PhantomData }
    }

    /// The same reader in a transaction, which reads at the pinned version.
    pub(crate) fn within(self, work: &'r Work) -> Self {
        Self { work: Some(work), ..self }
    }

    /// The table.
    pub(crate) fn handle(&self) -> &TableHandle {
        &self.table
    }

    /// The parts of rows that this reader reads.
    pub(crate) fn wanted(&self) -> &PartList {
        &self.wanted
    }

    /// The transaction that reads.
    pub(crate) fn work(&self) -> Option<&'r Work> {
        self.work
    }

    /// A reader of the whole rows of another table, at the same version and in the same transaction.
    pub(crate) fn of<'t>(&'t self, table: &'t TableHandle) -> Reader<'t> {
        Reader { work: self.work, ..Reader::new(table, self.pinned_at(), PartList::whole()) }
    }

    /// A reader of the same table in no transaction. It reads at the version of `pin`, if `pin` is given.
    pub(crate) fn seen_at<'p>(&'p self, pin: Option<&'p Arc<PinnedVersion>>) -> Reader<'p, V> {
        Reader::new(&self.table, pin, self.wanted)
    }

    /// The same reader at the version of `pin`.
    pub(crate) fn pinned<'p>(&'p self, pin: &'p Arc<PinnedVersion>) -> Reader<'p, V> {
        Reader { work: self.work, ..self.seen_at(Some(pin)) }
    }

    /// A reader that reads the same rows later, at the version of `pin`.
    pub(crate) fn later(&self, pin: &Arc<PinnedVersion>) -> LaterReader {
        LaterReader {
            table: (*self.table).clone(),
            pin: pin.clone(),
            wanted: self.wanted,
            own: self.work.and_then(|work| work.writes.rows(self.table.id())),
            reads: self.work.and_then(|work| work.later_reads(self.table.id())),
        }
    }

    /// The version at which this reader reads. `None` if it reads the newest version.
    pub(crate) fn version(&self) -> Option<Version> {
        self.pinned_at().map(|pin| pin.version())
    }

    /// Keeps the version at which this reader reads. `None` if it reads the newest version.
    pub(crate) fn pinned_at(&self) -> Option<&Arc<PinnedVersion>> {
        self.pin.as_deref()
    }

    /// Keeps the version that a range sees.
    pub(crate) fn pin(&self) -> Arc<PinnedVersion> {
        self.pinned_at().cloned().unwrap_or_else(|| self.table.pin())
    }

    /// The table, and the version at which this reader reads it.
    #[inline]
    fn at_version(&self) -> ReadAt<'_> {
        ReadAt { table: &self.table, pin: self.pinned_at() }
    }

    /// Runs `read` on the table as it is now, or as it was at the pinned version.
    pub(crate) fn look<T>(&self, read: impl Fn(TableView<'_>) -> Result<T>) -> Result<T> {
        self.at_version().look(read)
    }

    /// Asks what `read` finds in the row `key`. The transaction notes here that it reads the key, so each question is
    /// made once for each read.
    #[inline]
    fn of_key<'k, T, F>(&self, key: &'k [u8], read: F) -> OneKey<'k, F>
    where
        F: Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>,
    {
        OneKey { key, own: self.work.and_then(|work| work.read_key(self.table.id(), key)), read }
    }

    /// The version of the row `key`, if it exists.
    pub(crate) fn version_of_key(&self, key: &[u8]) -> Result<Option<Version>> {
        self.at_version().wait(&self.of_key(key, |read, session| Ok(read.find(session)?.map(|row| row.version()))))
    }
}

/// The verbs of reads.
impl<V: Content> Reader<'_, V> {
    /// The value of `key`, or `None` if the key has no value.
    ///
    /// If all pages are in memory, the call takes no lock of the cache, allocates nothing and usually copies
    /// nothing: the [`Value`] refers to its page. Otherwise the call waits for the disk. In each file that may have
    /// the key, it reads at most one page of each level of the index and one data page, and one more page if the
    /// value is large. Filters spare most files that do not have the key.
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
    ///   Read them with [`Table::select`](crate::Table::select).
    /// * [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped after this handle was made.
    /// * [`Error::Page`](crate::Error::Page) if a page cannot be read, or if its bytes are not the bytes that were
    ///   written. The error names the file. A read that does not need this page still succeeds.
    ///   [`Database::check`](crate::Database::check) finds all damage.
    /// * [`Error::Log`](crate::Error::Log) and [`Error::Outdated`](crate::Error::Outdated) only in a database that was
    ///   opened [read-only](crate::Builder::read_only), while a writer replaces its files. The read can be tried again.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<V>> {
        V::check(&self.table)?;
        self.at_version().wait(&self.value_of(key.as_ref()))
    }

    /// As [`Reader::get`], but only with what is in memory: it reads nothing from disk and waits for nothing. If a page
    /// is missing, the answer is [`Tried::WouldFault`]. Pages that it finds count as used, as with [`Reader::get`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::rows::Tried;
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
    /// As [`Reader::get`].
    pub fn try_get(&self, key: impl AsRef<[u8]>) -> Result<Tried<Option<V>>> {
        V::check(&self.table)?;
        self.at_version().try_now(&self.value_of(key.as_ref()))
    }

    /// As [`Reader::get`], as a future for any executor. While pages are read from disk no thread waits, so one
    /// thread can have thousands of such reads under way. The read sees the rows of the moment at which it is first
    /// polled. It keeps the memory and the files of that moment until it is done or dropped. It can be dropped at
    /// any time.
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
    /// As [`Reader::get`].
    pub async fn get_async(&self, key: impl AsRef<[u8]>) -> Result<Option<V>> {
        V::check(&self.table)?;
        self.at_version().wait_for_key(self.value_of(key.as_ref())).await
    }

    /// Whether `key` has a value. It costs what [`Reader::get`] costs, without loading the value. It works for tables
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
    /// As [`Reader::get`], without [`Error::Grouped`](crate::Error::Grouped).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.at_version().wait(&self.has(key.as_ref()))
    }

    /// As [`Reader::contains_key`], but only with what is in memory, see [`Reader::try_get`].
    ///
    /// # Errors
    ///
    /// As [`Reader::contains_key`].
    pub fn try_contains_key(&self, key: impl AsRef<[u8]>) -> Result<Tried<bool>> {
        self.at_version().try_now(&self.has(key.as_ref()))
    }

    /// As [`Reader::contains_key`], as a future, see [`Reader::get_async`].
    ///
    /// # Errors
    ///
    /// As [`Reader::contains_key`].
    pub async fn contains_key_async(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.at_version().wait_for_key(self.has(key.as_ref())).await
    }

    /// The values of `keys`, in the order of the keys, all as of one moment. The keys are looked up together: the
    /// pages that they miss are read from disk at the same time, one level of the index after the other. A page that
    /// several keys need is read once. At most 256 keys are looked up at once, and fewer if their pages would take
    /// more than a quarter of the cache.
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
    /// As [`Reader::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<V>>> {
        self.multi_get_within(&Vec::from_iter(keys), AnswerBytes::ALL)
    }

    /// As [`Reader::multi_get`], as a future, see [`Reader::get_async`].
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
    /// As [`Reader::get`].
    pub fn multi_get_async<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> impl Future<Output = Result<Vec<Option<V>>>> {
        let keys = Vec::from_iter(keys);
        async move {
            let own = self.work.and_then(|work| work.read_keys(self.table.id(), &keys));
            self.multi_get_under_async(&keys, AnswerBytes::ALL, own.as_ref()).await
        }
    }

    /// The rows with keys in `range` as of now, in the order of the keys. The range can be read from both ends.
    ///
    /// A range sees the rows of the moment at which it was made. It keeps this version until it is dropped, so
    /// compactions do not remove older versions that it needs: do not keep a range open for long while much is
    /// overwritten. Between two rows the range holds no files or memtables that were replaced. The first row costs
    /// about as much as a [`Reader::get`]. After that the range reads ahead, up to an eighth of the cache and at
    /// most 128 MiB.
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
    /// Making a range never fails. The range answers with the errors of [`Reader::get`], and goes on answering with its
    /// first error.
    pub fn range(&self, range: impl IntoKeyRange) -> Range<V> {
        self.range_within(bounds::owned(&range))
    }

    /// As [`Reader::range`], for futures. The scan keeps the version from now on. It holds files and memory only
    /// while a future waits for a row.
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
    pub fn scan_async(&self, range: impl IntoKeyRange) -> Scan<V> {
        self.range(range).into()
    }

    /// The rows whose keys begin with `prefix`, see [`Reader::range`]. If the table has [filters over
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
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range<V> {
        self.range_within(bounds::of_prefix(prefix.as_ref()))
    }

    /// All rows, see [`Reader::range`].
    pub fn iter(&self) -> Range<V> {
        self.range(..)
    }

    /// Whether the reader sees no row. It costs as much as finding the first row.
    ///
    /// # Errors
    ///
    /// As [`Reader::get`], without [`Error::Grouped`](crate::Error::Grouped).
    pub fn is_empty(&self) -> Result<bool> {
        let nothing = PartList::nothing(self.table.identity.options.groups.len());
        let keys: Reader<'_, Parts> = Reader { work: self.work, ..Reader::new(&self.table, self.pinned_at(), nothing) };
        Ok(keys.iter().next_row()?.is_none())
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
    /// As [`Reader::get`].
    pub fn first_key_value(&self) -> Result<Option<(Key, V)>> {
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
    /// As [`Reader::get`].
    pub fn last_key_value(&self) -> Result<Option<(Key, V)>> {
        self.iter().next_back().transpose()
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
    /// Making a cursor never fails. Its moves answer with the errors of [`Reader::get`].
    pub fn cursor(&self) -> Cursor<V> {
        self.cursor_in(..)
    }

    /// As [`Reader::cursor`], over the rows with keys in `range`. A seek to a key outside of the range goes to the
    /// first or the last row in it, or finds no row. Nothing is read ahead beyond the range.
    pub fn cursor_in(&self, range: impl IntoKeyRange) -> Cursor<V> {
        let bounds = bounds::owned(&range);
        Cursor::new(self.rows(bounds.clone()), bounds)
    }

    /// Loads what a read of `range` from its start will need, up to `limits`: index nodes, pages of all column
    /// groups, and large values. It reads from disk in one round for each level of the index. If the range is large,
    /// it loads at most what a quarter of the cache holds. The pages are not pinned.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// db.flush()?;
    /// fruit.prefetch("a".., larch::rows::AtMost::rows(100))?;
    /// assert!(fruit.try_get("apple")?.ready().is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Reader::get`].
    pub fn prefetch(&self, range: impl IntoKeyRange, limits: AtMost) -> Result<Prefetched> {
        self.prefetch_in(&range, limits, Direction::Forward)
    }

    /// As [`Reader::prefetch`], for a read from the end of `range`.
    ///
    /// # Errors
    ///
    /// As [`Reader::get`].
    pub fn prefetch_back(&self, range: impl IntoKeyRange, limits: AtMost) -> Result<Prefetched> {
        self.prefetch_in(&range, limits, Direction::Backward)
    }
}

impl<V: Content> Reader<'_, V> {
    /// The wanted contents of the first rows among `keys`, in the order of the keys. It returns as many as a round
    /// holds, and at least one.
    pub(crate) fn multi_get_some<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        self.multi_get_within(keys, AnswerBytes::ROUND)
    }

    fn multi_get_within<K: AsRef<[u8]>>(&self, keys: &[K], most: AnswerBytes) -> Result<Vec<Option<V>>> {
        let own = self.work.and_then(|work| work.read_keys(self.table.id(), keys));
        self.multi_get_under(keys, most, own.as_ref())
    }

    fn multi_get_under<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        most: AnswerBytes,
        own: Option<&OwnRows>,
    ) -> Result<Vec<Option<V>>> {
        V::check(&self.table)?;
        self.at_version().wait(&self.of_keys(keys, most, own))
    }

    async fn multi_get_under_async<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        most: AnswerBytes,
        own: Option<&OwnRows>,
    ) -> Result<Vec<Option<V>>> {
        V::check(&self.table)?;
        self.at_version().wait_for_keys(self.of_keys(keys, most, own)).await
    }

    /// The question for the wanted contents of the rows of `keys`.
    fn of_keys<'k, K>(&'k self, keys: &'k [K], most: AnswerBytes, own: Option<&'k OwnRows>) -> ManyKeys<'k, K, V> {
        ManyKeys { keys, own, wanted: &self.wanted, most, content: PhantomData }
    }

    /// The question for the wanted content of the row `key`.
    #[inline]
    fn value_of<'k>(
        &'k self,
        key: &'k [u8],
    ) -> OneKey<'k, impl Fn(&mut PointRead<'_, '_>, &Session) -> Result<Option<V>, Stop>> {
        self.of_key(key, |read, session| content_of(read, session, session.cache(), &self.wanted))
    }

    /// The question whether the key `key` has a value.
    #[inline]
    fn has<'k>(
        &self,
        key: &'k [u8],
    ) -> OneKey<'k, impl Fn(&mut PointRead<'_, '_>, &Session) -> Result<bool, Stop> + use<V>> {
        self.of_key(key, |read, session| Ok(read.find(session)?.is_some()))
    }

    /// The rows with keys in `bounds`, in order, from either end.
    pub(crate) fn range_within(&self, bounds: bounds::Owned) -> Range<V> {
        Range::new(self.rows(bounds))
    }

    /// The rows with keys in `bounds`, which can be given in any form.
    fn rows(&self, bounds: bounds::Owned) -> RangeRows {
        let (own, read) = self.work.map_or((None, None), |work| work.read_range(self.table.id(), &bounds));
        let session = self.table.session(Reason::Scan);
        let rows = RangeRows::new(session, &self.table, self.wanted, self.pin(), bounds).within(own, read);
        match V::check(&self.table) {
            Ok(()) => rows,
            Err(error) => rows.failed(error),
        }
    }

    /// Loads the pages that a read of a range in `direction` will need, in the groups that this reader reads.
    fn prefetch_in(&self, range: &impl IntoKeyRange, limits: AtMost, direction: Direction) -> Result<Prefetched> {
        let (low, high) = range.bounds();
        let groups = V::groups(&self.table, &self.wanted);
        self.look(|table| {
            let reading = ReadPlan { low, high, direction, limits, groups, at: table.at, ..ReadPlan::ALL };
            precharge::precharge(&self.table.session(Reason::Precharge), table, &reading)
        })
    }
}
