//! Versions that a program keeps under a name, and reads of the past. What a name does is in `write/keep.rs`.

use super::database::Database;
use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::error::{Error, Result};
use crate::base::kept::{AsOf, Kept, micros};
use crate::base::retention::{Retention, TableRule};
use crate::write::keep;
use sst::Version;
use std::time::Duration;

/// Versions with names.
impl Database {
    /// Keeps the database as reads see it now, under `name`. [`Database::at`] shows it again, also after the database
    /// was closed and opened: rows that are overwritten or erased from now on take space until the name is
    /// [forgotten](Database::forget). No row is copied. When the call returns, the name and the rows are durable.
    ///
    /// A table that is dropped takes its past with it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::Readable;
    ///
    /// fruit.insert("apple", "green")?;
    /// db.keep("before the summer")?;
    /// fruit.insert("apple", "red")?;
    /// # drop((db, fruit));
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let past = db.at("before the summer")?;
    /// assert_eq!(past.get(&fruit, "apple")?.as_deref(), Some(&b"green"[..]));
    /// # drop(past);
    /// assert!(db.forget("before the summer")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::BadKeptName`] if the name is empty, longer than 255 bytes or has control characters;
    ///   [`Error::KeptAlready`] if a version has this name; [`Error::TooManyKept`] if 1,000 versions have names.
    /// * [`Error::BadOptions`] if the database is [compatible](crate::Builder::compat) with a release that does not
    ///   keep versions.
    /// * [`Error::Log`] if the manifest cannot be written, and then nothing has changed. If the database takes no
    ///   writes, the call fails like [`Table::insert`](crate::Table::insert).
    pub fn keep(&self, name: &str) -> Result<Kept> {
        self.keep_at(name, &self.snapshot())
    }

    /// As [`Database::keep`], but keeps what `snapshot` shows.
    ///
    /// # Errors
    ///
    /// As [`Database::keep`]; [`Error::OtherSnapshot`] if the snapshot is of another database.
    pub fn keep_at(&self, name: &str, snapshot: &Snapshot) -> Result<Kept> {
        let pin = snapshot.pin_in(self.handle()).ok_or(Error::OtherSnapshot)?;
        if !pin.is_whole() {
            return Err(Error::NotKept { version: pin.version(), newest: self.version() });
        }
        keep::keep(self.core(), name, pin)
    }

    /// All versions with names that reads can see, the oldest first. A read-only database does not see versions that are
    /// not in files yet, unless it follows commits.
    pub fn kept(&self) -> Vec<Kept> {
        let files = self.core().views.newest().files.clone();
        let visible = self.version();
        let mut all: Vec<Kept> = files.all_kept().filter(|kept| kept.version <= visible).cloned().collect();
        all.sort_by_key(|kept| kept.version);
        all
    }

    /// Takes the name away from the version that was kept under it. If nothing else keeps this version, compactions
    /// drop the rows that only it shows, and [`Database::at`] no longer finds it. Snapshots that were taken of it
    /// before still show it. Returns what the name stood for; `None` if no version has this name.
    ///
    /// # Errors
    ///
    /// As [`Database::keep`], but not because of the name.
    pub fn forget(&self, name: &str) -> Result<Option<Kept>> {
        keep::forget(self.core(), name)
    }

    /// A snapshot of the past: of the version that was [kept](Database::keep) under a name, or of a
    /// [`Version`](crate::Version) that has a name, is the newest, or is shown by another snapshot.
    ///
    /// In a read-only database, versions and names are those that it shows now; a follower may have to
    /// [catch up](Database::catch_up) before it knows a new name.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchKept`] if no version has this name; [`Error::NotKept`] if nothing keeps this version.
    pub fn at(&self, when: impl Into<AsOf>) -> Result<Snapshot> {
        let core = self.core();
        let version = keep::version_of(core, &when.into())?;
        let not_kept = || Error::NotKept { version, newest: core.views.visible() };
        Ok(Snapshot::of_pin(self.handle(), core.views.pin_at(version).ok_or_else(not_kept)?))
    }

