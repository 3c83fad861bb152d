//! The rows in which two versions, or two tables that share files, differ, and the way back to an older version. This
//! module does not know where rows lie.

use super::attempts::transact;
use super::selection::Selection;
use super::snapshot::Snapshot;
use super::table::Table;
use super::transaction::{Isolation, TransactionOptions};
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::base::watch::{GoOn, Progress, Watch};
use crate::import::share;
use crate::read::changed_keys::ChangedKeys;
use crate::read::versions::Wanted;
use crate::read::{PartRange, Reader};
use crate::view::value::Key;
use crate::write::define;
use os::sync::Arc;
use sst::KeyRange;
use std::fmt;
use std::time::Duration;
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

/// The rows in which two versions of a table, or two tables, differ, in key order: [`Table::diff`],
/// [`Table::diff_with`].
pub struct Diff {
    /// The keys to look at.
    keys: Vec<Keys>,
    before: Values,
    after: Values,
    has_begun: bool,
    has_failed: bool,
}

/// Keys in order, and the next of them.
struct Keys {
    all: AllKeys,
    next: Option<Vec<u8>>,
}

enum AllKeys {
    /// Keys that were written.
    Written(ChangedKeys),
    /// Keys that are there on one side, in ranges that were erased on the other one.
    Erased(Box<ErasedKeys>),
}

impl Keys {
    fn written(keys: ChangedKeys) -> Self {
        Self { all: AllKeys::Written(keys), next: None }
    }

    fn erased(reader: Selection, ranges: Vec<KeyRange>) -> Self {
        let keys = ErasedKeys { reader, ranges: ranges.into_iter(), open: None };
        Self { all: AllKeys::Erased(Box::new(keys)), next: None }
    }

    fn advance(&mut self) -> Result<()> {
        self.next = match &mut self.all {
            AllKeys::Written(keys) => keys.next()?,
            AllKeys::Erased(keys) => keys.next()?,
        };
        Ok(())
    }
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

/// The parts of a value, and the time until which it is there.
type TimedParts = (Vec<Vec<u8>>, Option<Duration>);

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

impl Values {
    /// The value with the time until which it is there, both as of one moment.
    fn get_until(&self, key: &[u8]) -> Result<Option<TimedParts>> {
        Ok(match self {
            Self::Whole(reader) => reader.get_until(key)?.map(|(value, until)| (vec![value.to_vec()], until)),
            Self::Parts(selection) => {
                let found = selection.get_until(key)?;
                found.map(|(parts, until)| (parts.iter().map(|part| part.to_vec()).collect(), until))
            }
        })
    }
}

impl Diff {
    fn new(keys: Vec<Keys>, before: Values, after: Values) -> Self {
        Self { keys, before, after, has_begun: false, has_failed: false }
    }

    fn advance(&mut self) -> Result<Option<Difference>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.keys.iter_mut().try_for_each(Keys::advance)?;
        }
        loop {
            let Some(key) = self.keys.iter().filter_map(|keys| keys.next.as_ref()).min().cloned() else {
                return Ok(None);
            };
            let mut at_key = self.keys.iter_mut().filter(|keys| keys.next.as_ref() == Some(&key));
            at_key.try_for_each(Keys::advance)?;
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
        let next = self.keys.iter().filter_map(|keys| keys.next.as_ref()).min();
        f.debug_struct("Diff").field("next", &next).finish_non_exhaustive()
    }
}

