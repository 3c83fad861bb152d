//! Saves the rows of one damaged table to a table of the new database: merges the rows of files and logs by key, and
//! imports the newest version of each row. This module does not know where the files and logs were found.

use super::damaged::DamagedTable;
use super::report::{Loss, RepairReport};
use super::salvage::{Salvage, Salvaged, SalvagedRow};
use crate::base::error::{Error, Result};
use crate::base::expiry::Expiry;
use crate::base::operand::{self, Collected, MergeFunctions, Merged};
use crate::base::options::TableOptions;
use crate::base::parts::Slices;
use crate::base::row_clock;
use crate::base::watch::Watch;
use crate::handle::database::Database;
use crate::import::Import;
use crate::memtable::Memtable;
use os::sync::Arc;
use pages::PageCache;
use sst::{RangeErase, RowKind, Until, Version};
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
    // The rows have the times that they had, so the new table begins to give times when it has them all.
    let options = TableOptions { expiry: Expiry::Never, ..damaged.options.clone() };
    let table = db.table_with(&damaged.name, options)?;
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
    // Rows whose merges need a function of the program, or the time, are written by merges, after all others.
    let mut merged = Vec::new();
    merge(&mut sources, |rows| {
        let key = rows[0].key.clone();
        let erased = covers.cover(&key, Version::MAX).unwrap_or_default();
        // If a log was not removed after its flush, a row may be both in it and in a file.
        let mut last = None;
        let is_new = |row: &SalvagedRow| match &row.content {
            Salvaged::Merge(operand) => {
                let this = Some((row.version, operand.clone()));
                std::mem::replace(&mut last, this.clone()) != this
            }
            Salvaged::Value(_) | Salvaged::Erased => true,
        };
        let visible = rows.into_iter().take_while(|row| row.version >= erased).filter(is_new);
        let (parts, until) = match joined(&key, visible) {
            (Salvaged::Value(parts), until) => (parts, until),
            (Salvaged::Merge(operand), _) => {
                merged.push((key, operand));
                return Ok(());
            }
            (Salvaged::Erased, _) => return Ok(()),
        };
        let added = match until {
            None => add(&mut import, damaged, &key, &parts),
            // An import takes no rows with times. No row of the import has the same key.
            Some(_) if let Err(error) = table.check_parts(&key, &parts) => Err(error),
            Some(until) => {
                let until = row_clock::time_of(until);
                timed_bytes += key.len() + parts.iter().map(Vec::len).sum::<usize>();
                timed.insert_parts_until(&table, &key, &parts, until);
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
            Err(error @ (Error::ValueTooLong { .. } | Error::KeyTooLong { .. })) => bad_values.push((key, error)),
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
    for (key, operand) in merged {
        let mut ops = Vec::new();
        let before = operand::describe(&operand, |op| ops.push(op));
        if let Some((Some(value), until)) = before {
            match until {
                None => table.insert(&key, value)?,
                Some(until) => table.insert_until(&key, value, row_clock::time_of(until))?,
            }
        }
        ops.into_iter().try_for_each(|op| table.merge(&key, op))?;
        report.rows += 1;
    }
    table.alter(|options| options.expiry = damaged.options.expiry.clone())?;
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

/// What the rows of `key`, newest first and one of each source, say together.
fn joined(key: &[u8], rows: impl Iterator<Item = SalvagedRow>) -> (Salvaged, Option<Until>) {
    let mut collected = Collected::default();
    for (i, SalvagedRow { content, until, .. }) in rows.enumerate() {
        match content {
            Salvaged::Value(parts) if i == 0 => return (Salvaged::Value(parts), until),
            // Values in parts have no merges.
            Salvaged::Value(mut parts) => {
                collected.end_with(parts.swap_remove(0), until);
                break;
            }
            Salvaged::Erased if i == 0 => return (Salvaged::Erased, None),
            Salvaged::Erased => break,
            Salvaged::Merge(operand) => {
                collected.add(operand);
            }
        }
    }
    if collected.is_empty() {
        return (Salvaged::Erased, None);
    }
    collected.end();
    match collected.finish(key, &MergeFunctions::default(), 0) {
        Merged::Value(value) => (Salvaged::Value(vec![value]), None),
        Merged::Operand(operand) => (Salvaged::Merge(operand), None),
    }
}

/// Merges all sources, and calls `take` for each key, in order, with the newest version of each source, newest first.
fn merge(sources: &mut [RowSource<'_>], mut take: impl FnMut(Vec<SalvagedRow>) -> Result<()>) -> Result<()> {
    let mut heap = BinaryHeap::new();
    let mut heads: Vec<Option<SalvagedRow>> = Vec::new();
    for (i, rows) in sources.iter_mut().enumerate() {
        let head = rows.next();
        heap.extend(head.as_ref().map(|row| Reverse((row.key.clone(), Reverse(row.version), i))));
        heads.push(head);
    }
    let mut rows: Vec<SalvagedRow> = Vec::new();
    while let Some(Reverse((key, _, i))) = heap.pop() {
        let row = heads[i].take().expect("it is in the heap");
        heads[i] = sources[i].next();
        heap.extend(heads[i].as_ref().map(|row| Reverse((row.key.clone(), Reverse(row.version), i))));
        if rows.first().is_some_and(|first| first.key != key) {
            take(std::mem::take(&mut rows))?;
        }
        rows.push(row);
    }
    if rows.is_empty() { Ok(()) } else { take(rows) }
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
        let content = match row.kind() {
            RowKind::Put | RowKind::PutUntil => {
                let parts = Slices::of(row.value(), groups)?;
                Salvaged::Value(parts.iter().map(|part| part.to_vec()).collect())
            }
            RowKind::Merge => {
                let mut collected = Collected::default();
                memtable.collect_row(&row, &mut collected);
                match collected.finish(row.key(), &MergeFunctions::default(), 0) {
                    Merged::Value(value) => Salvaged::Value(vec![value]),
                    Merged::Operand(operand) => Salvaged::Merge(operand),
                }
            }
            RowKind::Erase => Salvaged::Erased,
        };
        Some(SalvagedRow { key: row.key().to_vec(), version: row.version(), content, until: row.until() })
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
