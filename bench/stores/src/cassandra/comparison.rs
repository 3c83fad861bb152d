//! Compares the key-value driver with cassandra-stress: how much processor time each client uses per operation.
//!
//! Both clients write and read rows of 100 bytes by key, with prepared statements, one connection, consistency level
//! `one`, and the same number of requests under way. They take turns on one server of our own. cassandra-stress runs
//! in two ways: with a profile, it uses the same table as the driver; its modes `write` and `read` use a table of
//! another shape, but less processor time.
//!
//! Processor time is the client's user and system time, including connecting. The start-up of cassandra-stress does
//! not count: the time of a run of a few operations is subtracted. Its assertions are off, although its own script
//! turns them on.

use crate::cassandra::server::{Server, ServerOptions, StartError, jars, java, of_java, opened};
use crate::cassandra::store::Cassandra;
use harness::{Clock, Failure, Length, Plan, Store as _, Target};
use kit::client_cost::{Comparison, Run, Sides, processor_time, processor_time_at_end};
use kv::{Mode, Options as KvOptions, Restriction, RowSize, ServerOptions as Shared, Setup, Work, Workload};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How much to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Operations in each run.
    pub operations: u64,
    /// Requests under way: clients of our driver, and threads of cassandra-stress.
    pub concurrency: u32,
    /// Runs of each comparison by each client.
    pub repeats: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { operations: 300_000, concurrency: 32, repeats: 3 }
    }
}

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// Our server, or the jars of cassandra-stress, are missing or do not work.
    #[error(transparent)]
    Server(#[from] StartError),
    /// Our side failed.
    #[error("larch bench kv: {0}")]
    Ours(String),
    /// cassandra-stress failed, or its output could not be parsed.
    #[error("cassandra-stress failed: {0}")]
    Stress(String),
}

impl From<Failure> for ComparisonError {
    fn from(failure: Failure) -> Self {
        Self::Ours(failure.to_string())
    }
}

/// The version of cassandra-stress that the script `fetch` downloads.
const STRESS_VERSION: &str = "4.0-alpha2";
const KEYSPACE: &str = "kv_cost";
const TABLE: &str = "kv_rows";
const VALUE_BYTES: u64 = 100;

/// Starts a server, on which the clients then take turns to write and read. Calls `told` with a line about each run.
///
/// # Errors
///
/// Returns an error if one of the clients cannot be measured, for example because an operation failed or a read
/// found nothing.
pub fn run(options: &Options, mut told: impl FnMut(&str)) -> Result<Comparison, ComparisonError> {
    let server = Server::start(&ServerOptions::default())?;
    let target = Target::parse(&format!("cassandra://{}", server.address()))?;
    let store = Cassandra::open(&target, &setup(options))?;
    let stress = Stress::new(&server, options)?;
    let (mut writes, mut reads) = (Sides::default(), Sides::default());
    let (mut writes_of_profile, mut reads_of_profile) = (Sides::default(), Sides::default());
    let mut starts = Vec::new();
    for repeat in 0..options.repeats {
        let start = stress.start_time()?;
        told(&format!("start of cassandra-stress: {:.1} s of processor time", start.as_secs_f64()));
        starts.push(start.as_secs_f64());
        for (mode, of_profile, of_mode) in
            [(Mode::Write, &mut writes_of_profile, &mut writes), (Mode::Read, &mut reads_of_profile, &mut reads)]
        {
            let name = mode.name();
            let ours = ours(&store, mode, options, repeat)?;
            told(&format!("{name}, larch bench kv: {ours}"));
            for (sides, way) in [(of_profile, Way::Profile), (of_mode, Way::Mode)] {
                let theirs = stress.run(mode, way, options.operations, Some(start))?;
                told(&format!("{name}, cassandra-stress, {}: {theirs}", way.name()));
                sides.ours.push(ours);
                sides.theirs.push(theirs);
            }
        }
    }
    let of_server: Vec<String> = store
        .settings()
        .iter()
        .filter(|setting| ["engine", "durability", "cache"].contains(&setting.name))
        .map(|setting| format!("{} {}", setting.name, setting.value))
        .collect();
    let about = format!(
        "{}; cassandra-stress {STRESS_VERSION} without its start of {:.1} s of processor time; rows of {VALUE_BYTES} bytes, {} \
         requests under way on one connection, consistency level one, {} runs of {} operations each in turns",
        of_server.join(", "),
        kit::median(&starts),
        options.concurrency,
        options.repeats,
        options.operations
    );
    let kinds = [
        (Mode::Write, Way::Mode, writes),
        (Mode::Read, Way::Mode, reads),
        (Mode::Write, Way::Profile, writes_of_profile),
        (Mode::Read, Way::Profile, reads_of_profile),
    ];
    let kinds = kinds.map(|(mode, way, sides)| (format!("{}, {}", mode.name(), way.name()), sides));
    Ok(Comparison { theirs: "cassandra-stress", kinds: kinds.into(), about })
}