/// The way from one version to another.
impl Table {
    /// The rows of `range` that differ between two snapshots, in key order. It reads the files that have rows of the
    /// commits between the two, and the rows that these commits have written; all other files are passed by. A follower
    /// whose older snapshot is neither [kept](crate::Database::keep) nor [retained](crate::Database::retain) reads all rows
    /// that this snapshot shows. After an error, the iterator ends.
    ///
    /// A row is looked up at one snapshot after the other. If it expires between the two, it may be given or not.
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
        let mut keys = Vec::new();
        if let Some(range) = bounds::keys(&range) {
            let wanted = Wanted { keys: &range, after: older.version(), through: newer.version() };
            let files = view.files_of(self.identity())?.clone();
            let is_kept = view.files.showing(older.version()).is_some_and(|showing| showing.shows(self.id()));
            let (changed, ranges) = ChangedKeys::new(core, view, &files, wanted)?;
            // The files of another process's database keep nothing for a snapshot of this one. A row that was erased since may
            // have left no trace, so all rows of the older version are looked at.
            let may_lack = !core.views.has_generations() && older.version() < newer.version();
            let erased = if may_lack && !is_kept { vec![range] } else { ranges };
            keys = vec![Keys::written(changed), Keys::erased(at_older, erased)];
        }
        Ok(Diff::new(keys, first, second))
    }

    /// The rows of `range` in which this table, as `before` shows it, differs from `other`, as `after` shows it, in
    /// key order. `other` may be a table of another database, such as a checkpoint, a branch or a restored backup, or
    /// another table of this one, such as a clone. A file or a slice that both tables see is passed by, unless it has
    /// rows that are newer than one of the two snapshots and not newer than the other one. Of a file that only one
    /// table sees, all rows are read, unless all are newer than its snapshot. It makes no difference which number a
    /// file has: files are shared if they have the same bytes.
    ///
    /// A row is looked up in both tables one after the other. If it expires between the two, or has expired by the
    /// clock of only one of two databases, it may be given or not.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let (here, there) = (directory.path().join("here"), directory.path().join("there"));
    /// let db = larch::Database::open(&here)?;
    /// let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// db.checkpoint(&there)?;
    /// let copy = larch::Database::open(&there)?;
    /// let theirs = copy.table("fruit")?;
    /// theirs.insert("pear", "yellow")?;
    /// let differences = fruit.diff_with(&db.snapshot(), &theirs, &copy.snapshot(), ..)?;
    /// let differences = differences.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(differences.len(), 1);
    /// assert_eq!((&differences[0].key[..], &differences[0].before), (&b"pear"[..], &None));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if `before` is not of the database of this table, or `after` not of that of `other`;
    /// [`Error::BadOptions`] if the tables have other column groups; otherwise as [`Table::diff`].
    pub fn diff_with(
        &self,
        before: &Snapshot,
        other: &Self,
        after: &Snapshot,
        range: impl IntoKeyRange,
    ) -> Result<Diff> {
        if self.id() == other.id() && Arc::ptr_eq(self.core(), other.core()) {
            return self.diff(before, after, range);
        }
        let groups = [self, other].map(|table| &table.identity().options.groups);
        if groups[0] != groups[1] {
            return Err(Error::BadOptions(format!(
                "table {} has the column groups {:?}, and table {} has {:?}; compare tables with the same groups",
                self.name(),
                groups[0],
                other.name(),
                groups[1]
            )));
        }
        let (first, second) = (Values::new(self, before)?, Values::new(other, after)?);
        let views = [(self, before), (other, after)].map(|(table, snapshot)| {
            let view = table.core().views.of_pin(snapshot.pin_of(table)?);
            Ok::<_, Error>((view.files_of(table.identity())?.clone(), view))
        });
        let [(files, view), (other_files, other_view)] = {
            let [a, b] = views;
            [a?, b?]
        };
        let mut keys = Vec::new();
        if let Some(range) = bounds::keys(&range) {
            let sides = [(&files, before.version()), (&other_files, after.version())];
            let (ours, our_erased) = ChangedKeys::apart(self.core(), view, sides[0], sides[1], &range)?;
            let (theirs, their_erased) = ChangedKeys::apart(other.core(), other_view, sides[1], sides[0], &range)?;
            keys = vec![Keys::written(ours), Keys::written(theirs)];
            keys.push(Keys::erased(other.select([""; 0])?.at(after)?, our_erased));
            keys.push(Keys::erased(self.select([""; 0])?.at(before)?, their_erased));
        }
        Ok(Diff::new(keys, first, second))
    }

    /// Makes a new table `name` with the rows and options of this table as `snapshot` shows it. Files without newer
    /// rows are shared with this table, and a file that has only newer rows is left out. A file that has both is
    /// written again, without the newer ones. So a table of which little has changed since is cloned at the cost of its
    /// newest files, and one that was compacted since at the cost of those files that the compaction wrote.
    /// [`Table::revert`] changes this table instead, and writes only rows that differ.
    ///
    /// The call first waits until the compactions under way have ended. While it writes files, reads and commits go on,
    /// and these wait until it ends: compactions of all tables, imports, batches and transactions that go into files of
    /// their own because they are large, and other clones, splits and renames. As no table is compacted meanwhile, all
    /// commits wait once one has as many files in level 0 as it may have. [`Table::clone_at_with`] can be ended early.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// let before = db.snapshot();
    /// fruit.insert("apple", "red")?;
    /// let then = fruit.clone_at("fruit of then", &before)?;
    /// assert_eq!(then.get("apple")?.as_deref(), Some(&b"green"[..]));
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if the snapshot is of another database; otherwise as [`Table::clone_as`].
    pub fn clone_at(&self, name: &str, snapshot: &Snapshot) -> Result<Self> {
        self.clone_at_with(name, snapshot, |_| {})
    }

    /// Like [`Table::clone_at`], but tells `watch` how many bytes were written so far. `watch` decides whether the work
    /// goes on. After it has ended the work, there is no new table.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if `watch` ends the work; otherwise fails as [`Table::clone_at`] does.
    pub fn clone_at_with<G: GoOn>(
        &self,
        name: &str,
        snapshot: &Snapshot,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<Self> {
        let (version, watch) = (snapshot.pin_of(self)?.version(), Watch::new("the clone", watch));
        let info = share::share_at(self.core(), self.identity(), define::check_new_name(name)?, version, &watch)?;
        Ok(Self::new(self.inner().handle.clone(), info))
    }

    /// Makes the rows of `range` again what `snapshot` shows, in one commit, and returns the number of rows that it has
    /// changed. Rows that are as they were are not written, and files without changed rows are not read. Indexes change
    /// with their rows, and rows whose values differ get the times that they had. Only values are compared: a row with
    /// the same value as then keeps the time that it has now. If others commit to a row that has to
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
            let (mut rows, then) = (0, Values::new(self, snapshot)?);
            for difference in self.diff(&now, snapshot, &range)? {
                let Difference { key, after, .. } = difference?;
                // It may have expired since the difference was found, or a part of it that others were merged into.
                let after = if has_times { then.get_until(&key)? } else { after.map(|parts| (parts, None)) };
                match after {
                    Some((parts, None)) => tx.insert_parts(self, &key, &parts)?,
                    Some((parts, Some(until))) => tx.insert_parts_until(self, &key, &parts, until)?,
                    None => tx.remove(self, &key)?,
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
