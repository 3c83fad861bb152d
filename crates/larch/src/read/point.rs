//! What a view says about one key at a version. Sources are asked from the newest to the oldest and the first answer
//! counts, because for one key each source is newer as a whole than those after it.

use super::found::Found;
use super::view::TableView;
use super::wanted::Wanted;
use super::{Parts, Value};
use crate::error::Result;
use crate::manifest::file_set::{DbFile, TableFiles, files_with_key};
use crate::memtable::Memtable;
use crate::parts::MAX_GROUPS;
use os::sync::Arc;
use pages::{PageCache, PageSource, Stop, retry, together};
use sst::{RowKind, Version};

/// What a source says about a key.
pub enum Answer<'v> {
    /// Nothing: an older one may.
    Silent,
    /// It has no value.
    Gone,
    /// It has this row.
    Row(Found<&'v DbFile>),
}

/// The key's row, if its newest version is a value. Reads the way to it and nothing of its parts elsewhere.
pub fn find<'v, S: PageSource + ?Sized>(
    source: &S,
    table: TableView<'v>,
    key: &[u8],
) -> Result<Option<Found<&'v DbFile>>> {
    Ok(match answer(source, table, key)? {
        Answer::Row(row) => Some(row),
        Answer::Silent | Answer::Gone => None,
    })
}

/// What all sources say together.
pub fn answer<'v, S: PageSource + ?Sized>(source: &S, table: TableView<'v>, key: &[u8]) -> Result<Answer<'v>> {
    let Some(files) = table.files() else { return Ok(Answer::Silent) };
    match ask_memory(table, key) {
        Answer::Silent => {}
        decided => return Ok(decided),
    }
    for file in files_of(files, key) {
        match retry(source, || ask_file(source, table, file, key))? {
            Answer::Silent => {}
            decided => return Ok(decided),
        }
    }
    Ok(Answer::Silent)
}

/// The value of the key in a table whose values are whole.
pub fn get<S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    table: TableView<'_>,
    key: &[u8],
) -> Result<Option<Value>> {
    Ok(match find(source, table, key)? {
        None => None,
        Some(Found::Memory(row)) => Some(Value::from_memory_whole(row)),
        Some(Found::File(row, file)) => {
            let loaded = retry(source, || row.value.load(source, &file.sst.file))?;
            Some(Value::from_file(cache, loaded))
        }
    })
}

/// The parts of the key's row that are wanted, found together.
pub fn get_parts<S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    table: TableView<'_>,
    key: &[u8],
    wanted: &Wanted,
) -> Result<Option<Parts>> {
    let found = find(source, table, key)?;
    found.map(|found| load(source, cache, found, wanted)).transpose()
}

/// The parts of a row that are wanted, found together.
pub fn load<S: PageSource + ?Sized>(
    source: &S,
    cache: &PageCache,
    found: Found<&DbFile>,
    wanted: &Wanted,
) -> Result<Parts> {
    let (row, file) = match found {
        Found::Memory(row) => return Ok(wanted.of_memory(&row)),
        Found::File(row, file) => (row, file),
    };
    let mut parts = [const { None }; MAX_GROUPS];
    retry(source, || {
        let missing = (0..wanted.len()).zip(&mut parts).filter(|(_, part)| part.is_none());
        together(missing, |(i, part)| {
            let file = &file.sst;
            let loaded = match wanted.group(i) {
                0 => row.value.load(source, &file.file),
                group => file.part(source, group, row.place)?.load(source, &file.file),
            };
            *part = Some(Value::from_file(cache, loaded?));
            Ok(())
        })
    })?;
    Ok(Parts::of(parts.into_iter().flatten()))
}

/// The memtables of a table, newest first.
pub fn memtables_of(table: TableView<'_>) -> impl Iterator<Item = Arc<Memtable>> {
    table.view.memory.iter().filter_map(move |memory| memory.table(table.id))
}

/// What the memtables say.
pub fn ask_memory(table: TableView<'_>, key: &[u8]) -> Answer<'static> {
    let mut answers = memtables_of(table).map(|memtable| ask_memtable(&memtable, table.at, key));
    answers.find(|answer| !matches!(answer, Answer::Silent)).unwrap_or(Answer::Silent)
}

/// What a memtable says.
pub fn ask_memtable(memtable: &Memtable, at: Version, key: &[u8]) -> Answer<'static> {
    let cover = memtable.cover(key, at);
    match memtable.get(key, at) {
        Some(row) if row.kind() == RowKind::Put && cover.is_none_or(|cover| cover <= row.version()) => {
            Answer::Row(Found::Memory(row))
        }
        None if cover.is_none() => Answer::Silent,
        _ => Answer::Gone,
    }
}

/// Files that may have the key, newest first.
pub fn files_of<'v>(files: &'v TableFiles, key: &[u8]) -> impl Iterator<Item = &'v DbFile> {
    let (level0, deeper) = files.levels.split_first().expect("a table has levels");
    let level0 = level0.iter().filter(move |file| file.may_contain(key));
    level0.chain(deeper.iter().flat_map(move |level| files_with_key(level, key))).map(|file| &**file)
}

/// What a file says. A step.
pub fn ask_file<'v, S: PageSource + ?Sized>(
    source: &S,
    table: TableView<'_>,
    file: &'v DbFile,
    key: &[u8],
) -> Result<Answer<'v>, Stop> {
    // Both parts run before a fault is answered, so that they fault together.
    let row = file.sst.get_filtered(source, key, table.at);
    let cover = file.sst.cover(source, key, table.at);
    let (row, cover) = (row?, cover?);
    Ok(match row {
        Some(row) if row.kind == RowKind::Put && cover.is_none_or(|cover| cover <= row.version) => {
            Answer::Row(Found::File(row, file))
        }
        None if cover.is_none() => Answer::Silent,
        _ => Answer::Gone,
    })
}
