//! The rows in which two versions differ, and the way back to an older version. This module does not know where rows lie.

use super::attempts::transact;
use super::selection::Selection;
use super::snapshot::Snapshot;
use super::table::Table;
use super::transaction::{Isolation, TransactionOptions};
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::read::changed_keys::ChangedKeys;
use crate::read::versions::Wanted;
use crate::read::{PartRange, Reader};
use crate::view::value::Key;
use sst::KeyRange;
use std::fmt;
use std::vec::IntoIter;

/// A row in which two versions differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The key.
    pub key: Vec<u8>,
    /// The value before: one part for each column group, or the whole value as its only part. `None` if there was no row.
    pub before: Option<Vec<Vec<u8>>>,
    /// The value after, in the same form.
    pub after: Option<Vec<Vec<u8>>>,
}

/// The rows in which two versions of a table differ, in key order: [`Table::diff`].
pub struct Diff {
    /// `None` if no key can be in the range.
    keys: Option<ChangedKeys>,
    /// The next key that was written.
    next: Option<Vec<u8>>,
    /// The keys that were there before in ranges that were erased, and the next of them.
    erased: ErasedKeys,
    next_erased: Option<Vec<u8>>,
    before: Values,
    after: Values,
    has_begun: bool,
    has_failed: bool,
}

/// The keys that a reader sees in some ranges.
struct ErasedKeys {
    reader: Selection,
    ranges: IntoIter<KeyRange>,
    open: Option<PartRange>,
}

impl ErasedKeys {
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(row) = self.open.as_mut().and_then(Iterator::next) {
                return row.map(|(key, _): (Key, _)| Some(key.to_vec()));
            }
            let Some(KeyRange { start, end }) = self.ranges.next() else { return Ok(None) };
            self.open = Some(match end {
                Some(end) => self.reader.range(start..end),
                None => self.reader.range(start..),
            });
        }
    }
}

/// Reads the values of a table at one version, in parts.
enum Values {
    Whole(Reader<'static>),
    Parts(Selection),
}

impl Values {
    fn new(table: &Table, snapshot: &Snapshot) -> Result<Self> {
        let groups = &table.identity().options.groups;
        match groups.len() {
            0 | 1 => Ok(Self::Whole(table.at(snapshot)?)),
            _ => Ok(Self::Parts(table.select(groups)?.at(snapshot)?)),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(match self {
            Self::Whole(reader) => reader.get(key)?.map(|value| vec![value.to_vec()]),
            Self::Parts(selection) => selection.get(key)?.map(|parts| parts.iter().map(|part| part.to_vec()).collect()),
        })
    }
}

impl Diff {
    fn advance(&mut self) -> Result<Option<Difference>> {
        let Some(keys) = &mut self.keys else { return Ok(None) };
        if !std::mem::replace(&mut self.has_begun, true) {
            self.next = keys.next()?;
            self.next_erased = self.erased.next()?;
        }
        loop {
            let is_written = match (&self.next, &self.next_erased) {
                (None, None) => return Ok(None),
                (Some(next), Some(erased)) => next <= erased,
                (next, _) => next.is_some(),
            };
            let key = if is_written {
                if self.next == self.next_erased {
                    self.next_erased = self.erased.next()?;
                }
                std::mem::replace(&mut self.next, keys.next()?)
            } else {
                std::mem::replace(&mut self.next_erased, self.erased.next()?)
            };
            let key = key.expect("one of the two is there");
            let (before, after) = (self.before.get(&key)?, self.after.get(&key)?);
            if before != after {
                return Ok(Some(Difference { key, before, after }));
            }
        }
    }
}

impl Iterator for Diff {
    type Item = Result<Difference>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.advance().transpose();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}

impl fmt::Debug for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diff").field("next", &self.next).finish_non_exhaustive()
    }
}

