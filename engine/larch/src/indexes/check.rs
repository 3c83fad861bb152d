//! Compares an index with its table. This module does not know how the two are stored.
//!
//! The check first computes the entries of every row, looks them up in the index in batches, and counts the entries
//! of the index. If all were found and the counts agree, the index is right. Otherwise the check also looks up the
//! row of every entry in the table.

use super::entry::{self, IndexEntry};
use super::maintain::part_of;
use crate::base::error::{Error, Result};
use crate::base::watch::Watch;
use crate::core::handle::TableHandle;
use crate::core::registry::LiveIndex;
use crate::read::Reader;
use crate::view::part_list::PartList;
use crate::view::value::{Key, Parts};
use std::fmt;

/// The result of [`Index::check`](crate::Index::check).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IndexCheck {
    /// The number of rows in the table.
    pub rows: u64,
    /// The number of entries in the index.
    pub entries: u64,
    /// The first hundred differences between the index and its table; empty if they agree.
    pub problems: Vec<IndexProblem>,
    /// The number of problems that are not listed.
    pub problems_left_out: u64,
}

/// A place where an index differs from its table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum IndexProblem {
    /// The index lacks an entry of a row.
    Missing {
        /// The key of the row.
        row: Key,
        /// The index key of the entry.
        index_key: Key,
    },
    /// The index has an entry that its row does not have, or whose row does not exist.
    TooMuch {
        /// The key of the row.
        row: Key,
        /// The index key of the entry.
        index_key: Key,
    },
    /// A row in the table of entries cannot be decoded as an entry.
    NoEntry {
        /// The key of that row.
        key: Key,
    },
    /// A row does not fit the declaration of the index.
    BadRow {
        /// The key of the row.
        row: Key,
        /// Why the row does not fit.
        why: String,
    },
}

impl fmt::Display for IndexProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { row, index_key } => {
                write!(f, "row {} has no entry under {}", row.escape_ascii(), index_key.escape_ascii())
            }
            Self::TooMuch { row, index_key } => {
                write!(
                    f,
                    "there is an entry of row {} under {}, which it does not have",
                    row.escape_ascii(),
                    index_key.escape_ascii()
                )
            }
            Self::NoEntry { key } => write!(f, "{} is no entry", key.escape_ascii()),
            Self::BadRow { row, why } => write!(f, "row {} does not fit the declaration: {why}", row.escape_ascii()),
        }
    }
}

/// The report lists at most `MOST_PROBLEMS` problems. About `TOGETHER` rows or entries are looked up in a batch.
const MOST_PROBLEMS: usize = 100;
const TOGETHER: usize = 128;

/// A batch ends early when its keys have this many bytes.
const MOST_PENDING_BYTES: usize = 1 << 20;

/// The name of this work in [`Error::Cancelled`].
pub const WORK: &str = "the check of the index";

impl IndexCheck {
    fn report(&mut self, problem: IndexProblem) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.problems_left_out += 1;
        }
    }
}

/// Compares `index` with `table` at one version.
///
/// # Errors
///
/// [`Error::NoExtractor`] or [`Error::NoClosure`] if the extractor or the closure is missing; [`Error::Cancelled`] if
/// `watch` ends the work; an error if a row or an entry cannot be read. A difference is not an error.
pub fn check(table: &TableHandle, index: &LiveIndex, watch: &Watch<'_>) -> Result<IndexCheck> {
    index.made(&table.identity)?;
    let pin = table.pin();
    let entries = TableHandle::new(table.handle.clone(), index.entries.clone());
    let parts = index.parts(&table.identity);
    let rows: Reader<'_, Parts> = Reader::new(table, Some(&pin), parts);
    let entries: Reader<'_> = Reader::new(&entries, Some(&pin), PartList::whole());
    let env = &table.core().env;
    let has_times = env.row_clock.has_times() || env.options.read_only;
    let mut found = IndexCheck::default();
    let keys_of =
        |key: &[u8], row: &Parts, found: &mut IndexCheck| match index
            .keys_of(&table.identity, key, &|group| part_of(&parts, row, group))
        {
            Ok(keys) => Ok(keys),
            Err(Error::BadRow { why, .. }) => {
                found.report(IndexProblem::BadRow { row: key.into(), why });
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        };

    let (mut expected, mut pending) = (0, Vec::new());
    let mut compare = |pending: &mut Vec<(Vec<u8>, Key)>, found: &mut IndexCheck| {
        expected += pending.len() as u64;
        let keys: Vec<Vec<u8>> = pending.iter().map(|(index_key, row)| entry::key(index_key, row)).collect();
        for ((index_key, row), value) in pending.drain(..).zip(entries.multi_get(&keys)?) {
            // A row may have expired since it was read.
            let is_there = || Ok::<_, Error>(!has_times || rows.contains_key(&row)?);
            if value.is_none_or(|value| !value.is_empty()) && is_there()? {
                found.report(IndexProblem::Missing { row, index_key: index_key.into() });
            }
        }
        watch.check()
    };
    let mut pending_bytes = 0;
    for row in rows.iter() {
        let (key, row) = row?;
        found.rows += 1;
        for index_key in keys_of(&key, &row, &mut found)? {
            pending_bytes += index_key.len() + key.len();
            pending.push((index_key, key.clone()));
        }
        if pending.len() >= TOGETHER || pending_bytes >= MOST_PENDING_BYTES {
            pending_bytes = 0;
            compare(&mut pending, &mut found)?;
            watch.tell(found.rows, 0);
        }
    }
    compare(&mut pending, &mut found)?;
    for (i, entry) in entries.iter().enumerate() {
        entry?;
        found.entries += 1;
        if i % TOGETHER == 0 {
            watch.tell(found.rows + found.entries, 0);
            watch.check()?;
        }
    }
    if found.entries == expected && found.problems.is_empty() {
        return Ok(found);
    }

    let mut all_entries = entries.iter();
    loop {
        let (mut some, mut bytes, mut is_end) = (Vec::new(), 0, true);
        while some.len() < TOGETHER && bytes < MOST_PENDING_BYTES {
            let Some(entry) = all_entries.next() else { break };
            let (key, value) = entry?;
            bytes += key.len();
            is_end = false;
            match IndexEntry::of(&key, &value) {
                Some(entry) => some.push(entry),
                None => found.report(IndexProblem::NoEntry { key }),
            }
        }
        watch.check()?;
        if is_end {
            return Ok(found);
        }
        let mut some = some.as_slice();
        while !some.is_empty() {
            let keys: Vec<&[u8]> = some.iter().map(IndexEntry::row_key).collect();
            let found_rows = rows.multi_get_some(&keys)?;
            let (looked_up, rest) = some.split_at(found_rows.len());
            some = rest;
            for (entry, row) in looked_up.iter().zip(found_rows) {
                let index_key = entry.index_key().to_vec();
                let keys = match row {
                    // A row that does not fit the declaration was already reported in the first pass.
                    Some(row) => keys_of(entry.row_key(), &row, &mut IndexCheck::default())?,
                    None => Vec::new(),
                };
                let is_there =
                    || Ok::<_, Error>(!has_times || entries.contains_key(entry::key(&index_key, entry.row_key()))?);
                if !keys.contains(&index_key) && is_there()? {
                    found.report(IndexProblem::TooMuch { row: entry.row_key().into(), index_key: index_key.into() });
                }
            }
        }
    }
}
