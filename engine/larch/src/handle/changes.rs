//! The feed of changes and the history of a row, as methods of their owners. The feed itself is in `changes`.

use super::database::Database;
use super::table::Table;
use crate::base::boundaries::Boundaries;
use crate::base::error::{Error, Result};
use crate::base::ops::Op;
use crate::base::parts::Slices;
use crate::base::row_clock;
use crate::changes::{Change, ChangeKind, Changes};
use crate::read::versions::{self, Take, Wanted};
use pages::Admit;
use sst::{KeyRange, Until, Version};
use std::collections::BTreeMap;
use std::time::Duration;

/// What was committed, in order.
impl Database {
    /// The commits after the version `after`, in commit order: a feed that a program reads as long as it likes. Each
    /// commit comes as a whole and once, also if the program stops, stores [its position](Changes::position) and begins
    /// there again after a crash of either process.
    ///
    /// Commits are read from the logs and, after a flush has removed these, from files. Files have all of them only if
    /// the database [retains](Database::retain) its past. Without this, a feed ends with an error when it comes to commits
    /// whose log is gone, and to those that no log has: imports and transactions larger than memory. A reader with a
    /// name can have the past kept for it: [`Database::subscribe`].
    ///
    /// The feed has rows, and no work on tables: that a table was made, dropped or renamed, or got the rows of another one
    /// by a clone, a split or an ingest of files that share them, is no change. Commits of a table that was dropped
    /// meanwhile may be missing. A new name or a clone is a new [table](Table::number), whose rows may come with the versions
    /// that they had in the old one. Directories that are ingested together come one after the other.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::past::{ChangeKind, Retention};
    ///
    /// db.retain(Retention::Versions(1_000_000))?;
    /// let mut changes = db.changes(db.version())?;
    /// fruit.insert("apple", "green")?;
    /// fruit.remove("apple")?;
    /// while let Some(change) = changes.next_change()? {
    ///     match change.kind() {
    ///         ChangeKind::Put { key, value, .. } => {
    ///             println!("{} is {}", key.escape_ascii(), value.whole().escape_ascii());
    ///         }
    ///         ChangeKind::Erase { key } => println!("{} is gone", key.escape_ascii()),
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// assert_eq!(changes.position(), db.version());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotKept`] if there is no such version yet: the feed was of another database, or of this one before it was
    /// restored from an older copy. That older changes are gone is found by the first read.
    pub fn changes(&self, after: Version) -> Result<Changes> {
        let newest = self.version();
        if after > newest {
            return Err(Error::NotKept { version: after, newest });
        }
        Ok(Changes::new(self.handle().clone(), after))
    }

    /// The value that the key of `change` had before the commit of the change; `None` if it had none. History has it as far
    /// back as the database, or the table by a [rule of its own](Table::retain), keeps its past.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::past::Retention;
    ///
    /// db.retain(Retention::Everything)?;
    /// fruit.insert("apple", "green")?;
    /// let mut changes = db.changes(db.version())?;
    /// fruit.insert("apple", "red")?;
    /// let change = changes.next_change()?.expect("there is one");
    /// let before = db.before(&change)?.expect("it was green");
    /// assert_eq!(before.value(), Some(&b"green"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotKept`] and [`Error::NotKeptOf`] if history does not have it; [`Error::TableDropped`];
    /// [`Error::BadOptions`] for a change that erases a range, whose rows [`Database::at`] shows; [`Error::Page`] if a page
    /// cannot be read.
    pub fn before(&self, change: &Change) -> Result<Option<PastValue>> {
        let version = Version(change.version().0.saturating_sub(1));
        if let ChangeKind::EraseRange { .. } = change.kind() {
            return Err(Error::BadOptions(format!(
                "a range was erased, which may have had many rows: read it as of version {}",
                version.0
            )));
        }
        let table = self.existing_table(change.table())?.filter(|table| table.number() == change.table_number());
        let table = table.ok_or_else(|| Error::TableDropped(change.table().to_owned()))?;
        // The history lacks values that the table does not keep. These two calls fail if it does not keep this version.
        let then = self.at(version)?;
        then.pin_of(&table)?;
        let mut history = table.history(change.key())?.into_iter();
        let before = history.find(|past| past.version <= version);
        Ok(before.filter(|past| past.parts.is_some() || past.failed.is_some()))
    }

    /// Waits until reads see the commit `version`, at most for `time`. Returns whether they see it. In a
    /// [follower](crate::Builder::follow) this is the way to read what another process has committed: it passes on the
    /// version that its commit returned.
    ///
    /// # Errors
    ///
    /// [`Error::WritesStopped`] if a commit up to this version panicked; [`Error::Forked`] in a child of the process that
    /// opened the database.
    pub fn wait_for(&self, version: Version, time: Duration) -> Result<bool> {
        self.core().wait_for(version, time)
    }
}

