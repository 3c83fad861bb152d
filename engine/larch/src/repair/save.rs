//! Saves the rows of one damaged table to a table of the new database: merges the rows of files and logs by key, and
//! imports the newest version of each row. This module does not know where the files and logs were found.

use super::damaged::DamagedTable;
use super::report::{Loss, RepairReport};
use super::salvage::{Salvage, SalvagedRow};
use crate::base::error::{Error, Result};
use crate::base::parts::Slices;
use crate::base::row_clock;
use crate::base::watch::Watch;
use crate::handle::database::Database;
use crate::import::Import;
use crate::memtable::Memtable;
use os::sync::Arc;
use pages::PageCache;
use sst::{RangeErase, RowKind, Version};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

/// Rows with times are committed together when they have this many bytes.
const TIMED_BYTES: usize = 1 << 20;

/// Keys whose rows cannot be saved, with the reasons.
type BadValues = Vec<(Vec<u8>, Error)>;

/// A source of rows in key order: a file, or the rows of the logs.
enum RowSource<'a> {
    File(Box<Salvage>),
    Memory(std::iter::Peekable<Box<dyn Iterator<Item = SalvagedRow> + 'a>>),
}

impl RowSource<'_> {
    /// The newest version of the next key.
    fn next(&mut self) -> Option<SalvagedRow> {
        match self {
            Self::File(salvage) => salvage.next(),
            Self::Memory(rows) => {
                let newest = rows.next()?;
                while rows.next_if(|older| older.key == newest.key).is_some() {}
                Some(newest)
            }
        }
    }
}

/// Saves the rows of `damaged` as a table of `db`. `memtable` has the rows of this table that were in logs. Losses
/// are added to `report`.
///
/// # Errors
///
/// An error if the new table cannot be created or written; [`Error::Cancelled`] if `watch` ends the work.
pub fn save_table(
    db: &Database,
    damaged: &DamagedTable,
    memtable: Option<&Memtable>,
    cache: &Arc<PageCache>,
    report: &mut RepairReport,
    watch: &Watch<'_>,
) -> Result<()> {
    let table = db.table_with(&damaged.name, damaged.options.clone())?;
    let groups = damaged.options.groups.len().max(1);
    let mut erases: Vec<RangeErase> = Vec::new();
    let mut sources: Vec<RowSource<'_>> = Vec::new();
    for file in &damaged.files {
        let mut salvage = Salvage::new(file.clone(), cache.clone(), groups);
        erases.extend(salvage.range_erases());
        sources.push(RowSource::File(Box::new(salvage)));
        report.files += 1;
    }
    let mut bad_values = BadValues::new();
    if let Some(memtable) = memtable {
        erases.extend(
            memtable.range_erases().map(|erase| RangeErase { keys: erase.keys.to_vecs(), versions: erase.versions }),
        );
        bad_values = values_without_parts(memtable, &damaged.name, groups);
        sources.push(RowSource::Memory(rows_in(memtable, groups).peekable()));
    }
    let covers = cut(erases);
    let mut import = table.import()?;
    let (mut timed, mut timed_bytes) = (db.batch(), 0);
    merge(&mut sources, |row| {
        let is_hidden = covers.cover(&row.key, Version::MAX).is_some_and(|erased| erased > row.version);
        let Some(parts) = row.parts.filter(|_| !is_hidden) else { return Ok(()) };
        let added = match row.until {
            None => add(&mut import, damaged, &row.key, &parts),
            // An import takes no rows with times. No row of the import has the same key.
            Some(until) => {
                let until = row_clock::time_of(until);
                timed_bytes += row.key.len() + parts.iter().map(Vec::len).sum::<usize>();
                timed.insert_parts_until(&table, &row.key, &parts, until);
                match timed_bytes {
                    bytes if bytes >= TIMED_BYTES => {
                        timed_bytes = 0;
                        std::mem::replace(&mut timed, db.batch()).commit().map(drop)
                    }
                    _ => Ok(()),
                }
            }
        };
        match added {
            Ok(()) => report.rows += 1,
            Err(error @ (Error::ValueTooLong { .. } | Error::KeyTooLong { .. })) => bad_values.push((row.key, error)),
            Err(error) => return Err(error),
        }
        if report.rows.is_multiple_of(1 << 12) {
            watch.tell(report.rows, 0);
            watch.check()?;
        }
        Ok(())
    })?;
    import.finish(|_| {})?;
    timed.commit()?;
    for rows in sources {
        if let RowSource::File(salvage) = rows {
            let name = &damaged.name;
            report.lost.extend(salvage.lost.into_iter().map(|loss| Loss { table: Some(name.clone()), ..loss }));
        }
    }
    for (key, error) in bad_values {
        let (file, table) = (PathBuf::new(), Some(damaged.name.clone()));
        report.lost.push(Loss { file, table, keys: Some((key.clone(), Some(key))), rows: 1, why: error.to_string() });
    }
    watch.tell(report.rows, 0);
    Ok(())
}

