//! Looks up one key in a view, at a version. The look-up asks the sources from the newest to the oldest and takes the
//! first answer. That is correct because all versions of a key in a source are newer than those in older sources.
//! This module does not know who reads.

use super::TableView;
use super::fold::{fold, fold_lent};
use super::found::FoundRow;
use super::own_writes::OwnRows;
use crate::manifest::db_file::DbFile;
use crate::memtable::Memtable;
use pages::{PageLender, PageRef, PageSource, Stop};
use sst::{Reached, Row, RowKind, SoughtKey, Version};
use std::ops::Bound;

/// What a source says about a key.
pub enum Answer<'v, P = PageRef> {
    /// The source has no visible version of the key. An older source may have one.
    Silent,
    /// The key was erased, or its row has expired. No older source is asked.
    Gone,
    /// The key has this row.
    Row(FoundRow<&'v DbFile, P>),
    /// The newest row of the key is a merge, which has to be [folded](super::fold::fold).
    Merge,
}

/// A search for a key. Its methods are composite steps: if one runs again after a fault, it goes on where it was.
pub struct PointRead<'v, 'k> {
    table: TableView<'v>,
    key: SoughtKey<'k>,
    /// How many sources have said nothing about the key. All memtables together count as the first source.
    silent: usize,
    /// The row, if it was found but a page with one of its parts was missing.
    row: Option<FoundRow<&'v DbFile>>,
}

impl<'v, 'k> PointRead<'v, 'k> {
    /// A search that has asked no source yet.
    pub fn new(table: TableView<'v>, key: &'k [u8]) -> Self {
        Self { table, key: SoughtKey::new(key), silent: 0, row: None }
    }

    /// How many sources have said nothing about the key.
    pub fn silent(&self) -> usize {
        self.silent
    }

    /// The same search, after `silent` sources have said nothing about the key.
    #[inline]
    pub fn after(self, silent: usize) -> Self {
        Self { silent, ..self }
    }

    /// Finds the row although it may have expired.
    pub fn show_expired(&mut self) {
        self.table.shows_expired = true;
    }

    /// The answer of the newest source that knows the key.
    pub fn answer<S: PageLender + ?Sized>(&mut self, source: &S) -> Result<Answer<'v, S::Page>, Stop> {
        if self.silent == 0 {
            match ask_memory(source, self.table, &self.key)? {
                Answer::Silent => self.silent = 1,
                decided => return Ok(decided),
            }
        }
        for file in self.table.files.files_with_key(self.key.bytes()).skip(self.silent - 1) {
            match ask_file(source, self.table, file, &self.key)? {
                Answer::Silent => {
                    self.silent += 1;
                    source.release();
                }
                decided => return Ok(decided),
            }
        }
        Ok(Answer::Silent)
    }

    /// The row of the key, if it has a value. It reads no further pages with parts of the row.
    #[inline]
    pub fn find<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<Option<FoundRow<&'v DbFile>>, Stop> {
        Ok(match self.answer(source)? {
            Answer::Row(row) => Some(row),
            Answer::Silent | Answer::Gone => None,
            Answer::Merge => Some(FoundRow::Memory(fold(source, self.table, &self.key)?)),
        })
    }

    /// As [`PointRead::find`], for a source that does not fetch.
    #[inline]
    pub fn find_lent<S: PageLender + ?Sized>(
        &mut self,
        source: &S,
    ) -> Result<Option<FoundRow<&'v DbFile, S::Page>>, Stop> {
        Ok(match self.answer(source)? {
            Answer::Row(row) => Some(row),
            Answer::Silent | Answer::Gone => None,
            Answer::Merge => Some(FoundRow::Memory(fold_lent(source, self.table, &self.key)?)),
        })
    }

    /// Calls `load`, a step, with the row of the key and returns the result. If the row is in a file and `needs_more`
    /// says that the reader needs further pages of it, the pages on the way to the row are released first.
    #[inline]
    pub fn load<S: PageSource + ?Sized, T>(
        &mut self,
        source: &S,
        needs_more: impl FnOnce(&Row) -> bool,
        load: impl FnOnce(&FoundRow<&'v DbFile>) -> Result<T, Stop>,
    ) -> Result<Option<T>, Stop> {
        let Some(found) = self.row_with_more(source, needs_more)? else { return Ok(None) };
        match load(&found) {
            Ok(content) => Ok(Some(content)),
            Err(stop) => Err(self.come_back(found, stop)),
        }
    }

    /// The row of the key, if its newest version is a put. If `more` says that the reader needs further pages of the
    /// row, the pages on the way to the row are released as soon as it is found.
    #[inline]
    fn row_with_more<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        more: impl FnOnce(&Row) -> bool,
    ) -> Result<Option<FoundRow<&'v DbFile>>, Stop> {
        if let Some(row) = self.row.take() {
            return Ok(Some(row));
        }
        let found = self.find(source)?;
        if let Some(FoundRow::File(row, _)) = &found
            && more(row)
        {
            source.release();
        }
        Ok(found)
    }

    /// Keeps the found row for the next run of the step, because a page of its content is missing.
    #[cold]
    fn come_back(&mut self, found: FoundRow<&'v DbFile>, stop: Stop) -> Stop {
        self.row = Some(found);
        stop
    }
}

