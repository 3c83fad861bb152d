//! Reads one table: at the newest version, at a pinned version or inside a transaction, as whole values or as some of
//! their parts. Every read of rows goes through a reader, in one of three forms: it blocks for pages, it only tries
//! the pages in memory, or it is a future.

use super::content::Content;
use super::cursor::Cursor;
use super::forms::{ManyKeys, OneKey, ReadAt, Tried, content_of};
use super::multi::AnswerBytes;
use super::range::{Range, RangeRows};
use super::scan::Scan;
use super::work::Work;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::base::row_clock;
use crate::conflicts::read_set::ReadSet;
use crate::core::handle::TableHandle;
use crate::core::snapshots::PinnedVersion;
use crate::view::found::FoundRow;
use crate::view::own_writes::OwnRows;
use crate::view::part_list::PartList;
use crate::view::point::PointRead;
use crate::view::precharge::Prefetched;
use crate::view::value::{Key, Parts, Value};
use crate::view::{TableView, precharge};
use os::sync::{Arc, Mutex};
use pages::{Reason, Session, Stop};
use sst::precharge::ReadPlan;
use sst::{AtMost, Direction, Until, Version};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

/// Reads one table: gets, ranges, cursors and prefetches. A [`Table`](crate::Table) dereferences to a reader of the
/// newest rows, so `table.get(…)` works. [`Reader::at`] returns a reader of what a snapshot shows;
/// [`Readable::reader`](crate::Readable::reader) returns one that borrows a snapshot or a transaction and reads what
/// it shows. `V` is what a read returns for each row: the whole [`Value`], or its [`Parts`](crate::Parts) if column
/// groups were [selected](crate::Table::select).
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
    /// Pins the version to read at. If `None`, each read sees the newest version at the time it begins.
    pin: Option<Lent<'r, Arc<PinnedVersion>>>,
    wanted: PartList,
    /// The transaction that reads.
    work: Option<&'r Work>,
    content: PhantomData<fn() -> V>,
}

/// A value, and the time until which it is there, if it expires.
pub(crate) type Timed<V> = (V, Option<Until>);

/// A value that the reader owns or borrows.
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

/// Looks up rows for a scan that learns their keys bit by bit, as the scan of an index does. It reads at the scan's
/// version, and in a transaction it also sees the transaction's own writes as they were when the scan began.
#[derive(Clone, Debug)]
pub(crate) struct LaterReader {
    table: TableHandle,
    pin: Arc<PinnedVersion>,
    wanted: PartList,
    own: Option<OwnRows>,
    /// The read set of the transaction, if the transaction records its reads.
    reads: Option<Arc<Mutex<ReadSet>>>,
}

impl LaterReader {
    /// Returns the wanted contents of the rows of `keys`, in the same order: of the first that fit in
    /// [`AnswerBytes::ROUND`], and of at least one.
    pub fn multi_get_some<V: Content, K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        self.note(keys);
        self.reader().multi_get_under(keys, AnswerBytes::ROUND, self.own.as_ref())
    }

    /// As [`LaterReader::multi_get_some`], as a future.
    pub async fn multi_get_some_async<V: Content, K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        self.note(keys);
        self.reader().multi_get_under_async(keys, AnswerBytes::ROUND, self.own.as_ref()).await
    }

    /// Whether a row may be gone although its entry was just read, because it has expired since. A read-only database
    /// does not know whether rows have times.
    pub fn may_expire(&self) -> bool {
        let env = &self.table.core().env;
        env.row_clock.has_times() || env.options.read_only
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
    /// An owning reader of `table`, at the version that `pin` pins or, without a pin, at the newest version.
    pub(crate) fn keeping(table: TableHandle, pin: Option<Arc<PinnedVersion>>, wanted: PartList) -> Self {
        Self { table: Lent::Own(table), pin: pin.map(Lent::Own), wanted, work: None, content: PhantomData }
    }
}

impl<'r, V> Reader<'r, V> {
    /// A reader that borrows `table`, at the version that `pin` pins or, without a pin, at the newest version.
    pub(crate) fn new(table: &'r TableHandle, pin: Option<&'r Arc<PinnedVersion>>, wanted: PartList) -> Self {
        Self { table: Lent::Of(table), pin: pin.map(Lent::Of), wanted, work: None, content: PhantomData }
    }

