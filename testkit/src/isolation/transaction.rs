//! What a transaction did and what it saw. A history is a slice of transactions, in any order.

use crate::model::KeyRange;
use larch::Version;

/// Stands for a value, which carries this number. No two writes of a history have the same mark, so a mark
/// identifies its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub u64);

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the table.
    pub table: u32,
    /// The key.
    pub key: Vec<u8>,
}

/// The level that a transaction asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Serializable transactions see each other's writes as if they had run one after the other.
    Serializable,
    /// All reads see one version, and no overlapping transaction wrote a key that this transaction wrote.
    Snapshot,
}

/// From which end a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key.
    Forward,
    /// From the highest key.
    Backward,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction took place, at this version if it wrote anything.
    Committed(Option<Version>),
    /// The transaction did not take place: it had a conflict, or it was dropped, or a crash lost it.
    Aborted,
    /// The commit failed or was interrupted, so the transaction may or may not have taken place.
    Unknown,
}

/// One thing that a transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read a row.
    Read {
        /// Where.
        place: Place,
        /// What was there.
        saw: Option<Mark>,
    },
    /// Read a range.
    ReadRange {
        /// Number of the table.
        table: u32,
        /// What was asked for.
        range: KeyRange,
        /// From which end.
        direction: Direction,
        /// The rows, in the order in which the read returned them.
        saw: Vec<(Vec<u8>, Mark)>,
        /// Whether the read was stopped after the last of these rows, so that it learned nothing about the rest of
        /// the range.
        stopped: bool,
    },
    /// Gave a key a value.
    Put {
        /// Where.
        place: Place,
        /// The value.
        mark: Mark,
    },
    /// Erased a key.
    Erase {
        /// Where.
        place: Place,
    },
    /// Erased the keys of a range.
    EraseRange {
        /// Number of the table.
        table: u32,
        /// Which keys.
        range: KeyRange,
    },
    /// The transaction made a savepoint. Savepoints of a transaction are numbered from 0.
    Savepoint,
    /// The transaction rolled back to the savepoint with this number. This savepoint may be used again, but later
    /// ones may not.
    RollBackTo(usize),
}

/// A transaction, as its client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// A number that no other transaction of the history has.
    pub id: u64,
    /// The level that it asked for.
    pub isolation: Isolation,
    /// The newest commit that it sees.
    pub snapshot: Version,
    /// What it did, in order.
    pub operations: Vec<Operation>,
    /// How it ended.
    pub outcome: Outcome,
    /// The number of the event just before the client began the transaction, if events were counted. No two events
    /// have the same number.
    pub began: Option<u64>,
    /// The number of the event at which the client learned that the transaction was committed.
    pub acknowledged: Option<u64>,
}

impl Transaction {
    /// Whether it took place.
    pub fn is_committed(&self) -> bool {
        matches!(self.outcome, Outcome::Committed(_))
    }
}
