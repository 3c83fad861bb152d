//! `larch bench experiment client`: memory and processor time of the TPC-C client, with ten terminals a warehouse
//! that wait as the specification demands, on a no-op store. Each run is its own process, whose memory is that of
//! the client alone.

#![allow(clippy::disallowed_methods, reason = "starts this program on the real machine")]

use crate::args::{ExperimentArgs, Scale};
use crate::ground::Ground;
use crate::outcome::{Ending, Goal, Outcome};
use harness::report::Report;
use harness::{Failure, Times};
use kit::Scratch;
use kit::goals::Bound;
use page::{Block, Table, figure};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::Duration;
use tpcc::rules::Mode;
use tpcc::summary::Summary;

const MIB: f64 = 1024.0 * 1024.0;

/// How much is measured.
struct Size {
    warehouses: &'static [u32],
    warmup: Duration,
    time: Duration,
    has_goals: bool,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let size = |warehouses, warmup, time, has_goals| Self {
            warehouses,
            warmup: Duration::from_millis(warmup),
            time: Duration::from_millis(time),
            has_goals,
        };
        match scale {
            Scale::Tiny => size(&[10, 300], 0, 1000, false),
            Scale::Small => size(&[100, 1000, 15_000], 5000, 20_000, true),
            Scale::Medium => size(&[100, 1000, 5000, 15_000], 30_000, 60_000, true),
            Scale::Full => size(&[100, 1000, 5000, 15_000, 50_000], 60_000, 600_000, true),
        }
    }
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Ran {
    tpmc: f64,
    efficiency: f64,
    /// Peak memory of the process.
    peak_bytes: u64,
    /// Processor seconds per second.
    cores: f64,
    /// The 99th and 99.9th percentile of how late transactions were sent, in milliseconds.
    late_99: f64,
    late_999: f64,
}

/// Runs the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let mut ground = Ground::open("client", args, 1 << 20)?;
    for warehouses in size.warehouses {
        let place = ground.data("")?;
        let ran = ground.cell(&cell_name(*warehouses), |_| {
            suite::say(&format!("{warehouses} warehouses, {} terminals", 10 * warehouses));
            let scratch = Scratch::new_in(&place, "client").map_err(|why| Failure::session("io", why))?;
            measure(*warehouses, &size, &scratch)
        });
        match ran {
            // The run got the same ^C.
            _ if ground.stop.is_pressed() => return Ok(Ending::Interrupted),
            ran => ran?,
        };
    }
    outcome(&ground, &size).finish("client", &ground, args)
}

fn cell_name(warehouses: u32) -> String {
    format!("{warehouses} warehouses")
}

fn measure(warehouses: u32, size: &Size, scratch: &Scratch) -> Result<Ran, Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::session("run", format!("cannot run this program: {error}"));
    let program = std::env::current_exe().map_err(|error| cannot(&error))?;
    let out = scratch.join("result.json");
    let nanos = |time: Duration| format!("{}ns", time.as_nanos());
    let ended = Command::new(program)
        .args(["bench", "tpcc", "run", "--target", "noop:", "--quiet", "--seed", "1"])
        .args(["--warehouses", &warehouses.to_string(), "--warmup", &nanos(size.warmup), "--time", &nanos(size.time)])
        .arg("--out")
        .arg(&out)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| cannot(&error))?;
    if !ended.status.success() {
        let told = String::from_utf8_lossy(&ended.stderr);
        return Err(Failure::session("run", format!("{warehouses} warehouses: {}", told.trim())));
    }
    let report = Report::read(&out).map_err(|error| Failure::session("output", error.to_string()))?;
    let none = || Failure::session(crate::NOTHING, "the result has no run");
    let measured = &report.runs.first().ok_or_else(none)?.measured;
    let summary = Summary { mode: Mode::Spec, warehouses, measured };
    let waited = Times::sum(measured.kinds.iter().filter_map(|kind| kind.waited.as_ref()));
    if summary.new_orders() == 0 || waited.is_empty() {
        return Err(Failure::session(crate::NOTHING, format!("{warehouses} warehouses: no new order in the time")));
    }
    Ok(Ran {
        tpmc: summary.tpmc(),
        efficiency: summary.efficiency().unwrap_or(0.0),
        peak_bytes: measured.cost.peak_bytes,
        cores: measured.cost.process_nanos() as f64 / measured.nanos.max(1) as f64,
        late_99: waited.quantile(0.99) as f64 / 1e6,
        late_999: waited.quantile(0.999) as f64 / 1e6,
    })
}

