//! Readers, which check at every version that the two tables of the pair agree and that accounts keep their sum, and
//! that a snapshot always shows the same.

use super::writers::{self, ROWS, SUM};
use super::{Round, WRITERS, tables};
use larch::rows::{AtMost, Tried};
use larch::{Database, Error, Readable, Result, Snapshot, Table};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A row as a range returns it.
type Row = Result<(larch::Key, larch::Value)>;

/// How many snapshots a reader keeps, to read at them again later.
const KEPT: usize = 6;

/// Reads everything at one version, while the disk works without faults.
pub fn check_all(round: &Round) {
    let snapshot = round.db.snapshot();
    compare(&snapshot, round, "", true).expect("the disk works");
    compare(&snapshot, round, "", false).expect("the disk works");
    for writer in 0..WRITERS {
        sum(&snapshot, &round.accounts, writer).expect("the disk works");
    }
}

/// Reads rows, sums and counts, prefetches, and looks at old snapshots again, until the round is over.
pub fn read(round: &Round, mut rng: Xoshiro256PlusPlus) {
    let mut kept: Vec<(Snapshot, String, u64)> = Vec::new();
    let mut newest = round.db.version();
    while round.goes_on() {
        let snapshot = round.db.snapshot();
        assert!(snapshot.version() >= newest, "versions never go back");
        newest = snapshot.version();
        let from = some_key(&mut rng);
        match rng.random_range(0..8) {
            0 => {
                let forward = rng.random();
                round.expect("compare", compare(&snapshot, round, &from, forward));
            }
            1 => {
                round.expect("sum", sum(&snapshot, &round.accounts, rng.random_range(0..WRITERS)));
            }
            2 => {
                round.expect("multi get", multi_get(&snapshot, round, &mut rng));
            }
            3 => {
                round.expect("try get", try_get(&snapshot, round, &from));
            }
            4 => {
                let limits = AtMost { rows: 100, bytes: 1 << 20 };
                round.expect("prefetch", round.left.prefetch(from.as_str().., limits).map(drop));
            }
            5 => {
                round.expect("count", count(&snapshot, round, &from));
            }
            6 if kept.len() < KEPT => {
                if let Some(sum) = round.expect("remember", digest(&snapshot, &round.left, &from)) {
                    kept.push((snapshot, from, sum));
                }
            }
            _ if !kept.is_empty() => {
                let (old, from, before) = kept.swap_remove(rng.random_range(0..kept.len()));
                if let Some(now) = round.expect("look again", digest(&old, &round.left, &from)) {
                    assert_eq!(now, before, "a snapshot of {:?} shows other rows later", old.version());
                }
            }
            _ => {
                round.expect("get", get(&snapshot, round, &from));
            }
        }
    }
}

/// A key of the pair of tables. It may be present or absent.
pub fn some_key(rng: &mut impl Rng) -> String {
    writers::row_key(rng.random_range(0..WRITERS), rng.random_range(0..ROWS))
}

/// Checks that both tables of the pair have the same rows from `from` on, or up to `from`.
fn compare(snapshot: &Snapshot, round: &Round, from: &str, forward: bool) -> Result<()> {
    let range = |table| -> Box<dyn Iterator<Item = Row>> {
        let all = snapshot.range(table, from..);
        if forward { Box::new(all) } else { Box::new(all.rev()) }
    };
    let (mut left, mut right) = (range(&round.left), range(&round.right));
    for _ in 0..if from.is_empty() { usize::MAX } else { 200 } {
        let (a, b) = (left.next().transpose()?, right.next().transpose()?);
        let key =
            |row: &Option<(larch::Key, larch::Value)>| row.as_ref().map(|(key, _)| key.escape_ascii().to_string());
        assert_eq!(key(&a), key(&b), "rows of the pair at {:?}", snapshot.version());
        let Some(((key, a), (_, b))) = a.zip(b) else { break };
        assert!(a[..] == b[..], "values of {} at {:?}", key.escape_ascii(), snapshot.version());
    }
    Ok(())
}

