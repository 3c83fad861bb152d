//! Plays the transactions of a text script on the engine, at both isolation levels, and prints what they saw and how
//! they ended. No transaction may have an anomaly that its level forbids.
//! ```text
//! T0 w(x) w(y) c        runs first, alone
//! T1 b r(x)             begins and reads; it goes on in a later line
//! T2 b w(x) c           begins, writes, commits
//! flush                 writes memory to files
//! T1 w(y) c
//!
//! b c a                 begins; commits; is dropped
//! r(x) m(x) w(x) e(x)   reads a key, by itself or as one of several; writes it, erases it
//! new(x) cas(x)         writes it if it has no value; writes it if it has what the transaction saw there last
//! e[a..c)               erases a range
//! scan[a..c) back[..]=1 reads a range from its low end; from its high end, one row
//! save undo0            makes a savepoint; goes back to the first one
//! ```
//!
//! Keys, ranges and the output are written as in histories, see `notation.rs`.

use super::anomaly::Anomaly;
use super::engine::EngineStore;
use super::notation::{number, operation};
use super::plan::{PlannedTransaction, Step};
use super::player::{Player, Tally};
use super::transaction::{Isolation, Operation, Transaction};
use super::{check, check_as};
use crate::history::DIRECTORY;
use crate::options::TinyOptions;
use os::Machine;
use std::collections::BTreeMap;

/// A script is played on this many databases with different options, which must all give the same output.
const DATABASES: u64 = 4;

/// Plays a script and returns how its transactions ended.
///
/// # Panics
///
/// Panics if the text is not a script, or if a transaction has an anomaly that its level forbids.
pub fn play_script(text: &str) -> String {
    let script = Script::parse(text);
    let of = |isolation: Isolation| {
        let mut shown: Vec<String> = (0..DATABASES).map(|seed| script.play(isolation, seed)).collect();
        shown.dedup();
        assert!(shown.len() == 1, "databases print different things: {shown:#?}");
        shown.remove(0)
    };
    format!("serializable:\n{}snapshot isolation:\n{}", of(Isolation::Serializable), of(Isolation::Snapshot))
}

/// What a script does, in order.
enum Act {
    /// The transaction with this number takes its next step. Beginning is its first step.
    Step(usize),
    Flush,
}

struct Script {
    /// The steps of each transaction.
    steps: BTreeMap<usize, Vec<Step>>,
    acts: Vec<Act>,
}

impl Script {
    fn parse(text: &str) -> Self {
        let mut script = Self { steps: BTreeMap::new(), acts: Vec::new() };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(name) = words.next() else { continue };
            if name == "flush" {
                script.acts.push(Act::Flush);
                continue;
            }
            let transaction = name.strip_prefix('T').map(number::<usize>);
            let transaction = transaction.unwrap_or_else(|| panic!("{line:?} does not begin with T1"));
            let steps = script.steps.entry(transaction).or_default();
            for word in words.filter(|word| *word != "b") {
                steps.push(step(word).unwrap_or_else(|| panic!("{word:?} is no step")));
            }
            let taken = line.split_whitespace().count() - 1 + usize::from(transaction == 0);
            script.acts.extend((0..taken).map(|_| Act::Step(transaction)));
        }
        script
    }

    fn play(&self, isolation: Isolation, seed: u64) -> String {
        let (machine, _) = Machine::simulated(seed);
        let options = TinyOptions { write_buffer_bytes: 64 << 10, ..TinyOptions::of(seed) };
        let db = options.builder(DIRECTORY).machine(machine).open().expect("the disk works");
        let store = EngineStore::new(db, &options, None, seed).expect("the disk works").reading_plainly();
        let planned: BTreeMap<usize, PlannedTransaction> = self
            .steps
            .iter()
            .map(|(number, steps)| (*number, PlannedTransaction { isolation, steps: steps.clone() }))
            .collect();
        let tally = Tally::new();
        let mut playing = BTreeMap::new();
        for act in &self.acts {
            match act {
                Act::Flush => store.database().flush().expect("the disk works"),
                Act::Step(number) => {
                    playing
                        .entry(*number)
                        .and_modify(Player::step)
                        .or_insert_with(|| Player::begin(&store, &planned[number], &tally).expect("the disk works"));
                }
            }
        }
        let history: Vec<Transaction> = playing
            .into_iter()
            .map(|(number, player)| Transaction { id: number as u64, ..player.into_record() })
            .collect();
        let anomalies = check(&history);
        assert!(anomalies.is_empty(), "{}", anomalies.iter().map(Anomaly::to_string).collect::<String>());
        let mut shown: String =
            history.iter().map(|transaction| format!("  {}\n", without_events(transaction))).collect();
        for anomaly in check_as(Isolation::Serializable, &history) {
            shown += &format!("  serializable transactions would not have had: {:?}\n", anomaly.kind);
        }
        shown
    }
}

/// The transaction without the numbers of its events and without its level, which a script does not print.
fn without_events(transaction: &Transaction) -> Transaction {
    let isolation = Isolation::Serializable;
    Transaction { began: None, acknowledged: None, isolation, ..transaction.clone() }
}

fn step(word: &str) -> Option<Step> {
    let place = |operation: Operation| match operation {
        Operation::Put { place, .. } => Some(place),
        _ => None,
    };
    let at = |key: &str| operation(&format!("w{key}=0")).and_then(place);
    if matches!(word, "c" | "a") {
        return Some(if word == "c" { Step::Commit } else { Step::Drop });
    }
    if word.starts_with("scan") || word.starts_with("back") {
        let (range, limit) = word.split_once('=').map_or((word, None), |(range, limit)| (range, Some(number(limit))));
        return match operation(&format!("{range}=-"))? {
            Operation::ReadRange { table, range, direction, .. } => {
                Some(Step::Range { table, range, direction, limit })
            }
            _ => None,
        };
    }
    for (verb, of) in [("new", Step::InsertNew as fn(_) -> _), ("cas", Step::CompareAndSwap)] {
        if let Some(key) = word.strip_prefix(verb) {
            return at(key).map(of);
        }
    }
    match word.split_at_checked(1)? {
        ("r", key) => at(key).map(Step::Get),
        ("m", key) => at(key).map(|place| Step::MultiGet(place.table, vec![place.key])),
        ("w", key) => at(key).map(Step::Put),
        _ => match operation(word)? {
            Operation::Erase { place } => Some(Step::Erase(place)),
            Operation::EraseRange { table, range } => Some(Step::EraseRange(table, range)),
            Operation::Savepoint => Some(Step::Savepoint),
            Operation::RollBackTo(savepoint) => Some(Step::RollBackTo(savepoint)),
            _ => None,
        },
    }
}
