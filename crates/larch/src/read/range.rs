//! Iterating over a range of keys from both ends. The iterator owns its snapshot and holds neither old files nor old
//! memtables: between two rows it takes the newest view and finds its place again, and while nobody asks it for a row,
//! whoever makes a new view takes the old one away from it.

use super::found::Found;
use super::merge::Merge;
use super::precharge::precharge;
use super::view::TableView;
use super::wanted::Wanted;
use super::{Key, Parts, Value};
use crate::db::Handle;
use crate::error::{Error, Result};
use crate::manifest::{DbFile, TableId};
use crate::parts::MAX_GROUPS;
use crate::snapshot::Pin;
use crate::stats;
use os::sync::{Arc, Mutex, Weak};
use pages::{Admit, PageCache, Reader, Reason, Session, Stop, retry, together};
use sst::precharge::{Reading, is_empty};
use sst::{Direction, Limits, Readahead, Row, StoredValue};
use std::cell::OnceCell;
use std::fmt;
use std::ops::Bound;

/// Most that the files of a range ask ahead together, which is an eighth of the cache at most: enough that a scan waits for
/// the disk's rate and not for its answers.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// How far a range asks ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache) -> Readahead {
    Readahead::growing(ahead_bytes(cache))
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
pub(crate) struct Rows<R = Session> {
    handle: Arc<Handle>,
    table: TableId,
    wanted: Wanted,
    reader: R,
    pin: Arc<Pin>,
    /// What is left: both bounds close in on each other.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// `None` until the first row is asked for.
    ends: Option<Arc<Mutex<Ends>>>,
    /// Rows still to be given at most; without a limit `u64::MAX`.
    left: u64,
    /// Whether what the rows up to the limit need has been read ahead.
    is_charged: bool,
    /// Of the row found last, if it is in a file: its parts in the groups wanted beside the main one, in their order.
    beside_main: Vec<StoredValue>,
    ended: bool,
    failed: OnceCell<Error>,
}

/// The two places.
#[derive(Debug, Default)]
struct Ends {
    front: Option<End>,
    back: Option<End>,
}

/// One of the two places.
#[derive(Debug)]
struct End {
    merge: Merge,
    generation: u64,
}

/// The ranges that may hold a view.
#[derive(Debug, Default)]
pub struct Ranges(Mutex<Vec<Weak<Mutex<Ends>>>>);

impl Ranges {
    fn add(&self, ends: &Arc<Mutex<Ends>>) {
        self.0.lock().push(Arc::downgrade(ends));
    }

    /// How many ranges have been asked for a row and are not dropped.
    pub fn count(&self) -> usize {
        self.0.lock().iter().filter(|ends| ends.strong_count() > 0).count()
    }

    /// Takes views before `generation` away from ranges that nobody is asking for a row right now; the others see to it
    /// themselves.
    pub fn let_go(&self, generation: u64) {
        let mut gone = Vec::new();
        self.0.lock().retain(|ends| {
            let Some(ends) = ends.upgrade() else { return false };
            if let Some(mut ends) = ends.try_lock() {
                gone.extend(ends.front.take_if(|end| end.generation < generation));
                gone.extend(ends.back.take_if(|end| end.generation < generation));
            }
            true
        });
        // Memory and files are given back after the lock.
        drop(gone);
    }
}

