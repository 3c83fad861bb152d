//! Writes that depend on the current value of their key, such as compare-and-swap. Each is a small transaction,
//! which is retried after a conflict.

use super::attempts::transact;
use super::readable::Readable;
use super::table::Table;
use super::transaction::{Transaction, TransactionOptions};
use crate::base::error::{Error, Result};
use crate::view::value::{Key, Value};
use sst::Version;

impl Table {
    /// Sets `key` to `value` only if the key has no value. Returns whether it did.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// assert!(fruit.insert_new("apple", "green")?);
    /// assert!(!fruit.insert_new("apple", "red")?);
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] and [`Table::get`](crate::Reader::get) do.
    pub fn insert_new(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let (is_new, _) = transact(&self.inner().handle, &TransactionOptions::with_durability(None), |tx| {
            let is_new = !tx.contains_key(self, key)?;
            if is_new {
                tx.insert(self, key, value)?;
            }
            Ok::<_, Error>(is_new)
        })?;
        Ok(is_new)
    }

    /// Sets `key` to `new` only if its current value is `old`. If `old` is `None`, the key must not exist; if `new`
    /// is `None`, the key is removed. If the current value differs from `old`, the inner error has the current
    /// value. The new value is written as by [`Table::insert`]: if the table gives its rows a
    /// [lifetime](crate::TableOptions::expiry), it begins again.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// assert!(fruit.compare_and_swap("apple", None::<&str>, Some("green"))?.is_ok());
    /// let found = fruit.compare_and_swap("apple", Some("red"), Some("brown"))?.expect_err("it is green");
    /// assert_eq!(found.as_deref(), Some(&b"green"[..]));
    /// assert!(fruit.compare_and_swap("apple", Some("green"), None::<&str>)?.is_ok());
    /// assert!(fruit.get("apple")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] and [`Table::get`](crate::Reader::get) do.
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        old: Option<impl AsRef<[u8]>>,
        new: Option<impl AsRef<[u8]>>,
    ) -> Result<Result<(), Option<Value>>> {
        let (key, old) = (key.as_ref(), old.as_ref().map(AsRef::as_ref));
        let (swapped, _) = transact(&self.inner().handle, &TransactionOptions::with_durability(None), |tx| {
            let now = tx.get(self, key)?;
            if now.as_deref() != old {
                return Ok(Err(now));
            }
            match &new {
                Some(new) => tx.insert(self, key, new)?,
                None => tx.remove(self, key)?,
            }
            Ok::<_, Error>(Ok(()))
        })?;
        Ok(swapped)
    }

    /// Passes the current value of `key` to `update`, sets the key to the value that `update` returns (`None`
    /// removes the key), and returns the old value. `update` is called again if another commit writes the key
    /// meanwhile. The new value is written as by [`Table::insert`]: if the table gives its rows a
    /// [lifetime](crate::TableOptions::expiry), it begins again, while a [merge](Table::merge) keeps the time that the
    /// row has.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let before = fruit.fetch_update("apple", |now| now.map(|colour| [b"dark ", colour].concat()))?;
    /// assert_eq!(before.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"dark red"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] and [`Table::get`](crate::Reader::get) do.
    pub fn fetch_update(
        &self,
        key: impl AsRef<[u8]>,
        mut update: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        let (before, _) = transact(&self.inner().handle, &TransactionOptions::with_durability(None), |tx| {
            let now = tx.get(self, key)?;
            match update(now.as_deref()) {
                Some(new) => tx.insert(self, key, new)?,
                None if now.is_some() => tx.remove(self, key)?,
                None => {}
            }
            Ok::<_, Error>(now)
        })?;
        Ok(before)
    }

    /// Sets `key` to `value`, and returns the old value.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// assert!(fruit.replace("apple", "green")?.is_none());
    /// assert_eq!(fruit.replace("apple", "red")?.expect("it was green"), "green");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] and [`Table::get`](crate::Reader::get) do.
    pub fn replace(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.fetch_update(key, |_| Some(value.as_ref().to_vec()))
    }

    /// Removes `key`, and returns the old value.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.take("apple")?.expect("it was there"), "red");
    /// assert!(fruit.take("apple")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] and [`Table::get`](crate::Reader::get) do.
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.fetch_update(key, |_| None)
    }

    /// Removes the row with the least key and returns it, or `None` if the table is empty. Two callers never get
    /// the same row, so a table can serve as a queue.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("banana", "yellow")?;
    /// fruit.insert("apple", "red")?;
    /// let (key, value) = fruit.pop_first()?.expect("there are two rows");
    /// assert_eq!((&key[..], &value[..]), (&b"apple"[..], &b"red"[..]));
    /// assert!(!fruit.contains_key("apple")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Table::insert`] and [`Table::get`](crate::Reader::get) do.
    pub fn pop_first(&self) -> Result<Option<(Key, Value)>> {
        self.pop(|tx| tx.first_key_value(self))
    }

    /// Like [`Table::pop_first`], but takes the row with the greatest key.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::pop_first`] does.
    pub fn pop_last(&self) -> Result<Option<(Key, Value)>> {
        self.pop(|tx| tx.last_key_value(self))
    }

    fn pop(&self, find: impl Fn(&Transaction) -> Result<Option<(Key, Value)>>) -> Result<Option<(Key, Value)>> {
        let (row, _) = transact(&self.inner().handle, &TransactionOptions::with_durability(None), |tx| {
            let row = find(tx)?;
            if let Some((key, _)) = &row {
                tx.remove(self, key)?;
            }
            Ok::<_, Error>(row)
        })?;
        Ok(row)
    }

    /// The version of the commit that wrote the value of `key`, or `None` if the key has no value.
    ///
    /// # Errors
    ///
    /// Fails as [`Table::get`](crate::Reader::get) does, but never with [`Error::Grouped`].
    pub fn version_of(&self, key: impl AsRef<[u8]>) -> Result<Option<Version>> {
        self.version_of_key(key.as_ref())
    }
}
