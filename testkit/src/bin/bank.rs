//! Disturbs a bank: `cargo x bank [--rounds N] [--seed N]`. With `--serve`, this process is the bank, which another
//! process kills.

use os::Machine;
use std::path::PathBuf;
use std::process::ExitCode;
use testkit::bank::{Clients, Disturbance, Summary, disturb, serve};

const USAGE: &str = "\
cargo x bank [--rounds N] [--seed N]

  --rounds N  how often the process is killed, the disk is full and a sync fails, each with 16 threads and with 1,000
              async tasks; default 20
  --seed N    what clients choose; default a random one
";

struct Arguments {
    rounds: u64,
    seed: u64,
    /// With `--serve`: the directory of the bank, its clients and the number of the round.
    serve: Option<PathBuf>,
    clients: Clients,
    round: u64,
}

fn main() -> ExitCode {
    let Some(Arguments { rounds, seed, serve: directory, clients, round }) = arguments(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Some(directory) = directory {
        serve(&directory, clients, round, seed);
        return ExitCode::SUCCESS;
    }
    let program = std::env::current_exe().expect("the system knows this program");
    let mut all = Summary::default();
    for disturbance in Disturbance::ALL {
        for clients in Clients::ALL {
            let summary = disturb(disturbance, clients, rounds, seed, &program);
            println!("  {summary:?}");
            all += summary;
        }
    }
    println!("all: {all:?}");
    ExitCode::SUCCESS
}

fn arguments(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let seed = Machine::real().random.next_u64() >> 32;
    let mut arguments = Arguments { rounds: 20, seed, serve: None, clients: Clients::Threads(1), round: 0 };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--rounds" => arguments.rounds = value.parse().ok()?,
            "--seed" => arguments.seed = value.parse().ok()?,
            "--serve" => arguments.serve = Some(value.into()),
            "--threads" => arguments.clients = Clients::Threads(value.parse().ok()?),
            "--tasks" => arguments.clients = Clients::Tasks(value.parse().ok()?),
            "--round" => arguments.round = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(arguments)
}
