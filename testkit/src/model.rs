//! A model of a database: sorted maps with every version of every row. It knows nothing of files or durability, and
//! tables only by name.
//!
//! Versions have no gaps, so the database after its first n commits is the database at the version of the n-th
//! commit. Therefore this model is enough to test the promise that a prefix of the commits survives.

use larch::Version;
use std::collections::BTreeMap;
use std::ops::Bound;

/// A write of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The key has this value.
    Put {
        /// Name of the table.
        table: String,
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// The value of the key, or nothing, is followed by this one.
    Append {
        /// Name of the table, which has no column groups.
        table: String,
        /// The key.
        key: Vec<u8>,
        /// What follows.
        value: Vec<u8>,
    },
    /// The key has no value.
    Erase {
        /// Name of the table.
        table: String,
        /// The key.
        key: Vec<u8>,
    },
    /// No key of the range has a value.
    RangeErase {
        /// Name of the table.
        table: String,
        /// First and last key.
        range: KeyRange,
    },
}

/// A range as callers write it.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The versions of one key, in ascending order. A version without a value erases the key.
type KeyHistory = Vec<(Version, Option<Vec<u8>>)>;

/// The model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    tables: BTreeMap<String, BTreeMap<Vec<u8>, KeyHistory>>,
    newest: Version,
}

impl Model {
    /// No tables, no commits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an empty table. This is not a commit: the table exists at every version.
    pub fn create_table(&mut self, name: &str) {
        self.tables.entry(name.to_owned()).or_default();
    }

    /// Removes a table with all its versions.
    pub fn drop_table(&mut self, name: &str) {
        self.tables.remove(name);
    }

    /// Adds a table with the rows of another table, in all their versions. This is not a commit.
    pub fn clone_table(&mut self, name: &str, to: &str) {
        let rows = self.tables[name].clone();
        self.tables.insert(to.to_owned(), rows);
    }

    /// Adds a table with the rows of another table from `key` on, in all their versions. Then commits a range erase
    /// of these rows in the other table.
    pub fn split_table(&mut self, name: &str, key: &[u8], to: &str) -> Version {
        let rows =
            self.tables[name].range(key.to_vec()..).map(|(key, history)| (key.clone(), history.clone())).collect();
        self.tables.insert(to.to_owned(), rows);
        let range = (Bound::Included(key.to_vec()), Bound::Unbounded);
        self.commit(&[Op::RangeErase { table: name.to_owned(), range }])
    }

    /// Names of the tables, sorted.
    pub fn tables(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    /// The newest commit.
    pub fn newest(&self) -> Version {
        self.newest
    }

    /// Commits `ops` and returns their version.
    pub fn commit(&mut self, ops: &[Op]) -> Version {
        let version = Version(self.newest.0 + 1);
        self.newest = version;
        for op in ops {
            match op {
                Op::Put { table, key, value } => {
                    note(self.table_mut(table).entry(key.clone()).or_default(), version, Some(value.clone()));
                }
                Op::Append { table, key, value } => {
                    let history = self.table_mut(table).entry(key.clone()).or_default();
                    let before = visible(history, version).unwrap_or_default();
                    let after = [before, value].concat();
                    note(history, version, Some(after));
                }
                Op::Erase { table, key } => {
                    note(self.table_mut(table).entry(key.clone()).or_default(), version, None);
                }
                Op::RangeErase { table, range } => {
                    let rows = self.table_mut(table).iter_mut();
                    rows.filter(|(key, _)| contains(range, key)).for_each(|(_, history)| note(history, version, None));
                }
            }
        }
        self.newest
    }

    fn table_mut(&mut self, table: &str) -> &mut BTreeMap<Vec<u8>, KeyHistory> {
        self.tables.get_mut(table).expect("the caller writes to tables that are there")
    }

    /// The value of `key` at version `at`.
    pub fn get(&self, table: &str, key: &[u8], at: Version) -> Option<&[u8]> {
        visible(self.tables.get(table)?.get(key)?, at)
    }

    /// The rows of `range` at version `at`. They can be taken from either end.
    pub fn range(
        &self,
        table: &str,
        range: KeyRange,
        at: Version,
    ) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + use<'_> {
        let rows = self.tables.get(table).into_iter().flatten();
        rows.filter(move |(key, _)| contains(&range, key))
            .filter_map(move |(key, history)| Some((key.as_slice(), visible(history, at)?)))
    }

    /// All rows at version `at`.
    pub fn rows(&self, table: &str, at: Version) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.range(table, (Bound::Unbounded, Bound::Unbounded), at)
    }

    /// Forgets all commits after `version`, as a crash does.
    pub fn lose_after(&mut self, version: Version) {
        self.newest = self.newest.min(version);
        for rows in self.tables.values_mut() {
            rows.values_mut().for_each(|history| history.retain(|(at, _)| *at <= version));
            rows.retain(|_, history| !history.is_empty());
        }
    }
}

/// Notes a write in a key's history. If a commit writes a key several times, the last write counts.
fn note(history: &mut KeyHistory, version: Version, value: Option<Vec<u8>>) {
    history.pop_if(|(last, _)| *last == version);
    history.push((version, value));
}

fn visible(history: &KeyHistory, at: Version) -> Option<&[u8]> {
    let newer = history.partition_point(|(version, _)| *version <= at);
    history[..newer].last()?.1.as_deref()
}

/// Whether `key` is in a range.
pub fn contains((low, high): &KeyRange, key: &[u8]) -> bool {
    let after_low = match low {
        Bound::Unbounded => true,
        Bound::Included(low) => low.as_slice() <= key,
        Bound::Excluded(low) => low.as_slice() < key,
    };
    let before_high = match high {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high.as_slice(),
        Bound::Excluded(high) => key < high.as_slice(),
    };
    after_low && before_high
}

/// Whether no string can lie in `range`. Erasing such a range writes nothing.
pub fn is_empty_range((low, high): &KeyRange) -> bool {
    // If `low` is included, it is the first string in the range. If it is excluded, the first string is `low` with
    // a zero byte at its end. The first string after the range is found in the same way.
    let first = |bound: &Bound<Vec<u8>>, excluded: bool| match bound {
        Bound::Unbounded => None,
        Bound::Included(key) | Bound::Excluded(key) => {
            let mut key = key.clone();
            if matches!(bound, Bound::Excluded(_)) == excluded {
                key.push(0);
            }
            Some(key)
        }
    };
    match (first(low, true).unwrap_or_default(), first(high, false)) {
        (_, None) => false,
        (start, Some(end)) => start >= end,
    }
}

#[cfg(test)]
mod tests;
