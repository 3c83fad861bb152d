//! Looks up one key in a view, as of a version. Sources are asked from the newest to the oldest. The first answer
//! counts, because for one key each source as a whole is newer than the sources after it. This module does not know
//! who reads.

use super::TableView;
use super::found::FoundRow;
use super::own_writes::OwnRows;
use super::part_list::PartList;
use super::value::{Parts, Value};
use crate::base::error::Result;
use crate::manifest::db_file::DbFile;
use crate::memtable::Memtable;
use pages::{PageCache, PageSource, Stop, retry};
use sst::{Reached, Row, RowKind, SoughtKey, Version};

/// What a source says about a key.
pub enum Answer<'v> {
    /// The source says nothing. An older source may have the key.
    Silent,
    /// The key has no value.
    Gone,
    /// The key has this row.
    Row(FoundRow<&'v DbFile>),
}

/// A search for a key. Its functions are steps that keep their results: when a step is run again after a fault, it
/// goes on where it was.
pub struct PointRead<'v, 'k> {
    table: TableView<'v>,
    key: SoughtKey<'k>,
    /// How many sources have said nothing. All memtables together are the first source.
    silent: usize,
    /// The row, if it was found and a part of it is missing.
    row: Option<FoundRow<&'v DbFile>>,
}

impl<'v, 'k> PointRead<'v, 'k> {
    /// A search that has asked nothing yet.
    pub fn new(table: TableView<'v>, key: &'k [u8]) -> Self {
        Self { table, key: SoughtKey::new(key), silent: 0, row: None }
    }

    /// The answer of the first source that decides.
    pub fn answer<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<Answer<'v>, Stop> {
        if self.silent == 0 {
            match ask_memory(source, self.table, &self.key)? {
                Answer::Silent => self.silent = 1,
                decided => return Ok(decided),
            }
        }
        for file in self.table.files.files_with_key(self.key.bytes()).skip(self.silent - 1) {
            match ask_file(source, self.table, file, &self.key, None)? {
                Answer::Silent => {
                    self.silent += 1;
                    source.release();
                }
                decided => return Ok(decided),
            }
        }
        Ok(Answer::Silent)
    }

    /// The row of the key, if its newest version is a put. The row's parts in other pages are not read.
    pub fn find<S: PageSource + ?Sized>(&mut self, source: &S) -> Result<Option<FoundRow<&'v DbFile>>, Stop> {
        Ok(match self.answer(source)? {
            Answer::Row(row) => Some(row),
            Answer::Silent | Answer::Gone => None,
        })
    }

    /// The value of the key, in a table whose values are whole.
    pub fn get<S: PageSource + ?Sized>(&mut self, source: &S, cache: &PageCache) -> Result<Option<Value>, Stop> {
        let (row, file) = match self.row_with_more(source, |row| row.value.inline().is_none())? {
            None => return Ok(None),
            Some(FoundRow::Memory(row)) => return Ok(Some(Value::from_memory_whole(&row))),
            Some(FoundRow::File(row, file)) => (row, file),
        };
        match row.value.load(source, &file.sst.file) {
            Ok(loaded) => Ok(Some(Value::from_file(cache, loaded))),
            Err(stop) => Err(self.come_back(row, file, stop)),
        }
    }

    /// The parts in `wanted` of the row. They are looked up together.
    pub fn get_parts<S: PageSource + ?Sized>(
        &mut self,
        source: &S,
        cache: &PageCache,
        wanted: &PartList,
    ) -> Result<Option<Parts>, Stop> {
        let (row, file) = match self.row_with_more(source, |_| true)? {
            None => return Ok(None),
            Some(FoundRow::Memory(row)) => return Ok(Some(wanted.of_memory(&row))),
            Some(FoundRow::File(row, file)) => (row, file),
        };
        match load_wanted(source, cache, &row, file, wanted) {
            Ok(parts) => Ok(Some(parts)),
            Err(stop) => Err(self.come_back(row, file, stop)),
        }
    }

    /// The row. If this call finds the row and `more` says that it needs further pages, which may be missing, the
    /// pages on the way to the row are released.
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

    /// Keeps a row that misses a part, for the next run.
    #[cold]
    fn come_back(&mut self, row: Row, file: &'v DbFile, stop: Stop) -> Stop {
        self.row = Some(FoundRow::File(row, file));
        stop
    }
}

