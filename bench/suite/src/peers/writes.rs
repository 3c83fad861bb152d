//! `larch bench writes`: sustained overwrites of uniformly drawn rows, on tables of several sizes. A closed loop
//! measures the capacity. Then an open loop runs at a share of the capacity, and the time of a write counts from
//! when it should have begun.

#![allow(clippy::disallowed_methods, reason = "files of the system, never simulated")]

#[cfg(test)]
mod tests;

use super::herd::Peer;
use super::orders::{Fill, Order, Overwrite, Overwritten, Sample};
use super::table::{Against, Goal, Row, Table};
use super::{Ending, Tale, absent, check_room, failed, place, thousands, verdict_of};
use crate::args::WritesArgs;
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

const CAPACITY: &str = "overwrites, closed loop";
const OPEN: &str = "overwrites, open loop";
const P999: &str = "  99.9 % within";
const LONGEST: &str = "  longest";
const UNSENT: &str = "  not begun in time";
const WRITTEN: &str = "written by the process";
const STOPS: &str = "writes stopped at level 0";

/// How large a run is.
struct Scale {
    tables: Vec<u64>,
    warmup: Duration,
    time: Duration,
}

impl Scale {
    fn of(args: &WritesArgs) -> Self {
        let (usual, warmup, time) = match args.quick {
            true => (vec![1_000_000], Duration::from_secs(1), Duration::from_secs(20)),
            false => (vec![1_000_000, 4_000_000, 16_000_000], Duration::from_secs(10), Duration::from_secs(600)),
        };
        let tables = if args.records.is_empty() { usual } else { args.records.clone() };
        Self { tables, warmup, time: args.time.unwrap_or(time) }
    }
}

