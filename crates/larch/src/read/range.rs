//! Iterating over a range of keys from both ends. The iterator owns its snapshot and holds neither old files nor old
//! memtables: between two rows it takes the newest view and finds its place again, and while nobody asks it for a row,
//! whoever makes a new view takes the old one away from it.
//!
//! All forms of taking a row are one function, `attempt`, which never waits. A bound closes in on a row when the row is given,
//! not before: a try that would fault, or a future that is dropped, takes none along.

use super::again::Again;
use super::found::Found;
use super::merge::{Loads, Merge};
use super::precharge::Charge;
use super::tried::Tried;
use super::wanted::Wanted;
use super::{Key, Parts, Value};
use crate::db::Handle;
use crate::error::{Error, Result};
use crate::manifest::{DbFile, TableInfo};
use crate::parts::MAX_GROUPS;
use crate::snapshot::Pin;
use crate::stats;
use os::sync::{Arc, Mutex};
use pages::gauge::Holding;
use pages::{Admit, PageCache, PageRef, PageSource, Reason, Session, Stop, Waits, retry, together};
use sst::precharge::{Reading, is_empty};
use sst::{Direction, Limits, Readahead, Row, StoredValue, Streak};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{self, Bound};
use std::task::{Context, Poll, ready};

/// Most that the files of a range ask ahead together, which is an eighth of the cache at most: enough that a scan waits for
/// the disk's rate and not for its answers.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// A range limited to so many rows reads nothing ahead: a precharge brings what it needs, and what lies beyond it would be
/// read in vain. A precharge of more may not fit at once.
const CHARGED_ROWS: u64 = 1000;

/// How far a range asks ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache) -> Readahead {
    Readahead::growing(ahead_bytes(cache))
}

/// A reader of a table in `cache`, which may ask as far ahead as a range does whatever the cache keeps of it.
pub(crate) fn session(cache: &Arc<PageCache>, reason: Reason, admit: Admit) -> Session {
    Session::new(cache, reason, admit).with_ahead_bytes(ahead_bytes(cache))
}

/// Memory for what one reader asks ahead in `cache`.
pub(crate) fn ahead_bytes(cache: &PageCache) -> u64 {
    MAX_AHEAD_BYTES.min(cache.budget_bytes() / 8)
}

/// Rows of a key range in order, as of one version. Double-ended; yields `Result` and stays failed after an error.
#[must_use = "a range reads nothing until it is iterated"]
pub struct Range(Rows);

/// As [`Range`], with some parts of the rows; see [`Selection`](crate::Selection).
#[must_use = "a range reads nothing until it is iterated"]
pub struct PartRange(Rows);

/// What both are made of.
pub(crate) struct Rows {
    handle: Arc<Handle>,
    table: Arc<TableInfo>,
    wanted: Wanted,
    session: Session,
    pin: Arc<Pin>,
    /// What is left: both bounds close in on each other.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// `None` until the first row is asked for.
    ends: Option<Registered>,
    /// Rows that come next at one of the ends and need no merging. They are taken without the lock of the ends: they hold a
    /// page and no file, and whatever view comes, they are the rows of this version.
    following: Option<Following>,
    /// What is kept of the cache with them.
    followed_pins: Holding,
    /// Rows still to be given at most; without a limit `u64::MAX`.
    left: u64,
    charging: Charging,
    /// Of the row found last, if it is in a file: its parts in the groups wanted beside the main one, in their order.
    beside_main: Vec<StoredValue>,
    ended: bool,
    failed: OnceCell<Error>,
    /// A poll is waiting for pages.
    is_fetching: bool,
    /// Whether who takes rows whose parts are loaded later loads them.
    loads: Cell<Loads>,
    /// Parts of the row given last lie outside their pages and were not loaded.
    offers_outside: Cell<bool>,
}

/// Whether what the rows up to a limit need is read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charging {
    /// As soon as something is missing.
    IfMissing,
    /// Once the row is given of which a part was missing: so it will be of those after it.
    AfterRow,
    /// Now.
    Due,
    /// It was.
    Done,
}

/// The two places.
#[derive(Debug, Default)]
struct Ends {
    front: Option<End>,
    back: Option<End>,
    /// Somebody waits for pages of their files, which must not go meanwhile.
    is_asked: bool,
    /// A row was looked for since the hand of the registry came by.
    is_used: bool,
}

impl Ends {
    /// Those of views before `generation`, unless somebody waits.
    fn take_old(&mut self, generation: u64) -> impl Iterator<Item = End> + use<> {
        let is_free = !self.is_asked;
        let old = |end: &mut End| is_free && end.generation < generation;
        self.front.take_if(old).into_iter().chain(self.back.take_if(old))
    }

    /// Both, unless somebody waits.
    fn take_all(&mut self) -> impl Iterator<Item = End> + use<> {
        self.take_old(u64::MAX)
    }
}

