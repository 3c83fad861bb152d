//! Measures a seek to the first of 100,000 neighbouring rows that were erased one by one.

use crate::rows::{sequential_key, stamp, stamp_of, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use kit::Scratch;
use kit::median;
use larch::{Database, Durability, Table};
use std::time::Instant;

const ERASED: u64 = 100_000;
const FIRST: u64 = 100_000;
const ROWS: u64 = 300_000;
const SEEKS: usize = 101;

/// The goal is for the median time of seeks after a compaction. The time before it is shown for comparison.
pub fn measure(scratch: &Scratch, _: Extent) -> Result<Vec<Goal>> {
    let database = Database::builder(scratch.join("database")).durability(Durability::Buffered).open()?;
    let table = database.table("t")?;
    let mut import = table.import()?;
    for number in 0..ROWS {
        import.add(&sequential_key(number), &value(number))?;
    }
    import.finish(|_| {})?;
    for number in FIRST..FIRST + ERASED {
        table.remove(sequential_key(number))?;
    }
    let in_memory = seeks(&table, 11)?;
    database.flush()?;
    let flushed = seeks(&table, 11)?;
    database.compact()?;
    let first = seeks(&table, 1)?;
    let micros = seeks(&table, SEEKS)?;
    let metric = "seek across 100,000 erased rows";
    let line = Goal::in_words(metric, "<= 100 us after compaction has had its turn", format!("{micros:.1} us"), micros <= 100.0)
        .note(format!(
            "median of {SEEKS} seeks to the first row after, through a range of the table; the first one after the compaction \
             {first:.0} us; before it, erased rows in memory {in_memory:.0} us, in a file {flushed:.0} us"
        ));
    Ok(vec![line])
}

fn seeks(table: &Table, count: usize) -> Result<f64> {
    let mut micros = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        let mut range = table.range(sequential_key(FIRST)..);
        let row = range.next_row()?.ok_or("the rows after are gone")?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
        let value = row.inline_value().ok_or("a value of 150 bytes lies in its page")?;
        if stamp(value) != stamp_of(FIRST + ERASED) {
            return Err("another row was found than the first that is not erased".into());
        }
    }
    Ok(median(&micros))
}