/// Measures the tables on all engines that this binary has.
pub fn run(args: &WritesArgs, schemes: &[Scheme]) -> Result<Ending, String> {
    let scale = Scale::of(args);
    let is_here = |(name, _): &(&str, &str)| schemes.iter().any(|known| known.name == *name);
    let engines: Vec<(&'static str, &str)> = ENGINES.into_iter().filter(is_here).collect();
    let place = place(args.dir.as_deref(), "bench-writes")?;
    let largest = scale.tables.iter().copied().max().unwrap_or(0);
    check_room(&place, engines.len() as u64 * largest * MOST_ROW_BYTES)?;
    let tale = Tale::new();
    let mut settings = Vec::new();
    let mut parts = Vec::new();
    for &records in &scale.tables {
        let mut table = Table::new(engines.iter().map(|(name, _)| *name));
        rows().into_iter().for_each(|row| table.add(row));
        for (at, (name, options)) in engines.iter().enumerate() {
            let directory = place.join(format!("{name}-{records}"));
            let target = format!("{name}:{}?{options}", directory.display());
            let mut peer = Peer::start(name, &target, None)?;
            match measure(&mut peer, records, &scale, &tale) {
                Ok(measured) => {
                    note_settings(&mut settings, name, &measured.filled);
                    put(&mut table, at, records, &measured);
                }
                Err(why) => {
                    failed(CAPACITY, why, &mut table.failures, &tale);
                    table.rows.iter_mut().for_each(|row| row.fail(at));
                }
            }
            drop(peer);
            std::fs::remove_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        parts.push((format!("{records} rows"), table));
    }
    let parts: Vec<(&str, Table)> = parts.iter().map(|(title, table)| (title.as_str(), table.clone())).collect();
    let mut ending = verdict_of(&parts);
    ending.text = format!("{}\n{}", head(args, &scale, &settings), ending.text);
    ending.leave_out(&absent(&ENGINES.map(|(name, _)| name), schemes));
    Ok(ending)
}

/// What was measured with one engine on one table.
struct Measured {
    filled: Sample,
    closed: Sample,
    open: Sample,
    /// The size of the files after all background work was done.
    settled_bytes: u64,
}

fn measure(peer: &mut Peer, records: u64, scale: &Scale, tale: &Tale) -> Result<Measured, String> {
    peer.obey(&Order::Open { anew: true })?;
    let limit_millis = (LOAD_MILLIS * records).div_ceil(1_000_000);
    let filled = peer.obey(&Order::Fill { how: Fill::Random, records, limit_millis })?;
    if filled.rows != records {
        return Err(format!("of {records} rows {} were loaded in {limit_millis} ms", filled.rows));
    }
    tale.tell(&format!("{:28} {:12} {:10.1} K/s", "random load", peer.name(), thousands(&filled)));
    let warmup_millis = scale.warmup.as_millis() as u64;
    let order = |time: Duration, per_second, seed| {
        Order::Overwrite(Overwrite {
            records,
            filled: Fill::Random,
            warmup_millis,
            millis: time.as_millis() as u64,
            per_second,
            seed,
            builds_index: false,
        })
    };
    let closed = peer.obey(&order(scale.time.mul_f64(CAPACITY_TIME), None, 1))?;
    tale.tell(&format!("{CAPACITY:28} {:12} {}", peer.name(), line(&closed)));
    let per_second = thousands(&closed) * 1e3 * SHARE;
    let open = peer.obey(&order(scale.time, Some(per_second), 2))?;
    tale.tell(&format!("{OPEN:28} {:12} {}", peer.name(), line(&open)));
    let settled = peer.obey(&Order::Settle)?;
    peer.obey(&Order::Close)?;
    Ok(Measured { filled, closed, open, settled_bytes: settled.file_bytes })
}

/// A sample as a line of progress.
fn line(sample: &Sample) -> String {
    let Overwritten { p999_nanos, longest_nanos, .. } = sample.overwritten;
    let (p999, longest) = (p999_nanos as f64 / 1e3, longest_nanos as f64 / 1e6);
    format!("{:10.1} K/s, 99.9 % within {p999:.0} us, longest {longest:.1} ms", thousands(sample))
}

fn note_settings(settings: &mut Vec<String>, name: &str, sample: &Sample) {
    let list: Vec<String> = sample.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let line = format!("{name}: {}", list.join("; "));
    if !settings.contains(&line) {
        settings.push(line);
    }
}

fn head(args: &WritesArgs, scale: &Scale, settings: &[String]) -> String {
    let mut text = format!(
        "Rows of about 23-byte keys and 100-byte values, one thread, a closed loop of {} s and an open one of {} s at {:.0} % \
         of its rate, each after {} s of warm-up{}\n\n",
        scale.time.mul_f64(CAPACITY_TIME).as_secs_f64(),
        scale.time.as_secs_f64(),
        100.0 * SHARE,
        scale.warmup.as_secs_f64(),
        if args.quick { " (quick: figures are rough)" } else { "" }
    );
    settings.iter().for_each(|line| text.push_str(&format!("* {line}\n")));
    text
}

/// The rows with their goals.
fn rows() -> Vec<Row> {
    let beside = |ratio| vec![Goal { against: Against::Engine("rocksdb"), ratio }];
    let figure = |ratio| Goal { against: Against::Figure, ratio };
    let less = |name, unit, goals| Row::new(name, unit, goals).less_is_better();
    vec![
        less("random load, written", "bytes a row", beside(1.0)),
        Row::new(CAPACITY, "K/s", beside(1.0)),
        less("  longest, closed loop", "ms", Vec::new()),
        less("  written, closed loop", "bytes a write", Vec::new()),
        Row::new(OPEN, "K/s", Vec::new()),
        less("  50 % within", "us", Vec::new()),
        less("  99 % within", "us", Vec::new()),
        less(P999, "us", beside(1.0)),
        less("  99.99 % within", "us", Vec::new()),
        less(LONGEST, "ms", vec![figure(20.0)]),
        less(UNSENT, "operations", Vec::new()),
        less(WRITTEN, "bytes a write", beside(1.0)),
        less("  log", "bytes a write", Vec::new()),
        less("  flushes", "bytes a write", Vec::new()),
        less("  compactions", "bytes a write", Vec::new()),
        less("files at the end", "x the rows", Vec::new()),
        less("files once it rests", "x the rows", Vec::new()),
        less(STOPS, "stops", vec![figure(0.0)]),
    ]
}

/// Enters what was measured with engine `at` into the table. A cell stays empty if the engine does not count its
/// figure.
fn put(table: &mut Table, at: usize, records: u64, measured: &Measured) {
    let Measured { filled, closed, open, settled_bytes } = measured;
    let mut set = |name: &str, figure: Option<f64>| {
        table.row(name).figures[at].extend(figure);
    };
    let a_write = |sample: &Sample, bytes: Option<u64>| bytes.map(|it| it as f64 / sample.operations.max(1) as f64);
    let micros = |nanos: u64| Some(nanos as f64 / 1e3);
    let times = &open.overwritten;
    let of_rows = |bytes: u64| Some(bytes as f64 / (records * ROW_BYTES) as f64);
    set("random load, written", a_write(filled, filled.process_bytes));
    set(CAPACITY, Some(thousands(closed)));
    set("  longest, closed loop", Some(closed.overwritten.longest_nanos as f64 / 1e6));
    set("  written, closed loop", a_write(closed, closed.process_bytes));
    set(OPEN, Some(thousands(open)));
    set("  50 % within", micros(times.p50_nanos));
    set("  99 % within", micros(times.p99_nanos));
    set(P999, micros(times.p999_nanos));
    set("  99.99 % within", micros(times.p9999_nanos));
    set(LONGEST, Some(times.longest_nanos as f64 / 1e6));
    set(UNSENT, Some(times.unsent as f64));
    set(WRITTEN, a_write(open, open.process_bytes));
    set("  log", a_write(open, times.log_bytes));
    set("  flushes", a_write(open, times.flush_bytes));
    set("  compactions", a_write(open, times.compaction_bytes));
    set("files at the end", of_rows(times.file_bytes));
    set("files once it rests", of_rows(*settled_bytes));
    let stops = [closed, open].iter().filter_map(|sample| sample.level0_stops).reduce(|a, b| a + b);
    set(STOPS, stops.map(|stops| stops as f64));
}
