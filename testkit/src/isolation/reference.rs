//! A transactional store in memory, for testing the checker. It keeps all versions of each row, and its validation
//! can be broken on purpose.
//!
//! Transactions keep their writes to themselves until they commit. A commit is compared with the commits after its
//! snapshot: by what the transaction read if it is serializable, by what it wrote under snapshot isolation.

use super::store::{Commit, OpenTransaction, Row, Store};
use super::transaction::{Direction, Isolation, Mark, Place};
use crate::model::{KeyRange, contains, is_empty_range};
use larch::Version;
use os::sync::Mutex;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;

/// What the validation of serializable transactions leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// Whether it ignores absent keys that the transaction looked up.
    pub ignores_absent_keys: bool,
    /// Whether it ignores ranges that the transaction read.
    pub ignores_ranges: bool,
    /// Whether it ignores present keys that the transaction looked up.
    pub ignores_rows: bool,
}

/// The store.
#[derive(Debug, Default)]
pub struct ReferenceStore {
    broken: Broken,
    rows: Mutex<Rows>,
}

impl ReferenceStore {
    /// Makes an empty store. `broken` says what its validation leaves out.
    pub fn new(broken: Broken) -> Self {
        Self { broken, ..Self::default() }
    }
}

impl Store for ReferenceStore {
    type Error = Infallible;
    type Open<'s> = ReferenceTransaction<'s>;

    fn begin(&self, isolation: Isolation) -> Result<ReferenceTransaction<'_>, Infallible> {
        let snapshot = self.rows.lock().newest;
        Ok(ReferenceTransaction { store: self, isolation, snapshot, writes: Vec::new(), reads: Vec::new() })
    }
}

/// Committed rows.
#[derive(Debug, Default)]
struct Rows {
    newest: Version,
    /// The versions of each row, in ascending order. A version without a mark erases the row.
    versions: BTreeMap<Place, Vec<(Version, Option<Mark>)>>,
}

impl Rows {
    fn get(&self, place: &Place, at: Version) -> Option<Mark> {
        let versions = self.versions.get(place)?;
        versions[..versions.partition_point(|(version, _)| *version <= at)].last()?.1
    }

    fn has_changed(&self, place: &Place, since: Version) -> bool {
        self.versions.get(place).and_then(|versions| versions.last()).is_some_and(|(version, _)| *version > since)
    }

    fn places_within(&self, table: u32, range: &KeyRange) -> Vec<Place> {
        let places = self.versions.keys().filter(|place| place.table == table && contains(range, &place.key));
        places.cloned().collect()
    }