fn setup(options: &Options) -> Setup {
    Setup {
        keyspace: KEYSPACE.to_owned(),
        table: TABLE.to_owned(),
        concurrency: options.concurrency as usize,
        connections: 1,
        server: Shared {
            consistency_level: Some("one".to_owned()),
            // cassandra-stress does not compress messages.
            client_compression: Some(false),
            ..Shared::default()
        },
        ..Setup::default()
    }
}

/// Makes one run of our client under the harness. Each repeat writes partitions of its own, but all repeats read
/// those of the first.
fn ours(store: &Cassandra, mode: Mode, options: &Options, repeat: u32) -> Result<Run, ComparisonError> {
    let failed = ComparisonError::Ours;
    let workload = if mode == Mode::Write { Workload::Sequential } else { Workload::Uniform };
    let mut kv = KvOptions::new(mode, workload);
    kv.partition_count = i64::try_from(options.operations).expect("operations are counted in less than 63 bits");
    kv.clustering_row_count = 1;
    kv.clustering_row_size = RowSize::Fixed(VALUE_BYTES);
    kv.concurrency = options.concurrency as usize;
    kv.seed = u64::from(repeat) + 1;
    match mode {
        Mode::Write => kv.partition_offset = i64::from(repeat) * kv.partition_count,
        _ => kv.restriction = Restriction::NoLowerBound,
    }
    kv.check().map_err(failed)?;
    let plan = Plan { clients: kv.concurrency, length: Length::Operations(options.operations), ..Plan::default() };
    let before = processor_time();
    let clock = Clock::start();
    let measured = harness::run(store, &Work::new(kv), &plan, &AtomicBool::new(false), &mut |_| {});
    let (time, processor) = (Duration::from_nanos(clock.nanos()), processor_time() - before);
    let measured = measured.map_err(|error| failed(error.to_string()))?;
    let not_found: u64 = measured.kind("READ").map_or(0, |read| read.not_found);
    if measured.failed > 0 || not_found > 0 {
        return Err(failed(format!("{} operations failed, {not_found} found nothing", measured.failed)));
    }
    // Processor time also covers the operations before the measured window and at its edges, so they count as well.
    Ok(Run { operations: measured.operations + measured.warmed + measured.cut, processor, time })
}

/// The two ways to run cassandra-stress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With a profile, on our table.
    Profile,
    /// In its modes `write` and `read`, on a table of its own.
    Mode,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Profile => "the driver's table",
            Self::Mode => "its own table",
        }
    }
}

/// Runs cassandra-stress against one server.
struct Stress<'s> {
    server: &'s Server,
    java: PathBuf,
    jars: PathBuf,
    concurrency: u32,
    operations: u64,
}

/// Describes our table to cassandra-stress. The table exists already.
const PROFILE: &str = "\
keyspace: kv_cost
table: kv_rows
columnspec:
  - name: ck
    cluster: fixed(1)
  - name: v
    size: fixed(100)
insert:
  partitions: fixed(1)
  batchtype: UNLOGGED
  select: fixed(1)/1
queries:
  read:
    cql: SELECT ck, v FROM kv_rows WHERE pk = ? LIMIT 1
    fields: samerow
";

/// A logging configuration for errors only.
const LOGGING: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%date %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="ERROR"><appender-ref ref="out"/></root>
</configuration>
"#;

impl<'s> Stress<'s> {
    fn new(server: &'s Server, options: &Options) -> Result<Self, ComparisonError> {
        let this = Self {
            server,
            java: java()?,
            jars: jars("stress")?,
            concurrency: options.concurrency,
            operations: options.operations,
        };
        for (name, text) in [("profile.yaml", PROFILE), ("stress-logback.xml", LOGGING)] {
            let file = this.file(name);
            fs::write(&file, text)
                .map_err(|error| ComparisonError::Stress(format!("cannot write {}: {error}", file.display())))?;
        }
        Ok(this)
    }

    /// A path in the server's directory, which is removed with it.
    fn file(&self, name: &str) -> PathBuf {
        self.server.directory().join(name)
    }

