//! A full scan by one thread, beside sequential reads of the disk alone with as many bytes in flight as the scan
//! reads ahead.

use super::MIB;
use super::ground::{ColdEngine, Ground};
use crate::peers::orders::{Fill, Measure, Sample, Task};
use crate::peers::table::{Against, Goal, Row, Table};
use crate::peers::{in_turns, million_rows};

const OURS: &str = "larch 16K";
const DISK: &str = "fio";
const RATE: &str = "read from disk";
const ROWS: &str = "rows";

/// A scan reads ahead at most the cache size divided by this.
const AHEAD_SHARE: u64 = 8;

/// Measures the table, under the memory limit.
pub fn measure(ground: &mut Ground) -> Table {
    let mut table = table();
    let Some(ours) = ground.engine(OURS) else { return table };
    let ahead = format!("ahead={}MiB", (ours.cache_bytes / AHEAD_SHARE / MIB).max(1));
    let mut sides: Vec<(ColdEngine, String)> = vec![(ours, String::new())];
    sides.extend(ground.engine("fio 16K").map(|fio| (fio, ahead)));
    let mut peers = ground.start_all(&sides, true, &mut table);
    let scale = ground.scale;
    let measure = Measure {
        task: Task::Scan,
        records: scale.records,
        filled: Fill::Sorted,
        threads: 1,
        warmup_millis: scale.warmup_millis,
        millis: scale.millis,
        operations: None,
        seed: 1,
        hot_share: None,
        beside: None,
    };
    let mut failures = std::mem::take(&mut table.failures);
    let samples =
        in_turns(&mut peers, scale.repeats, &measure, table.row(RATE), &bytes_rate, &ground.tale, &mut failures);
    table.failures = failures;
    let rows = table.row(ROWS);
    if let Some(ours) = samples.first() {
        rows.figures[0] = ours.iter().map(million_rows).collect();
    }
    table
}

/// Megabytes read per second.
fn bytes_rate(sample: &Sample) -> f64 {
    let bytes = if sample.window_read_bytes > 0 { sample.window_read_bytes } else { sample.disk_read_bytes };
    bytes as f64 / sample.nanos.max(1) as f64 * 1e3
}

/// The rows with their goals.
pub fn table() -> Table {
    let mut table = Table::new([OURS, DISK]);
    table.add(Row::new(RATE, "MB/s", vec![Goal { against: Against::Engine(DISK), ratio: 0.9 }]));
    table.add(Row::new(ROWS, "M rows/s", Vec::new()));
    table
}
