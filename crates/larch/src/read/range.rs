//! Iterating over a range of keys from both ends. The iterator owns its snapshot and holds neither old files nor old
//! memtables: between two rows it takes the newest view and finds its place again.

use super::merge::{Direction, Found, Merge};
use super::value::{Key, Value};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::manifest::TableId;
use crate::snapshot::Pin;
use os::sync::Arc;
use pages::{Admit, Reason, Session, retry};
use sst::Readahead;
use std::ops::Bound;

/// Most that one source of a range asks ahead: a sixth of a millisecond of the disk's sequential rate.
const MAX_AHEAD_BYTES: u64 = 256 << 10;

/// Rows of a key range in order, as of one version. Double-ended; yields `Result` and stays failed after an error.
#[must_use = "a range reads nothing until it is iterated"]
pub struct Range {
    core: Arc<Core>,
    table: TableId,
    session: Session,
    pin: Arc<Pin>,
    /// What is left: both bounds close in on each other.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    front: Option<End>,
    back: Option<End>,
    ended: bool,
    failed: Option<Error>,
}

/// One of the two places.
struct End {
    merge: Merge,
    generation: u64,
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

    /// The value, read from disk if it lies outside its row's page.
    pub fn value(&self) -> Result<Value> {
        let session = &self.range.session;
        match &self.found {
            Found::Memory(row) => Ok(Value::from_memory(row.clone())),
            Found::File(row, file) => {
                let loaded = retry(session, || row.value.load(session, file))?;
                Ok(Value::from_file(session.cache(), loaded))
            }
        }
    }
}

impl Range {
    pub(crate) fn new(
        core: Arc<Core>,
        table: TableId,
        pin: Arc<Pin>,
        low: Bound<Vec<u8>>,
        high: Bound<Vec<u8>>,
    ) -> Self {
        let session = Session::new(&core.cache, Reason::Scan, Admit::Keep);
        let ended = is_empty(&low, &high);
        Self { core, table, session, pin, low, high, front: None, back: None, ended, failed: None }
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
        if let Some(error) = &self.failed {
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
                (self.front, self.back) = (None, None);
                Ok(None)
            }
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    fn find(&mut self, direction: Direction) -> Result<Option<Found>> {
        let (end, near, far) = match direction {
            Direction::Forward => (&mut self.front, &mut self.low, &self.high),
            Direction::Backward => (&mut self.back, &mut self.high, &self.low),
        };
        let generation = self.core.generation();
        if end.as_ref().is_none_or(|end| end.generation != generation) {
            let view = self.core.view();
            let readahead = Readahead::growing(MAX_AHEAD_BYTES.min(self.core.options.cache_bytes / 64));
            let merge = Merge::new(&view, self.table, self.pin.version(), direction, readahead);
            *end = Some(End { merge, generation: view.generation });
        }
        let merge = &mut end.as_mut().expect("made above").merge;
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