/// One of the two places.
#[derive(Debug)]
struct End {
    merge: Merge,
    generation: u64,
    /// What is being read ahead for the rows up to a limit.
    charge: Option<Charge>,
    /// What the merge keeps of the cache.
    pins: Holding,
    /// Rows until that is counted again.
    uncounted: u8,
}

/// What a merge keeps changes little from page to page, so it is counted again after so many rows.
const ROWS_A_COUNT: u8 = 16;

/// Whether ranges other than one that keeps `own_bytes` keep more than a `share`th of the cache.
fn is_crowded(cache: &PageCache, own_bytes: u64, share: u64) -> bool {
    cache.cursors().bytes().saturating_sub(own_bytes) > cache.budget_bytes() / share
}

/// Beyond this share of the cache for the places of all ranges, those that were not used lately are given up, and a range
/// keeps its own no longer than a row takes. One range alone keeps its places whatever they take.
const PLACES_SHARE: u64 = 8;

/// Beyond this share a range gives up the page that it follows, too, and keeps its key alone.
const PAGES_SHARE: u64 = 4;

/// Rows that come next at one end.
struct Following {
    streak: Streak,
    /// View of the end where they began; or a newer one, and the end is gone.
    generation: u64,
    /// Key of the next row, before it is the bound.
    key: Vec<u8>,
    /// Where in the page the value of the row given last lies.
    value: ops::Range<usize>,
}

/// The ranges that may hold a view. A range enters when it is first asked for a row and leaves when it ends or is dropped,
/// so that the registry never holds more than the ranges that are open.
#[derive(Debug, Default)]
pub struct Ranges(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    /// Number of the range that enters next.
    next: u64,
    /// Where the search for places that are not used goes on.
    hand: u64,
    open: BTreeMap<u64, Arc<Mutex<Ends>>>,
}

/// The two places of a range, which is in the registry while this lives.
struct Registered {
    ends: Arc<Mutex<Ends>>,
    number: u64,
    ranges: Arc<Ranges>,
}

/// Ranges that are looked at while the registry is locked once.
const WALKED_AT_ONCE: usize = 64;

/// Ranges that one range looks at for places that it can take from them, each time it finds the cache crowded.
const LOOKED_AT: usize = 32;

impl Ranges {
    fn enter(self: &Arc<Self>) -> Registered {
        let ends = Arc::default();
        let mut registry = self.0.lock();
        let number = registry.next;
        registry.next += 1;
        registry.open.insert(number, Arc::clone(&ends));
        drop(registry);
        Registered { ends, number, ranges: Arc::clone(self) }
    }

    /// How many ranges have been asked for a row and have neither ended nor been dropped.
    pub fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// Takes views before `generation` away from ranges that no thread asks for a row at this moment; a range in use gives
    /// its old view back by itself. The caller holds no lock: memory is freed here, and files are removed.
    pub fn let_go(&self, generation: u64) {
        let (mut next, end) = (0, self.0.lock().next);
        while next < end {
            let some: Vec<(u64, Arc<Mutex<Ends>>)> =
                self.0.lock().open.range(next..end).take(WALKED_AT_ONCE).map(|(n, ends)| (*n, ends.clone())).collect();
            next = some.last().map_or(end, |(number, _)| number + 1);
            for (_, ends) in some {
                let gone = ends.try_lock().map(|mut ends| ends.take_old(generation).collect::<Vec<_>>());
                drop(gone);
            }
        }
    }
}

impl Registered {
    /// Takes the places of some other ranges that were not asked for a row for a round of the hand, as long as `goes_on`.
    /// They find their places again by their keys. The caller has not locked its own.
    fn take_unused(&self, goes_on: impl Fn() -> bool) {
        let some: Vec<(u64, Arc<Mutex<Ends>>)> = {
            let mut registry = self.ranges.0.lock();
            let hand = registry.hand;
            let round = registry.open.range(hand..).chain(registry.open.range(..hand));
            let some: Vec<_> = round.take(LOOKED_AT).map(|(number, ends)| (*number, ends.clone())).collect();
            registry.hand = some.last().map_or(0, |(number, _)| number + 1);
            some
        };
        for (_, ends) in some.into_iter().filter(|(number, _)| *number != self.number) {
            if !goes_on() {
                break;
            }
            let gone = ends.try_lock().map(|mut ends| {
                let is_used = std::mem::take(&mut ends.is_used);
                (!is_used).then(|| ends.take_all().collect::<Vec<_>>())
            });
            drop(gone);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // The lock is released before the places are dropped.
        let left = self.ranges.0.lock().open.remove(&self.number);
        drop(left);
    }
}

/// A row of a [`Range`] or a [`PartRange`]. What of it lies outside its pages is not loaded yet.
pub struct RowRef<'r> {
    rows: &'r Rows,
    key: &'r [u8],
    given: Given,
}

/// Where the row given last is.
pub(crate) enum Given {
    Found(Found),
    /// In the page of the streak that was followed.
    Followed,
}

