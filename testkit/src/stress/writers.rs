//! Writers. Each has its own rows in the pair of tables and its own accounts, and knows what they hold.

use super::{Round, tables};
use larch::{Durability, Result};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt};
use std::collections::BTreeMap;

/// The most rows that a writer has in each table of the pair.
pub const ROWS: u32 = 600;
/// The number of accounts of a writer, and the sum that they hold.
pub const ACCOUNTS: u32 = 40;
pub const SUM: u64 = ACCOUNTS as u64 * 1000;

/// A writer, and what the database must hold of its rows and accounts.
#[derive(Debug)]
pub struct Writer {
    number: usize,
    /// The number of commits so far. A row's value is computed from the number of the commit that wrote it.
    commits: u64,
    holds: Holdings,
    /// If the outcome of the last commit is unknown: what the writer holds if that commit took effect.
    perhaps: Option<Holdings>,
}

/// Rows and amounts.
#[derive(Clone, Debug, PartialEq)]
struct Holdings {
    /// For each row, by its number, the commit that wrote it.
    rows: BTreeMap<u32, u64>,
    /// Empty before the first commit.
    amounts: Vec<u64>,
}

/// The key of a row in the pair of tables.
pub fn row_key(writer: usize, row: u32) -> String {
    format!("writer {writer} row {row:05}")
}

/// Key of an account.
fn account_key(writer: usize, account: u32) -> String {
    format!("writer {writer} account {account:03}")
}

/// The range of keys of a writer's accounts.
pub fn account_range(writer: usize) -> std::ops::Range<String> {
    format!("writer {writer} ")..format!("writer {writer}!")
}

/// The value that a commit gives to a row. Now and then the value is longer than a page.
fn value(commit: u64) -> Vec<u8> {
    let repeated = match commit % 97 {
        0 => 1000,
        1..=5 => 200,
        n => n as usize % 13,
    };
    format!("commit {commit:010} ").repeat(1 + repeated).into_bytes()
}

impl Writer {
    /// A writer that has written nothing.
    pub fn new(number: usize) -> Self {
        Self { number, commits: 0, holds: Holdings { rows: BTreeMap::new(), amounts: Vec::new() }, perhaps: None }
    }

    /// The writer's number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Compares what the database holds with what the writer knows, while the disk works without faults.
    pub fn verified(mut self, round: &Round) -> Self {
        let found = self.found(round).expect("the disk works");
        let is_perhaps = self.perhaps.as_ref().is_some_and(|perhaps| *perhaps == found);
        assert!(
            is_perhaps || found == self.holds,
            "writer {} after {} commits: it knows {:?}, or perhaps {:?}, and finds {found:?}",
            self.number,
            self.commits,
            self.holds,
            self.perhaps
        );
        self.holds = found;
        self.perhaps = None;
        self
    }

    /// What the database holds of the writer's rows and accounts.
    fn found(&self, round: &Round) -> Result<Holdings> {
        let mut rows = BTreeMap::new();
        for row in 0..ROWS {
            let Some(found) = round.left.get(row_key(self.number, row))? else { continue };
            let text = std::str::from_utf8(&found[..17]).expect("a value of ours");
            let commit = text["commit ".len()..].parse().expect("a value of ours");
            assert!(found[..] == value(commit), "the value of row {row} of writer {} is not whole", self.number);
            rows.insert(row, commit);
        }
        let mut amounts = Vec::new();
        for row in round.accounts.select([tables::AMOUNT])?.range(account_range(self.number)) {
            amounts.push(tables::amount(&row?.1[0]));
        }
        Ok(Holdings { rows, amounts })
    }

    /// Makes commits until the round is over, or until the outcome of a commit is unknown.
    pub fn write(mut self, round: &Round, mut rng: Xoshiro256PlusPlus) -> Self {
        while round.goes_on() && self.perhaps.is_none() {
            let (holds, outcome) = self.commit(round, &mut rng);
            if round.expect("commit", outcome).is_some() {
                self.holds = holds;
            } else if round.db.sync().is_err() {
                self.perhaps = Some(holds);
            }
            self.commits += 1;
        }
        self
    }

    /// Makes one commit. Returns what the writer holds if it took effect, and its outcome.
    fn commit(&self, round: &Round, rng: &mut impl Rng) -> (Holdings, Result<()>) {
        let mut holds = self.holds.clone();
        let mut batch = round.db.batch();
        if rng.random_ratio(1, 50) {
            batch = batch.durability(Durability::Synced);
        }
        let (left, right) = (&round.left, &round.right);
        for _ in 0..rng.random_range(1..4) {
            let row = rng.random_range(0..ROWS);
            let key = row_key(self.number, row);
            match rng.random_range(0..20) {
                0 => {
                    let end = row + rng.random_range(0..40);
                    let range = key..row_key(self.number, end);
                    batch.remove_range(left, range.clone());
                    batch.remove_range(right, range);
                    holds.rows.retain(|&other, _| !(row..end).contains(&other));
                }
                1..=4 => {
                    batch.remove(left, &key);
                    batch.remove(right, &key);
                    holds.rows.remove(&row);
                }
                _ => {
                    let value = value(self.commits);
                    batch.insert(left, &key, &value);
                    batch.insert(right, &key, &value);
                    holds.rows.insert(row, self.commits);
                }
            }
        }
        if holds.amounts.is_empty() {
            holds.amounts = vec![SUM / u64::from(ACCOUNTS); ACCOUNTS as usize];
            for account in 0..ACCOUNTS {
                self.set(round, &mut batch, &holds, account, self.commits);
            }
        } else {
            let (from, to) = (rng.random_range(0..ACCOUNTS), rng.random_range(0..ACCOUNTS));
            let amount = rng.random_range(0..=holds.amounts[from as usize]);
            holds.amounts[from as usize] -= amount;
            holds.amounts[to as usize] += amount;
            self.set(round, &mut batch, &holds, from, self.commits);
            self.set(round, &mut batch, &holds, to, self.commits);
        }
        (holds, batch.commit().map(drop))
    }

    fn set(&self, round: &Round, batch: &mut larch::Batch, holds: &Holdings, account: u32, commit: u64) {
        let amount = holds.amounts[account as usize].to_le_bytes();
        let note = format!("by commit {commit} ").repeat(1 + commit as usize % 20);
        batch.insert_parts(&round.accounts, account_key(self.number, account), &[&amount[..], note.as_bytes()]);
    }
}
