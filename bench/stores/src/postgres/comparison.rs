//! Compares our client with pgbench on point reads: how many queries each does per second of its own processor time.
//!
//! Both clients send the same prepared statement to the same table with random keys, over the same Unix socket, with
//! the same number of connections and one thread each, and they take turns. In the first comparison, each connection
//! has one request at a time. In the second, requests go out in groups that end with one Sync
//! (`\startpipeline … \endpipeline`). Processor time is the client's user and system time, including connecting. For
//! our client it is the time of this process, including what the harness spends on measuring each request, so
//! nothing else should run in this process meanwhile.

use crate::postgres::address::Address;
use crate::postgres::error::Error;
use crate::postgres::server::{Server, ServerOptions, StartError};
use crate::postgres::store::Postgres;
use harness::{
    Client, Clock, Extra, Failure, Fields, Kind, Length, Next, Opening, Outcome, Plan, Reply, Request, Rows, Store,
    Strings, Table, Workload,
};
use kit::client_cost::{Run, Sides, processor_time, processor_time_at_end};
use kit::hints::on_debian;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How much to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rows in the table.
    pub rows: u64,
    /// Connections that each client opens.
    pub connections: u32,
    /// Requests in a group.
    pub group: u32,
    /// Length of one run.
    pub run: Duration,
    /// Runs of each comparison by each client.
    pub repeats: u32,
    /// Seed of our client's keys.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { rows: 100_000, connections: 16, group: 10, run: Duration::from_secs(4), repeats: 5, seed: 1 }
    }
}

/// The results of both clients.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Runs with one request at a time on each connection.
    pub single: Sides,
    /// Runs with groups of requests.
    pub grouped: Sides,
    /// One line on how it was measured.
    pub about: String,
}

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// Our server did not start.
    #[error(transparent)]
    Server(#[from] StartError),
    /// Our side failed.
    #[error("{0}")]
    Ours(Failure),
    /// pgbench failed, or its output could not be parsed.
    #[error("pgbench failed: {0}")]
    Pgbench(String),
}

impl From<Failure> for ComparisonError {
    fn from(failure: Failure) -> Self {
        Self::Ours(failure)
    }
}

impl From<Error> for ComparisonError {
    fn from(error: Error) -> Self {
        Self::Ours(error.into())
    }
}

const VALUE_BYTES: usize = 100;
const STATEMENT: &str = "SELECT \"field0\" FROM \"usertable\" WHERE ycsb_key = :n";

/// Starts a server and fills a table, which the clients then read in turns. Calls `told` with a line about each run.
///
/// # Errors
///
/// Returns an error if one of the clients cannot be measured, for example because a query failed.
pub fn run(options: &Options, mut told: impl FnMut(&str)) -> Result<Comparison, ComparisonError> {
    let settings = vec![("max_connections".to_owned(), (options.connections + 10).to_string())];
    let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() })?;
    let open = |pipeline: u32, opening| -> Result<Postgres, ComparisonError> {
        let url = format!("{}&connections={}&pipeline={pipeline}", server.url("postgres"), options.connections);
        Ok(Postgres::open(Address::parse(&url, |_| None)?, &Table::numbered("usertable", "field", 1), opening)?)
    };
    let store = open(1, Opening::Recreate)?;
    store.bulk_load(&mut Numbers { next: 0, end: options.rows })?;
    store.settle()?;

    let script = server.socket_directory().join("script.sql");
    let mut comparison = Comparison { single: Sides::default(), grouped: Sides::default(), about: String::new() };
    for (group, sides, name) in
        [(1, &mut comparison.single, "one at a time"), (options.group, &mut comparison.grouped, "grouped")]
    {
        let store = open(group, Opening::Existing)?;
        write_script(&script, options, group).map_err(|error| ComparisonError::Pgbench(error.to_string()))?;
        for repeat in 0..options.repeats {
            let theirs = pgbench(&server, options, &script, u64::from(group))?;
            told(&format!("{name}, pgbench: {theirs}"));
            let ours = ours(&store, options.connections * group, options, repeat)?;
            told(&format!("{name}, larch bench: {ours}"));
            sides.theirs.push(theirs);
            sides.ours.push(ours);
        }
    }
    let of_server: Vec<String> = store
        .settings()
        .iter()
        .filter(|setting| ["engine", "durability", "cache"].contains(&setting.name))
        .map(|setting| format!("{} {}", setting.name, setting.value))
        .collect();
    comparison.about = format!(
        "{}; {} rows of {VALUE_BYTES} bytes, {} connections in one thread, Unix socket, groups of {}, {} runs of {:?} \
         each in turns",
        of_server.join(", "),
        options.rows,
        options.connections,
        options.group,
        options.repeats,
        options.run
    );
    Ok(comparison)
}

