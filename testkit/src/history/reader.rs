//! Readers of a table: of whole values or of some parts, at the newest version or at a snapshot. All of them return
//! rows in the same form, so that tests can compare the rows.

use super::rows::parts;
use crate::model::KeyRange;
use larch::rows::{PartCursor, PartRange, PartScan, RowRef};
use larch::{Cursor, Key, Parts, Range, Readable, Result, Scan, Selection, Snapshot, Table, Value, Version};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use std::ops::{Bound, Deref};

/// What is read of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The value of a row, in a table with or without column groups.
    Whole,
    /// The parts of a row in the given groups, in the given order.
    Parts(Vec<usize>),
}

impl Wanted {
    /// All parts of the rows of a table with `groups` column groups.
    pub fn everything(groups: usize) -> Self {
        if groups < 2 { Self::Whole } else { Self::Parts((0..groups).collect()) }
    }

    /// All parts; then each group alone; then no group, so that only keys are read.
    pub fn each(groups: usize) -> Vec<Self> {
        let mut each = vec![Self::everything(groups)];
        if groups > 1 {
            each.extend((0..groups).map(|group| Self::Parts(vec![group])));
            each.push(Self::Parts(Vec::new()));
        }
        each
    }

    /// Random groups in random order, or whole values.
    pub fn any(rng: &mut impl Rng, groups: usize) -> Self {
        if groups < 2 && rng.random() {
            return Self::Whole;
        }
        let mut wanted: Vec<usize> = (0..groups).collect();
        wanted.shuffle(rng);
        wanted.truncate(rng.random_range(0..=groups));
        Self::Parts(wanted)
    }

    /// What a reader sees of a row. `value` is the whole value of the row, with all parts together.
    fn of<'v>(&self, value: &'v [u8], groups: usize) -> Vec<&'v [u8]> {
        match self {
            Self::Whole => vec![value],
            Self::Parts(wanted) => {
                let parts = parts(value, groups.max(1));
                wanted.iter().map(|&group| parts[group]).collect()
            }
        }
    }
}

/// What a reader saw of a row. A whole row is one value.
pub enum Seen {
    /// The value.
    Whole(Value),
    /// Parts of it.
    Parts(Parts),
}

impl Deref for Seen {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        match self {
            Self::Whole(value) => std::slice::from_ref(value),
            Self::Parts(parts) => parts,
        }
    }
}

/// A reader of a table.
#[derive(Clone, Debug)]
pub struct Reader {
    table: Table,
    snapshot: Option<Snapshot>,
    wanted: Wanted,
    groups: usize,
    /// `None`: values are read whole.
    selection: Option<Selection>,
}

impl Reader {
    /// A reader of `table` that reads what `wanted` says of each row, at the snapshot, or at the newest version if
    /// no snapshot is given.
    pub fn new(table: &Table, snapshot: Option<&Snapshot>, wanted: Wanted) -> Self {
        let names = table.options().groups;
        let selection = match &wanted {
            Wanted::Whole => None,
            Wanted::Parts(groups) => {
                let now = table.select(groups.iter().map(|&group| &names[group])).expect("the table has these groups");
                Some(match snapshot {
                    Some(snapshot) => now.at(snapshot).expect("the snapshot is of this database"),
                    None => now,
                })
            }
        };
        Self { table: table.clone(), snapshot: snapshot.cloned(), wanted, groups: names.len(), selection }
    }

