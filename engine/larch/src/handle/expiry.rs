//! Rows that are there until a time: how a [`Table`] writes them. This module checks the rows; `writes` commits them.

use super::table::Table;
use crate::base::error::Result;
use crate::base::ops::{BatchOps, Op};
use crate::base::row_clock;
use crate::write::times;
use std::time::Duration;

impl Table {
    /// Sets `key` to `value` until `until`, the time since the beginning of 1970. From then on the key has no value:
    /// all reads, at every version, treat it as if it had been removed, and compactions drop the row. Its entries in
    /// indexes go with it. The row replaces an earlier one, which does not come back.
    ///
    /// The time is that of [`Database::clock`](crate::Database::clock), in milliseconds. [`Table::insert_for`] takes a
    /// duration instead. A later [`Table::insert`] of the key replaces the time, too: its value does not expire, unless
    /// the table [gives times](crate::TableOptions::expiry) to its rows.
    ///
    /// The first call in a database begins a new log, because older releases cannot read such rows.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use std::time::Duration;
    ///
    /// let tomorrow = db.clock() + Duration::from_secs(24 * 60 * 60);
    /// fruit.insert_until("apple", "ripe", tomorrow)?;
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"ripe"[..]));
    /// assert!(fruit.until("apple")?.is_some());
    ///
    /// fruit.insert_until("pear", "rotten", db.clock())?;
    /// assert!(fruit.get("pear")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] does, and with [`Error::BadOptions`](crate::Error::BadOptions) if
    /// [`compat`](crate::Builder::compat) names a release that does not know such rows.
    pub fn insert_until(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, until: Duration) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.check_row(key, value)?;
        times::allow(self.core())?;
        self.write(Op::Put { key, value, until: Some(row_clock::until(until)) })
    }

    /// Sets `key` to `value` for `time` from now, see [`Table::insert_until`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let sessions = db.table("sessions")?;
    /// sessions.insert_for("token", "ada", std::time::Duration::from_secs(600))?;
    /// assert!(sessions.contains_key("token")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert_until`] does.
    pub fn insert_for(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, time: Duration) -> Result<()> {
        self.insert_until(key, value, self.core().env.row_clock.after(time))
    }

    /// Sets `key` to a value in parts for `time` from now, see [`Table::insert_parts_until`].
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert_parts_until`] does.
    pub fn insert_parts_for(&self, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>], time: Duration) -> Result<()> {
        self.insert_parts_until(key, parts, self.core().env.row_clock.after(time))
    }

    /// Sets `key` to a value in parts until `until`, see [`Table::insert_parts`] and [`Table::insert_until`].
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert_parts`] and [`Table::insert_until`] do.
    pub fn insert_parts_until(&self, key: impl AsRef<[u8]>, parts: &[impl AsRef<[u8]>], until: Duration) -> Result<()> {
        let key = key.as_ref();
        self.check_parts(key, parts)?;
        times::allow(self.core())?;
        let mut ops = BatchOps::new();
        ops.put_parts_until(self.id().0, key, parts, Some(row_clock::until(until)));
        self.write_batch(ops)
    }
}

#[cfg(test)]
mod tests;