impl Given {
    /// Whether it is in a memtable.
    pub(crate) fn is_in_memtable(&self) -> bool {
        matches!(self, Self::Found(Found::Memory(_)))
    }
}

impl RowRef<'_> {
    /// The key.
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// How many parts it has: those of the selection, one in a [`Range`].
    pub fn part_count(&self) -> usize {
        self.rows.wanted.len()
    }

    /// Length of part `i` in bytes, without loading it. Parts are counted from 0 in the order of the selection.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    pub fn part_len(&self, i: usize) -> u64 {
        let wanted = &self.rows.wanted;
        match &self.given {
            Given::Followed => self.followed(i).1.len() as u64,
            Given::Found(Found::Memory(row)) => wanted.place(i, row.value()).len() as u64,
            Given::Found(Found::File(row, _)) => wanted.stored(i, row, &self.rows.beside_main).len(),
        }
    }

    /// Part `i`, if it needs no page of its own.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    pub fn inline_part(&self, i: usize) -> Option<&[u8]> {
        let wanted = &self.rows.wanted;
        match &self.given {
            Given::Followed => {
                let (page, place) = self.followed(i);
                Some(&page[place])
            }
            Given::Found(Found::Memory(row)) => Some(&row.value()[wanted.place(i, row.value())]),
            Given::Found(Found::File(row, _)) => wanted.stored(i, row, &self.rows.beside_main).inline(),
        }
    }

    /// Where part `i` of the row followed last lies.
    fn followed(&self, i: usize) -> (&PageRef, ops::Range<usize>) {
        assert_eq!(self.rows.wanted.group(i), 0, "rows with parts in other pages are not followed");
        let (page, place) = self.rows.followed();
        (page, place.clone())
    }

    /// Part `i`, read from disk if it lies outside its page. After an error the range has failed.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    pub fn part(&self, i: usize) -> Result<Value> {
        match &self.given {
            Given::Followed => {
                let (page, place) = self.followed(i);
                Ok(Value::from_page(self.rows.session.cache(), page, place))
            }
            Given::Found(Found::Memory(row)) => {
                Ok(Value::from_memory(row.clone(), self.rows.wanted.place(i, row.value())))
            }
            Given::Found(Found::File(row, file)) => self.rows.part(i, row, file),
        }
    }

    /// All parts. Those that lie outside their pages are read together. After an error the range has failed.
    pub fn parts(&self) -> Result<Parts> {
        self.rows.parts(&self.given)
    }

    /// The number of the only part.
    fn only(&self) -> usize {
        assert_eq!(self.part_count(), 1, "a row of several parts, or none, has no one value: ask for its parts");
        0
    }

    /// Length of the value in bytes, without loading it.
    ///
    /// # Panics
    ///
    /// If the selection has not exactly one group. So do [`RowRef::inline_value`] and [`RowRef::value`].
    pub fn value_len(&self) -> u64 {
        self.part_len(self.only())
    }

    /// The value, if it needs no page of its own.
    pub fn inline_value(&self) -> Option<&[u8]> {
        self.inline_part(self.only())
    }

    /// The value, read from disk if it lies outside its row's page. After an error the range has failed.
    pub fn value(&self) -> Result<Value> {
        self.part(self.only())
    }
}

impl Range {
    pub(crate) fn new(rows: Rows) -> Self {
        Self(rows)
    }

    /// A range that answers with `error`.
    pub(crate) fn failed(self, error: Error) -> Self {
        Self(self.0.failed(error))
    }

    /// At most `rows` of the rows, from both ends together. Since it is known then how far a reader will come, all that it
    /// misses is read from disk together, a round for each level of the index, as soon as the first page is missing.
    pub fn limit(self, rows: u64) -> Self {
        Self(self.0.limit(rows))
    }

    /// The rest of the range in at most `parts` ranges of about equal stored bytes, in order: each row is in one of them.
    /// They see what this one sees, and each can go to a thread of its own. There are fewer where there are too few pages
    /// to tell apart, and one if the range has a limit. Reads index nodes only; what is in memory is not kept.
    pub fn split(self, parts: usize) -> Result<Vec<Self>> {
        Ok(self.0.split(parts)?.into_iter().map(Self).collect())
    }

    /// The next row from the front, borrowed; the form for those who do not want an allocation a row.
    pub fn next_row(&mut self) -> Result<Option<RowRef<'_>>> {
        self.0.advance(Direction::Forward)
    }

    /// The next row from the back, borrowed.
    pub fn next_row_back(&mut self) -> Result<Option<RowRef<'_>>> {
        self.0.advance(Direction::Backward)
    }

    /// The next row from the front if all that it needs is in memory. Touches no disk and waits for nothing; where the row
    /// would fault the range stays where it is.
    ///
    /// ```
    /// # fn main() -> larch::Result<()> {
    /// # let db = larch::Database::open(larch::doc::directory("try_next"))?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let mut rows = fruit.iter();
    /// let row = match rows.try_next()? {
    ///     larch::Tried::Ready(row) => row,
    ///     // For another thread, if this one has better things to do.
    ///     larch::Tried::WouldFault => rows.next().transpose()?,
    /// };
    /// assert_eq!(row.expect("there is one").0[..], *b"apple");
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_next(&mut self) -> Result<Tried<Option<(Key, Value)>>> {
        self.0.try_once(Direction::Forward, |row| row.with_value())
    }

    /// As [`Range::try_next`], from the back.
    pub fn try_next_back(&mut self) -> Result<Tried<Option<(Key, Value)>>> {
        self.0.try_once(Direction::Backward, |row| row.with_value())
    }

    pub(super) fn into_rows(self) -> Rows {
        self.0
    }
}