    /// The same reader inside a transaction, whose own writes it also sees.
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

    /// A reader of the same table outside of any transaction, at the version of `pin` or, without a pin, at the
    /// newest one.
    pub(crate) fn seen_at<'p>(&'p self, pin: Option<&'p Arc<PinnedVersion>>) -> Reader<'p, V> {
        Reader::new(&self.table, pin, self.wanted)
    }

    /// The same reader at the version of `pin`.
    pub(crate) fn pinned<'p>(&'p self, pin: &'p Arc<PinnedVersion>) -> Reader<'p, V> {
        Reader { work: self.work, ..self.seen_at(Some(pin)) }
    }

    /// Returns a reader that looks up rows of this table later, at the version of `pin`.
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

    /// The pin of the version at which this reader reads. `None` if it reads the newest version.
    pub(crate) fn pinned_at(&self) -> Option<&Arc<PinnedVersion>> {
        self.pin.as_deref()
    }

    /// Returns a pin for a range: this reader's own pin, or a new one of the newest version.
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

    /// Builds the question that `read` answers about the row of `key`. In a transaction this records `key` as read,
    /// so it is called once for each read and not for each attempt.
    #[inline]
    fn of_key<'k, T, F>(&self, key: &'k [u8], read: F) -> OneKey<'k, F>
    where
        F: Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>,
    {
        let own = self.work.and_then(|work| work.read_key(self.table.id(), key));
        OneKey { key, own, read, begun: None }
    }

    /// The version of the row of `key`, if the row exists.
    pub(crate) fn version_of_key(&self, key: &[u8]) -> Result<Option<Version>> {
        self.at_version().wait(&self.of_key(key, |read, session| Ok(read.find(session)?.map(|row| row.version()))))
    }

    /// Whether rows of the database may expire, see [`Database::may_expire`](crate::Database::may_expire).
    pub fn may_expire(&self) -> bool {
        let core = self.table.core();
        core.env.row_clock.has_times() || core.views.newest().files.has_times()
    }

    /// The time until which the row of `key` is there, as the time since the beginning of 1970. `None` if the key has
    /// no value, or one that does not expire.
    ///
    /// # Errors
    ///
    /// As [`Reader::get`], but for [`Error::Grouped`](crate::Error::Grouped).
    pub fn until(&self, key: impl AsRef<[u8]>) -> Result<Option<Duration>> {
        let read =
            |read: &mut PointRead<'_, '_>, session: &Session| Ok(read.find(session)?.and_then(|row| row.until()));
        Ok(self.at_version().wait(&self.of_key(key.as_ref(), read))?.map(row_clock::time_of))
    }
}