    /// What the reader should return for a row whose value is `value`.
    pub fn of<'v>(&self, value: &'v [u8]) -> Vec<&'v [u8]> {
        self.wanted.of(value, self.groups)
    }

    /// Whether `seen` is what the reader should return for a row whose value is `value`.
    pub fn shows(&self, seen: &Seen, value: &[u8]) -> bool {
        seen.iter().map(|part| &**part).eq(self.of(value))
    }

    /// The version at which the reader reads, if the newest version is `newest`.
    pub fn at(&self, newest: Version) -> Version {
        self.snapshot.as_ref().map_or(newest, Snapshot::version)
    }

    /// Reads one row.
    pub fn get(&self, key: &[u8]) -> Result<Option<Seen>> {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => Ok(selection.get(key)?.map(Seen::Parts)),
            (None, Some(snapshot)) => Ok(snapshot.get(&self.table, key)?.map(Seen::Whole)),
            (None, None) => Ok(self.table.get(key)?.map(Seen::Whole)),
        }
    }

    /// Reads several rows in one call.
    pub fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Seen>>> {
        let whole = |rows: Vec<Option<Value>>| rows.into_iter().map(|row| row.map(Seen::Whole)).collect();
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => {
                Ok(selection.multi_get(keys)?.into_iter().map(|row| row.map(Seen::Parts)).collect())
            }
            (None, Some(snapshot)) => snapshot.multi_get(&self.table, keys).map(whole),
            (None, None) => self.table.multi_get(keys).map(whole),
        }
    }

    /// Whether a row exists.
    pub fn contains_key(&self, key: &[u8]) -> Result<bool> {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => selection.contains_key(key),
            (None, Some(snapshot)) => snapshot.contains_key(&self.table, key),
            (None, None) => self.table.contains_key(key),
        }
    }

    /// The same as [`Reader::get`], but as a future, so no thread waits.
    pub async fn get_async(&self, key: &[u8]) -> Result<Option<Seen>> {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => Ok(selection.get_async(key).await?.map(Seen::Parts)),
            (None, Some(snapshot)) => Ok(snapshot.get_async(&self.table, key).await?.map(Seen::Whole)),
            (None, None) => Ok(self.table.get_async(key).await?.map(Seen::Whole)),
        }
    }

    /// The same as [`Reader::multi_get`], but as a future, so no thread waits.
    pub async fn multi_get_async(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Seen>>> {
        let whole = |rows: Vec<Option<Value>>| rows.into_iter().map(|row| row.map(Seen::Whole)).collect();
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => {
                let rows = selection.multi_get_async(keys).await?;
                Ok(rows.into_iter().map(|row| row.map(Seen::Parts)).collect())
            }
            (None, Some(snapshot)) => snapshot.multi_get_async(&self.table, keys).await.map(whole),
            (None, None) => self.table.multi_get_async(keys).await.map(whole),
        }
    }

    /// Rows with keys in `range`.
    pub fn range(&self, range: KeyRange) -> Rows {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => Rows::Parts(selection.range(range)),
            (None, Some(snapshot)) => Rows::Whole(snapshot.range(&self.table, range)),
            (None, None) => Rows::Whole(self.table.range(range)),
        }
    }

    /// A cursor over the rows with keys in `range`.
    pub fn cursor(&self, range: KeyRange) -> AnyCursor {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => AnyCursor::Parts(selection.cursor_in(range)),
            (None, Some(snapshot)) => AnyCursor::Whole(snapshot.cursor_in(&self.table, range)),
            (None, None) => AnyCursor::Whole(self.table.cursor_in(range)),
        }
    }

    /// Rows whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: &[u8]) -> Rows {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => Rows::Parts(selection.prefix(prefix)),
            (None, None) => Rows::Whole(self.table.prefix(prefix)),
            (None, Some(_)) => {
                let high = larch::successor(prefix).map_or(Bound::Unbounded, Bound::Excluded);
                self.range((Bound::Included(prefix.to_vec()), high))
            }
        }
    }

    /// All rows.
    pub fn all(&self) -> Rows {
        self.range((Bound::Unbounded, Bound::Unbounded))
    }

    /// The row with the least key.
    pub fn first(&self) -> Result<Option<(Key, Seen)>> {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => Ok(selection.first_key_value()?.map(|(key, parts)| (key, Seen::Parts(parts)))),
            (None, Some(_)) => self.all().next().transpose(),
            (None, None) => Ok(self.table.first_key_value()?.map(|(key, value)| (key, Seen::Whole(value)))),
        }
    }

    /// The row with the greatest key.
    pub fn last(&self) -> Result<Option<(Key, Seen)>> {
        match (&self.selection, &self.snapshot) {
            (Some(selection), _) => Ok(selection.last_key_value()?.map(|(key, parts)| (key, Seen::Parts(parts)))),
            (None, Some(_)) => self.all().next_back().transpose(),
            (None, None) => Ok(self.table.last_key_value()?.map(|(key, value)| (key, Seen::Whole(value)))),
        }
    }
}

/// Rows of a range, in order, from either end.
#[derive(Debug)]
pub enum Rows {
    /// With their values.
    Whole(Range),
    /// With parts of them.
    Parts(PartRange),
}

impl Rows {
    /// The next row from the front, borrowed.
    pub fn next_row(&mut self) -> Result<Option<RowRef<'_>>> {
        match self {
            Self::Whole(rows) => rows.next_row(),
            Self::Parts(rows) => rows.next_row(),
        }
    }

    /// The next row from the back, borrowed.
    pub fn next_row_back(&mut self) -> Result<Option<RowRef<'_>>> {
        match self {
            Self::Whole(rows) => rows.next_row_back(),
            Self::Parts(rows) => rows.next_row_back(),
        }
    }
}

/// A cursor over rows.
#[derive(Debug)]
pub enum AnyCursor {
    /// With their values.
    Whole(Cursor),
    /// With parts of them.
    Parts(PartCursor),
}

/// The same as [`Rows`], but as a future, so no thread waits.
#[derive(Debug)]
pub enum Scanned {
    /// With their values.
    Whole(Scan),
    /// With parts of them.
    Parts(PartScan),
}

impl From<Rows> for Scanned {
    fn from(rows: Rows) -> Self {
        match rows {
            Rows::Whole(rows) => Self::Whole(rows.into()),
            Rows::Parts(rows) => Self::Parts(rows.into()),
        }
    }
}

impl Scanned {
    /// The next row from the front.
    pub async fn next(&mut self) -> Option<Result<(Key, Seen)>> {
        Some(match self {
            Self::Whole(rows) => rows.next().await?.map(|(key, value)| (key, Seen::Whole(value))),
            Self::Parts(rows) => rows.next().await?.map(|(key, parts)| (key, Seen::Parts(parts))),
        })
    }

    /// The next row from the back.
    pub async fn next_back(&mut self) -> Option<Result<(Key, Seen)>> {
        Some(match self {
            Self::Whole(rows) => rows.next_back().await?.map(|(key, value)| (key, Seen::Whole(value))),
            Self::Parts(rows) => rows.next_back().await?.map(|(key, parts)| (key, Seen::Parts(parts))),
        })
    }
}

impl Iterator for Rows {
    type Item = Result<(Key, Seen)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self {
            Self::Whole(rows) => rows.next()?.map(|(key, value)| (key, Seen::Whole(value))),
            Self::Parts(rows) => rows.next()?.map(|(key, parts)| (key, Seen::Parts(parts))),
        })
    }
}

impl DoubleEndedIterator for Rows {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(match self {
            Self::Whole(rows) => rows.next_back()?.map(|(key, value)| (key, Seen::Whole(value))),
            Self::Parts(rows) => rows.next_back()?.map(|(key, parts)| (key, Seen::Parts(parts))),
        })
    }
}