/// A row of a [`Range`] or a [`PartRange`]. What of it lies outside its pages is not loaded yet.
pub struct RowRef<'r> {
    rows: &'r Rows,
    key: &'r [u8],
    found: Found,
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
        match &self.found {
            Found::Memory(row) => wanted.place(i, row.value()).len() as u64,
            Found::File(row, _) => wanted.stored(i, row, &self.rows.beside_main).len(),
        }
    }

    /// Part `i`, if it needs no page of its own.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    pub fn inline_part(&self, i: usize) -> Option<&[u8]> {
        let wanted = &self.rows.wanted;
        match &self.found {
            Found::Memory(row) => Some(&row.value()[wanted.place(i, row.value())]),
            Found::File(row, _) => wanted.stored(i, row, &self.rows.beside_main).inline(),
        }
    }

    /// Part `i`, read from disk if it lies outside its page. After an error the range has failed.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    pub fn part(&self, i: usize) -> Result<Value> {
        match &self.found {
            Found::Memory(row) => Ok(Value::from_memory(row.clone(), self.rows.wanted.place(i, row.value()))),
            Found::File(row, file) => self.rows.load(|| self.rows.load_part(i, row, file)),
        }
    }

    /// All parts. Those that lie outside their pages are read together. After an error the range has failed.
    pub fn parts(&self) -> Result<Parts> {
        self.rows.parts(&self.found)
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
        let core = &self.handle.core;
        let view = core.view();
        let table = TableView { view: &view, id: self.table, at: self.pin.version() };
        let points = stats::split_points(core, table, &(self.low.clone(), self.high.clone()), parts as u64)?;
        let part = |low, high| {
            let session = Session::new(&core.cache, Reason::Scan, Admit::Keep);
            Self::new(session, self.handle.clone(), self.table, self.wanted, self.pin.clone(), (low, high))
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

impl<R: Reader> Rows<R> {
    pub(crate) fn new(
        reader: R,
        handle: Arc<Handle>,
        table: TableId,
        wanted: Wanted,
        pin: Arc<Pin>,
        (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Self {
        let ended = is_empty(&low.as_ref().map(Vec::as_slice), &high.as_ref().map(Vec::as_slice));
        Self {
            handle,
            table,
            wanted,
            reader,
            pin,
            low,
            high,
            ends: None,
            left: u64::MAX,
            is_charged: false,
            beside_main: Vec::new(),
            ended,
            failed: OnceCell::new(),
        }
    }

    /// What reads them.
    pub(crate) fn reader(&self) -> &R {
        &self.reader
    }

    pub(crate) fn limit(self, rows: u64) -> Self {
        let left = self.left.min(rows);
        Self { left, ended: self.ended || left == 0, ..self }
    }

    /// Rows that answer with `error`.
    pub(crate) fn failed(self, error: Error) -> Self {
        Self { failed: OnceCell::from(error), ..self }
    }

    /// Runs a step that loads something of a row.
    fn load<T>(&self, step: impl FnMut() -> Result<T, Stop>) -> Result<T> {
        retry(&self.reader, step).map_err(|error| self.failed.get_or_init(|| error.into()).clone())
    }

    /// Part `i` of a row in a file. A step.
    fn load_part(&self, i: usize, row: &Row, file: &DbFile) -> Result<Value, Stop> {
        let stored = self.wanted.stored(i, row, &self.beside_main);
        Ok(Value::from_file(self.reader.session().cache(), stored.load(&self.reader, &file.sst.file)?))
    }

    /// All parts of the row found last. Those that lie outside their pages are read together.
    pub(crate) fn parts(&self, found: &Found) -> Result<Parts> {
        let (row, file) = match found {
            Found::Memory(row) => return Ok(self.wanted.of_memory(row)),
            Found::File(row, file) => (row, file),
        };
        let mut parts = [const { None }; MAX_GROUPS];
        self.load(|| {
            let missing = (0..self.wanted.len()).zip(&mut parts).filter(|(_, part)| part.is_none());
            together(missing, |(i, part)| {
                *part = Some(self.load_part(i, row, file)?);
                Ok(())
            })
        })?;
        Ok(Parts::of(parts.into_iter().flatten()))
    }

    /// Key of the row found last in a direction.
    fn last_key(&self, direction: Direction) -> &[u8] {
        let bound = match direction {
            Direction::Forward => &self.low,
            Direction::Backward => &self.high,
        };
        let Bound::Excluded(key) = bound else { unreachable!("finding a row closes in on it") };
        key
    }

    /// The next row, nothing of it loaded that lies outside its pages.
    pub(crate) fn next(&mut self, direction: Direction) -> Result<Option<Found>> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        if self.ended {
            self.let_go();
            return Ok(None);
        }
        match self.find(direction) {
            Ok(Some(found)) => {
                if self.left < u64::MAX {
                    self.left -= 1;
                    self.ended = self.left == 0;
                }
                Ok(Some(found))
            }
            Ok(None) => {
                self.ended = true;
                self.let_go();
                Ok(None)
            }
            Err(error) => Err(self.failed.get_or_init(|| error).clone()),
        }
    }

    /// Gives back the pages and the view of a walk that is over.
    fn let_go(&mut self) {
        self.ends = None;
        self.beside_main = Vec::new();
    }

    fn find(&mut self, direction: Direction) -> Result<Option<Found>> {
        let core = &self.handle.core;
        let ends = self.ends.get_or_insert_with(|| {
            let ends = Arc::default();
            core.ranges.add(&ends);
            ends
        });
        let mut ends = ends.lock();
        let (place, near, far) = match direction {
            Direction::Forward => (&mut ends.front, &mut self.low, &self.high),
            Direction::Backward => (&mut ends.back, &mut self.high, &self.low),
        };
        let end = match place.take() {
            Some(end) if end.generation == core.generation() => end,
            _ => {
                let view = core.view();
                let readahead = readahead(self.reader.session().cache());
                let (low, high) = match direction {
                    Direction::Forward => (&*near, far),
                    Direction::Backward => (far, &*near),
                };
                let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                let table = TableView { view: &view, id: self.table, at: self.pin.version() };
                let merge = Merge::new(&self.reader, table, direction, within, readahead);
                End { merge, generation: view.generation }
            }
        };
        let End { merge, generation } = place.insert(end);
        let start = near.as_ref().map(Vec::as_slice);
        let charge = |near: Bound<&[u8]>, rows: u64| {
            let far = far.as_ref().map(Vec::as_slice);
            let (low, high) = if direction == Direction::Forward { (near, far) } else { (far, near) };
            let (limits, groups, at) = (Limits::rows(rows), self.wanted.set(), self.pin.version());
            let reading = Reading { low, high, direction, limits, groups, at, ..Reading::ALL };
            let view = core.view();
            precharge(&self.reader, TableView { view: &view, id: self.table, at }, &reading)
        };
        let may_charge = self.left < u64::MAX && !self.is_charged;
        if may_charge {
            match merge.settle(&self.reader, start) {
                Ok(()) => {}
                Err(Stop::Fault) => {
                    self.is_charged = true;
                    charge(start, self.left)?;
                }
                Err(Stop::Failed(error)) => return Err((*error).into()),
            }
        }
        let rounds = self.reader.session().rounds();
        let between = (start, far.as_ref().map(Vec::as_slice));
        let found = merge.next(&self.reader, between, self.wanted.set(), &mut self.beside_main)?;
        let Some(found) = found else { return Ok(None) };
        let key = merge.key();
        if may_charge && !self.is_charged && self.left > 1 && self.reader.session().rounds() > rounds {
            // The row was there and some part of it was not: so it will be for those after it.
            self.is_charged = true;
            charge(Bound::Excluded(key), self.left - 1)?;
        }
        match near {
            Bound::Excluded(last) => {
                last.clear();
                last.extend_from_slice(key);
            }
            Bound::Included(_) | Bound::Unbounded => *near = Bound::Excluded(key.to_vec()),
        }
        if *generation != core.generation() {
            // Whoever made the new view found this one in use.
            *place = None;
        }
        Ok(Some(found))
    }
}

impl Rows {
    fn advance(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        let found = self.next(direction)?;
        Ok(found.map(|found| RowRef { rows: self, key: self.last_key(direction), found }))
    }

    /// The next row, owned, with what `of` takes of it.
    fn owned<T>(&mut self, direction: Direction, of: fn(&RowRef<'_>) -> Result<T>) -> Option<Result<(Key, T)>> {
        let row = match self.advance(direction) {
            Ok(row) => row?,
            Err(error) => return Some(Err(error)),
        };
        let key = row.key().into();
        Some(of(&row).map(|rest| (key, rest)))
    }
}

impl Iterator for Range {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.owned(Direction::Forward, |row| row.value())
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.owned(Direction::Backward, |row| row.value())
    }
}

impl Iterator for PartRange {
    type Item = Result<(Key, Parts)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.owned(Direction::Forward, |row| row.parts())
    }
}

impl DoubleEndedIterator for PartRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.owned(Direction::Backward, |row| row.parts())
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
    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("low", &self.low).field("high", &self.high).finish_non_exhaustive()
    }
}
