//! The disk alone, measured by fio: direct reads of the file that the store `disk` made, at random or sequentially,
//! by threads that wait for each read or by one thread with many reads in flight. fio runs as a separate process
//! and reports its own processor time.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts fio on the machine's own files")]

#[cfg(test)]
mod tests;

use super::orders::{Operate, Sample, Task};
use super::raw;
use harness::times::is_known;
use harness::{Clock, Counter, Failure, Opening, Scheme, Session, Setting, Store, StoreUse, Table, Target};
use kit::hints::on_debian;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Command;

/// A scheme for comparisons only. The store has no sessions: the child runs fio for each measurement.
pub const SCHEME: Scheme = Scheme {
    name: "fio",
    form: "fio:DIR",
    about: "the disk alone, measured by fio, on the file of a store `disk`",
    options: &[
        ("page", "bytes of a random read: 16KiB"),
        ("flights", "1: one thread with as many reads under way as there are clients, 0: a thread for each"),
        ("ahead", "bytes under way in a read of the whole file: 8MiB"),
    ],
    networked: false,
    open,
};

/// The size of a sequential read.
const SEQUENTIAL_BYTES: u64 = 256 << 10;

/// fio's engines with many reads in flight, in order of preference. Containers often forbid io_uring.
const ENGINES: [&str; 2] = ["io_uring", "libaio"];

/// The version that fio prints; `None` if fio is not installed.
pub fn version() -> Option<String> {
    let output = Command::new("fio").arg("--version").output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

struct Options {
    file: PathBuf,
    page_bytes: u64,
    flights: bool,
    ahead_bytes: u64,
}

fn options(target: &Target) -> Result<Options, Failure> {
    let mut options = target.options()?;
    let page_bytes = options.bytes("page", 16 << 10)?;
    let flights = options.choice("flights", &[("0", false), ("1", true)])?;
    let ahead_bytes = options.bytes("ahead", 8 << 20)?;
    options.finish()?;
    Ok(Options { file: target.directory()?.join(raw::FILE), page_bytes, flights, ahead_bytes })
}

/// Runs fio for `measure`: sequential reads for a scan, random reads for anything else.
pub fn measure(target: &Target, measure: &Operate) -> Result<Sample, String> {
    let options = options(target).map_err(|failure| failure.to_string())?;
    let engines = if options.flights || measure.task == Task::Scan { &ENGINES[..] } else { &["psync"] };
    let mut why = String::new();
    for engine in engines {
        match run(&arguments(&options, measure, engine)) {
            Ok(sample) => return Ok(sample),
            Err(error) => why = format!("{why}{}{engine}: {error}", if why.is_empty() { "" } else { "; " }),
        }
    }
    Err(format!("fio by {why}"))
}

fn arguments(options: &Options, measure: &Operate, engine: &str) -> Vec<String> {
    let (order, block_bytes, depth) = match measure.task {
        Task::Scan => ("read", SEQUENTIAL_BYTES, (options.ahead_bytes / SEQUENTIAL_BYTES).max(1)),
        _ => ("randread", options.page_bytes, measure.threads as u64),
    };
    let (jobs, depth) = if engine == "psync" { (depth, 1) } else { (1, depth) };
    // A colon separates file names for fio.
    let file = options.file.display().to_string().replace(':', "\\:");
    [
        "--name=reads".to_owned(),
        format!("--filename={file}"),
        "--readonly".to_owned(),
        "--direct=1".to_owned(),
        format!("--rw={order}"),
        format!("--bs={block_bytes}"),
        format!("--ioengine={engine}"),
        format!("--iodepth={depth}"),
        format!("--numjobs={jobs}"),
        "--thread=1".to_owned(),
        "--group_reporting=1".to_owned(),
        "--time_based=1".to_owned(),
        format!("--ramp_time={}ms", measure.warmup_millis),
        format!("--runtime={}ms", measure.millis),
        // Keep no map of blocks already read; the seed makes each run read other blocks.
        "--norandommap=1".to_owned(),
        format!("--randseed={}", measure.seed),
        "--output-format=json".to_owned(),
    ]
    .into()
}

fn run(arguments: &[String]) -> Result<Sample, String> {
    let output = Command::new("fio").args(arguments).output().map_err(|error| format!("cannot start it: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, said.lines().next().unwrap_or("it printed nothing")));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// The fields of fio's output that this module reads.
#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    error: i32,
    /// The run time of all threads together, in milliseconds.
    job_runtime: f64,
    /// The processor time in user mode, in per cent of `job_runtime`.
    usr_cpu: f64,
    sys_cpu: f64,
    read: Reads,
}

#[derive(Deserialize)]
struct Reads {
    total_ios: u64,
    io_bytes: u64,
    /// In milliseconds.
    runtime: u64,
    clat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    #[serde(default)]
    percentile: std::collections::BTreeMap<String, u64>,
}

/// Parses fio's output, in which warnings may precede the JSON.
fn parse(text: &str) -> Result<Sample, String> {
    let json = text.find('{').map(|start| &text[start..]).ok_or("it wrote no report")?;
    let report: Report = serde_json::from_str(json).map_err(|error| format!("cannot read its report: {error}"))?;
    let [job] = report.jobs.as_slice() else {
        return Err(format!("its report has {} groups instead of one", report.jobs.len()));
    };
    if job.error != 0 {
        return Err(format!("it failed: error {}", job.error));
    }
    if job.read.total_ios == 0 || job.read.runtime == 0 {
        return Err("it read nothing".to_owned());
    }
    let late = job.read.clat_ns.percentile.get("99.000000");
    Ok(Sample {
        operations: job.read.total_ios,
        nanos: job.read.runtime * 1_000_000,
        cpu_nanos: ((job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime * 1e6) as u64,
        disk_reads: Some(job.read.total_ios),
        window_read_bytes: job.read.io_bytes,
        p99_nanos: late.filter(|_| is_known(job.read.total_ios, 0.99)).copied(),
        ..Sample::default()
    })
}

struct Fio {
    version: String,
    options: Options,
}

fn open(target: &Target, _: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let options = options(target)?;
    let version =
        version().ok_or_else(|| Failure::session("fio", format!("there is no fio here; {}", on_debian("fio"))))?;
    if opening != Opening::Existing || !options.file.exists() {
        let text = format!("fio only reads what is there, and {} is not", options.file.display());
        return Err(Failure::session("no_store", text));
    }
    Ok(Box::new(Fio { version, options }))
}

impl Store for Fio {
    fn settings(&self) -> Vec<Setting> {
        let how = match self.options.flights {
            true => "one thread, io_uring, or libaio where that is forbidden",
            false => "a thread for each read, psync",
        };
        vec![
            Setting::new("engine", format!("none: direct reads by {}", self.version)),
            Setting::new("page", format!("{} bytes", self.options.page_bytes)),
            Setting::new("reads", how),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Err(Failure::session("unsupported", "fio reads by itself"))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
