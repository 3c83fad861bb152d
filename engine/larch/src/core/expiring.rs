//! Which tables give times to their rows, and how. This module does not know how a row is written.
//!
//! It mirrors the [option](crate::TableOptions::expiry) of the tables in the manifest: an install that makes, alters or
//! drops a table also changes this.
//!
//! This module is thread-safe. A look-up costs one atomic load if no table gives times, of a bit mask with a bit for
//! each table id modulo 64. Tables that share a bit may cause a futile look-up. The functions of the program that make
//! extractors run under the lock of the manifest.

use crate::base::error::{Error, Result};
use crate::base::expiry::{Expiry, ExpiryTime, ExpiryTimes};
use crate::base::row_clock;
use crate::base::table::{TableId, TableInfo};
use crate::manifest::{Edit, FileSet};
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, RwLock};
use sst::Until;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// The tables of one open database that give times to their rows.
#[derive(Debug, Default)]
pub struct Expiring {
    mask: Mask,
    tables: RwLock<HashMap<TableId, RowTimes>>,
}

/// Bit `id % 64` is set if a table with this id gives times. Each write reads it, and it seldom changes.
#[derive(Debug, Default)]
struct Mask(AtomicU64);

impl Mask {
    /// Whether a table with the bit of `table` gives times.
    #[inline]
    fn has(&self, table: TableId) -> bool {
        self.0.load(Ordering::Acquire) & bit(table) != 0
    }
}

/// How a table gives times to its rows.
#[derive(Clone)]
pub enum RowTimes {
    /// Each row is there for this long.
    After(Duration),
    /// What computes the time of a row, or why nothing does, and the declaration.
    By(Result<Arc<dyn ExpiryTime>, String>, Arc<[u8]>),
}

fn bit(table: TableId) -> u64 {
    1 << (table.0 % 64)
}

impl Expiring {
    /// The tables of `files` that give times.
    pub fn new(files: &FileSet, made: &ExpiryTimes) -> Self {
        let expiring = Self::default();
        files.tables.values().for_each(|table| expiring.set(table.info.id, &table.info.options.expiry, made));
        expiring
    }

    /// Notes what an installed edit says.
    pub fn note(&self, edit: &Edit, made: &ExpiryTimes) {
        match edit {
            Edit::Table { id, options, .. } | Edit::AlterTable { id, options, .. } => {
                self.set(*id, &options.expiry, made);
            }
            Edit::DropTable(id) => self.set(*id, &Expiry::Never, made),
            _ => {}
        }
    }

    fn set(&self, table: TableId, expiry: &Expiry, made: &ExpiryTimes) {
        // An alter of another option keeps the extractor.
        if self.of(table).is_some_and(|times| times.is_known() && times.expiry() == *expiry) {
            return;
        }
        let times = RowTimes::of(expiry, made);
        if times.is_none() && !self.has(table) {
            return;
        }
        let mut tables = self.tables.write();
        match times {
            Some(times) => tables.insert(table, times),
            None => tables.remove(&table),
        };
        self.mask.0.store(tables.keys().fold(0, |mask, table| mask | bit(*table)), Ordering::Release);
    }

    /// Whether `table` may give times to its rows. This takes no lock.
    #[inline]
    pub fn may_have(&self, table: TableId) -> bool {
        self.mask.has(table)
    }

    /// Whether `table` gives times to its rows.
    #[inline]
    pub fn has(&self, table: TableId) -> bool {
        self.mask.has(table) && self.tables.read().contains_key(&table)
    }

    /// How `table` gives times to its rows, if it does.
    #[inline]
    pub fn of(&self, table: TableId) -> Option<RowTimes> {
        if self.mask.has(table) { self.look_up(table) } else { None }
    }

    #[cold]
    fn look_up(&self, table: TableId) -> Option<RowTimes> {
        self.tables.read().get(&table).cloned()
    }
}

impl RowTimes {
    /// How a table with this option gives times to its rows, if it does.
    pub fn of(expiry: &Expiry, made: &ExpiryTimes) -> Option<Self> {
        match expiry {
            Expiry::Never => None,
            Expiry::After(time) => Some(Self::After(*time)),
            Expiry::By(declaration) => Some(Self::By(made.make(declaration), declaration.as_slice().into())),
        }
    }

    /// The option that says so.
    pub fn expiry(&self) -> Expiry {
        match self {
            Self::After(time) => Expiry::After(*time),
            Self::By(_, declaration) => Expiry::By(declaration.to_vec()),
        }
    }

    /// Whether something computes the times.
    fn is_known(&self) -> bool {
        match self {
            Self::After(_) => true,
            Self::By(made, _) => made.is_ok(),
        }
    }

    /// The time of a new row of `table`; `None` if it does not expire. `now` returns the time now, in milliseconds
    /// since 1970, and `part` the row's parts.
    ///
    /// # Errors
    ///
    /// [`Error::NoExpiryTime`] if nothing computes the times of the table; [`Error::BadRow`] if the extractor refuses
    /// the row.
    pub fn of_row<'r>(
        &self,
        now: impl FnOnce() -> u64,
        table: &TableInfo,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
    ) -> Result<Option<Until>> {
        let (made, declaration) = match self {
            Self::After(time) => return Ok(Some(row_clock::until(row_clock::after(now(), *time)))),
            Self::By(made, declaration) => (made, declaration),
        };
        let name = || table.name.as_str().into();
        let made = made.as_ref().map_err(|why| Error::NoExpiryTime {
            table: name(),
            declaration: (&**declaration).into(),
            why: why.clone(),
        })?;
        let until = made.until(key, part);
        let until = until.map_err(|why| Error::BadRow { table: name(), index: None, key: key.into(), why })?;
        Ok(until.map(row_clock::until))
    }

    /// The time of a row of `table` after a merge has made `value` of it at the time `now`, in milliseconds since 1970.
    /// `before` is the time that it had.
    ///
    /// # Errors
    ///
    /// As [`RowTimes::of_row`].
    pub fn after_merge(
        &self,
        now: u64,
        table: &TableInfo,
        (key, value, before): (&[u8], &[u8], Option<Until>),
    ) -> Result<Option<Until>> {
        match (self, before) {
            // A lifetime begins when a row comes, and a merge makes no row of one that is there.
            (Self::After(_), Some(before)) => Ok(Some(before)),
            _ => self.of_row(|| now, table, key, &|part| (part == 0).then_some(value)),
        }
    }
}

impl fmt::Debug for RowTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(time) => write!(f, "after {time:?}"),
            Self::By(made, declaration) => {
                write!(f, "by {}, registered: {}", declaration.escape_ascii(), made.is_ok())
            }
        }
    }
}
