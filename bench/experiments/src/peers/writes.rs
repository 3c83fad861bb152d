//! `larch bench writes`: sustained overwrites of uniformly drawn rows, on tables of several sizes. A closed loop
//! measures the capacity. Then an open loop runs at a share of the capacity, and the time of a write counts from
//! when it should have begun.

use super::herd::{Herd, Peer};
use super::memory::stops;
use super::orders::{Fill, Order, Overwrite, Overwritten, Sample, micros};
use super::rows::{Against, Part, Row};
use super::{Cell, Comparison, absent, keep_settings, thousands};
use crate::args::WritesArgs;
use crate::experiment::About;
use crate::ground::Ground;
use crate::made::remove;
use harness::Scheme;
use std::time::Duration;

/// Larch comes first: the goals are those of the first engine. RocksDB counts bytes only with statistics on; the
/// parts of them that cost time stay off.
const ENGINES: [(&str, &str); 2] =
    [("larch", "cache=1GiB&durability=buffered"), ("rocksdb", "cache=1GiB&durability=buffered&statistics=1")];

/// The share of the capacity at which the open loop runs.
const SHARE: f64 = 0.8;

/// Bytes of a row, as this benchmark counts them.
const ROW_BYTES: u64 = 120;

/// The most disk space that a row takes while levels are rewritten.
const MOST_ROW_BYTES: u64 = 4 * ROW_BYTES;

/// The time limit of a random load, per million rows.
const LOAD_MILLIS: u64 = 60_000;

/// The length of the closed loop, as a share of the open loop's. It only has to find the capacity.
const CAPACITY_TIME: f64 = 0.2;

const LOAD: &str = "random load";
const CLOSED: &str = "overwrites, closed loop";
const OPEN: &str = "overwrites, open loop";
const REST: &str = "at rest";

/// The comparison, and how large it is.
pub struct Writes {
    engines: Vec<(&'static str, &'static str)>,
    absent: Vec<String>,
    tables: Vec<u64>,
    warmup: Duration,
    time: Duration,
    herd: Herd,
}

impl Writes {
    /// The comparison of the engines in `schemes`.
    pub fn of(args: &WritesArgs, schemes: &[Scheme]) -> Self {
        let (usual, warmup, time) = match args.quick {
            true => (vec![1_000_000], 1, 20),
            false => (vec![1_000_000, 4_000_000, 16_000_000], 10, 600),
        };
        let is_here = |(name, _): &(&str, &str)| schemes.iter().any(|known| known.name == *name);
        Self {
            engines: ENGINES.into_iter().filter(is_here).collect(),
            absent: absent(&ENGINES.map(|(name, _)| name), schemes),
            tables: if args.records.is_empty() { usual } else { args.records.clone() },
            warmup: Duration::from_secs(warmup),
            time: args.time.unwrap_or(Duration::from_secs(time)),
            herd: Herd::default(),
        }
    }
}

fn title(records: u64) -> String {
    format!("{records} rows")
}

/// The rows with their goals.
fn rows() -> Vec<Row> {
    let beside = [(Against::Engine("rocksdb"), 1.0)];
    // Bytes for each operation, where the engine counts them.
    fn each(sample: &Sample, bytes: Option<u64>) -> Option<f64> {
        bytes.map(|bytes| sample.each(bytes))
    }
    fn of_rows(sample: &Sample) -> f64 {
        let Overwritten { file_bytes, records, .. } = sample.overwritten;
        file_bytes as f64 / (records * ROW_BYTES).max(1) as f64
    }
    let written = |sample: &Sample| each(sample, sample.process_bytes);
    let longest = |sample: &Sample| Some(sample.overwritten.longest_nanos as f64 / 1e6);
    vec![
        Row::less("random load, written", "bytes a row", LOAD, written, &beside),
        Row::rate(CLOSED, &beside),
        Row::less("  longest, closed loop", "ms", CLOSED, longest, &[]),
        Row::less("  written, closed loop", "bytes a write", CLOSED, written, &[]),
        Row::rate(OPEN, &[]),
        Row::less("  50 % within", "us", OPEN, |sample| micros(sample.overwritten.p50_nanos), &[]),
        Row::less("  99 % within", "us", OPEN, |sample| micros(sample.overwritten.p99_nanos), &[]),
        Row::less("  99.9 % within", "us", OPEN, |sample| micros(sample.overwritten.p999_nanos), &beside),
        Row::less("  99.99 % within", "us", OPEN, |sample| micros(sample.overwritten.p9999_nanos), &[]),
        Row::less("  longest", "ms", OPEN, longest, &[(Against::Figure, 20.0)]),
        Row::less("  not begun in time", "operations", OPEN, |sample| Some(sample.overwritten.unsent as f64), &[]),
        Row::less("written by the process", "bytes a write", OPEN, written, &beside),
        Row::less("  log", "bytes a write", OPEN, |sample| each(sample, sample.overwritten.log_bytes), &[]),
        Row::less("  flushes", "bytes a write", OPEN, |sample| each(sample, sample.overwritten.flush_bytes), &[]),
        Row::less(
            "  compactions",
            "bytes a write",
            OPEN,
            |sample| each(sample, sample.overwritten.compaction_bytes),
            &[],
        ),
        Row::less("files at the end", "x the rows", OPEN, |sample| Some(of_rows(sample)), &[]),
        Row::less("files once it rests", "x the rows", REST, |sample| Some(of_rows(sample)), &[]),
        stops("writes stopped at level 0"),
    ]
}