/// Merges all sources, and calls `take` with the newest version of each key, in key order.
fn merge(sources: &mut [RowSource<'_>], mut take: impl FnMut(SalvagedRow) -> Result<()>) -> Result<()> {
    let mut heap = BinaryHeap::new();
    let mut heads: Vec<Option<SalvagedRow>> = Vec::new();
    for (i, rows) in sources.iter_mut().enumerate() {
        let head = rows.next();
        heap.extend(head.as_ref().map(|row| Reverse((row.key.clone(), Reverse(row.version), i))));
        heads.push(head);
    }
    let mut last: Option<Vec<u8>> = None;
    while let Some(Reverse((key, _, i))) = heap.pop() {
        let row = heads[i].take().expect("it is in the heap");
        heads[i] = sources[i].next();
        heap.extend(heads[i].as_ref().map(|row| Reverse((row.key.clone(), Reverse(row.version), i))));
        if last.as_ref() != Some(&key) {
            take(row)?;
            last = Some(key);
        }
    }
    Ok(())
}

/// Adds a row to the import, whole or in parts, as the options of the table say.
fn add(import: &mut Import, table: &DamagedTable, key: &[u8], parts: &[Vec<u8>]) -> Result<()> {
    if table.options.groups.is_empty() { import.add(key, &parts[0]) } else { import.add_parts(key, parts) }
}

/// The rows of `memtable` whose values do not split into the parts that the table has.
fn values_without_parts(memtable: &Memtable, table: &str, groups: usize) -> BadValues {
    let puts = memtable.all_versions().filter(|row| matches!(row.kind(), RowKind::Put | RowKind::PutUntil));
    let bad = puts.filter(|row| Slices::of(row.value(), groups).is_none());
    let error = |key: &[u8]| Error::BadParts { table: table.to_owned(), key: key.into(), parts: groups };
    bad.map(|row| (row.key().to_vec(), error(row.key()))).collect()
}

/// All versions of all rows of `memtable`, without those with bad values, by key and from new to old.
fn rows_in(memtable: &Memtable, groups: usize) -> Box<dyn Iterator<Item = SalvagedRow> + '_> {
    Box::new(memtable.all_versions().filter_map(move |row| {
        let parts = match row.kind() {
            RowKind::Put | RowKind::PutUntil => {
                Slices::of(row.value(), groups).map(|parts| Some(parts.iter().map(|part| part.to_vec()).collect()))
            }
            _ => Some(None),
        };
        Some(SalvagedRow { key: row.key().to_vec(), version: row.version(), parts: parts?, until: row.until() })
    }))
}

/// Cuts range erases into fragments that do not overlap, by adding them to a memtable from old to new.
fn cut(erases: Vec<RangeErase>) -> Memtable {
    let mut by_age: Vec<(Version, usize)> =
        erases.iter().enumerate().filter_map(|(i, erase)| Some((*erase.versions.first()?, i))).collect();
    by_age.sort_unstable();
    let covers = Memtable::new();
    for (version, i) in by_age {
        let keys = &erases[i].keys;
        covers.remove_range(&keys.start, keys.end.as_deref().unwrap_or_default(), version);
    }
    covers
}