/// The clients in the published document: description, MB of memory per warehouse, warehouses per core if it is
/// given.
const PUBLISHED: [(&str, f64, Option<f64>); 2] =
    [("BenchBase, a thread for each terminal", 40.0, None), ("the document's own, virtual threads", 6.0, Some(1000.0))];

fn outcome(ground: &Ground, size: &Size) -> Outcome {
    let known = |warehouses: u32| ground.known::<Ran>(&cell_name(warehouses));
    let mut rows = Vec::new();
    for &warehouses in size.warehouses {
        let Some(ran) = known(warehouses) else { continue };
        rows.push(vec![
            "this client, measured".to_owned(),
            warehouses.to_string(),
            figure(ran.peak_bytes as f64 / MIB),
            figure(ran.peak_bytes as f64 / 1024.0 / f64::from(warehouses)),
            figure(ran.cores),
            figure(ran.late_99),
            figure(ran.late_999),
            figure(ran.efficiency),
        ]);
    }
    for (name, mb, warehouses_a_core) in PUBLISHED {
        rows.push(vec![
            format!("{name}, by the document"),
            "15000".to_owned(),
            figure(mb * 15_000.0 * 1e6 / MIB),
            figure(mb * 1e6 / 1024.0),
            warehouses_a_core.map_or("-".to_owned(), |warehouses| figure(15_000.0 / warehouses)),
            "-".to_owned(),
            "-".to_owned(),
            "-".to_owned(),
        ]);
    }
    let columns = [
        "client",
        "warehouses",
        "MiB of memory",
        "KiB a warehouse",
        "cores",
        "sent late, 99 %, ms",
        "99.9 %, ms",
        "efficiency, %",
    ];
    let table = Table {
        caption: format!(
            "Ten terminals a warehouse that wait, with the deck of cards, on one thread and a store that does nothing, {} s after {} s; a \
             transaction is late from the moment at which its terminal would have sent it. With weights efficiency would be 100, with the \
             deck it is {:.1} at most",
            size.time.as_secs_f64(),
            size.warmup.as_secs_f64(),
            100.0 * tpcc::summary::MOST_TPMC_OF_DECK / tpcc::summary::MOST_TPMC
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    };
    let goals = |ran: Ran| {
        let goal = |what: &str, bound, measured| Goal { what: what.to_owned(), bound, measured: Some(measured) };
        vec![
            goal("15,000 warehouses: MiB of memory", Bound::AtMost(62.0), ran.peak_bytes as f64 / MIB),
            goal("15,000 warehouses: cores", Bound::AtMost(0.05), ran.cores),
            goal("15,000 warehouses: ms late, 99.9 %", Bound::AtMost(1.0), ran.late_999),
            goal("15,000 warehouses: efficiency", Bound::AtLeast(97.5), ran.efficiency),
        ]
    };
    Outcome {
        title: "The client of TPC-C".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks: vec![Block::Table(table)],
        goals: known(15_000).filter(|_| size.has_goals).map_or_else(Vec::new, goals),
    }
}

const ABOUT: [&str; 2] = [
    "The usual client of TPC-C has a thread for each terminal, so that 15,000 warehouses take 150,000 threads and 600 GB of memory. The \
     authors of YDB replaced them by virtual threads, and then needed 90 GB and 15 cores.",
    "Here a terminal is 40 bytes in a timing wheel and shares a thread with all others.",
];