    /// Keeps so much of the past from now on: [`Database::at`] then shows the database as of each commit in it. This
    /// holds until another call, also after the database was closed and opened. The past begins with the newest version
    /// of now, and grows until it is as long as `retention` says. Then its beginning moves on: when rows are flushed, and, if it
    /// is kept for a time, also in a database without commits.
    ///
    /// Reads of the newest rows never meet older ones, but older ones take space, and compactions have more to write.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::Readable;
    /// use larch::past::Retention;
    ///
    /// db.retain(Retention::Time(std::time::Duration::from_secs(7 * 86_400)))?;
    /// fruit.insert("apple", "green")?;
    /// let then = db.version();
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(db.at(then)?.get(&fruit, "apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Database::keep`], but not because of a name.
    pub fn retain(&self, retention: Retention) -> Result<()> {
        keep::retain(self.core(), retention)
    }

    /// How much of the past is kept.
    pub fn retention(&self) -> Retention {
        self.core().views.newest().files.retained.map_or(Retention::None, |retained| retained.retention)
    }

    /// The oldest version of the past that is kept, because the database [retains](Database::retain) it or holds it for
    /// a [subscription](Database::subscribe); `None` if neither is so. Versions with names may be older.
    pub fn retained_from(&self) -> Option<Version> {
        self.core().views.newest().files.readable_from()
    }

    /// The oldest version that the rule of the database or of a [table](Table::retain) keeps.
    fn oldest_past(&self) -> Option<Version> {
        self.core().views.newest().files.oldest_past()
    }

    /// The version that was the newest at a time since the beginning of 1970. While there are commits, times are
    /// noted about once a second, so it may be a version from up to a second before. After a crash, the times since
    /// the last flush are not known, and it may be the version of that flush. A
    /// [read-only](crate::Builder::read_only) database never knows more than the times that the writer's flushes have
    /// noted, also if it follows the commits. `None` if the time is before all that is known, or if the past is not
    /// kept.
    pub fn version_at(&self, time: Duration) -> Option<Version> {
        self.oldest_past()?;
        keep::version_at(self.core(), micros(time))
    }

    /// A time since the beginning of 1970 at which a version had been made: up to a second after its commit, or later
    /// if there was a crash. `None` if it is newer than all that is known, or if the past is not kept.
    pub fn time_of(&self, version: Version) -> Option<Duration> {
        self.oldest_past()?;
        keep::time_of(self.core(), version).map(Duration::from_micros)
    }
}

/// The past of a table with a rule of its own.
impl Table {
    /// Keeps so much of the past of this table, and of its indexes, from now on, whatever the
    /// [database](Database::retain) keeps: more, less, or nothing. [`Database::at`] then shows versions that only some
    /// tables keep, and reads of the other tables fail with [`Error::NotKeptOf`].
    ///
    /// The past of the table begins as that of a database does. What it keeps already stays, as far as the new rule
    /// allows. If the table is renamed, cloned or split, its rule goes with it. A [feed of changes](Database::changes) is
    /// complete only as far as the database keeps its past.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let (prices, sessions) = (db.table("prices")?, db.table("sessions")?);
    /// use larch::past::Retention;
    /// use larch::Readable;
    ///
    /// prices.retain(Retention::Everything)?;
    /// prices.insert("apple", "1.20")?;
    /// let then = db.version();
    /// prices.insert("apple", "1.30")?;
    /// sessions.insert("token", "ada")?;
    ///
    /// let past = db.at(then)?;
    /// assert_eq!(past.get(&prices, "apple")?.as_deref(), Some(&b"1.20"[..]));
    /// assert!(past.get(&sessions, "token").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Database::retain`], and [`Error::TableDropped`].
    pub fn retain(&self, retention: Retention) -> Result<()> {
        keep::retain_table(self.core(), self.identity(), TableRule::Own(retention))
    }

    /// Keeps as much of the past of this table as of the rest of the database from now on.
    ///
    /// # Errors
    ///
    /// As [`Table::retain`].
    pub fn retain_as_database(&self) -> Result<()> {
        keep::retain_table(self.core(), self.identity(), TableRule::OfDatabase)
    }

    /// The rule that [`Table::retain`] gave to the table; `None` if it has that of the database.
    pub fn retention(&self) -> Option<Retention> {
        match self.core().views.newest().files.table_pasts.get(self.id()).map(|retained| retained.rule) {
            Some(TableRule::Own(retention)) => Some(retention),
            Some(TableRule::OfDatabase) | None => None,
        }
    }

    /// The oldest version of the past of the table that is kept, by its rule or by that of the database; `None` if none
    /// is. Versions with names may be older.
    pub fn retained_from(&self) -> Option<Version> {
        self.core().views.newest().files.readable_from_of(self.id())
    }
}

#[cfg(test)]
mod tests;
