//! What a view says about one key at a version. Sources are asked from the newest to the oldest and the first answer
//! counts, because for one key each source is newer as a whole than those after it.

use super::{Value, View};
use crate::error::Result;
use crate::manifest::TableId;
use crate::manifest::file_set::{DbFile, files_with_key};
use pages::{PageSource, Session, retry};
use sst::{Row, RowKind, Version};

/// Whether the key's newest version not newer than `at` is a value, and which.
pub fn get(session: &Session, view: &View, table: TableId, key: &[u8], at: Version) -> Result<Option<Value>> {
    let Some(files) = view.files.tables.get(&table) else { return Ok(None) };
    for memory in &view.memory {
        let Some(memtable) = memory.table(table) else { continue };
        let cover = memtable.cover(key, at);
        if let Some(row) = memtable.get(key, at) {
            let shows = row.kind() == RowKind::Put && cover.is_none_or(|cover| cover <= row.version());
            return Ok(shows.then(|| Value::from_memory(row)));
        }
        if cover.is_some() {
            return Ok(None);
        }
    }
    let (level0, deeper) = files.levels.split_first().expect("a table has levels");
    let level0 = level0.iter().filter(|file| file.may_contain(key));
    let deeper = deeper.iter().flat_map(|level| files_with_key(level, key));
    for file in level0.chain(deeper) {
        match look_up(session, file, key, at)? {
            Answer::Silent => {}
            Answer::Gone => return Ok(None),
            Answer::Row(row) => {
                let loaded = retry(session, || row.value.load(session, &file.sst.file))?;
                return Ok(Some(Value::from_file(session.cache(), loaded)));
            }
        }
    }
    Ok(None)
}

enum Answer {
    Silent,
    Gone,
    Row(Row),
}

fn look_up<S: PageSource>(session: &S, file: &DbFile, key: &[u8], at: Version) -> Result<Answer> {
    let sst = &file.sst;
    // Both parts run before a fault is answered, so that they fault together.
    let (row, cover) = retry(session, || {
        let row = sst.get(session, key, at);
        let cover = sst.cover(session, key, at);
        Ok((row?, cover?))
    })?;
    Ok(match row {
        Some(row) if row.kind == RowKind::Put && cover.is_none_or(|cover| cover <= row.version) => Answer::Row(row),
        None if cover.is_none() => Answer::Silent,
        _ => Answer::Gone,
    })
}