/// What the memtables say about the key, after the transaction's own writes if there are any. A step, which reads
/// pages only if the transaction has runs.
#[inline]
pub fn ask_memory<'v, S: PageLender + ?Sized>(
    source: &S,
    table: TableView<'v>,
    key: &SoughtKey<'_>,
) -> Result<Answer<'v, S::Page>, Stop> {
    match table.own {
        None => Ok(ask_memtables(table, key)),
        Some(own) => ask_own(source, own, table, key),
    }
}

/// As [`ask_memory`], in a transaction that has written to the table. Never inlined, because most reads have no
/// transaction.
#[inline(never)]
fn ask_own<'v, S: PageLender + ?Sized>(
    source: &S,
    own: &'v OwnRows,
    table: TableView<'v>,
    key: &SoughtKey<'_>,
) -> Result<Answer<'v, S::Page>, Stop> {
    match ask_memtable(table, &own.memtable, own.at, key) {
        Answer::Silent => {}
        decided => return Ok(decided),
    }
    for file in own.files_with_key(key.bytes()) {
        match ask_file(source, TableView { at: own.at, ..table }, file, key)? {
            // The pages of this file stay pinned, because after a fault in the next file the step asks this file
            // again.
            Answer::Silent => {}
            decided => return Ok(decided),
        }
    }
    Ok(ask_memtables(table, key))
}

#[inline]
fn ask_memtables<P>(table: TableView<'_>, key: &SoughtKey<'_>) -> Answer<'static, P> {
    let mut answers = table.memtables().map(|memtable| ask_memtable(table, memtable, table.at, key));
    answers.find(|answer| !matches!(answer, Answer::Silent)).unwrap_or(Answer::Silent)
}

/// What a memtable says about the key.
pub fn ask_memtable<P>(
    table: TableView<'_>,
    memtable: &Memtable,
    at: Version,
    key: &SoughtKey<'_>,
) -> Answer<'static, P> {
    let cover = memtable.cover(key.bytes(), at);
    match memtable.look_up(key, at) {
        Some(row) if table.shows(row.kind(), || row.until()) && cover.is_none_or(|cover| cover <= row.version()) => {
            if row.kind() == RowKind::Merge {
                Answer::Merge
            } else {
                Answer::Row(FoundRow::Memory(row))
            }
        }
        None if cover.is_none() => Answer::Silent,
        _ => Answer::Gone,
    }
}

/// What a file says about the key. A step.
#[inline]
pub fn ask_file<'v, S: PageLender + ?Sized>(
    source: &S,
    table: TableView<'_>,
    file: &'v DbFile,
    key: &SoughtKey<'_>,
) -> Result<Answer<'v, S::Page>, Stop> {
    let bytes = key.bytes();
    if !source.fetches() && file.sst.may_erase_between(Bound::Included(bytes), Bound::Included(bytes)) {
        // The row and the range erases would have to be in memory, and what is learned about both is noted.
        return Err(Stop::Fault);
    }
    let row = file.sst.get_filtered(source, key, table.at);
    under_cover(source, table, file, key, row)
}

/// As [`ask_file`], but an earlier descent has reached a place on the way to the key, and the search goes on from
/// there. A step.
#[inline]
pub fn ask_file_reached<'v, 'k, S: PageSource + ?Sized>(
    source: &S,
    table: TableView<'_>,
    file: &'v DbFile,
    key: &SoughtKey<'k>,
    reached: Reached<'_, 'k>,
) -> Result<Answer<'v>, Stop> {
    let row = file.sst.get_reached(source, key, table.at, reached);
    under_cover(source, table, file, key, row)
}

/// What a file says about the key, if a search for its row had this outcome. Both the row and the range erases are
/// looked up before a fault is returned, so that they share one round.
#[inline]
fn under_cover<'v, S: PageLender + ?Sized>(
    source: &S,
    table: TableView<'_>,
    file: &'v DbFile,
    key: &SoughtKey<'_>,
    row: Result<Option<Row<S::Page>>, Stop>,
) -> Result<Answer<'v, S::Page>, Stop> {
    let cover = file.sst.cover(source, key.bytes(), table.at);
    let (row, cover) = (row?, cover?);
    Ok(match row {
        Some(row) if table.shows(row.kind, || row.until()) && cover.is_none_or(|cover| cover <= row.version) => {
            if row.kind == RowKind::Merge { Answer::Merge } else { Answer::Row(FoundRow::File(row, file)) }
        }
        None if cover.is_none() => Answer::Silent,
        _ => Answer::Gone,
    })
}
