//! `larch bench generator`, `pgbench` and `kv-client-cost`: measure the client's own processor time, without a
//! store and beside other clients.

use crate::args::QuickArgs;
use crate::{KvClientCost, print};
use harness::report::text;
use harness::{Failure, Length, Plan, Workload, noop::Noop};
use kit::client_cost::Run as ClientRun;
use kit::goals::{Bound, summary};
use kit::hints::with_engine;
use kit::median::{extremes, median};
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stores::postgres::comparison;
use ycsb::{Ceiling, Load, Run, Settings};

/// The goal for workloads A and C on the no-op store, in millions of operations per second of processor time.
const OPERATIONS_GOAL: Bound = Bound::AtLeast(5.0);
/// The goal for a load, in gigabytes of values per second of processor time.
const BYTES_GOAL: Bound = Bound::AtLeast(1.0);
/// The value bytes of a default YCSB record: 10 fields of 100 bytes.
const RECORD_BYTES: f64 = 1000.0;
/// The goal for queries per second of processor time, as a multiple of pgbench's figure.
const PGBENCH_GOAL: Bound = Bound::AtLeast(1.1);
/// The goal for the kv driver: the processor time of cassandra-stress for an operation, as a multiple of the
/// driver's.
const KV_GOAL: Bound = Bound::AtLeast(1.0);

/// Measures YCSB's clients without a store, first alone and then with the harness's clocks and histograms. Returns
/// whether the goals are reached.
pub fn generator(args: &QuickArgs) -> Result<bool, Failure> {
    let time = Duration::from_millis(if args.quick { 300 } else { 2_000 });
    let mut text = format!("{:12} {:>22} {:>22}\n", "", "clients alone", "driven and measured");
    let mut short = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        let settings = settings(name, &[])?;
        let alone = Ceiling::of(&mut Run::new(&settings, 1).client(0, 1), time).operations_per_second();
        let driven = driven(&Run::new(&settings, 1), time)?;
        let rates = format!("{:>17.2} M op/s {:>17.2} M op/s", alone / 1e6, driven / 1e6);
        put(&mut text, format_args!("{:12} {rates}\n", format!("workload {name}")));
        if matches!(name, "a" | "c") && !OPERATIONS_GOAL.is_reached(driven / 1e6) {
            short.push(format!("workload {name}: {:.2} M op/s, {OPERATIONS_GOAL} M", driven / 1e6));
        }
    }
    let settings = settings("a", &[("recordcount", "1000000000")])?;
    let alone = Ceiling::of(&mut Load::new(&settings, 1).client(0, 1), time).value_bytes_per_second();
    let bytes = driven(&Load::new(&settings, 1), time)? * RECORD_BYTES;
    put(&mut text, format_args!("{:12} {:>19.2} GB/s {:>19.2} GB/s\n", "load", alone / 1e9, bytes / 1e9));
    if !BYTES_GOAL.is_reached(bytes / 1e9) {
        short.push(format!("load: {:.2} GB/s, {BYTES_GOAL}", bytes / 1e9));
    }
    text.push_str("each for a second of one processor; goals: 5 M op/s of a and c, 1 GB/s of values\n");
    told(text, &short)
}

fn settings(name: &str, more: &[(&str, &str)]) -> Result<Settings, Failure> {
    let mut properties = ycsb::built_in(name).expect("it is built in");
    for (name, value) in [("recordcount", "1000000"), ("operationcount", "100000000")].iter().chain(more) {
        properties.set(*name, *value);
    }
    let no_files = |_: &str| Err("no file is named".to_owned());
    Settings::new(&properties, &no_files).map_err(|error| Failure::session("target", error.to_string()))
}

/// Operations on the no-op store per second of the client's processor time.
fn driven<W: Workload>(workload: &W, time: Duration) -> Result<f64, Failure> {
    let plan = Plan { length: Length::Time(time), ..Plan::default() };
    let measured = harness::run(&Noop::waiting(), workload, &plan, &AtomicBool::new(false), &mut |_| ())
        .map_err(|error| Failure::session("run", error.to_string()))?;
    Ok(measured.operations as f64 * 1e9 / measured.cost.client_nanos.max(1) as f64)
}

/// Compares our PostgreSQL point reads with pgbench's, in queries per second of the client's processor time.
pub fn pgbench(args: &QuickArgs) -> Result<bool, Failure> {
    let options = match args.quick {
        true => comparison::Options { run: Duration::from_secs(1), repeats: 1, ..Default::default() },
        false => comparison::Options { repeats: 5, ..Default::default() },
    };
    let found = comparison::run(&options, |line| eprintln!("{line}"))
        .map_err(|error| Failure::session("pgbench", error.to_string()))?;
    let mut text = format!("{}\n\n", found.about);
    let mut short = Vec::new();
    put(&mut text, format_args!("{:16} {:>24} {:>24} {:>7}\n", "queries/CPU-s", "larch bench", "pgbench", "ratio"));
    for (name, sides) in [("one at a time", &found.single), ("grouped", &found.grouped)] {
        put(
            &mut text,
            format_args!(
                "{name:16} {:>24} {:>24} {:>7.2}\n",
                spread(&sides.ours),
                spread(&sides.theirs),
                sides.ratio()
            ),
        );
        if !PGBENCH_GOAL.is_reached(sides.ratio()) {
            short.push(format!("{name}: {:.2}, {PGBENCH_GOAL}", sides.ratio()));
        }
    }
    told(text, &short)
}

/// Compares the key-value driver with cassandra-stress, in seconds of the client's processor time per million
/// operations.
pub fn kv(args: &QuickArgs, compare: Option<KvClientCost>) -> Result<bool, Failure> {
    let Some(compare) = compare else {
        let with = with_engine("cassandra", "kv-client-cost");
        return Err(Failure::session("target", format!("this binary has no Cassandra: run it with {with}")));
    };
    let found = compare(args.quick, &mut |line| eprintln!("{line}"))?;
    let mut text = format!("{}\n\n", found.about);
    let head = "CPU-s for 1 M operations";
    put(&mut text, format_args!("{head:26} {:>22} {:>22} {:>7}\n", "larch bench kv", found.theirs, "ratio"));
    let mut short = Vec::new();
    for (name, sides) in &found.kinds {
        let seconds = |runs: &[ClientRun]| {
            let seconds: Vec<f64> = runs.iter().map(ClientRun::processor_seconds_per_million).collect();
            let (least, most) = extremes(&seconds);
            format!("{:.1} ({least:.1} to {most:.1})", median(&seconds))
        };
        let (ours, theirs) = (seconds(&sides.ours), seconds(&sides.theirs));
        put(&mut text, format_args!("{name:26} {ours:>22} {theirs:>22} {:>7.2}\n", sides.ratio()));
        if !KV_GOAL.is_reached(sides.ratio()) {
            short.push(format!("{name}: {:.2}, {KV_GOAL}", sides.ratio()));
        }
    }
    told(text, &short)
}

/// The median rate of the runs, with the least and the greatest in parentheses.
fn spread(runs: &[ClientRun]) -> String {
    let rates: Vec<f64> = runs.iter().map(ClientRun::per_processor_second).collect();
    let (least, most) = extremes(&rates);
    format!("{} ({} to {})", text::rate(median(&rates)), text::rate(least), text::rate(most))
}

/// Prints a table and the list of goals that were missed.
fn told(mut text: String, short: &[String]) -> Result<bool, Failure> {
    for line in short {
        put(&mut text, format_args!("  {line}\n"));
    }
    text.push_str(&summary(short.len()));
    print(&text)?;
    Ok(short.is_empty())
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes all");
}
