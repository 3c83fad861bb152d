//! Iterating over a range of keys from both ends. The iterator owns its snapshot and holds neither old files nor old
//! memtables: between two rows it takes the newest view and finds its place again, and while nobody asks it for a row,
//! whoever makes a new view takes the old one away from it.

use super::merge::{Direction, Found, Merge};
use super::value::{Key, Value};
use crate::db::Handle;
use crate::error::{Error, Result};
use crate::manifest::TableId;
use crate::snapshot::Pin;
use os::sync::{Arc, Mutex, Weak};
use pages::{Admit, Reason, Session, retry};
use sst::Readahead;
use std::cell::OnceCell;
use std::ops::Bound;

/// Most that one source of a range asks ahead: a sixth of a millisecond of the disk's sequential rate.
const MAX_AHEAD_BYTES: u64 = 256 << 10;

/// Rows of a key range in order, as of one version. Double-ended; yields `Result` and stays failed after an error.
#[must_use = "a range reads nothing until it is iterated"]
pub struct Range {
    handle: Arc<Handle>,
    table: TableId,
    session: Session,
    pin: Arc<Pin>,
    /// What is left: both bounds close in on each other.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    /// `None` until the first row is asked for.
    ends: Option<Arc<Mutex<Ends>>>,
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

/// A row of a [`Range`], its value not loaded yet.
pub struct RowRef<'r> {
    range: &'r Range,
    key: &'r [u8],
    found: Found,
}

impl RowRef<'_> {
    /// The key.
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// Length of the value in bytes, without loading it.
    pub fn value_len(&self) -> u64 {
        match &self.found {
            Found::Memory(row) => row.value().len() as u64,
            Found::File(row, _) => row.value.len(),
        }
    }

    /// The value, if it needs no page of its own.
    pub fn inline_value(&self) -> Option<&[u8]> {
        match &self.found {
            Found::Memory(row) => Some(row.value()),
            Found::File(row, _) => row.value.inline(),
        }
    }

    /// The value, read from disk if it lies outside its row's page. After an error the range has failed.
    pub fn value(&self) -> Result<Value> {
        let session = &self.range.session;
        match &self.found {
            Found::Memory(row) => Ok(Value::from_memory(row.clone())),
            Found::File(row, file) => match retry(session, || row.value.load(session, &file.sst.file)) {
                Ok(loaded) => Ok(Value::from_file(session.cache(), loaded)),
                Err(error) => Err(self.range.failed.get_or_init(|| error.into()).clone()),
            },
        }
    }
}

impl Range {
    pub(crate) fn new(
        handle: Arc<Handle>,
        table: TableId,
        pin: Arc<Pin>,
        low: Bound<Vec<u8>>,
        high: Bound<Vec<u8>>,
    ) -> Self {
        let session = Session::new(&handle.core.cache, Reason::Scan, Admit::Keep);
        let ended = is_empty(&low, &high);
        Self { handle, table, session, pin, low, high, ends: None, ended, failed: OnceCell::new() }
    }

    /// A range that answers with `error`.
    pub(crate) fn failed(self, error: Error) -> Self {
        Self { failed: OnceCell::from(error), ..self }
    }

    /// The next row from the front, borrowed; the form for those who do not want an allocation a row.
    pub fn next_row(&mut self) -> Result<Option<RowRef<'_>>> {
        self.advance(Direction::Forward)
    }

    /// The next row from the back, borrowed.
    pub fn next_row_back(&mut self) -> Result<Option<RowRef<'_>>> {
        self.advance(Direction::Backward)
    }

    fn advance(&mut self, direction: Direction) -> Result<Option<RowRef<'_>>> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        if self.ended {
            return Ok(None);
        }
        match self.find(direction) {
            Ok(Some(found)) => {
                let bound = match direction {
                    Direction::Forward => &self.low,
                    Direction::Backward => &self.high,
                };
                let Bound::Excluded(key) = bound else { unreachable!("finding a row closes in on it") };
                Ok(Some(RowRef { range: self, key, found }))
            }
            Ok(None) => {
                self.ended = true;
                self.ends = None;
                Ok(None)
            }
            Err(error) => Err(self.failed.get_or_init(|| error).clone()),
        }
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
                let readahead = Readahead::growing(MAX_AHEAD_BYTES.min(core.options.cache_bytes / 64));
                let (low, high) = match direction {
                    Direction::Forward => (&*near, far),
                    Direction::Backward => (far, &*near),
                };
                let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                let merge = Merge::new(&view, self.table, self.pin.version(), direction, within, readahead);
                End { merge, generation: view.generation }
            }
        };
        let End { merge, generation } = place.insert(end);
        let Some(found) = merge.next(&self.session, near.as_ref().map(Vec::as_slice))? else { return Ok(None) };
        let key = merge.key();
        let within = match (direction, far) {
            (_, Bound::Unbounded) => true,
            (Direction::Forward, Bound::Included(far)) => key <= far.as_slice(),
            (Direction::Forward, Bound::Excluded(far)) => key < far.as_slice(),
            (Direction::Backward, Bound::Included(far)) => key >= far.as_slice(),
            (Direction::Backward, Bound::Excluded(far)) => key > far.as_slice(),
        };
        if !within {
            return Ok(None);
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

    fn owned(row: Result<Option<RowRef<'_>>>) -> Option<Result<(Key, Value)>> {
        let row = match row {
            Ok(row) => row?,
            Err(error) => return Some(Err(error)),
        };
        let key = row.key().into();
        Some(row.value().map(|value| (key, value)))
    }
}

impl Iterator for Range {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        Self::owned(self.next_row())
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        Self::owned(self.next_row_back())
    }
}

/// Whether no key can lie between the bounds.
fn is_empty(low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high))
        | (Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
    }
}

impl std::fmt::Debug for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range").field("low", &self.low).field("high", &self.high).finish_non_exhaustive()
    }
}
