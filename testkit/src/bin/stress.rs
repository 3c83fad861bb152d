//! Stresses the whole public API:
//! `cargo x stress [--minutes N | --seconds N] [--seed N] [--round N] [--directory DIR]`.

use kit::allocations::{Counting, Process};
use os::Machine;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use testkit::stress::{Settings, stress};

const USAGE: &str = "\
cargo x stress [--minutes N | --seconds N] [--seed N] [--round N] [--directory DIR]

  --minutes N      how long; default 1 minute
  --seconds N      how long
  --seed N         what threads choose; default a random one
  --round N        seconds that a database stays open; default 10
  --directory DIR  where it lies; default a new one in the system's temporary directory
";

#[global_allocator]
static COUNTING: Counting<Process> = Counting::new();

fn main() -> ExitCode {
    let Some(settings) = settings(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let summary = stress(&settings);
    for (what, count) in &summary.done {
        println!("{count:>10} {what}");
    }
    for (what, count) in &summary.met {
        println!("{count:>10} met: {what}");
    }
    println!("most anonymous memory: {} MiB", summary.most_memory_bytes >> 20);
    if let [first, .., last] = summary.allocated_bytes.as_slice() {
        println!("allocated after the first round: {} KiB, after the last: {} KiB", first >> 10, last >> 10);
    }
    println!("{} rounds passed", summary.rounds);
    ExitCode::SUCCESS
}

fn settings(mut words: impl Iterator<Item = String>) -> Option<Settings> {
    let directory = std::env::temp_dir().join(format!("larch-stress-{}", std::process::id()));
    let mut settings = Settings {
        seed: Machine::real().random.next_u64() >> 32,
        time: Duration::from_secs(60),
        round: Duration::from_secs(10),
        directory,
        allocated_bytes: Some(Process::live_bytes),
    };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--minutes" => settings.time = Duration::from_secs(value.parse::<u64>().ok()?.checked_mul(60)?),
            "--seconds" => settings.time = Duration::from_secs(value.parse().ok()?),
            "--seed" => settings.seed = value.parse().ok()?,
            "--round" => settings.round = Duration::from_secs(value.parse().ok()?),
            "--directory" => settings.directory = PathBuf::from(value),
            _ => return None,
        }
    }
    Some(settings)
}
