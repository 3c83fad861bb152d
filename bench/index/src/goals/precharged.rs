//! A range that was precharged and is then iterated: pages that were missing all the same.

use super::Line;
use crate::rows::{HOT_BYTES, key, random, stamp, value};
use crate::{Result, Size};
use kit::Scratch;
use larch::{Database, IndexKind, LevelOptions, Limits, Selection, TableOptions};

const GROUPS: [&str; 2] = ["hot", "cold"];

/// Both directions, with and without a limit, one group and both, B-tree and flat list, over files that overlap.
pub fn measure(scratch: &Scratch, size: Size) -> Result<Vec<Line>> {
    let directory = scratch.join("database");
    let rows = size.of(200_000);
    build(&directory, rows)?;
    let (mut faults, mut runs, mut read, mut cold_faults) = (0, 0, 0, 0);
    for prefer_flat in [false, true] {
        for groups in [&GROUPS[..1], &GROUPS[1..], &GROUPS[..], &[]] {
            for limit in [Some(1), Some(50), Some(1000), None] {
                for backward in [false, true] {
                    for i in 0..4 {
                        // A new cache each time. It takes a quarter of it for a precharge, which holds the longest range.
                        let database = Database::builder(&directory)
                            .read_only(true)
                            .cache_bytes(256 << 20)
                            .prefer_flat_index(prefer_flat)
                            .open()?;
                        let selection = database.existing_table("t")?.ok_or("the table is gone")?.select(groups)?;
                        let from = key(random(i, 0, rows));
                        let mut to = from;
                        // A 64th of the keys, which begin with a hexadecimal digit.
                        to[1] = to[1].saturating_add(4);
                        let limits = limit.map_or(Limits::NONE, Limits::rows);
                        match backward {
                            false => selection.prefetch(&from[..]..&to[..], limits)?,
                            true => selection.prefetch_back(&from[..]..&to[..], limits)?,
                        };
                        let before = database.metrics().page_reads;
                        cold_faults += before;
                        read += iterate(&selection, &from, &to, limit, backward)?;
                        faults += database.metrics().page_reads - before;
                        runs += 1;
                    }
                }
            }
        }
    }
    if read == 0 || cold_faults == 0 {
        return Err("nothing was read".into());
    }
    let line = Line::new("precharged range, then iterated", "0 faults, all modes", format!("{faults} faults"), faults == 0)
        .note(format!(
            "{runs} ranges, {read} rows, {cold_faults} pages brought by the precharges; 4 files and their memory of erased and \
             older rows, forward and backward, limits of 1, 50, 1000 and none, none, one and both of two groups, both indexes"
        ));
    Ok(vec![line])
}

/// Rows in four files of level 0, some of them erased or replaced in a later one, and range erases.
fn build(directory: &std::path::Path, rows: u64) -> Result<()> {
    let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
    let database = Database::builder(directory)
        .durability(larch::Durability::Buffered)
        .write_buffer_bytes(1 << 30)
        .levels(levels)
        .open()?;
    let groups = GROUPS.map(str::to_owned).to_vec();
    let table = database.table_with("t", TableOptions { index: IndexKind::Both, groups, ..TableOptions::default() })?;
    for file in 0..4 {
        let mut batch = database.batch();
        for number in (0..rows).filter(|number| number % 4 == file || number % 10 == file) {
            let value = value(number);
            batch.insert_parts(&table, key(number), &[&value[..HOT_BYTES], &value[HOT_BYTES..]]);
        }
        for number in (0..rows).filter(|number| number % 13 == file) {
            batch.remove(&table, key(number));
        }
        let snapshot = database.snapshot();
        batch.commit()?;
        let erased = key(file);
        table.remove_range(&erased[..2]..&erased[..3])?;
        database.flush()?;
        drop(snapshot);
    }
    drop(table);
    Ok(database.close()?)
}

fn iterate(selection: &Selection, from: &[u8], to: &[u8], limit: Option<u64>, backward: bool) -> Result<u64> {
    let mut range = selection.range(from..to);
    let mut rows = 0;
    while limit.is_none_or(|limit| rows < limit) {
        let row = if backward { range.next_row_back()? } else { range.next_row()? };
        let Some(row) = row else { break };
        if row.part_count() > 0 && stamp(row.inline_part(0).ok_or("a part lies in its page")?) == 0 {
            return Err("a part has no stamp".into());
        }
        rows += 1;
    }
    Ok(rows)
}
