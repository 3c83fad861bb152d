//! Runs simulations seed by seed: `cargo x sim [seed] [--count N] [--steps N] [--samples N]`.

use std::panic::catch_unwind;
use std::process::ExitCode;
use testkit::simulate::simulate;

const USAGE: &str = "\
cargo x sim [seed] [--count N] [--steps N] [--samples N]

  seed         the first seed; default 0
  --count N    how many seeds to run; default 1000
  --steps N    how long a history is; default 200
  --samples N  how many faults of each kind a history meets, each in a run of its own; default 4
";

/// Seeds between two lines of progress.
const SEEDS_A_LINE: u64 = 100;

struct Arguments {
    seed: u64,
    count: u64,
    steps: usize,
    samples: usize,
}

fn main() -> ExitCode {
    let Some(Arguments { seed: first, count, steps, samples }) = arguments(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    for seed in first..first.saturating_add(count) {
        // The panic has said what is wrong, and how to run the seed again.
        if catch_unwind(|| simulate(seed, steps, samples)).is_err() {
            return ExitCode::FAILURE;
        }
        let done = seed - first + 1;
        if done % SEEDS_A_LINE == 0 || done == count {
            println!("{done} of {count} seeds passed, the last was {seed}");
        }
    }
    ExitCode::SUCCESS
}

fn arguments(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut arguments = Arguments { seed: 0, count: 1000, steps: 200, samples: 4 };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--count" => arguments.count = words.next()?.parse().ok()?,
            "--steps" => arguments.steps = words.next()?.parse().ok()?,
            "--samples" => arguments.samples = words.next()?.parse().ok()?,
            seed => arguments.seed = seed.parse().ok()?,
        }
    }
    Some(arguments)
}