    /// The processor time of a start-up: of a run with one operation for each thread.
    fn start_time(&self) -> Result<Duration, ComparisonError> {
        Ok(self.run(Mode::Write, Way::Mode, u64::from(self.concurrency), None)?.processor)
    }

    /// Makes one run, and subtracts the processor time `start` of a start-up from its own.
    fn run(&self, mode: Mode, way: Way, operations: u64, start: Option<Duration>) -> Result<Run, ComparisonError> {
        let failed = |what: String| ComparisonError::Stress(what);
        let (out, log) = (self.file("stress-out"), self.file("stress-logback.xml"));
        let create =
            || fs::File::create(&out).map_err(|error| failed(format!("cannot write {}: {error}", out.display())));
        let (to_out, to_errors) = (create()?, create()?);
        let mut command = Command::new(&self.java);
        command.args(opened()).arg(of_java("logback.configurationFile", &log));
        command.arg(of_java("java.io.tmpdir", self.server.directory())).arg("-cp").arg(self.jars.join("*"));
        command.arg("org.apache.cassandra.stress.Stress");
        let count = format!("n={operations}");
        let written = self.operations;
        match way {
            Way::Profile => {
                let operation = if mode == Mode::Write { "ops(insert=1)" } else { "ops(read=1)" };
                let profile = format!("profile={}", self.file("profile.yaml").display());
                command.args(["user", &profile, operation, &count, "no-warmup", "cl=ONE"]);
            }
            Way::Mode => {
                let operation = if mode == Mode::Write { "write" } else { "read" };
                command.args([operation, &count, "no-warmup", "cl=ONE"]);
                command.args(["-col", "n=FIXED(1)", &format!("size=FIXED({VALUE_BYTES})")]);
            }
        }
        let keys = match mode {
            Mode::Write => format!("seq=1..{written}"),
            _ => format!("dist=UNIFORM(1..{written})"),
        };
        command.args(["-pop", &keys, "-rate", &format!("threads={}", self.concurrency)]);
        let address = self.server.address();
        command.args(["-node", &address.ip().to_string(), "-port", &format!("native={}", address.port())]);
        let clock = Clock::start();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(to_out)
            .stderr(to_errors)
            .spawn()
            .map_err(|error| failed(format!("cannot run {}: {error}", self.java.display())))?;
        let processor = processor_time_at_end(&child);
        let time = Duration::from_nanos(clock.nanos());
        let status = child.wait().map_err(|error| failed(error.to_string()))?;
        let processor = processor.map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&fs::read(&out).unwrap_or_default()).into_owned();
        let wrong = |what: &str| failed(format!("{what}; it said: {text}"));
        if !status.success() {
            return Err(wrong("it ended with an error"));
        }
        let done = Done::of(&text).ok_or_else(|| wrong("no results are in its output"))?;
        if done.errors > 0 || done.partitions != operations {
            return Err(wrong("operations failed or were not done"));
        }
        // A read that finds nothing counts as an operation, but not as a row.
        if done.rows_a_second * 100 < done.operations_a_second * 99 {
            return Err(wrong("some operations met no row"));
        }
        Ok(Run { operations, processor: processor.saturating_sub(start.unwrap_or_default()), time })
    }
}

/// The figures that cassandra-stress prints at its end.
#[derive(Debug, PartialEq, Eq)]
struct Done {
    operations_a_second: u64,
    rows_a_second: u64,
    partitions: u64,
    errors: u64,
}

impl Done {
    /// Finds the figures in the output, in lines such as
    /// `Op rate                   :    2,219 op/s  [WRITE: 2,219 op/s]`.
    fn of(text: &str) -> Option<Self> {
        let number = |name: &str| {
            let line = text.lines().rfind(|line| line.starts_with(name))?;
            let word = line.split_once(':')?.1.split_whitespace().next()?;
            word.replace([',', '.', '\u{a0}'], "").parse().ok()
        };
        Some(Self {
            operations_a_second: number("Op rate")?,
            rows_a_second: number("Row rate")?,
            partitions: number("Total partitions")?,
            errors: number("Total errors")?,
        })
    }
}

/// Makes the comparison of `larch bench kv-client-cost`. With `quick`, makes one short run of each kind.
///
/// # Errors
///
/// See [`run`].
pub fn compare(quick: bool, told: &mut dyn FnMut(&str)) -> Result<Comparison, Failure> {
    let options = match quick {
        true => Options { operations: 20_000, repeats: 1, ..Options::default() },
        false => Options::default(),
    };
    run(&options, told).map_err(|error| Failure::session("comparison", error.to_string()))
}