/// The methods that read rows.
impl<V: Content> Reader<'_, V> {
    /// The row of `key` although it may have expired, and the time until which it is there.
    pub(crate) fn get_expired(&self, key: &[u8]) -> Result<Option<Timed<V>>> {
        let wanted = self.wanted;
        self.at_version().wait(&self.of_key(key, move |read, session| {
            read.show_expired();
            let load = |row: &FoundRow<_>| Ok((V::load_found(row, session, session.cache(), &wanted)?, row.until()));
            read.load(session, V::needs_more, load)
        }))
    }

    /// The value of `key` and the time until which it is there, as the time since the beginning of 1970, both as of one
    /// moment. The time is `None` if the value does not expire. [`Reader::get`] and [`Reader::until`] after each other
    /// may give a value of before it expired, and no time.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let tomorrow = std::time::Duration::from_secs(db.clock().as_secs() + 24 * 60 * 60);
    /// fruit.insert_until("apple", "ripe", tomorrow)?;
    /// let (value, until) = fruit.get_until("apple")?.expect("it is there");
    /// assert_eq!((&value[..], until), (&b"ripe"[..], Some(tomorrow)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Reader::get`].
    pub fn get_until(&self, key: impl AsRef<[u8]>) -> Result<Option<(V, Option<Duration>)>> {
        let (found, _) = self.get_timed(key.as_ref())?;
        Ok(found.map(|(value, until)| (value, until.map(row_clock::time_of))))
    }

    /// As [`Reader::get_until`], and that moment, in milliseconds since 1970.
    pub(crate) fn get_timed(&self, key: &[u8]) -> Result<(Option<Timed<V>>, u64)> {
        V::check(&self.table)?;
        let clock = &self.table.core().env.row_clock;
        let is_there = |found: &Option<Timed<V>>, now: u64| {
            found.as_ref().and_then(|(_, until)| *until).is_none_or(|until| until.millis() > now)
        };
        let (found, now) = (self.get_expired(key)?, clock.now());
        if is_there(&found, now) {
            return Ok((found, now));
        }
        // The row has expired. If others were merged into its value, they are still there, without a time. From here
        // on all look-ups see one version: otherwise a row that is written between two of them would be given without
        // its time.
        let pin = self.pin();
        let pinned = self.pinned(&pin);
        let (found, now) = (pinned.get_expired(key)?, clock.now());
        if is_there(&found, now) {
            return Ok((found, now));
        }
        Ok((pinned.get(key)?.map(|value| (value, None)), now))
    }

    /// The value of `key`, or `None` if the key has no value.
    ///
    /// If all pages are in memory, the call takes no lock of the cache, allocates nothing and usually copies nothing:
    /// the [`Value`] refers to its page. Otherwise the call blocks on the disk. In each file that may contain the
    /// key, it reads at most one page of each index level and one data page, and one more page if the value is large.
    /// Filters rule out most files that do not contain the key.
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
    /// * [`Error::Page`](crate::Error::Page) if a page cannot be read or is damaged. The error names the file. Reads
    ///   that do not need this page still succeed. [`Database::check`](crate::Database::check) finds all damage.
    /// * [`Error::Log`](crate::Error::Log) and [`Error::Outdated`](crate::Error::Outdated) only in a database that
    ///   was opened [read-only](crate::Builder::read_only), while a writer replaces its files. The read can be tried
    ///   again.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<V>> {
        V::check(&self.table)?;
        let question = self.value_of(key.as_ref());
        if V::groups(&self.table, &self.wanted).any_beside_main() {
            return self.at_version().wait(&question);
        }
        self.at_version().lend_or_wait(question, |found, cache| match found {
            Some(row) => V::of_row(&row, cache, &self.wanted).map(Some),
            None => Some(None),
        })
    }

    /// As [`Reader::get`], but only with what is in memory: it never reads from disk and never blocks. If a page is
    /// missing, the answer is [`Tried::WouldFault`]. Like [`Reader::get`], it marks the pages that it finds as used.
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

    /// As [`Reader::get`], as a future for any executor. No thread blocks while pages are read from disk, so one
    /// thread can have thousands of such reads under way. The read sees the rows as of its first poll, and keeps the
    /// memtables and files of that moment until it completes or is dropped. It can be dropped at any time.
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

    /// Whether `key` has a value. It costs as much as [`Reader::get`] without loading the value, and it also works
    /// for tables with column groups.
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
        self.at_version().lend_or_wait(self.has(key.as_ref()), |found, _| Some(found.is_some()))
    }

    /// As [`Reader::contains_key`], but only with what is in memory; see [`Reader::try_get`].
    ///
    /// # Errors
    ///
    /// As [`Reader::contains_key`].
    pub fn try_contains_key(&self, key: impl AsRef<[u8]>) -> Result<Tried<bool>> {
        self.at_version().try_now(&self.has(key.as_ref()))
    }

    /// As [`Reader::contains_key`], as a future; see [`Reader::get_async`].
    ///
    /// # Errors
    ///
    /// As [`Reader::contains_key`].
    pub async fn contains_key_async(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.at_version().wait_for_key(self.has(key.as_ref())).await
    }

    /// The values of `keys`, in the order of the keys, all as of one moment. The keys are looked up together: all
    /// missing pages of one index level are read from disk at the same time, and then those of the next level. A page
    /// that several keys need is read once. At most 256 keys are looked up at once, or fewer if their pages would
    /// take more than a quarter of the cache.
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

    /// As [`Reader::multi_get`], as a future; see [`Reader::get_async`].
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

    /// The rows with keys in `range`, in key order. The range can be iterated from both ends.
    ///
    /// A range sees the rows as of the moment at which it was made. It pins this version until it is dropped, so
    /// compactions keep the older versions that it needs: do not hold a range open for long while rows are
    /// overwritten. Between two rows the range holds on to no replaced files or memtables. The first row costs about
    /// as much as a [`Reader::get`]. After that the range reads ahead, up to an eighth of the cache and at most 128
    /// MiB.
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
    /// Making a range never fails. The range yields the errors of [`Reader::get`]. After its first error it keeps
    /// yielding this error.
    pub fn range(&self, range: impl IntoKeyRange) -> Range<V> {
        self.range_within(bounds::owned(&range))
    }

    /// As [`Reader::range`], for futures. The scan pins its version from this call on, but it holds files and
    /// memtables only while a future waits for a row.
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

    /// The rows whose keys begin with `prefix`; see [`Reader::range`]. If the table has [prefix
    /// filters](crate::TableOptions::filter_prefix_bytes), files without such keys are not read.
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

    /// All rows; see [`Reader::range`].
    pub fn iter(&self) -> Range<V> {
        self.range(..)
    }

    /// Whether the reader sees no rows. It costs as much as finding the first row.
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

    /// A cursor over all rows, which can seek and move in both directions. It shows the rows as of this call.
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
    /// Making a cursor never fails. Its moves return the errors of [`Reader::get`].
    pub fn cursor(&self) -> Cursor<V> {
        self.cursor_in(..)
    }

    /// As [`Reader::cursor`], limited to the rows with keys in `range`. A seek to a key outside the range goes to the
    /// first or last row of the range, or finds no row. Readahead stops at the bounds of the range.
    pub fn cursor_in(&self, range: impl IntoKeyRange) -> Cursor<V> {
        let bounds = bounds::owned(&range);
        Cursor::new(self.rows(bounds.clone()), bounds)
    }

    /// Loads what a read of `range` from its start will need, up to `limits`: index nodes, data pages of this
    /// reader's column groups, and large values. It reads each level of the index in one round. From a large range, it
    /// loads at most as much as a quarter of the cache holds. The pages are not pinned.
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
    /// Returns the wanted contents of the rows of `keys`, in the same order: of the first that fit in
    /// [`AnswerBytes::ROUND`], and of at least one.
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

    /// The question for the wanted contents of the rows with `keys`.
    fn of_keys<'k, K>(&'k self, keys: &'k [K], most: AnswerBytes, own: Option<&'k OwnRows>) -> ManyKeys<'k, K, V> {
        ManyKeys { keys, own, wanted: &self.wanted, most, content: PhantomData }
    }

    /// The question for the wanted content of the row with `key`.
    #[inline]
    fn value_of<'k>(
        &'k self,
        key: &'k [u8],
    ) -> OneKey<'k, impl Fn(&mut PointRead<'_, '_>, &Session) -> Result<Option<V>, Stop>> {
        self.of_key(key, |read, session| content_of(read, session, session.cache(), &self.wanted))
    }

    /// The question whether `key` has a value.
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

    /// As [`Reader::range_within`], without the public type around the rows. If the table cannot be read in this
    /// form, the rows fail.
    fn rows(&self, bounds: bounds::Owned) -> RangeRows {
        let (own, read) = self.work.map_or((None, None), |work| work.read_range(self.table.id(), &bounds));
        let session = self.table.session(Reason::Scan);
        let rows = RangeRows::new(session, &self.table, self.wanted, self.pin(), bounds).within(own, read);
        match V::check(&self.table) {
            Ok(()) => rows,
            Err(error) => rows.failed(error),
        }
    }

    /// Loads the pages that a read of `range` in `direction` will need, in the column groups of this reader.
    fn prefetch_in(&self, range: &impl IntoKeyRange, limits: AtMost, direction: Direction) -> Result<Prefetched> {
        let (low, high) = range.bounds();
        let groups = V::groups(&self.table, &self.wanted);
        self.look(|table| {
            let reading = ReadPlan { low, high, direction, limits, groups, at: table.at, ..ReadPlan::ALL };
            precharge::precharge(&self.table.session(Reason::Precharge), table, &reading)
        })
    }
}
