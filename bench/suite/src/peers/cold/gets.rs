//! Uniform gets by threads that wait for each get: rate, disk reads, processor time, and memory outside the cache.

use super::MIB;
use super::ground::{ColdEngine, Ground};
use crate::peers::orders::{Fill, Measure, Sample, Task};
use crate::peers::table::{Against, Goal, Row, Table};
use crate::peers::{in_turns, thousands};

/// The number of threads, and the names of its three rows.
const THREADS: [(usize, [&str; 3]); 4] = [
    (1, ["K gets/s, 1 thread", "reads a get, 1 thread", "CPU us a get, 1 thread"]),
    (8, ["K gets/s, 8 threads", "reads a get, 8 threads", "CPU us a get, 8 threads"]),
    (32, ["K gets/s, 32 threads", "reads a get, 32 threads", "CPU us a get, 32 threads"]),
    (128, ["K gets/s, 128 threads", "reads a get, 128 threads", "CPU us a get, 128 threads"]),
];

const OUTSIDE: &str = "memory outside the cache";

/// Measures the table on all engines, under the memory limit.
pub fn measure(ground: &mut Ground) -> Table {
    let engines = ground.engines.clone();
    let mut table = table(&engines, ground.disk().name);
    for (number, (threads, names)) in THREADS.into_iter().enumerate() {
        let all: Vec<(ColdEngine, String)> = engines.iter().map(|engine| (*engine, String::new())).collect();
        let mut peers = ground.start_all(&all, true, &mut table);
        let samples = uniform(ground, &mut peers, &mut table, names, threads, number);
        if threads == 128 {
            let failed = table.row(names[0]).failed.clone();
            let row = table.row(OUTSIDE);
            row.failed = failed;
            for ((figures, samples), engine) in row.figures.iter_mut().zip(&samples).zip(&engines) {
                let outside = |sample: &Sample| sample.resident_bytes.saturating_sub(engine.cache_bytes);
                // fio reports no memory of its own.
                let known = samples.iter().filter(|sample| sample.resident_bytes > 0);
                *figures = known.map(|sample| outside(sample) as f64 / MIB as f64).collect();
            }
        }
    }
    table
}

/// Measures uniform gets by `clients`, and fills three rows: the rate, and the disk reads and processor time of a
/// get.
pub fn uniform(
    ground: &Ground,
    peers: &mut [crate::peers::herd::Peer],
    table: &mut Table,
    names: [&'static str; 3],
    clients: usize,
    number: usize,
) -> Vec<Vec<Sample>> {
    let scale = ground.scale;
    let measure = Measure {
        task: Task::Workload { name: "c".to_owned(), keys: "uniform".to_owned() },
        records: scale.records,
        filled: Fill::Sorted,
        threads: clients,
        warmup_millis: scale.warmup_millis,
        millis: scale.millis,
        operations: None,
        seed: 100 * (number as u64 + 1),
        hot_share: None,
        beside: None,
    };
    let mut failures = std::mem::take(&mut table.failures);
    let rate = table.row(names[0]);
    let samples = in_turns(peers, scale.repeats, &measure, rate, &thousands, &ground.tale, &mut failures);
    table.failures = failures;
    put(table, names, 1, &samples, &|sample| {
        sample.disk_reads.map(|reads| reads as f64 / sample.operations.max(1) as f64)
    });
    put(table, names, 2, &samples, &|sample| Some(sample.cpu_nanos as f64 / 1e3 / sample.operations.max(1) as f64));
    samples
}

/// Fills row `names[at]` with the `figure` of each sample. Engines that failed in row `names[0]` failed in this
/// one, too.
fn put(
    table: &mut Table,
    names: [&'static str; 3],
    at: usize,
    samples: &[Vec<Sample>],
    figure: &dyn Fn(&Sample) -> Option<f64>,
) {
    let failed = table.row(names[0]).failed.clone();
    let row = table.row(names[at]);
    row.failed = failed;
    for (figures, samples) in row.figures.iter_mut().zip(samples) {
        *figures = samples.iter().filter_map(figure).collect();
    }
}

/// The table with its goals. The processor time of a get is compared with that of a read by `disk`.
pub fn table(engines: &[ColdEngine], disk: &'static str) -> Table {
    let mut table = Table::new(engines.iter().map(|engine| engine.name));
    let beside = |name, ratio| Goal { against: Against::Engine(name), ratio };
    let figure = |number| Goal { against: Against::Figure, ratio: number };
    let small = |name, ratio| Goal { against: Against::Between("larch 4K", name), ratio };
    for (_, names) in THREADS {
        let mut goals: Vec<Goal> =
            ["rocksdb 16K", "rocksdb parts 16K", "fjall"].into_iter().map(|name| beside(name, 0.95)).collect();
        // Engines with 4 KiB pages compare with Larch at 4 KiB.
        goals.extend([small("redb", 0.95), small("lmdb", 1.0)]);
        table.add(Row::new(names[0], "K/s", goals));
        let goals = vec![figure(1.02), Goal { against: Against::FigureOf("larch 16K, 16 MiB"), ratio: 1.05 }];
        table.add(Row::new(names[1], "reads", goals).less_is_better());
        let goals = vec![Goal { against: Against::Above(disk), ratio: 4.0 }];
        table.add(Row::new(names[2], "us", goals).less_is_better());
    }
    table.add(Row::new(OUTSIDE, "MiB", vec![figure(32.0)]).less_is_better());
    table
}