    fn apply(&mut self, write: &Write, version: Version) {
        match write {
            Write::One(place, mark) => {
                let versions = self.versions.entry(place.clone()).or_default();
                versions.pop_if(|(last, _)| *last == version);
                versions.push((version, *mark));
            }
            Write::EraseRange(table, range) => {
                for place in self.places_within(*table, range) {
                    self.apply(&Write::One(place, None), version);
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Write {
    One(Place, Option<Mark>),
    EraseRange(u32, KeyRange),
}

impl Write {
    /// The new value of a row, if the commit changes this row.
    fn at(&self, place: &Place) -> Option<Option<Mark>> {
        match self {
            Self::One(at, mark) => (at == place).then_some(*mark),
            Self::EraseRange(table, range) => (*table == place.table && contains(range, &place.key)).then_some(None),
        }
    }
}

#[derive(Debug)]
enum Read {
    Present(Place),
    Absent(Place),
    Range(u32, KeyRange),
}

/// A transaction of the store.
#[derive(Debug)]
pub struct ReferenceTransaction<'s> {
    store: &'s ReferenceStore,
    isolation: Isolation,
    snapshot: Version,
    writes: Vec<Write>,
    reads: Vec<Read>,
}

impl ReferenceTransaction<'_> {
    fn own(&self, place: &Place) -> Option<Option<Mark>> {
        self.writes.iter().rev().find_map(|write| write.at(place))
    }

    /// Whether a commit after the transaction's snapshot conflicts with the transaction.
    fn has_conflict(&self, rows: &Rows) -> bool {
        let has_changed = |place: &Place| rows.has_changed(place, self.snapshot);
        let within = |table: u32, range: &KeyRange| rows.places_within(table, range).iter().any(has_changed);
        match self.isolation {
            Isolation::Serializable => self.reads.iter().any(|read| match read {
                Read::Present(place) => !self.store.broken.ignores_rows && has_changed(place),
                Read::Absent(place) => !self.store.broken.ignores_absent_keys && has_changed(place),
                Read::Range(table, range) => !self.store.broken.ignores_ranges && within(*table, range),
            }),
            Isolation::Snapshot => self.writes.iter().any(|write| match write {
                Write::One(place, _) => has_changed(place),
                Write::EraseRange(table, range) => within(*table, range),
            }),
        }
    }
}

impl OpenTransaction for ReferenceTransaction<'_> {
    type Error = Infallible;
    type Savepoint = usize;

    fn snapshot(&self) -> Version {
        self.snapshot
    }

    fn get(&mut self, place: &Place) -> Result<Option<Mark>, Infallible> {
        if let Some(own) = self.own(place) {
            return Ok(own);
        }
        let row = self.store.rows.lock().get(place, self.snapshot);
        self.reads.push(if row.is_some() { Read::Present(place.clone()) } else { Read::Absent(place.clone()) });
        Ok(row)
    }

    fn multi_get(&mut self, table: u32, keys: &[Vec<u8>]) -> Result<Vec<Option<Mark>>, Infallible> {
        keys.iter().map(|key| self.get(&Place { table, key: key.clone() })).collect()
    }

    fn range(
        &mut self,
        table: u32,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>, Infallible> {
        let mut places = self.store.rows.lock().places_within(table, range);
        let own = self.writes.iter().filter_map(|write| match write {
            Write::One(place, _) if place.table == table && contains(range, &place.key) => Some(place.clone()),
            _ => None,
        });
        places.extend(own);
        places.sort_unstable();
        places.dedup();
        if direction == Direction::Backward {
            places.reverse();
        }
        let rows = self.store.rows.lock();
        let row = |place: &Place| self.own(place).unwrap_or_else(|| rows.get(place, self.snapshot));
        let seen: Vec<Row> =
            places.into_iter().filter_map(|place| row(&place).map(|mark| (place.key, mark))).take(limit).collect();
        let (low, high) = range.clone();
        let read = match (seen.last(), direction) {
            (Some((last, _)), Direction::Forward) if seen.len() == limit => (low, Bound::Included(last.clone())),
            (Some((last, _)), Direction::Backward) if seen.len() == limit => (Bound::Included(last.clone()), high),
            _ => (low, high),
        };
        drop(rows);
        if limit > 0 {
            self.reads.push(Read::Range(table, read));
        }
        Ok(seen)
    }

    fn put(&mut self, place: &Place, mark: Mark) -> Result<(), Infallible> {
        self.writes.push(Write::One(place.clone(), Some(mark)));
        Ok(())
    }

    fn erase(&mut self, place: &Place) -> Result<(), Infallible> {
        self.writes.push(Write::One(place.clone(), None));
        Ok(())
    }

    fn erase_range(&mut self, table: u32, range: &KeyRange) -> Result<(), Infallible> {
        if !is_empty_range(range) {
            self.writes.push(Write::EraseRange(table, range.clone()));
        }
        Ok(())
    }

    fn savepoint(&mut self) -> Result<usize, Infallible> {
        Ok(self.writes.len())
    }

    fn roll_back_to(&mut self, savepoint: &usize) -> Result<(), Infallible> {
        self.writes.truncate(*savepoint);
        Ok(())
    }

    fn commit(self) -> Result<Commit, Infallible> {
        // A transaction without writes takes effect at its snapshot and cannot conflict.
        if self.writes.is_empty() {
            return Ok(Commit::Done(None));
        }
        let mut rows = self.store.rows.lock();
        if self.has_conflict(&rows) {
            return Ok(Commit::Conflict);
        }
        let version = Version(rows.newest.0 + 1);
        self.writes.iter().for_each(|write| rows.apply(write, version));
        rows.newest = version;
        Ok(Commit::Done(Some(version)))
    }
}
