//! Overwrites at a fixed rate, alternately without a secondary index and while one is built over all rows. The
//! index is on the value that the overwrites change, so each overwrite also changes the index.
//!
//! RocksDB has no secondary indexes.

use super::super::orders::{Fill, Order, Overwrite, Sample};
use super::super::table::{Against, Goal, Row, Table};
use super::super::warm_up::warm_up;
use super::super::{failed, thousands};
use super::Ground;

/// The rate of overwrites.
const PER_SECOND: f64 = 10_000.0;

/// This part's table has this many times the rows of the other parts.
pub const TIMES: u64 = 10;

const LARCH: &str = "larch";

const BUILT: &str = "index built: rows";
const QUIET: &str = "overwrites, quiet: 99.9 % within";
const BUILDING: &str = "overwrites, index being built: 99.9 % within";
const LONGEST_QUIET: &str = "overwrites, quiet: longest";
const LONGEST: &str = "overwrites, index being built: longest";

/// Measures the table.
pub fn measure(ground: &mut Ground<'_>) -> Result<Table, String> {
    let mut table = Table::new([LARCH]);
    rows().into_iter().for_each(|row| table.add(row));
    let records = TIMES * ground.scale.records;
    let mut peers = ground.start_some("indexed", "buffered", |name| name == LARCH)?;
    let Some(peer) = peers.first_mut() else { return Ok(table) };
    peer.obey(&Order::Fill { how: Fill::Sorted, records, limit_millis: 0 })?;
    // With an index, an overwrite reads the old row, so bring all rows into the cache first.
    warm_up(&mut peers, Fill::Sorted, records, &mut table, &ground.tale);
    let Some(peer) = peers.first_mut() else { return Ok(table) };
    let mut measured = || -> Result<Vec<(Sample, Sample)>, String> {
        let mut pairs = Vec::new();
        for repeat in 0..ground.scale.builds {
            let mut obey = |builds_index| {
                let order = Overwrite {
                    records,
                    filled: Fill::Sorted,
                    warmup_millis: (ground.scale.time / super::WARMUP).as_millis() as u64,
                    millis: 5 * ground.scale.time.as_millis() as u64,
                    per_second: Some(PER_SECOND),
                    seed: 2 * repeat as u64 + u64::from(builds_index),
                    builds_index,
                };
                let sample = peer.obey(&Order::Overwrite(order))?;
                peer.obey(&Order::Settle)?;
                ground.tale.tell(&format!("{:36} {LARCH:12} {}", "index build", line(builds_index, &sample)));
                Ok::<_, String>(sample)
            };
            pairs.push((obey(false)?, obey(true)?));
        }
        Ok(pairs)
    };
    match measured() {
        Ok(pairs) => {
            for (quiet, building) in &pairs {
                put(&mut table, quiet, building);
            }
        }
        Err(why) => {
            table.rows.iter_mut().for_each(|row| row.fail(0));
            failed(BUILDING, why, &mut table.failures, &ground.tale);
        }
    }
    Ok(table)
}

fn line(builds_index: bool, sample: &Sample) -> String {
    let p999 = sample.overwritten.p999_nanos as f64 / 1e3;
    let what = if builds_index { "while it is built" } else { "quiet" };
    format!("{:12.2} K/s {what}, 99.9 % within {p999:.0} us", thousands(sample))
}

pub fn put(table: &mut Table, quiet: &Sample, building: &Sample) {
    let micros = |nanos| nanos as f64 / 1e3;
    table.row(BUILT).figures[0].push(building.beside.rows as f64 / (building.beside.nanos as f64 / 1e6));
    for (name, nanos) in [
        (QUIET, quiet.overwritten.p999_nanos),
        (BUILDING, building.overwritten.p999_nanos),
        (LONGEST_QUIET, quiet.overwritten.longest_nanos),
        (LONGEST, building.overwritten.longest_nanos),
    ] {
        table.row(name).figures[0].push(micros(nanos));
    }
}

/// The rows with their goals.
pub fn rows() -> Vec<Row> {
    let micros = |name, goals| Row::new(name, "us", goals).less_is_better();
    vec![
        Row::new(BUILT, "K/s", Vec::new()),
        micros(QUIET, Vec::new()),
        micros(BUILDING, vec![Goal { against: Against::Own(QUIET), ratio: 3.0 }]),
        micros(LONGEST_QUIET, Vec::new()),
        micros(LONGEST, Vec::new()),
    ]
}
