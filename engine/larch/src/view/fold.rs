//! Computes the value of a key whose newest row is a merge, from what all sources say of it. Each source has joined its
//! own rows, so one row of each is enough, down to the first that decides. This module does not know who reads.

use super::own_writes::OwnRows;
use super::value::SHORT_BYTES;
use super::{ReadRules, TableView};
use crate::base::operand::Collected;
use crate::manifest::db_file::DbFile;
use crate::memtable::{MemRow, Memtable};
use os::sync::Arc;
use pages::{PageLender, PageSource, Stop, together};
use sst::{Row, RowKind, SoughtKey, Until, Version};

/// The value of `key`, of which a reader sees merges. A composite step: if it runs again after a fault, it asks all
/// sources again.
#[cold]
#[inline(never)]
pub fn fold<S: PageSource + ?Sized>(source: &S, table: TableView<'_>, key: &SoughtKey<'_>) -> Result<MemRow, Stop> {
    fold_with(source, table, key, |row, file| Ok(row.value.load(source, &file.sst.file)?.as_bytes().to_vec()))
}

/// As [`fold`], for a source that does not fetch. It faults if a part of the value lies outside the pages of its rows.
#[cold]
#[inline(never)]
pub fn fold_lent<S: PageLender + ?Sized>(
    source: &S,
    table: TableView<'_>,
    key: &SoughtKey<'_>,
) -> Result<MemRow, Stop> {
    fold_with(source, table, key, |row, _| row.value.inline().map(<[u8]>::to_vec).ok_or(Stop::Fault))
}

fn fold_with<S: PageLender + ?Sized>(
    source: &S,
    table: TableView<'_>,
    key: &SoughtKey<'_>,
    load: impl Fn(&Row<S::Page>, &DbFile) -> Result<Vec<u8>, Stop>,
) -> Result<MemRow, Stop> {
    let mut folding = Folding::default();
    match table.own {
        Some(own) if folding.is_complete_with_own(source, own, key, &load)? => {}
        _ => {
            if folding.goes_on_after_memory(table.memtables(), key, table.at) {
                let files = table.files.files_with_key(key.bytes()).map(|file| &**file);
                folding.ask_files(source, files, key, table.at, &load)?;
            }
        }
    }
    folding.finish(&table.view.rules, key.bytes())
}

/// Collects what the sources say of a key, the newest source first.
#[derive(Default)]
pub struct Folding<'f> {
    collected: Collected<'f>,
    /// The version of the newest row.
    version: Option<Version>,
}

impl<'f> Folding<'f> {
    fn is_complete_with_own<S: PageLender + ?Sized>(
        &mut self,
        source: &S,
        own: &'f OwnRows,
        key: &SoughtKey<'_>,
        load: &impl Fn(&Row<S::Page>, &DbFile) -> Result<Vec<u8>, Stop>,
    ) -> Result<bool, Stop> {
        Ok(!self.goes_on_after_memory(std::iter::once(&own.memtable), key, own.at)
            || !self.ask_files(source, own.files_with_key(key.bytes()), key, own.at, load)?)
    }

    /// Adds what memtables say, newest first. Returns whether older sources matter.
    fn goes_on_after_memory(
        &mut self,
        mut memtables: impl Iterator<Item = &'f Arc<Memtable>>,
        key: &SoughtKey<'_>,
        at: Version,
    ) -> bool {
        memtables.all(|memtable| {
            let (newest, goes_on) = memtable.collect(key.bytes(), at, &mut self.collected);
            self.version = self.version.or(newest);
            goes_on
        })
    }

    /// Adds what files say, newest first. Returns whether older sources matter. All files are asked before a fault is
    /// returned, so that their pages are read together.
    fn ask_files<'d, S: PageLender + ?Sized>(
        &mut self,
        source: &S,
        files: impl Iterator<Item = &'d DbFile>,
        key: &SoughtKey<'_>,
        at: Version,
        load: &impl Fn(&Row<S::Page>, &DbFile) -> Result<Vec<u8>, Stop>,
    ) -> Result<bool, Stop> {
        let mut is_open = true;
        let mut is_missing = false;
        together(files, |file| {
            if !is_open {
                return Ok(());
            }
            let row = file.sst.get_filtered(source, key, at);
            let cover = file.sst.cover(source, key.bytes(), at);
            let step = row.and_then(|row| Ok((row, cover?)));
            let (row, cover) = step.inspect_err(|_| is_missing = true)?;
            let said = match row.filter(|row| cover.is_none_or(|cover| cover <= row.version)) {
                None if cover.is_none() => return Ok(()),
                None => None,
                Some(row) if row.kind == RowKind::Erase => None,
                Some(row) => {
                    let content = load(&row, file).inspect_err(|_| is_missing = true)?;
                    Some((row.kind, row.version, content, row.until()))
                }
            };
            // After a fault, rows of older files are not added: the step runs again.
            if !is_missing {
                is_open = self.add(said);
            }
            Ok(())
        })?;
        Ok(is_open)
    }

    /// Adds what the next older source says: a put or a merge with its version and its time, or, as `None`, that the
    /// key has no value there. Returns whether older sources matter.
    pub fn add(&mut self, said: Option<(RowKind, Version, Vec<u8>, Option<Until>)>) -> bool {
        match said {
            Some((RowKind::Merge, version, operand, _)) => {
                self.version.get_or_insert(version);
                self.collected.add(operand)
            }
            Some((RowKind::Put | RowKind::PutUntil, version, value, until)) => {
                self.version.get_or_insert(version);
                self.collected.end_with(value, until);
                false
            }
            Some((RowKind::Erase, ..)) | None => {
                self.collected.end();
                false
            }
        }
    }

    /// As [`Folding::add`], for `row` of `memtable` and what the memtable has below it.
    pub fn add_memory(&mut self, memtable: &'f Memtable, row: &'f MemRow) -> bool {
        self.version.get_or_insert(row.version());
        memtable.collect_row(row, &mut self.collected)
    }

    /// The row with the value. If a part of it will expire, it has this time.
    ///
    /// # Errors
    ///
    /// [`Stop::Failed`] if the value cannot be computed.
    pub fn finish(mut self, rules: &ReadRules, key: &[u8]) -> Result<MemRow, Stop> {
        let version = self.version.expect("the reader has seen a merge");
        self.collected.end();
        let now = rules.clock.now();
        let until = self.collected.expires(now);
        let value = self.collected.value(key, &rules.functions, now).map_err(pages::Error::Content)?;
        // A short value is copied when it is returned, and its row goes. Counting it would write a line of the
        // processor's cache that all threads share.
        let memory = (value.len() > SHORT_BYTES).then(|| rules.memory.clone());
        Ok(MemRow::alone(memory, (key, version), &value, until))
    }
}

#[cfg(test)]
mod tests;
