//! `larch bench experiment client`: memory and processor time of the TPC-C client, with ten terminals a warehouse
//! that wait as the specification demands, on a no-op store. Each run is its own process, whose memory is that of
//! the client alone.

#![allow(clippy::disallowed_methods, reason = "starts this program on the real machine")]

use crate::args::Scale;
use crate::experiment::{About, Experiment, Kept};
use crate::figures::{kib, mib, shown};
use crate::ground::Ground;
use crate::outcome::{Goal, grid};
use crate::quoted::{self, Quote};
use harness::report::Report;
use harness::{Failure, Times};
use kit::Scratch;
use page::{Block, figure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::process::{Command, Stdio};
use std::time::Duration;
use tpcc::rules::Mode;
use tpcc::summary::Summary;

/// The experiment, and how much it measures.
pub struct Client {
    warehouses: &'static [u32],
    warmup: Duration,
    time: Duration,
    has_goals: bool,
}

impl Client {
    /// The experiment at `scale`.
    pub fn of(scale: Scale) -> Self {
        let (warehouses, warmup, time) = match scale {
            Scale::Tiny => (&[10, 300][..], 0, 1000),
            Scale::Small => (&[100, 1000, 15_000][..], 5000, 20_000),
            Scale::Medium => (&[100, 1000, 5000, 15_000][..], 30_000, 60_000),
            Scale::Full => (&[100, 1000, 5000, 15_000, 50_000][..], 60_000, 600_000),
        };
        let [warmup, time] = [warmup, time].map(Duration::from_millis);
        Self { warehouses, warmup, time, has_goals: scale != Scale::Tiny }
    }
}

/// A number of warehouses.
#[derive(Clone, Copy)]
pub struct Warehouses(u32);

impl fmt::Display for Warehouses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} warehouses", self.0)
    }
}

/// What a run of the client took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Taken {
    tpmc: f64,
    efficiency: f64,
    /// Peak memory of the process.
    peak_bytes: u64,
    /// Processor seconds per second.
    cores: f64,
    /// The 99th and 99.9th percentile of how late transactions were sent, in milliseconds. `None` if there were too few
    /// transactions for it.
    late_99: Option<f64>,
    late_999: Option<f64>,
}

/// The clients in the published document: description, memory for a warehouse, and warehouses for a core if they are
/// given.
const PUBLISHED: [(&str, Quote, Option<Quote>); 2] = [
    ("BenchBase, a thread for each terminal", quoted::BENCHBASE_WAREHOUSE, None),
    ("the document's own, virtual threads", quoted::YDB_WAREHOUSE, Some(quoted::YDB_WAREHOUSES_A_CORE)),
];

impl Experiment for Client {
    const ABOUT: About = About {
        name: "client",
        title: "The client of TPC-C",
        text: &[
            quoted::TALK.text,
            "Here a terminal is 40 bytes in a timing wheel and shares a thread with all others.",
        ],
    };

    type Cell = Warehouses;

    fn most_bytes(&self) -> u64 {
        1 << 20
    }

    fn cells(&self) -> Vec<Warehouses> {
        self.warehouses.iter().map(|count| Warehouses(*count)).collect()
    }

    fn measure(&mut self, cell: &Warehouses, ground: &mut Ground) -> Result<Kept, Failure> {
        let scratch = Scratch::new_in(&ground.data("")?, "client").map_err(|why| Failure::session("io", why))?;
        let taken = self.run(cell.0, &scratch)?;
        Ok(Kept::new(&taken, format!("{:.0} MiB, {:.3} cores", mib(taken.peak_bytes as f64), taken.cores)))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let mut rows = Vec::new();
        for &count in self.warehouses {
            let Some(taken) = ground.known::<Taken>(Warehouses(count)) else { continue };
            rows.push(vec![
                "this client, measured".to_owned(),
                count.to_string(),
                figure(mib(taken.peak_bytes as f64)),
                figure(taken.peak_bytes as f64 / 1024.0 / f64::from(count)),
                figure(taken.cores),
                shown(taken.late_99),
                shown(taken.late_999),
                figure(taken.efficiency),
            ]);
        }
        let quoted_warehouses = quoted::LEAST_WAREHOUSES.value();
        for (name, memory, warehouses_a_core) in PUBLISHED {
            let none = || "-".to_owned();
            let bytes = memory.value() * 1e6;
            rows.push(vec![
                format!("{name}, by the document"),
                quoted_warehouses.to_string(),
                figure(mib(bytes * quoted_warehouses)),
                figure(kib(bytes)),
                warehouses_a_core.map_or_else(none, |warehouses| figure(quoted_warehouses / warehouses.value())),
                none(),
                none(),
                none(),
            ]);
        }
        let caption = format!(
            "Ten terminals a warehouse that wait, with the deck of cards, on one thread and a store that does nothing, {} s after {} s; a \
             transaction is late from the moment at which its terminal would have sent it. With weights efficiency would be 100, with the \
             deck it is {:.1} at most",
            self.time.as_secs_f64(),
            self.warmup.as_secs_f64(),
            100.0 * tpcc::summary::MOST_TPMC_OF_DECK / tpcc::summary::MOST_TPMC
        );
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
        Ok(vec![grid(caption, columns, rows)])
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        let Some(taken) = ground.known::<Taken>(Warehouses(15_000)).filter(|_| self.has_goals) else {
            return Vec::new();
        };
        vec![
            Goal::at_most(62.0, "15,000 warehouses: MiB of memory", Some(mib(taken.peak_bytes as f64))),
            Goal::at_most(0.05, "15,000 warehouses: cores", Some(taken.cores)),
            Goal::at_most(1.0, "15,000 warehouses: ms late, 99.9 %", taken.late_999),
            Goal::at_least(97.5, "15,000 warehouses: efficiency", Some(taken.efficiency)),
        ]
    }
}

impl Client {
    /// Runs the client in a process of its own, whose result is written to `scratch`.
    fn run(&self, warehouses: u32, scratch: &Scratch) -> Result<Taken, Failure> {
        let cannot = |error: &dyn fmt::Display| Failure::session("run", format!("cannot run this program: {error}"));
        let program = std::env::current_exe().map_err(|error| cannot(&error))?;
        let out = scratch.join("result.json");
        let [warmup, time] = [self.warmup, self.time].map(|time| format!("{}ns", time.as_nanos()));
        let ended = Command::new(program)
            .args(["bench", "tpcc", "run", "--target", "noop:", "--quiet", "--seed", "1"])
            .args(["--warehouses", &warehouses.to_string(), "--warmup", &warmup, "--time", &time])
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
        let millis = |quantile| Some(waited.known_quantile(quantile)? as f64 / 1e6);
        Ok(Taken {
            tpmc: summary.tpmc(),
            efficiency: summary.efficiency().unwrap_or(0.0),
            peak_bytes: measured.cost.peak_bytes,
            cores: measured.cost.process_nanos() as f64 / measured.nanos.max(1) as f64,
            late_99: millis(0.99),
            late_999: millis(0.999),
        })
    }
}
