//! For each key, its versions in commit order; for each value, the write that it comes from. What transactions read
//! plays no part here.

use super::anomaly::{Anomaly, Kind};
use super::keys::Keys;
use super::own_writes::{OwnWrites, Write};
use super::transaction::{Isolation, Mark, Operation, Outcome, Transaction};
use larch::Version;
use std::collections::HashMap;

/// A version of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyVersion {
    /// Place in the commit order.
    pub version: Version,
    /// Index of its writer in the history.
    pub writer: u32,
    /// Its value, or `None` for an erase.
    pub mark: Option<Mark>,
}

/// What became of a write of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is the transaction's last write to the key.
    Last,
    /// The same transaction wrote the key again before it committed.
    Replaced,
    /// The transaction rolled it back to a savepoint.
    TakenBack,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Index of the writer in the history.
    pub writer: u32,
    /// Number of the key.
    pub key: u32,
    /// What became of the write.
    pub fate: Fate,
}

/// What a committed transaction wrote.
struct CommittedWrites {
    version: Version,
    writer: u32,
    /// Each key that the transaction wrote, with the last write to this key.
    last: Vec<(u32, Write)>,
}

/// The order of all writes.
#[derive(Debug)]
pub struct Order {
    /// For each key, its versions in ascending order. Only committed transactions count.
    versions: Vec<Vec<KeyVersion>>,
    origins: HashMap<Mark, Origin>,
}

impl Order {
    /// Finds the order of the versions in `history`. Adds to `anomalies` the commits whose versions do not fit into
    /// one order, and overlapping writes of transactions whose `level` is snapshot isolation.
    pub fn of(
        history: &[Transaction],
        keys: &Keys<'_>,
        level: &dyn Fn(&Transaction) -> Isolation,
        anomalies: &mut Vec<Anomaly>,
    ) -> Self {
        let mut origins: HashMap<Mark, Origin> = HashMap::new();
        let mut own = OwnWrites::new(keys.len());
        let mut commits: Vec<CommittedWrites> = Vec::new();
        for (writer, transaction) in (0..).zip(history) {
            own.begin();
            for operation in &transaction.operations {
                if let Operation::Put { place, mark } = operation {
                    let origin = Origin { writer, key: keys.of_place(place), fate: Fate::Replaced };
                    let other = origins.insert(*mark, origin);
                    assert!(other.is_none(), "{mark:?} is written twice, so it does not name its writer");
                }
                own.take(operation, keys, &mut |mark| {
                    origins.get_mut(&mark).expect("it was put before it is taken back").fate = Fate::TakenBack;
                });
            }
            let last = own.last();
            for mark in last.iter().filter_map(|(_, write)| write.mark()) {
                origins.get_mut(&mark).expect("what is put has an origin").fate = Fate::Last;
            }
            match transaction.outcome {
                Outcome::Committed(Some(version)) if !last.is_empty() => {
                    commits.push(CommittedWrites { version, writer, last })
                }
                Outcome::Committed(None) if !last.is_empty() => {
                    anomalies.push(Anomaly::of(Kind::CommitOrder, &[transaction], "it wrote, and has no version"));
                }
                _ => {}
            }
        }
        commits.sort_unstable_by_key(|commit| (commit.version, commit.writer));
        for pair in commits.windows(2).filter(|pair| pair[0].version == pair[1].version) {
            let both = [&history[pair[0].writer as usize], &history[pair[1].writer as usize]];
            anomalies.push(Anomaly::of(Kind::CommitOrder, &both, "they have the same version"));
        }
        let mut versions: Vec<Vec<KeyVersion>> = vec![Vec::new(); keys.len()];
        for CommittedWrites { version, writer, last } in commits {
            let transaction = &history[writer as usize];
            if version <= transaction.snapshot {
                anomalies.push(Anomaly::of(Kind::CommitOrder, &[transaction], "its version is in its snapshot"));
            }
            for (key, write) in last {
                let versions = &mut versions[key as usize];
                let before = versions.last();
                // A range erase counts as a write only of the keys that it changes.
                if write == Write::RangeErase && before.is_none_or(|before| before.mark.is_none()) {
                    continue;
                }
                if let Some(before) = before
                    && before.version > transaction.snapshot
                    && level(transaction) == Isolation::Snapshot
                {
                    let both = [&history[before.writer as usize], transaction];
                    let what = format!("both wrote {}, and overlap", keys.name(key));
                    anomalies.push(Anomaly::of(Kind::OverlappingWrites, &both, &what));
                }
                versions.push(KeyVersion { version, writer, mark: write.mark() });
            }
        }
        Self { versions, origins }
    }

    /// The versions of a key, ascending.
    pub fn versions(&self, key: u32) -> &[KeyVersion] {
        &self.versions[key as usize]
    }

    /// The versions of all keys.
    pub fn all(&self) -> impl Iterator<Item = (u32, &[KeyVersion])> {
        (0..).zip(self.versions.iter().map(Vec::as_slice))
    }

    /// How many versions of a key a snapshot at version `snapshot` has.
    pub fn in_snapshot(&self, key: u32, snapshot: Version) -> usize {
        self.versions(key).partition_point(|version| version.version <= snapshot)
    }

    /// The write of a value, or `None` if no transaction wrote this value.
    pub fn origin(&self, mark: Mark) -> Option<Origin> {
        self.origins.get(&mark).copied()
    }
}
