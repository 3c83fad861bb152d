//! `larch bench peers`, `cold`, `writes` and `transactions`: compare Larch with other engines. Each command prints
//! a table in which a row is one measurement, taken on every engine in turn. Some rows have a goal that Larch must
//! reach.
//!
//! Each engine runs in a child process that keeps its database open and is stopped (SIGSTOP) while the others are
//! measured. `peers` keeps these processes for the whole run; `cold` starts new ones for each part and number of
//! threads. Every engine is measured once before the second repeat of a row begins. Rows that only read come first,
//! then rows that write, and loads come last.

mod child;
mod cold;
mod disk;
mod fio;
mod herd;
mod memory;
mod memory_limit;
mod orders;
mod raw;
mod table;
mod tasks;
mod transactions;
mod warm_up;
mod writes;

pub use child::serve;
pub use cold::run as cold;
pub use disk::bytes_under;
pub use memory::run as in_memory;
pub use raw::SCHEME as DISK;
pub use transactions::run as transactions;
pub use writes::run as writes;

use herd::Peer;
use kit::Scratch;
use orders::{Measure, Order, Sample};
use std::path::Path;
use table::{Row, Table};

/// The directory for the databases of a comparison. ^C also removes the memory limits of the peers.
fn place(directory: Option<&Path>, name: &str) -> Result<Scratch, String> {
    Scratch::for_benchmark(directory, name, memory_limit::remove_all)
}

fn check_room(place: &Scratch, needed_bytes: u64) -> Result<(), String> {
    let advice = "name a directory with more by --dir, or measure fewer rows with --records";
    kit::scratch::check_room(place.path(), needed_bytes, advice)
}

/// Prints the progress of a run to stderr.
struct Tale {
    started: harness::Clock,
}

impl Tale {
    fn new() -> Self {
        Self { started: harness::Clock::start() }
    }

    fn tell(&self, what: &str) {
        eprintln!("{:6.0} s  {what}", self.started.nanos() as f64 / 1e9);
    }
}

/// Measures all peers in turn, `repeats` times, each time with another seed. `figure` computes the row's figure
/// from a sample. If an engine fails, the failure is recorded and its cell in the row stays empty.
fn in_turns(
    peers: &mut [Peer],
    repeats: usize,
    measure: &Measure,
    row: &mut Row,
    figure: &dyn Fn(&Sample) -> f64,
    tale: &Tale,
    failures: &mut Vec<String>,
) -> Vec<Vec<Sample>> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); peers.len()];
    for repeat in 0..repeats {
        for (at, peer) in peers.iter_mut().enumerate() {
            if row.figures[at].len() < repeat {
                // This engine failed in an earlier repeat.
                continue;
            }
            let order = Order::Measure(Measure { seed: measure.seed + repeat as u64, ..measure.clone() });
            match peer.obey(&order) {
                Ok(sample) => {
                    let number = figure(&sample);
                    tale.tell(&format!("{:24} {:24} {number:12.2} {}", row.name, peer.name(), row.unit));
                    row.figures[at].push(number);
                    samples[at].push(sample);
                }
                Err(why) => {
                    failed(row.name, why, failures, tale);
                    row.figures[at].clear();
                    row.failed.push(at);
                    samples[at].clear();
                }
            }
        }
    }
    samples
}

/// Prints an engine's error in the row `name` and appends it to `failures`.
fn failed(name: &str, why: String, failures: &mut Vec<String>, tale: &Tale) {
    tale.tell(&format!("{name:24} {why}"));
    failures.push(format!("{name}: {why}"));
}

/// The rate in thousands of operations per second.
fn thousands(sample: &Sample) -> f64 {
    sample.operations as f64 / sample.nanos as f64 * 1e6
}

/// The rate in millions of rows per second.
fn million_rows(sample: &Sample) -> f64 {
    sample.rows as f64 / sample.nanos as f64 * 1e3
}

/// The table as text, followed by its failures and missed goals.
fn verdict(table: &Table) -> Ending {
    let mut text = table.markdown();
    let unmeasured = table.unmeasured();
    for goal in &unmeasured {
        text.push_str(&format!("not measured: {goal}\n"));
    }
    for failure in &table.failures {
        text.push_str(&format!("failed: {failure}\n"));
    }
    let short = table.verdicts().iter().filter(|verdict| !verdict.reached).count();
    text.push_str(&kit::goals::summary(short));
    let is_good = short == 0 && table.is_measured() && table.failures.is_empty();
    Ending { text, is_good, unmeasured: unmeasured.len() }
}

/// The combined [`verdict`] on several tables, each under its title.
fn verdict_of(parts: &[(&str, Table)]) -> Ending {
    let endings: Vec<Ending> = parts.iter().map(|(_, table)| verdict(table)).collect();
    let parts = parts.iter().zip(&endings);
    let text = parts.map(|((title, _), ending)| format!("## {title}\n\n{}\n", ending.text)).collect();
    let unmeasured = endings.iter().map(|ending| ending.unmeasured).sum();
    Ending { text, is_good: endings.iter().all(|ending| ending.is_good), unmeasured }
}

/// How a comparison of engines ends.
pub struct Ending {
    /// The text to print: the table, and the goals that were missed.
    pub text: String,
    /// Whether every goal that could be checked was reached, no engine failed, and something was measured.
    pub is_good: bool,
    /// The number of goals, rows and engines that were not measured.
    unmeasured: usize,
}

impl Ending {
    /// Adds the engines that this binary lacks, as [`absent`] returns them.
    fn leave_out(&mut self, absent: &[String]) {
        self.unmeasured += absent.len();
        absent.iter().for_each(|absent| self.text.push_str(&format!("not measured: {absent}\n")));
    }

    /// Why the report is not complete; `None` if everything was measured.
    pub fn gap(&self) -> Option<String> {
        let unmeasured = self.unmeasured;
        (unmeasured > 0).then(|| format!("--require-peers: {unmeasured} rows, goals or engines were not measured"))
    }
}

/// The engines in `wanted` that this binary lacks, each with the command that builds a binary that has it.
fn absent(wanted: &[&str], schemes: &[harness::Scheme]) -> Vec<String> {
    let is_absent = |name: &&&str| schemes.iter().all(|known| known.name != **name);
    let told = |name: &&str| format!("{name}, which this binary does not have: cargo x bench --with {name} …");
    wanted.iter().filter(is_absent).map(told).collect()
}
