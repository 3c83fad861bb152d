//! Runs simulations seed by seed: `cargo x sim [seed] [--count N] [--steps N] [--samples N]`, or
//! `cargo x sim [seed] --transactions N [--threads N]`.

use std::panic::catch_unwind;
use std::process::ExitCode;
use testkit::simulate::simulate;
use testkit::transactions::{self, Summary};

const USAGE: &str = "\
cargo x sim [seed] [--count N] [--steps N] [--samples N]
cargo x sim [seed] --transactions N [--threads N]

  seed              the first seed; default 0
  --count N         how many seeds to run; default 1000
  --steps N         how long a history is; default 200
  --samples N       how many faults of each kind a history meets, each in a run of its own; default 4
  --transactions N  play random transactions and check their isolation instead: whole seeds, until N have begun
  --threads N       play them on threads of this machine and on its disk, where the seed does not decide everything
";

/// Seeds between two lines of progress.
const SEEDS_A_LINE: u64 = 100;

struct Arguments {
    seed: u64,
    count: u64,
    steps: usize,
    samples: usize,
    transactions: Option<u64>,
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let Some(arguments) = arguments(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    // If a seed fails, its panic has already printed what is wrong and how to run this seed again.
    let has_passed = match arguments.transactions {
        Some(transactions) => play(arguments.seed, transactions, arguments.threads),
        None => run(&arguments),
    };
    if has_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Histories of one user each.
fn run(&Arguments { seed: first, count, steps, samples, .. }: &Arguments) -> bool {
    for seed in first..first.saturating_add(count) {
        if catch_unwind(|| simulate(seed, steps, samples)).is_err() {
            return false;
        }
        let done = seed - first + 1;
        if done % SEEDS_A_LINE == 0 || done == count {
            println!("{done} of {count} seeds passed, the last was {seed}");
        }
    }
    true
}

/// Histories of concurrent transactions.
fn play(first: u64, transactions: u64, threads: Option<usize>) -> bool {
    let mut all = Summary::default();
    for seed in first.. {
        let outcome = catch_unwind(|| match threads {
            Some(threads) => transactions::on_threads(seed, threads),
            None => transactions::simulate(seed),
        });
        let Ok(summary) = outcome else {
            println!("before it:\n{all}");
            return false;
        };
        all += summary;
        let is_enough = all.ends.begun >= transactions;
        if is_enough || (seed - first + 1).is_multiple_of(SEEDS_A_LINE) {
            println!("seeds {first} to {seed} passed:\n{all}");
        }
        if is_enough {
            break;
        }
    }
    true
}

fn arguments(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut arguments = Arguments { seed: 0, count: 1000, steps: 200, samples: 4, transactions: None, threads: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--count" => arguments.count = words.next()?.parse().ok()?,
            "--steps" => arguments.steps = words.next()?.parse().ok()?,
            "--samples" => arguments.samples = words.next()?.parse().ok()?,
            "--transactions" => arguments.transactions = Some(words.next()?.parse().ok()?),
            "--threads" => arguments.threads = Some(words.next()?.parse().ok().filter(|threads| *threads > 0)?),
            seed => arguments.seed = seed.parse().ok()?,
        }
    }
    Some(arguments)
}