impl Comparison for Writes {
    const ABOUT: About = About {
        name: "writes",
        title: "Larch beside RocksDB: steady overwrites",
        text: &[
            "Rows of about 23-byte keys and 100-byte values are overwritten by one thread, drawn uniformly. A closed loop finds the capacity. An \
             open loop then runs below it, and the time of a write counts from when it should have begun.",
        ],
    };

    fn most_bytes(&self) -> u64 {
        self.engines.len() as u64 * self.tables.iter().copied().max().unwrap_or(0) * MOST_ROW_BYTES
    }

    fn parts(&self) -> Vec<Part> {
        let engines: Vec<_> = self.engines.iter().map(|(name, _)| *name).collect();
        let part = |&records: &u64| Part { title: title(records), engines: engines.clone(), repeats: 1, rows: rows() };
        self.tables.iter().map(part).collect()
    }

    fn conditions(&self) -> String {
        format!(
            "Rows of about 23-byte keys and 100-byte values, one thread, a closed loop of {} s and an open one of {} s at {:.0} % \
             of its rate, each after {} s of warm-up",
            self.time.mul_f64(CAPACITY_TIME).as_secs_f64(),
            self.time.as_secs_f64(),
            100.0 * SHARE,
            self.warmup.as_secs_f64()
        )
    }

    fn absent(&self) -> Vec<String> {
        self.absent.clone()
    }

    fn cells(&self, part: &Part) -> Vec<Cell> {
        let tasks = [LOAD, CLOSED, OPEN, REST];
        part.engines.iter().flat_map(|engine| tasks.map(|task| part.cell(task, engine, 0))).collect()
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Sample, String> {
        let broken = |failure: harness::Failure| failure.to_string();
        let of_part = |records: &&u64| title(**records) == cell.part;
        let records = *self.tables.iter().find(of_part).expect("cells are of parts");
        // Each engine on each table has the disk for itself.
        let stage = format!("{}-{records}", cell.engine);
        let (data, place) = (ground.data("").map_err(broken)?, ground.data(&stage).map_err(broken)?);
        let (engine, options) = *self.engines.iter().find(|(name, _)| *name == cell.engine).expect("it takes part");
        let mut is_removed = Ok(());
        let peer = self.herd.peer(&stage, engine, || {
            is_removed = remove(&data).and_then(|()| ground.data("").map(drop));
            let target = format!("{engine}:{}?{options}", place.display());
            vec![(engine, Peer::start(engine, &target, None))]
        });
        is_removed.map_err(broken)?;
        let peer = peer?;
        let limit_millis = (LOAD_MILLIS * records).div_ceil(1_000_000);
        let fill = Order::Fill { how: Fill::Random, records, limit_millis };
        let whole = |sample: Sample| match sample.rows == records {
            true => Ok(sample),
            false => Err(format!("of {records} rows {} were loaded in {limit_millis} ms", sample.rows)),
        };
        if cell.task == LOAD {
            let sample = whole(peer.filled_anew(&fill, LOAD)?)?;
            keep_settings(ground, engine, &sample)?;
            return Ok(sample);
        }
        peer.bring(LOAD, |peer| peer.filled_anew(&fill, LOAD).and_then(whole).map(drop))?;
        let (warmup_millis, how) = (self.warmup.as_millis() as u64, Fill::Random);
        let mut overwrite = |time: Duration, per_second, seed| {
            let millis = time.as_millis() as u64;
            let builds_index = false;
            let order = Overwrite { records, filled: how, warmup_millis, millis, per_second, seed, builds_index };
            peer.obey(&Order::Overwrite(order))
        };
        match cell.task {
            CLOSED => overwrite(self.time.mul_f64(CAPACITY_TIME), None, 1),
            OPEN => {
                let closed: Sample =
                    ground.known(Cell { task: CLOSED, ..cell.clone() }).ok_or("no capacity is known")?;
                overwrite(self.time, Some(thousands(&closed) * 1e3 * SHARE), 2)
            }
            _ => {
                let rested = peer.obey(&Order::Settle)?;
                let overwritten = Overwritten { file_bytes: rested.file_bytes, records, ..Overwritten::default() };
                Ok(Sample { overwritten, ..rested })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::measured;
    use super::*;

    #[test]
    fn a_long_stall_misses_its_goal_and_bytes_count_for_each_write() {
        let sample = |operations: u64, overwritten| {
            let process_bytes = Some(600 * operations);
            Sample { operations, nanos: 1_000_000, process_bytes, overwritten, ..Sample::default() }
        };
        let times = Overwritten { longest_nanos: 21_000_000, log_bytes: Some(1500), ..Overwritten::default() };
        let rest = Overwritten { file_bytes: 150_000, records: 1000, ..Overwritten::default() };
        let tasks = [
            (LOAD, sample(1000, Overwritten::default())),
            (CLOSED, sample(20, Overwritten::default())),
            (OPEN, sample(10, times)),
            (REST, sample(0, rest)),
        ];
        let (shown, goals) = measured(&["larch"], rows(), &tasks.map(|(task, sample)| (task, "larch", sample)));
        let figure = |name: &str| shown.iter().find(|row| row[0] == name).map(|row| row[2].clone());
        assert_eq!(figure("  longest").as_deref(), Some("21.0"));
        assert_eq!(figure("written by the process").as_deref(), Some("600"));
        assert_eq!(figure("  log").as_deref(), Some("150"));
        assert_eq!(figure("  flushes").as_deref(), Some("-"), "an engine that does not count leaves its place empty");
        assert_eq!(figure("files once it rests").as_deref(), Some("1.25"));
        let reached = |name: &str| goals.iter().find(|goal| goal.what.starts_with(name)).map(|goal| goal.is_reached);
        assert_eq!(reached("longest"), Some(false));
        assert_eq!(reached("written by the process"), None, "there is no other engine to compare with");
    }
}