fn get(snapshot: &Snapshot, round: &Round, key: &str) -> Result<()> {
    let (a, b) = (snapshot.get(&round.left, key)?, snapshot.get(&round.right, key)?);
    assert!(a.as_deref() == b.as_deref(), "values of {key} at {:?}", snapshot.version());
    assert_eq!(snapshot.contains_key(&round.left, key)?, a.is_some(), "{key} at {:?}", snapshot.version());
    Ok(())
}

fn try_get(snapshot: &Snapshot, round: &Round, key: &str) -> Result<()> {
    if let (Tried::Ready(a), Tried::Ready(b)) =
        (snapshot.try_get(&round.left, key)?, snapshot.try_get(&round.right, key)?)
    {
        assert!(a.as_deref() == b.as_deref(), "values of {key} at {:?}", snapshot.version());
    }
    Ok(())
}

fn multi_get(snapshot: &Snapshot, round: &Round, rng: &mut impl Rng) -> Result<()> {
    let keys: Vec<String> = (0..rng.random_range(1..20)).map(|_| some_key(rng)).collect();
    let (left, right) = (snapshot.multi_get(&round.left, &keys)?, snapshot.multi_get(&round.right, &keys)?);
    for ((key, a), b) in keys.iter().zip(left).zip(right) {
        assert!(a.as_deref() == b.as_deref(), "values of {key} at {:?}", snapshot.version());
    }
    Ok(())
}

/// Checks that both tables have the same number of rows from `from` on, and that the interval that `count` returns
/// contains this number.
fn count(snapshot: &Snapshot, round: &Round, from: &str) -> Result<()> {
    let (left, right) = (round.left.at(snapshot)?, round.right.at(snapshot)?);
    let (a, b) = (left.count_exact(from..)?, right.count_exact(from..)?);
    assert_eq!(a, b, "rows from {from} at {:?}", snapshot.version());
    let estimate = left.count(from..)?;
    assert!((estimate.low..=estimate.high).contains(&a), "{a} rows from {from} are not within {estimate:?}");
    Ok(())
}

/// Checks the sum of a writer's accounts, which stays the same when the writer moves amounts.
pub fn sum(snapshot: &Snapshot, accounts: &Table, writer: usize) -> Result<()> {
    let amounts = accounts.select([tables::AMOUNT])?.at(snapshot)?;
    let mut sum = 0;
    for row in amounts.range(writers::account_range(writer)) {
        sum += tables::amount(&row?.1[0]);
    }
    // The sum is 0 before the writer's first commit.
    assert!([0, SUM].contains(&sum), "writer {writer} has {sum} at {:?}", snapshot.version());
    Ok(())
}

/// A hash of the rows from `from` on, to compare them later.
fn digest(snapshot: &Snapshot, table: &Table, from: &str) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for row in snapshot.range(table, from..).limit(400) {
        let (key, value) = row?;
        key.hash(&mut hasher);
        value[..].hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Opens the database read-only beside the writer, again and again. It must show one version. If the writer's
/// compactions remove its files, reads must return an error, and never wrong rows.
pub fn read_only(round: &Round, mut rng: Xoshiro256PlusPlus) {
    while round.goes_on() {
        let builder = Database::builder(&round.directory).machine(round.machine.clone());
        let opened = builder.cache_bytes(1 << 20).open_files(8).read_only(true).open();
        let Some(db) = beside(round, "open read-only", opened) else { continue };
        let tables = ["left", "right"].map(|name| db.table(name));
        let [Ok(left), Ok(right)] = tables else { continue };
        for _ in 0..rng.random_range(1..10) {
            let snapshot = db.snapshot();
            let key = some_key(&mut rng);
            let pair = snapshot.get(&left, &key).and_then(|a| Ok((a, snapshot.get(&right, &key)?)));
            if let Some((a, b)) = beside(round, "get read-only", pair) {
                assert!(a.as_deref() == b.as_deref(), "values of {key} at {:?}, read-only", snapshot.version());
            }
        }
    }
}

/// The outcome of a read in a read-only database, whose files the writer may replace at any time.
fn beside<T>(round: &Round, what: &'static str, outcome: Result<T>) -> Option<T> {
    match outcome {
        Err(Error::Outdated { .. }) => {
            round.counts.met(format!("{what}: overtaken by the writer"));
            None
        }
        outcome => round.expect(what, outcome),
    }
}
