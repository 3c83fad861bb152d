//! Follows very many commits by feeds of changes: `cargo x feed [seed] [--commits N]`.

use std::panic::catch_unwind;
use std::process::ExitCode;
use testkit::feeds::follow;

const USAGE: &str = "\
cargo x feed [seed] [--commits N]

  seed         what is committed, and when the machine crashes; default 0
  --commits N  how many commits; default 10000000
";

fn main() -> ExitCode {
    let Some((seed, commits)) = arguments(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    // A panic has already printed what is wrong, with the seed.
    match catch_unwind(|| follow(seed, commits, |counts| println!("{counts}"))) {
        Ok(counts) => {
            println!("seed {seed} passed: {counts}");
            ExitCode::SUCCESS
        }
        Err(_) => {
            eprintln!("feed: to run it again: cargo x feed {seed} --commits {commits}");
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Option<(u64, u64)> {
    let (mut seed, mut commits) = (0, 10_000_000);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--commits" => commits = words.next()?.parse().ok()?,
            word => seed = word.parse().ok()?,
        }
    }
    Some((seed, commits))
}
