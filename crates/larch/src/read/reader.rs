//! One table as one reader sees it: as of now or at a pinned version, whole values or some parts of them. Every read of
//! rows goes through it, in the form that the caller chose: it waits for pages, it never waits, or it is a future.

use super::again::Again;
use super::content::Content;
use super::cursor::Cursor;
use super::multi::{AnswerBytes, MultiRead};
use super::range::{Range, RangeRows};
use super::work::Work;
use super::{Tried, multi};
use crate::base::bounds;
use crate::base::error::Result;
use crate::core::handle::TableHandle;
use crate::core::snapshots::PinnedVersion;
use crate::transaction::read_set::ReadSet;
use crate::view::own_writes::OwnRows;
use crate::view::part_list::PartList;
use crate::view::point::PointRead;
use crate::view::precharge::Prefetched;
use crate::view::{TableView, precharge};
use os::sync::{Arc, Mutex};
use pages::{Reason, Session, Stop, Waits, retry, retry_async};
use sst::precharge::ReadPlan;
use sst::{Direction, Groups, Limits, Version};

/// Reads one table, see [`Readable::reader`](crate::Readable::reader).
#[derive(Clone, Debug)]
pub struct Reader<'r> {
    table: &'r TableHandle,
    /// Keeps the version that is read; `None` to read the newest version when a read begins.
    pin: Option<&'r Arc<PinnedVersion>>,
    wanted: PartList,
    /// The transaction that reads.
    work: Option<&'r Work>,
}

/// Reads rows of one table later, for a read that finds their keys little by little: at the version of that read, and as the
/// transaction that reads saw its own writes then.
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
    /// What was asked for of the first of the rows `keys`, in the order of the keys: as many as a round holds, and one at least.
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

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.table, Some(&self.pin), self.wanted)
    }
}

impl<'r> Reader<'r> {
    pub(crate) fn new(table: &'r TableHandle, pin: Option<&'r Arc<PinnedVersion>>, wanted: PartList) -> Self {
        Self { table, pin, wanted, work: None }
    }

    /// Reads in a transaction, which reads at the pinned version.
    pub(crate) fn within(self, work: &'r Work) -> Self {
        Self { work: Some(work), ..self }
    }