impl PartRange {
    pub(crate) fn new(rows: Rows) -> Self {
        Self(rows)
    }

    /// At most `rows` of the rows, see [`Range::limit`].
    pub fn limit(self, rows: u64) -> Self {
        Self(self.0.limit(rows))
    }

    /// The rest of the range in at most `parts` ranges of about equal stored bytes, in order: each row is in one of them.
    /// They see what this one sees, and each can go to a thread of its own. There are fewer where there are too few pages
    /// to tell apart, and one if the range has a limit. Reads index nodes only; what is in memory is not kept.
    pub fn split(self, parts: usize) -> Result<Vec<Self>> {
        Ok(self.0.split(parts)?.into_iter().map(Self).collect())
    }

    /// The next row from the front, borrowed; the form for those who do not want an allocation a row.
    pub fn next_row(&mut self) -> Result<Option<RowRef<'_>>> {
        self.0.advance(Direction::Forward)
    }

    /// The next row from the back, borrowed.
    pub fn next_row_back(&mut self) -> Result<Option<RowRef<'_>>> {
        self.0.advance(Direction::Backward)
    }

    /// The next row from the front if all that it needs is in memory. Touches no disk and waits for nothing; where the row
    /// would fault the range stays where it is.
    ///
    /// ```
    /// # fn main() -> larch::Result<()> {
    /// # let db = larch::Database::open(larch::doc::directory("try_next"))?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let mut rows = fruit.select(None::<&str>)?.iter();
    /// let row = match rows.try_next()? {
    ///     larch::Tried::Ready(row) => row,
    ///     // For another thread, if this one has better things to do.
    ///     larch::Tried::WouldFault => rows.next().transpose()?,
    /// };
    /// assert_eq!(row.expect("there is one").0[..], *b"apple");
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_next(&mut self) -> Result<Tried<Option<(Key, Parts)>>> {
        self.0.try_once(Direction::Forward, |row| row.with_parts())
    }

    /// As [`PartRange::try_next`], from the back.
    pub fn try_next_back(&mut self) -> Result<Tried<Option<(Key, Parts)>>> {
        self.0.try_once(Direction::Backward, |row| row.with_parts())
    }

    pub(super) fn into_rows(self) -> Rows {
        self.0
    }
}

impl Rows {
    /// The rest in at most `parts` parts.
    fn split(self, parts: usize) -> Result<Vec<Self>> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        if parts < 2 || self.ended || self.left < u64::MAX {
            return Ok(vec![self]);
        }
        let (core, at) = (&self.handle.core, self.pin.version());
        let view = core.view_of(&self.pin);
        let range = (self.low.clone(), self.high.clone());
        let points = stats::split_points(core, view.table(&self.table, at)?, &range, parts as u64);
        let points = points.map_err(|error| core.outdated(error, at))?;
        let part = |low, high| {
            let session = session(&core.cache, Reason::Scan, self.session.admit());
            Self::new(session, self.handle.clone(), self.table.clone(), self.wanted, self.pin.clone(), (low, high))
        };
        let mut split = Vec::with_capacity(points.len() + 1);
        let mut low = self.low;
        for point in points {
            let next = Bound::Included(point.at.clone());
            split.push(part(std::mem::replace(&mut low, next), Bound::Excluded(point.at)));
        }
        split.push(part(low, self.high));
        Ok(split)
    }
}