/// A value that a row had, see [`Table::history`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastValue {
    /// The commit that wrote or erased it.
    pub version: Version,
    /// The parts of the value, one for each column group, or the whole value alone. `None` if the row was erased, or if
    /// its value cannot be computed.
    pub parts: Option<Vec<Vec<u8>>>,
    /// Why the value cannot be computed from its merges, if that is so.
    pub failed: Option<String>,
    /// The time until which the row is there, since the beginning of 1970; `None` if it does not expire. A row that has
    /// expired counts as erased.
    pub until: Option<Duration>,
}

impl PastValue {
    /// The value of a table without column groups; `None` if the row was erased.
    pub fn value(&self) -> Option<&[u8]> {
        self.parts.as_ref().map(|parts| parts[0].as_slice())
    }
}

/// The values of a key by version, with their times; `None` where it was erased.
#[derive(Default)]
struct Values(BTreeMap<Version, Option<std::result::Result<TimedValue, String>>>);

/// A value, and the time until which it is there.
type TimedValue = (Vec<u8>, Option<Until>);

impl Take for Values {
    fn wants(&self, _: Version, _: &[u8]) -> bool {
        true
    }

    fn take(&mut self, version: Version, op: Op<'_>) -> Result<()> {
        match op {
            Op::Put { value, until, .. } => {
                self.0.insert(version, Some(Ok((value.to_vec(), until))));
            }
            Op::Merge { .. } => unreachable!("a walk gives the value that merges have made"),
            // A put of the same commit wins.
            Op::Erase { .. } | Op::RangeErase { .. } => {
                self.0.entry(version).or_insert(None);
            }
        }
        Ok(())
    }

    fn take_failed(&mut self, version: Version, _: &[u8], why: &str) -> Result<()> {
        self.0.insert(version, Some(Err(why.to_owned())));
        Ok(())
    }
}

/// The past of a row.
impl Table {
    /// The values that the row had, the newest first: those that reads of the [kept](Database::keep) and
    /// [retained](Database::retain) versions and of the newest one can see. [`Database::time_of`] says when.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// db.retain(larch::past::Retention::Everything)?;
    /// fruit.insert("apple", "green")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove("apple")?;
    /// let values: Vec<_> = fruit.history("apple")?.into_iter().map(|past| past.value().map(<[u8]>::to_vec)).collect();
    /// assert_eq!(values, [None, Some(b"red".to_vec()), Some(b"green".to_vec())]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`]; [`Error::Page`] if a page cannot be read.
    pub fn history(&self, key: impl AsRef<[u8]>) -> Result<Vec<PastValue>> {
        let core = self.core();
        let (view, newest) = core.views.now();
        let files = view.files_of(self.identity())?;
        let keys = KeyRange::of_key(key.as_ref());
        let wanted = Wanted { keys: &keys, after: Version(0), through: newest };
        let mut found = Values::default();
        versions::in_memory(core, &view, files, wanted, &mut found)?;
        versions::in_files(core, &view, files, (wanted, Admit::Keep), &mut found)?;
        let single = view.files.all_kept().map(|kept| kept.version).filter(|version| *version < newest);
        let boundaries = Boundaries::new(single.chain([newest]).collect(), view.files.readable_from_of(self.id()));
        let (mut past, mut last) = (Vec::new(), None);
        for (version, value) in found.0.into_iter().rev() {
            let interval = boundaries.interval(version);
            if last.replace(interval) == Some(interval) {
                continue;
            }
            let split = |value: &[u8]| {
                let parts = Slices::of(value, self.identity().options.groups.len());
                let parts =
                    parts.ok_or_else(|| crate::changes::bad_parts(self.identity(), Op::Erase { key: key.as_ref() }))?;
                Ok::<_, Error>(parts.iter().map(|part| part.to_vec()).collect())
            };
            let (value, failed) = match value {
                Some(Err(why)) => (None, Some(why)),
                Some(Ok(value)) => (Some(value), None),
                None => (None, None),
            };
            let until = value.as_ref().and_then(|(_, until)| *until);
            let until = until.map(row_clock::time_of);
            let parts = value.as_ref().map(|(value, _)| split(value)).transpose()?;
            past.push(PastValue { version, parts, failed, until });
        }
        // An erase before which there was nothing says nothing.
        while past.last().is_some_and(|oldest: &PastValue| oldest.parts.is_none() && oldest.failed.is_none()) {
            past.pop();
        }
        Ok(past)
    }
}