    /// The table.
    pub(crate) fn table(&self) -> &'r TableHandle {
        self.table
    }

    /// What reads the whole rows of another table at the same version, and in the same transaction.
    pub(crate) fn of<'t>(&self, table: &'t TableHandle) -> Reader<'t>
    where
        'r: 't,
    {
        Reader { table, pin: self.pin, wanted: PartList::whole(), work: self.work }
    }

    /// The same at the version of `pin`.
    pub(crate) fn pinned<'p>(&self, pin: &'p Arc<PinnedVersion>) -> Reader<'p>
    where
        'r: 'p,
    {
        Reader { table: self.table, pin: Some(pin), wanted: self.wanted, work: self.work }
    }

    /// What reads the same rows later, at the version of `pin`.
    pub(crate) fn later(&self, pin: &Arc<PinnedVersion>) -> LaterReader {
        LaterReader {
            table: self.table.clone(),
            pin: pin.clone(),
            wanted: self.wanted,
            own: self.work.and_then(|work| work.writes.rows(self.table.id())),
            reads: self.work.and_then(|work| work.later_reads(self.table.id())),
        }
    }

    /// Reads some parts of the rows.
    pub(crate) fn parts(self, wanted: PartList) -> Self {
        Self { wanted, ..self }
    }

    /// A read of `key` begins. What a transaction has written there.
    #[inline]
    fn own_rows(&self, key: &[u8]) -> Option<OwnRows> {
        self.work.and_then(|work| work.read_key(self.table.id(), key))
    }

    /// Runs `read` on the table as it is now, or as it was at the pinned version.
    pub(crate) fn look<T>(&self, read: impl Fn(TableView<'_>) -> Result<T>) -> Result<T> {
        let mut again = Again::new(self.table.core(), self.pin);
        loop {
            let (view, at) = again.view();
            match read(view.table(&self.table.identity, at)?) {
                Err(error) => again.after(error, at)?,
                done => return done,
            }
        }
    }

    /// Looks for `key` with `step`, and waits for pages.
    fn find<T>(&self, key: &[u8], step: impl Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>) -> Result<T> {
        let own = self.own_rows(key);
        self.look(|table| {
            let table = table.under(own.as_ref());
            let (session, mut read) = (self.table.session(Reason::Point), PointRead::new(table, key));
            Ok(retry(&session, || step(&mut read, &session))?)
        })
    }

    /// As [`Reader::find`], only with pages that are in memory.
    fn try_find<T>(
        &self,
        key: &[u8],
        step: impl Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>,
    ) -> Result<Tried<T>> {
        let own = self.own_rows(key);
        self.look(|table| {
            let session = self.table.session(Reason::Point);
            session.set_waits(Waits::Never);
            Tried::of(step(&mut PointRead::new(table.under(own.as_ref()), key), &session))
        })
    }

    /// As [`Reader::find`], as a future.
    async fn find_async<T>(
        &self,
        key: &[u8],
        step: impl Fn(&mut PointRead<'_, '_>, &Session) -> Result<T, Stop>,
    ) -> Result<T> {
        let own = self.own_rows(key);
        let mut again = Again::new(self.table.core(), self.pin);
        loop {
            let (view, at) = again.view();
            let mut session = self.table.session(Reason::Point);
            let mut read = PointRead::new(view.table(&self.table.identity, at)?.under(own.as_ref()), key);
            match retry_async(&mut session, |session| step(&mut read, session)).await {
                Ok(found) => return Ok(found),
                Err(error) => again.after(error.into(), at)?,
            }
        }
    }

    /// What was asked for of the row `key`, if there is one.
    pub(crate) fn get<V: Content>(&self, key: &[u8]) -> Result<Option<V>> {
        V::check(self.table)?;
        self.find(key, |read, session| V::get(read, session, session.cache(), &self.wanted))
    }

    /// As [`Reader::get`], only with pages that are in memory.
    pub(crate) fn try_get<V: Content>(&self, key: &[u8]) -> Result<Tried<Option<V>>> {
        V::check(self.table)?;
        self.try_find(key, |read, session| V::get(read, session, session.cache(), &self.wanted))
    }

    /// As [`Reader::get`], as a future.
    pub(crate) async fn get_async<V: Content>(&self, key: &[u8]) -> Result<Option<V>> {
        V::check(self.table)?;
        self.find_async(key, |read, session| V::get(read, session, session.cache(), &self.wanted)).await
    }

    /// The version of the row `key`, if there is one.
    pub(crate) fn version_of(&self, key: &[u8]) -> Result<Option<Version>> {
        self.find(key, |read, session| Ok(read.find(session)?.map(|row| row.version())))
    }

    /// Whether there is a row `key`.
    pub(crate) fn contains_key(&self, key: &[u8]) -> Result<bool> {
        self.find(key, |read, session| Ok(read.find(session)?.is_some()))
    }

    /// As [`Reader::contains_key`], only with pages that are in memory.
    pub(crate) fn try_contains_key(&self, key: &[u8]) -> Result<Tried<bool>> {
        self.try_find(key, |read, session| Ok(read.find(session)?.is_some()))
    }

    /// As [`Reader::contains_key`], as a future.
    pub(crate) async fn contains_key_async(&self, key: &[u8]) -> Result<bool> {
        self.find_async(key, |read, session| Ok(read.find(session)?.is_some())).await
    }

    /// What was asked for of the rows `keys`, in the order of the keys.
    pub(crate) fn multi_get<V: Content, K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        let own = self.work.and_then(|work| work.read_keys(self.table.id(), keys));
        self.multi_get_under(keys, AnswerBytes::ALL, own.as_ref())
    }

    /// As [`Reader::multi_get`], of the first of the keys: as many as a round holds, and one at least.
    pub(crate) fn multi_get_some<V: Content, K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        let own = self.work.and_then(|work| work.read_keys(self.table.id(), keys));
        self.multi_get_under(keys, AnswerBytes::ROUND, own.as_ref())
    }

    fn multi_get_under<V: Content, K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        most: AnswerBytes,
        own: Option<&OwnRows>,
    ) -> Result<Vec<Option<V>>> {
        V::check(self.table)?;
        self.look(|table| {
            let session = self.table.session(Reason::Point);
            multi::get(&session, session.cache(), table.under(own), keys, (&self.wanted, most))
        })
    }

    /// As [`Reader::multi_get`], as a future.
    pub(crate) async fn multi_get_async<V: Content, K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        let own = self.work.and_then(|work| work.read_keys(self.table.id(), keys));
        self.multi_get_under_async(keys, AnswerBytes::ALL, own.as_ref()).await
    }

    async fn multi_get_under_async<V: Content, K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        most: AnswerBytes,
        own: Option<&OwnRows>,
    ) -> Result<Vec<Option<V>>> {
        V::check(self.table)?;
        let mut again = Again::new(self.table.core(), self.pin);
        loop {
            let (view, at) = again.view();
            let mut session = self.table.session(Reason::Point);
            let table = view.table(&self.table.identity, at)?.under(own);
            let mut read = MultiRead::new(table, keys, (&self.wanted, most), session.cache());
            match retry_async(&mut session, |session| read.get(session, session.cache())).await {
                Ok(rows) => return Ok(rows),
                Err(error) => again.after(error.into(), at)?,
            }
        }
    }

    /// The rows with keys in `bounds`, in order, from either end.
    pub(crate) fn range<V: Content>(&self, bounds: bounds::Owned) -> Range<V> {
        Range::new(self.rows::<V>(bounds))
    }

    /// A cursor over the rows with keys in `bounds`.
    pub(crate) fn cursor<V: Content>(&self, bounds: bounds::Owned) -> Cursor<V> {
        Cursor::new(self.rows::<V>(bounds.clone()), bounds)
    }

    /// What gives the rows with keys in `bounds`.
    fn rows<V: Content>(&self, bounds: bounds::Owned) -> RangeRows {
        let (own, read) = self.work.map_or((None, None), |work| work.read_range(self.table.id(), &bounds));
        let session = self.table.session(Reason::Scan);
        let rows = RangeRows::new(session, self.table, self.wanted, self.pin(), bounds).within(own, read);
        match V::check(self.table) {
            Ok(()) => rows,
            Err(error) => rows.failed(error),
        }
    }

    /// The version at which it reads; `None`: the newest one.
    pub(crate) fn version(&self) -> Option<Version> {
        self.pin.map(|pin| pin.version())
    }

    /// Keeps the version that a range sees.
    pub(crate) fn pin(&self) -> Arc<PinnedVersion> {
        self.pin.cloned().unwrap_or_else(|| self.table.pin())
    }

    /// Loads the pages that reading a range in `direction` will need, in `groups` only.
    pub(crate) fn prefetch(
        &self,
        (low, high): bounds::Owned,
        limits: Limits,
        direction: Direction,
        groups: Groups,
    ) -> Result<Prefetched> {
        let (low, high) = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        self.look(|table| {
            let reading = ReadPlan { low, high, direction, limits, groups, at: table.at, ..ReadPlan::ALL };
            precharge::precharge(&self.table.session(Reason::Precharge), table, &reading)
        })
    }
}