/// Makes one run of our client under the harness.
fn ours(store: &Postgres, clients: u32, options: &Options, repeat: u32) -> Result<Run, ComparisonError> {
    let failed = |what: String| ComparisonError::Ours(Failure::session("wrong", what));
    let reads = Reads { seed: options.seed.wrapping_add(u64::from(repeat) << 32), rows: options.rows };
    let plan = Plan { clients: clients as usize, length: Length::Time(options.run), ..Plan::default() };
    let before = processor_time();
    let clock = Clock::start();
    let measured = harness::run(store, &reads, &plan, &AtomicBool::new(false), &mut |_| {});
    let (time, processor) = (Duration::from_nanos(clock.nanos()), processor_time() - before);
    let measured = measured.map_err(|error| failed(error.to_string()))?;
    let read = measured.kind("READ").ok_or_else(|| failed("nothing was read".to_owned()))?;
    if measured.failed > 0 || read.not_found > 0 || read.rows != read.oks {
        return Err(failed(format!("{} reads failed, {} found nothing", measured.failed, read.not_found)));
    }
    // Processor time also covers the queries before the measured window and at its edges, so they count as well.
    let queries = measured.operations + measured.warmed + measured.cut;
    Ok(Run { operations: queries, processor, time })
}

/// Reads of random rows.
struct Reads {
    seed: u64,
    rows: u64,
}

impl Workload for Reads {
    type Client = Keys;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ"]
    }

    fn client(&self, number: usize, _: usize) -> Keys {
        Keys::new(self.seed.wrapping_add(number as u64), self.rows)
    }
}

impl Client for Keys {
    fn begin(&mut self) -> bool {
        self.draw();
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(0), Request::Read { key: self.key(), fields: Fields::All })
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, _: &mut Extra<'_>) -> Next {
        let is_right = result.is_ok() && reply.record().bytes() == VALUE_BYTES;
        if is_right { Next::Done } else { Next::Failed }
    }
}

/// One run of pgbench.
fn pgbench(
    server: &Server,
    options: &Options,
    script: &std::path::Path,
    queries_each: u64,
) -> Result<Run, ComparisonError> {
    let failed = |what: String| ComparisonError::Pgbench(what);
    let clock = Clock::start();
    let child = Command::new(server.programs().join("pgbench"))
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--username=postgres"])
        .arg(format!("--client={}", options.connections))
        .arg(format!("--time={}", options.run.as_secs().max(1)))
        .arg(format!("--host={}", server.socket_directory().display()))
        .arg(format!("--port={}", server.port()))
        .arg(format!("--random-seed={}", options.seed))
        .arg("--file")
        .arg(script)
        .arg("postgres")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("{error}; {}", on_debian("postgresql"))))?;
    // pgbench prints too little to fill a pipe, so its output can be read after its end.
    let processor = processor_time_at_end(&child).map_err(|error| failed(error.to_string()))?;
    let time = Duration::from_nanos(clock.nanos());
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let out = String::from_utf8_lossy(&output.stdout);
    let transactions = transactions_of(&out).ok_or_else(|| failed(format!("no count of transactions in: {out}")))?;
    if transactions == 0 {
        return Err(failed("it did nothing".to_owned()));
    }
    Ok(Run { operations: transactions * queries_each, processor, time })
}

/// Writes the script that pgbench runs for each transaction.
fn write_script(path: &std::path::Path, options: &Options, group: u32) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    let draw = format!("\\set n random(0, {})", options.rows - 1);
    if group > 1 {
        writeln!(file, "\\startpipeline")?;
    }
    for _ in 0..group {
        writeln!(file, "{draw}\n{STATEMENT};")?;
    }
    if group > 1 {
        writeln!(file, "\\endpipeline")?;
    }
    Ok(())
}

/// Parses the line `number of transactions actually processed: 230575`.
fn transactions_of(out: &str) -> Option<u64> {
    let line = out.lines().find_map(|line| line.strip_prefix("number of transactions actually processed: "))?;
    line.split('/').next()?.trim().parse().ok()
}

/// Draws random keys, as text.
struct Keys {
    state: u64,
    rows: u64,
    digits: [u8; 20],
    /// The offset in `digits` at which the key begins. The key ends at the end of `digits`.
    begin: usize,
}

impl Keys {
    fn new(seed: u64, rows: u64) -> Self {
        // The seed is mixed first, because neighbouring seeds should not give nearly the same keys.
        Self { state: mixed(seed), rows, digits: [0; 20], begin: 20 }
    }

    /// Draws the next key: splitmix64 (Steele, Lea, Flood, 2014), scaled into the range by a multiplication.
    fn draw(&mut self) {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = ((u128::from(mixed(self.state)) * u128::from(self.rows)) >> 64) as u64;
        self.begin = self.digits.len();
        loop {
            self.begin -= 1;
            self.digits[self.begin] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return;
            }
        }
    }

    fn key(&self) -> &[u8] {
        &self.digits[self.begin..]
    }
}

fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Rows whose keys are consecutive numbers as text.
struct Numbers {
    next: u64,
    end: u64,
}

impl Rows for Numbers {
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
        if self.next == self.end {
            return false;
        }
        key.clear();
        key.extend_from_slice(self.next.to_string().as_bytes());
        record.clear();
        record.push(&[b'x'; VALUE_BYTES]);
        self.next += 1;
        true
    }
}
