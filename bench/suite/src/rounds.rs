//! Runs of YCSB and TPC-C on Larch, each in its own process. Runs in one process share a memory layout, so they
//! differ less from each other than from runs in another process.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts programs on the real machine")]

use crate::args::RoundArgs;
use crate::stop::{INTERRUPTED, Stop};
use harness::Failure;
use harness::report::{Report, Run};
use kit::Scratch;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A run has at least this many intervals. An interval lasts at most a second.
const INTERVALS: u32 = 20;

/// The result file, the directory of the TPC-C database, and the number of its warehouses.
const RESULT: &str = "result.json";
const TPCC: &str = "tpcc";
const TPCC_WAREHOUSES: &str = "2";

/// The cache of all runs, whatever memory is free.
const CACHE: &str = "cache=256MiB";

/// Starts runs in a scratch directory.
pub struct Rounds<'a> {
    scratch: Scratch,
    stop: &'a Stop,
    args: &'a RoundArgs,
}

/// Which run of YCSB to make.
pub struct What<'a> {
    /// The letter of the YCSB workload.
    pub workload: &'a str,
    /// The seed of the operations.
    pub seed: u32,
    /// Time added to each request.
    pub slow_down: Duration,
}

impl<'a> Rounds<'a> {
    /// Creates the scratch directory, which is removed when this value is dropped.
    pub fn new(args: &'a RoundArgs, stop: &'a Stop) -> Result<Self, Failure> {
        let program = this_program()?;
        let beside = program.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        let parent = args.dir.as_deref().unwrap_or(beside);
        let scratch = Scratch::new_in(parent, "rounds")
            .map_err(|why| Failure::session("target", format!("{why}; name another directory by --dir")))?;
        stop.removes(scratch.path());
        Ok(Self { scratch, stop, args })
    }

    /// Has `program` empty the table of `workload` and load it.
    pub fn load(&self, program: &Path, workload: &str) -> Result<(), Failure> {
        self.ycsb(program, &["load", "--workload", workload, "--recreate"])
    }

    /// Has `program` make a YCSB run.
    pub fn run(&self, program: &Path, what: &What<'_>) -> Result<Report, Failure> {
        let (time, warmup) = (nanos(self.args.time), nanos(self.args.warmup));
        let (seed, slower) = (what.seed.to_string(), nanos(what.slow_down));
        let granularity = format!("timeseries.granularity={}", self.interval().as_millis());
        let mut args = vec!["run", "--workload", what.workload, "--time", &time, "--warmup", &warmup, "--seed", &seed];
        if !what.slow_down.is_zero() {
            args.extend(["--slow-down", &slower]);
        }
        args.extend(["-p", "measurementtype=timeseries", "-p", &granularity, "--out", RESULT]);
        self.ycsb(program, &args)?;
        self.result()
    }

    /// Has `program` replace the TPC-C database by a new one and make a run on it whose terminals never wait.
    pub fn tpcc(&self, program: &Path, seed: u32) -> Result<Report, Failure> {
        let place = self.scratch.join(TPCC);
        if place.exists() {
            let removed = std::fs::remove_dir_all(&place);
            removed
                .map_err(|error| Failure::session("target", format!("cannot remove {}: {error}", place.display())))?;
        }
        let target = format!("larch:{TPCC}?{CACHE}");
        let at = ["--quiet", "--target", &target];
        self.bench(program, &[&["tpcc", "import"], &at[..], &["--warehouses", TPCC_WAREHOUSES]].concat())?;
        let (time, warmup) = (nanos(self.args.time), nanos(self.args.warmup));
        let (seed, interval) = (seed.to_string(), nanos(self.interval()));
        let run = ["--mode", "nowait", "--time", &time, "--warmup", &warmup, "--interval", &interval, "--seed", &seed];
        self.bench(program, &[&["tpcc", "run"], &at[..], &run, &["--out", RESULT]].concat())?;
        self.result()
    }

    /// The length of an interval. Short intervals give more of them, and so a better estimate of how much a run
    /// varies.
    fn interval(&self) -> Duration {
        Duration::from_millis((self.args.time / INTERVALS).as_millis().clamp(1, 1000) as u64)
    }

    fn result(&self) -> Result<Report, Failure> {
        Report::read(&self.scratch.join(RESULT)).map_err(|error| Failure::session("output", error.to_string()))
    }

    fn ycsb(&self, program: &Path, args: &[&str]) -> Result<(), Failure> {
        let (target, records) = (format!("larch:db?{CACHE}"), format!("recordcount={}", self.args.records));
        self.bench(program, &[&["ycsb", "--quiet", "--target", &target, "-p", &records], args].concat())
    }

    fn bench(&self, program: &Path, args: &[&str]) -> Result<(), Failure> {
        if self.stop.is_pressed() {
            return Err(interrupted());
        }
        let command = [&["bench"], args].concat();
        // A result records its command line. Starting the program under the name `larch` keeps its path out of it.
        let ended = Command::new(program)
            .arg0("larch")
            .args(&command)
            .current_dir(self.scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| Failure::session("target", format!("cannot start {}: {error}", program.display())))?;
        match ended.status.code() {
            Some(0) => Ok(()),
            _ if self.stop.is_pressed() => Err(interrupted()),
            _ => {
                let told = String::from_utf8_lossy(&ended.stderr);
                let text = format!("{} {} failed: {}", program.display(), command.join(" "), told.trim());
                Err(Failure::session("run", text))
            }
        }
    }
}

fn interrupted() -> Failure {
    Failure::session(INTERRUPTED, "interrupted; nothing was compared")
}

/// The path of the running program.
pub fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::session("run", format!("cannot find this program: {error}")))
}

fn nanos(time: Duration) -> String {
    format!("{}ns", time.as_nanos())
}

/// Joins the results of one round into one result.
pub fn merged(reports: Vec<Report>) -> Report {
    let mut reports = reports.into_iter();
    let mut whole = reports.next().expect("a round has a run");
    whole.runs.extend(reports.flat_map(|report| report.runs));
    whole
}

/// The first run of a result that holds a single one.
pub fn single(report: &Report) -> Result<&Run, Failure> {
    report.runs.first().ok_or_else(|| Failure::session("run", "a result has no run"))
}