/// The parts in `wanted` of a row in a file. They are looked up together. A step.
fn load_wanted<S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    row: &Row,
    file: &DbFile,
    wanted: &PartList,
) -> Result<Parts, Stop> {
    let file = &file.sst;
    wanted.load(cache, |i| match wanted.group(i) {
        0 => row.value.load(source, &file.file),
        group => file.part(source, group, row.place)?.load(source, &file.file),
    })
}

/// The parts in `wanted` of a row. They are looked up together. It waits for pages.
pub fn load<S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    found: FoundRow<&DbFile>,
    wanted: &PartList,
) -> Result<Parts> {
    match found {
        FoundRow::Memory(row) => Ok(wanted.of_memory(&row)),
        FoundRow::File(row, file) => Ok(retry(source, || load_wanted(source, cache, &row, file, wanted))?),
    }
}

/// What the memtables say about the key. The writes of the transaction are asked before the memtables. A step; it
/// reads pages only if the transaction has files.
#[inline]
pub fn ask_memory<'v, S: PageSource + ?Sized>(
    source: &S,
    table: TableView<'v>,
    key: &SoughtKey<'_>,
) -> Result<Answer<'v>, Stop> {
    match table.own {
        None => Ok(ask_memtables(table, key)),
        Some(own) => ask_own(source, own, table, key),
    }
}

/// As [`ask_memory`], in a transaction that has written to the table. It is never inlined, because most reads have
/// no transaction.
#[inline(never)]
fn ask_own<'v, S: PageSource + ?Sized>(
    source: &S,
    own: &'v OwnRows,
    table: TableView<'v>,
    key: &SoughtKey<'_>,
) -> Result<Answer<'v>, Stop> {
    match ask_memtable(&own.memtable, own.at, key) {
        Answer::Silent => {}
        decided => return Ok(decided),
    }
    for file in own.files_with_key(key.bytes()) {
        match ask_file(source, TableView { at: own.at, ..table }, file, key, None)? {
            // The pages of this file stay pinned: after a fault in the next file, this file is asked again.
            Answer::Silent => {}
            decided => return Ok(decided),
        }
    }
    Ok(ask_memtables(table, key))
}

#[inline]
fn ask_memtables(table: TableView<'_>, key: &SoughtKey<'_>) -> Answer<'static> {
    let mut answers = table.memtables().map(|memtable| ask_memtable(memtable, table.at, key));
    answers.find(|answer| !matches!(answer, Answer::Silent)).unwrap_or(Answer::Silent)
}

/// What a memtable says.
pub fn ask_memtable(memtable: &Memtable, at: Version, key: &SoughtKey<'_>) -> Answer<'static> {
    let cover = memtable.cover(key.bytes(), at);
    match memtable.look_up(key, at) {
        Some(row) if row.kind() == RowKind::Put && cover.is_none_or(|cover| cover <= row.version()) => {
            Answer::Row(FoundRow::Memory(row))
        }
        None if cover.is_none() => Answer::Silent,
        _ => Answer::Gone,
    }
}

/// What a file says about the key. If `approach` exists, the search goes on where it has stopped. A step.
pub fn ask_file<'v, S: PageSource + ?Sized>(
    source: &S,
    table: TableView<'_>,
    file: &'v DbFile,
    key: &SoughtKey<'_>,
    approach: Option<Reached<'_, '_>>,
) -> Result<Answer<'v>, Stop> {
    // Both parts run before a fault is returned, so that they fault together.
    let row = file.sst.get_filtered(source, key, table.at, approach);
    let cover = file.sst.cover(source, key.bytes(), table.at);
    let (row, cover) = (row?, cover?);
    Ok(match row {
        Some(row) if row.kind == RowKind::Put && cover.is_none_or(|cover| cover <= row.version) => {
            Answer::Row(FoundRow::File(row, file))
        }
        None if cover.is_none() => Answer::Silent,
        _ => Answer::Gone,
    })
}
