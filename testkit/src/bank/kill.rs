//! A bank on the real disk, in a process that is killed at any moment. Then the bank is opened again.
//!
//! The process prints the number of each acknowledged transfer, and is killed after a random number of them, or
//! while it opens the database. A transfer counts as acknowledged if its number was printed.

use super::Summary;
use super::clients::{Clients, Office};
use super::ledger::{Ledger, Number};
use kit::Scratch;
use larch::Database;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// The most acknowledgements before a kill.
const MOST_ACKNOWLEDGED: u64 = 1500;

/// The transfers of round `n` are numbered from `n * ROUND` on.
const ROUND: Number = 1 << 32;

/// Makes transfers in this process until the process is killed.
///
/// # Panics
///
/// Panics if the bank cannot be opened, or if its total changes.
pub fn serve(directory: &Path, clients: Clients, round: u64, seed: u64) {
    let ledger = Ledger::open(Database::builder(directory)).expect("the disk works");
    let out = Mutex::new(std::io::stdout());
    let office = Office::new(ledger, None, round * ROUND, move |number| {
        let mut out = out.lock().expect("no client panics with the lock");
        writeln!(out, "{number}").and_then(|()| out.flush()).expect("the other process reads until this one ends");
    });
    office.serve(clients, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
}

/// Starts `program`, which calls [`serve`], and kills it. Does this `rounds` times.
pub fn kill(clients: Clients, rounds: u64, seed: u64, program: &Path) -> Summary {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let scratch = Scratch::new("bank");
    let directory = scratch.join("db");
    drop(Ledger::open(Database::builder(&directory)).expect("the disk works"));
    let mut acknowledged: BTreeSet<Number> = BTreeSet::new();
    let mut unheard: BTreeSet<Number> = BTreeSet::new();
    for round in 0..rounds {
        let kill_after = if rng.random_range(0..5) == 0 { 0 } else { rng.random_range(0..MOST_ACKNOWLEDGED) };
        let heard = serve_and_kill(program, &directory, clients, round, rng.random(), kill_after);
        acknowledged.extend(heard);
        let ledger = Ledger::open(Database::builder(&directory)).expect("the disk works");
        let found: BTreeSet<Number> = ledger.audit().expect("the disk works").into_iter().collect();
        let lost: Vec<_> = acknowledged.iter().chain(&unheard).filter(|number| !found.contains(number)).collect();
        assert!(lost.is_empty(), "{lost:?} are lost in round {round}, of {} acknowledged", acknowledged.len());
        // Transfers of this round may have taken place without being acknowledged. Their records must exist in all
        // later rounds.
        unheard.extend(found.iter().filter(|number| **number >= round * ROUND && !acknowledged.contains(number)));
        let others = found.iter().filter(|number| !acknowledged.contains(number) && !unheard.contains(number)).count();
        assert_eq!(others, 0, "transfers appear that were not there before round {round}");
    }
    let (acknowledged, unheard) = (acknowledged.len() as u64, unheard.len() as u64);
    Summary { rounds, acknowledged, unheard, ..Summary::default() }
}

/// Starts the process, kills it, and returns the transfers that it acknowledged before it was killed.
fn serve_and_kill(
    program: &Path,
    directory: &Path,
    clients: Clients,
    round: u64,
    seed: u64,
    kill_after: u64,
) -> Vec<Number> {
    let (kind, count) = match clients {
        Clients::Threads(count) => ("--threads", count),
        Clients::Tasks(count) => ("--tasks", count),
    };
    let mut process = Command::new(program)
        .arg("--serve")
        .arg(directory)
        .args([kind, &count.to_string(), "--round", &round.to_string(), "--seed", &seed.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut out = BufReader::new(process.stdout.take().expect("it is piped"));
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    let mut is_killed = false;
    loop {
        if !is_killed && acknowledged.len() as u64 >= kill_after {
            process.kill().expect("it runs");
            is_killed = true;
        }
        line.clear();
        if out.read_line(&mut line).expect("the pipe can be read") == 0 {
            break;
        }
        // The last line may be cut.
        if let Some(number) = line.strip_suffix('\n') {
            acknowledged.push(number.parse().expect("a line is a number"));
        }
    }
    assert!(is_killed, "the process has ended by itself in round {round}");
    process.wait().expect("it was killed");
    acknowledged
}