impl Rows {
    pub(crate) fn new(
        session: Session,
        handle: Arc<Handle>,
        table: Arc<TableInfo>,
        wanted: Wanted,
        pin: Arc<Pin>,
        (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Self {
        let ended = is_empty(&low.as_ref().map(Vec::as_slice), &high.as_ref().map(Vec::as_slice));
        // A range without keys asks no file.
        let failed = if ended { handle.core.view_of(&pin).files_of(&table).err() } else { None };
        let followed_pins = session.cache().cursors().holding();
        // What the cache does not keep would be read again.
        let charging = if session.admit() == Admit::Keep { Charging::IfMissing } else { Charging::Done };
        Self {
            handle,
            table,
            wanted,
            session,
            pin,
            low,
            high,
            ends: None,
            following: None,
            followed_pins,
            left: u64::MAX,
            charging,
            beside_main: Vec::new(),
            ended,
            failed: failed.map_or_else(OnceCell::new, OnceCell::from),
            is_fetching: false,
            loads: Cell::new(Loads::Nothing),
            offers_outside: Cell::new(false),
        }
    }

    /// What reads them.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn limit(self, rows: u64) -> Self {
        let left = self.left.min(rows);
        Self { left, ended: self.ended || left == 0, ..self }
    }

    /// Rows that answer with `error`.
    pub(crate) fn failed(self, error: Error) -> Self {
        Self { failed: OnceCell::from(error), ..self }
    }

    /// The last error of this range, or the first.
    fn fail(&self, error: impl Into<Error>) -> Error {
        self.failed.get_or_init(|| error.into()).clone()
    }

    /// The same for an error about the file of the row given last.
    fn fail_in(&self, error: pages::Error) -> Error {
        self.fail(self.handle.core.outdated(error.into(), self.pin.version()))
    }

    /// After an error: `Ok` if the range can go on in newer files, where it finds its place again.
    fn recover(&mut self, error: Error) -> Result<()> {
        let outcome = Again::new(&self.handle.core, Some(&self.pin)).after(error, self.pin.version());
        self.session.release();
        self.let_go();
        outcome.map_err(|error| self.fail(error))
    }

    /// Part `i` of the row found last, which is in a file; waits for it.
    fn part(&self, i: usize, row: &Row, file: &DbFile) -> Result<Value> {
        let stored = self.wanted.stored(i, row, &self.beside_main);
        if stored.inline().is_none() {
            self.note_load();
        }
        let loaded = retry(&self.session, || stored.load(&self.session, &file.sst.file));
        Ok(Value::from_file(self.session.cache(), loaded.map_err(|error| self.fail_in(error))?))
    }

    /// A part that lies outside its page is loaded.
    fn note_load(&self) {
        self.offers_outside.set(false);
        self.loads.set(Loads::Parts);
    }

    /// Key of the row given last in a direction.
    pub(super) fn last_key(&self, direction: Direction) -> &[u8] {
        let bound = match direction {
            Direction::Forward => &self.low,
            Direction::Backward => &self.high,
        };
        let Bound::Excluded(key) = bound else { unreachable!("finding a row closes in on it") };
        key
    }

    /// The next row, nothing of it loaded that lies outside its pages; waits for it.
    pub(crate) fn next(&mut self, direction: Direction) -> Result<Option<Given>> {
        // Whoever did not load the last value that lay outside will hardly load the next.
        if self.offers_outside.replace(false) {
            self.loads.set(Loads::Nothing);
        }
        let given = self.wait_for(direction, self.loads.get(), |row| match row.spot {
            Spot::Found(found) => Ok(Given::Found(found)),
            Spot::Page(..) => Ok(Given::Followed),
        })?;
        if let Some(Given::Found(Found::File(row, _))) = &given {
            let outside = |i| self.wanted.stored(i, row, &self.beside_main).inline().is_none();
            self.offers_outside.set((0..self.wanted.len()).any(outside));
        }
        Ok(given)
    }

    /// Where the row given last lies, which was followed.
    fn followed(&self) -> (&PageRef, &ops::Range<usize>) {
        let following = self.following.as_ref().expect("nobody moves on from a row while it is in use");
        (following.streak.page(), &following.value)
    }

    /// All parts of the row given last. Those that lie outside their pages are read together, and waited for.
    pub(crate) fn parts(&self, given: &Given) -> Result<Parts> {
        let Given::Found(found) = given else {
            let (page, place) = self.followed();
            return Ok(followed_parts(&self.wanted, self.session.cache(), page, place));
        };
        if self.offers_outside.get() {
            self.note_load();
        }
        let load = || load_parts(&self.session, &self.wanted, &self.beside_main, found);
        retry(&self.session, load).map_err(|error| self.fail_in(error))
    }

    /// What `take`, which loads the parts wanted, makes of the next row; waits for it.
    pub(super) fn wait<T>(
        &mut self,
        direction: Direction,
        take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>> {
        self.wait_for(direction, Loads::Parts, take)
    }

    fn wait_for<T>(
        &mut self,
        direction: Direction,
        loads: Loads,
        mut take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>> {
        loop {
            match self.attempt(direction, (Waits::Now, loads), &mut take)? {
                Tried::Ready(row) => return Ok(row),
                Tried::WouldFault => {
                    if let Err(error) = self.session.fetch() {
                        self.recover(error.into())?;
                    }
                }
            }
        }
    }

    /// The next row, or what `take` makes of it, if all they need is in memory; the range stays where it is otherwise.
    pub(super) fn try_once<T>(
        &mut self,
        direction: Direction,
        take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        self.attempt(direction, (Waits::Later, Loads::Parts), take)
    }

    /// The try form: as far as pages in memory allow. Where something is missing the source has noted it; to be run again
    /// after a fetch, it goes on where it was. The row counts as given once `take` has what it needs of it.
    fn attempt<T>(
        &mut self,
        direction: Direction,
        (waits, loads): (Waits, Loads),
        take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        self.session.set_waits(waits);
        let tried = self.attempt_as_set(direction, (waits, loads), take);
        self.session.set_waits(Waits::Now);
        tried
    }

    fn attempt_as_set<T>(
        &mut self,
        direction: Direction,
        (waits, loads): (Waits, Loads),
        mut take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        if self.ended {
            self.let_go();
            return Ok(Tried::Ready(None));
        }
        loop {
            let found = match self.follow(direction, &mut take) {
                Some(Ok(row)) => {
                    self.count_given();
                    return Ok(Tried::Ready(Some(row)));
                }
                Some(Err(stop)) => Tried::of(Err(stop)),
                None => self.find(direction, (waits, loads), &mut take),
            };
            match found {
                Ok(Tried::Ready(row)) => {
                    if row.is_some() {
                        self.count_given();
                    } else {
                        self.ended = true;
                        self.let_go();
                    }
                    self.session.release();
                    return Ok(Tried::Ready(row));
                }
                Ok(Tried::WouldFault) => return Ok(Tried::WouldFault),
                Err(error) => self.recover(error)?,
            }
        }
    }

    /// Nobody waits for the row that is being looked for: gives back the pages fetched for it, and the view if there is a
    /// newer one.
    fn give_up(&mut self) {
        self.session.release();
        let Some(Registered { ends, .. }) = &self.ends else { return };
        ends.lock().is_asked = false;
        drop(self.take_old());
    }

    /// The places in views before the newest.
    fn take_old(&self) -> Vec<End> {
        let Some(Registered { ends, .. }) = &self.ends else { return Vec::new() };
        ends.lock().take_old(self.handle.core.generation()).collect()
    }

    /// One of the rows up to the limit was given.
    #[inline]
    fn count_given(&mut self) {
        if self.left < u64::MAX {
            self.left -= 1;
            self.ended = self.left == 0;
        }
    }

    /// Gives back the pages and the view of a walk that is over.
    fn let_go(&mut self) {
        self.ends = None;
        self.following = None;
        self.followed_pins.set(0);
        self.beside_main = Vec::new();
    }

    /// The next row, or what `take` makes of it, if it needs no merging. A step.
    #[inline]
    fn follow<T>(
        &mut self,
        direction: Direction,
        mut take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Option<Result<T, Stop>> {
        let Following { streak, generation, key, value } = self.following.as_mut()?;
        if streak.direction() != direction {
            return None;
        }
        let newest = self.handle.core.generation();
        if *generation != newest {
            // Who made the new view may have found the ends in use.
            *generation = newest;
            let gone = self.ends.as_ref().map(|ends| ends.ends.lock().take_old(newest).collect::<Vec<_>>());
            drop(gone);
            if self.handle.core.view().files_of(&self.table).is_err() {
                self.following = None;
                return None;
            }
        }
        let place = streak.next(key)?;
        let (session, spot) = (&self.session, Spot::Page(streak.page(), place.clone()));
        let taken = take(Taken { session, wanted: &self.wanted, beside_main: &[], key, spot });
        if taken.is_ok() {
            streak.pass();
            *value = place;
            let near = match direction {
                Direction::Forward => &mut self.low,
                Direction::Backward => &mut self.high,
            };
            match near {
                Bound::Excluded(last) => std::mem::swap(last, key),
                Bound::Included(_) | Bound::Unbounded => *near = Bound::Excluded(std::mem::take(key)),
            }
        }
        Some(taken)
    }

    /// The next row, or what `take` makes of it, by merging. A step.
    fn find<T>(
        &mut self,
        direction: Direction,
        (waits, loads): (Waits, Loads),
        mut take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Result<Tried<Option<T>>> {
        let (core, at) = (&self.handle.core, self.pin.version());
        let Registered { ends, .. } = self.ends.get_or_insert_with(|| core.ranges.enter());
        // Both are dropped after the lock, as they are declared before it.
        let (view, mut gone) = (OnceCell::new(), Vec::new());
        let mut guard = ends.lock();
        let ends = &mut *guard;
        // Whoever waited for pages goes on where they are.
        let goes_on = std::mem::take(&mut ends.is_asked);
        ends.is_used = true;
        if !goes_on {
            gone.extend(ends.take_old(core.generation()));
        }
        if let Some(Following { streak, generation, .. }) = self.following.take() {
            let end = match streak.direction() {
                Direction::Forward => &mut ends.front,
                Direction::Backward => &mut ends.back,
            };
            if let Some(end) = end.as_mut().filter(|end| end.generation == generation) {
                end.merge.resume(&streak);
            }
        }
        let (place, near, far) = match direction {
            Direction::Forward => (&mut ends.front, &mut self.low, &self.high),
            Direction::Backward => (&mut ends.back, &mut self.high, &self.low),
        };
        let session = &self.session;
        if place.is_none() {
            let view = view.get_or_init(|| core.view_of(&self.pin));
            let table = view.table(&self.table, at)?;
            // What a limited range needs it asks for itself, once something is missing; what lies after it is not wanted.
            let is_charged = self.left <= CHARGED_ROWS && self.session.admit() == Admit::Keep;
            let readahead = if is_charged { Readahead::NONE } else { readahead(session.cache()) };
            let (low, high) = match direction {
                Direction::Forward => (&*near, far),
                Direction::Backward => (far, &*near),
            };
            let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            let merge = Merge::new(session, table, direction, within, readahead);
            let pins = session.cache().cursors().holding();
            *place = Some(End { merge, generation: view.generation, charge: None, pins, uncounted: 0 });
        }
        let End { merge, generation, charge, pins, uncounted } = place.as_mut().expect("it was made above");
        let mut crowded = false;
        let start = near.as_ref().map(Vec::as_slice);
        let between = (start, far.as_ref().map(Vec::as_slice));
        let outcome = (|| {
            if waits == Waits::Now && self.left < u64::MAX && self.charging != Charging::Done {
                if self.charging == Charging::IfMissing {
                    match merge.settle(session, start) {
                        Ok(()) => {}
                        Err(Stop::Fault) => self.charging = Charging::Due,
                        Err(stop) => return Err(stop),
                    }
                }
                if self.charging == Charging::Due {
                    let (low, high) = if direction == Direction::Forward { between } else { (between.1, between.0) };
                    let (limits, groups) = (Limits::rows(self.left), self.wanted.set());
                    let reading = Reading { low, high, direction, limits, groups, at, ..Reading::ALL };
                    let view = core.view_of(&self.pin);
                    // For a table that was just dropped nothing is brought: the next place says that it is gone.
                    if charge.is_none()
                        && let Ok(table) = view.table(&self.table, at)
                    {
                        *charge = Some(Charge::new(session, table, &reading));
                    }
                    if let Some(charge) = charge {
                        charge.pass(session, &reading)?;
                    }
                    self.charging = Charging::Done;
                    session.release();
                }
            }
            let found =
                merge.find(session, between, (self.wanted.set(), loads), &mut self.beside_main).inspect_err(|_| {
                    if waits == Waits::Now && self.left < u64::MAX && self.charging == Charging::IfMissing {
                        self.charging = Charging::AfterRow;
                    }
                })?;
            let Some(found) = found else { return Ok(None) };
            let (wanted, beside_main) = (&self.wanted, &*self.beside_main);
            take(Taken { session, wanted, beside_main, key: merge.key(), spot: Spot::Found(found) }).map(Some)
        })();
        match &outcome {
            Ok(Some(_)) => {
                merge.pass();
                *charge = None;
                if self.charging == Charging::AfterRow {
                    self.charging = Charging::Due;
                }
                match near {
                    Bound::Excluded(last) => {
                        last.clear();
                        last.extend_from_slice(merge.key());
                    }
                    Bound::Included(_) | Bound::Unbounded => *near = Bound::Excluded(merge.key().to_vec()),
                }
                if *uncounted == 0 {
                    pins.set(merge.pinned_bytes());
                    *uncounted = ROWS_A_COUNT;
                }
                *uncounted -= 1;
                let cache = session.cache();
                crowded = is_crowded(cache, pins.bytes() + self.followed_pins.bytes(), PLACES_SHARE);
                let can_follow = !self.wanted.set().any_beside_main() && self.charging != Charging::Due;
                // The place may be given up: then the rest of its page is all that is left of it.
                if can_follow && (merge.is_steady() || crowded) {
                    let streak = merge.streak(far.as_ref().map(Vec::as_slice));
                    let following =
                        |streak| Following { streak, generation: *generation, key: Vec::new(), value: 0..0 };
                    self.following = streak.map(following);
                }
                // It counts beside that of the place, which others may take.
                let page = self.following.as_ref().map(|following| following.streak.page());
                self.followed_pins.set(page.map_or(0, PageRef::cost_bytes));
            }
            // The place may be gone when it is asked again: what was passed stays so.
            Err(Stop::Fault) => {
                ends.is_asked = waits == Waits::Now;
                if let Some(place) = merge.place() {
                    *near = place.map(<[u8]>::to_vec);
                }
            }
            Ok(None) | Err(Stop::Failed(_)) => {}
        }
        let (is_asked, generation) = (ends.is_asked, *generation);
        drop(guard);
        drop(gone);
        // Who made a newer view may have found the ends in use: asked after the lock, so that one of both sees the other.
        if !is_asked && generation != core.generation() {
            drop(self.take_old());
        }
        if crowded {
            self.make_room();
        }
        Tried::of(outcome)
    }

    /// Other ranges keep much of the cache: takes what is not used from them; where that is not enough gives up the places of
    /// this one, which finds them again by its key, and if need be the page that it follows.
    #[cold]
    fn make_room(&mut self) {
        let Some(registered) = &self.ends else { return };
        let cache = self.session.cache();
        let own_bytes = {
            let ends = registered.ends.lock();
            let places: u64 = ends.front.iter().chain(&ends.back).map(|end| end.pins.bytes()).sum();
            places + self.followed_pins.bytes()
        };
        registered.take_unused(|| is_crowded(cache, own_bytes, PLACES_SHARE));
        if !is_crowded(cache, own_bytes, PLACES_SHARE) {
            return;
        }
        let gone = registered.ends.lock().take_all().collect::<Vec<_>>();
        drop(gone);
        if is_crowded(cache, self.followed_pins.bytes(), PAGES_SHARE) {
            self.following = None;
            self.followed_pins.set(0);
        }
    }
}

impl Rows {
    /// The next row, or what `take` makes of it; [`Poll::Pending`] while pages for it are on their way.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        direction: Direction,
        mut take: impl FnMut(Taken<'_>) -> Result<T, Stop>,
    ) -> Poll<Result<Option<T>>> {
        loop {
            if self.is_fetching {
                let fetched = ready!(self.session.poll_fetch(context));
                self.is_fetching = false;
                if let Err(error) = fetched {
                    self.recover(error.into())?;
                }
            }
            match self.attempt(direction, (Waits::Now, Loads::Parts), &mut take)? {
                Tried::Ready(row) => return Poll::Ready(Ok(row)),
                Tried::WouldFault => self.is_fetching = true,
            }
        }
    }

    /// Nobody waits for pages any more.
    pub(super) fn abandon(&mut self) {
        if std::mem::take(&mut self.is_fetching) {
            self.give_up();
        }
    }
}

/// A row just found, and what its parts are loaded with.
pub(super) struct Taken<'r> {
    session: &'r Session,
    wanted: &'r Wanted,
    beside_main: &'r [StoredValue],
    key: &'r [u8],
    spot: Spot<'r>,
}

/// Where a row just found is.
enum Spot<'r> {
    Found(Found),
    /// Its value lies in this page.
    Page(&'r PageRef, ops::Range<usize>),
}

impl Taken<'_> {
    /// Its key and only part. A step.
    pub(super) fn with_value(self) -> Result<(Key, Value), Stop> {
        let value = match self.spot {
            Spot::Page(page, place) => Value::from_page(self.session.cache(), page, place),
            Spot::Found(Found::Memory(row)) => {
                let place = self.wanted.place(0, row.value());
                Value::from_memory(row, place)
            }
            Spot::Found(Found::File(row, file)) => {
                let loaded = self.wanted.stored(0, &row, self.beside_main).load(self.session, &file.sst.file)?;
                Value::from_file(self.session.cache(), loaded)
            }
        };
        Ok((self.key.into(), value))
    }

    /// Its key and all parts. A step.
    pub(super) fn with_parts(self) -> Result<(Key, Parts), Stop> {
        let parts = match &self.spot {
            Spot::Page(page, place) => followed_parts(self.wanted, self.session.cache(), page, place),
            Spot::Found(found) => load_parts(self.session, self.wanted, self.beside_main, found)?,
        };
        Ok((self.key.into(), parts))
    }
}

/// The parts wanted of a row that lies whole in `page`: its value is the part in the main group, all that can be wanted.
fn followed_parts(wanted: &Wanted, cache: &PageCache, page: &PageRef, place: &ops::Range<usize>) -> Parts {
    Parts::of((0..wanted.len()).map(|_| Value::from_page(cache, page, place.clone())))
}

/// The parts wanted of a row; those that lie outside their pages are read together. A step.
fn load_parts(session: &Session, wanted: &Wanted, beside_main: &[StoredValue], found: &Found) -> Result<Parts, Stop> {
    let (row, file) = match found {
        Found::Memory(row) => return Ok(wanted.of_memory(row)),
        Found::File(row, file) => (row, file),
    };
    let mut loaded = [const { None }; MAX_GROUPS];
    together((0..wanted.len()).zip(&mut loaded), |(i, part)| {
        *part = Some(wanted.stored(i, row, beside_main).load(session, &file.sst.file)?);
        Ok(())
    })?;
    let cache = session.cache();
    Ok(Parts::of(loaded.into_iter().flatten().map(|part| Value::from_file(cache, part))))
}

impl Rows {
    fn advance(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        let given = self.next(direction)?;
        Ok(given.map(|given| RowRef { rows: self, key: self.last_key(direction), given }))
    }
}

impl Iterator for Range {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.wait(Direction::Forward, |row| row.with_value()).transpose()
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.wait(Direction::Backward, |row| row.with_value()).transpose()
    }
}

impl Iterator for PartRange {
    type Item = Result<(Key, Parts)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.wait(Direction::Forward, |row| row.with_parts()).transpose()
    }
}

impl DoubleEndedIterator for PartRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.wait(Direction::Backward, |row| row.with_parts()).transpose()
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("Range", f)
    }
}

impl fmt::Debug for PartRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("PartRange", f)
    }
}

impl Rows {
    pub(super) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("low", &self.low).field("high", &self.high).finish_non_exhaustive()
    }
}