/// The way from one version to another.
impl Table {
    /// The rows of `range` that differ between two snapshots, in key order. It reads the files that have rows of the
    /// commits between the two, and the rows that these commits have written; all other files are passed by. A follower
    /// whose older snapshot is neither [kept](crate::Database::keep) nor [retained](crate::Database::retain) reads all rows
    /// that this snapshot shows. After an error, the iterator ends.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// fruit.insert("pear", "yellow")?;
    /// let before = db.snapshot();
    /// fruit.insert("apple", "red")?;
    /// let differences = fruit.diff(&before, &db.snapshot(), ..)?.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(differences.len(), 1);
    /// assert_eq!(differences[0].before.as_ref().map(|parts| &parts[0][..]), Some(&b"green"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if a snapshot is of another database;
    /// [`Error::TableDropped`]; [`Error::Page`] if a page cannot be read.
    pub fn diff(&self, before: &Snapshot, after: &Snapshot, range: impl IntoKeyRange) -> Result<Diff> {
        let [first, second] = [Values::new(self, before)?, Values::new(self, after)?];
        let (older, newer) = if before.version() <= after.version() { (before, after) } else { (after, before) };
        let core = self.core();
        let view = core.views.of_pin(newer.pin_of(self)?);
        let at_older = self.select([""; 0])?.at(older)?;
        let (mut keys, mut erased) = (None, Vec::new());
        if let Some(range) = bounds::keys(&range) {
            let wanted = Wanted { keys: &range, after: older.version(), through: newer.version() };
            let files = view.files_of(self.identity())?.clone();
            let kept = view.files.clone();
            let (changed, ranges) = ChangedKeys::new(core, view, &files, wanted)?;
            // The files of another process's database keep nothing for a snapshot of this one. A row that was erased since may
            // have left no trace, so all rows of the older version are looked at.
            let may_lack = !core.views.has_generations() && older.version() < newer.version();
            (keys, erased) =
                (Some(changed), if may_lack && !kept.showing(older.version()).is_some_and(|showing| showing.shows(self.id())) { vec![range] } else { ranges });
        }
        let erased = ErasedKeys { reader: at_older, ranges: erased.into_iter(), open: None };
        let (next, next_erased) = (None, None);
        Ok(Diff { keys, next, erased, next_erased, before: first, after: second, has_begun: false, has_failed: false })
    }

    /// Makes the rows of `range` again what `snapshot` shows, in one commit, and returns the number of rows that it has
    /// changed. Rows that are as they were are not written, and files without changed rows are not read. Indexes change
    /// with their rows, and rows that expire have the times that they had. If others commit to a row that has to
    /// change, the work is retried, as in [`Database::transact`](crate::Database::transact); a row that is as it was
    /// and that others change meanwhile stays as they leave it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// db.keep("before the mistake")?;
    /// fruit.remove_range(..)?;
    /// assert_eq!(fruit.revert(&db.at("before the mistake")?, ..)?, 1);
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::diff`] and [`Database::transact`](crate::Database::transact).
    pub fn revert(&self, snapshot: &Snapshot, range: impl IntoKeyRange) -> Result<u64> {
        let range = bounds::owned(&range);
        // Nothing that it reads has to hold but the rows that it writes.
        let (isolation, own_times) = (Isolation::Snapshot, true);
        let options = TransactionOptions { isolation, own_times, ..TransactionOptions::default() };
        let handle = &self.inner().handle;
        let has_times = self.core().env.row_clock.has_times();
        let reverted = transact(handle, &options, |tx| {
            let version = tx.version();
            let views = &self.core().views;
            let pin = views.pin_at(version).ok_or_else(|| Error::NotKept { version, newest: views.visible() })?;
            let now = Snapshot::of_pin(handle, pin);
            let mut rows = 0;
            for difference in self.diff(&now, snapshot, &range)? {
                let Difference { key, after, .. } = difference?;
                let until = if has_times { self.at(snapshot)?.until(&key)? } else { None };
                match (after, until) {
                    // It has expired since the difference was found.
                    (Some(_), None) if has_times && !self.at(snapshot)?.contains_key(&key)? => tx.remove(self, &key)?,
                    (Some(parts), None) => tx.insert_parts(self, &key, &parts)?,
                    (Some(parts), Some(until)) => tx.insert_parts_until(self, &key, &parts, until)?,
                    (None, _) => tx.remove(self, &key)?,
                }
                rows += 1;
            }
            Ok(rows)
        });
        reverted.map(|(rows, _)| rows)
    }
}

#[cfg(test)]
mod tests;
