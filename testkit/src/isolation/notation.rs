//! Writes and reads transactions as text, for tests and for the stories of anomalies. This module does not judge
//! the transactions.
//!
//! ```text
//! T2 snapshot: b@1 r(x)=1 r(y)=- w(x)=2 e(y) e[a..c) scan[a..c)=a:1,b:2 back(..c]=-.. save w(x)=3 undo0 c@2
//!
//! b@1 b@1#7       began; its snapshot is version 1; that was event 7
//! r(x)=1 r(y)=-   read a key and saw a value, or none
//! w(x)=1 e(x)     wrote it, erased it
//! e[a..c)         erased a range: from a to before c; without a or c, from the first key or to the last one
//! scan[a..c)=a:1  read a range from its low end and saw these rows; `-` is none; `..` after them: it was stopped there
//! back[a..c)=a:1  the same from the high end
//! save undo0      made a savepoint; went back to the first one
//! c@2 c@2#9 c     committed at version 2; that was event 9; committed without writes
//! a ?             was aborted; nobody knows
//! ```
//!
//! `1/x` is key x of table 1, and `scan1/[a..c)` is a range of table 1. Keys and ranges without a number belong to
//! table 0. A transaction is serializable unless the text says `snapshot`.

use super::transaction::{Direction, Isolation, Mark, Operation, Outcome, Place, Transaction};
use crate::model::KeyRange;
use larch::Version;
use std::fmt;
use std::ops::Bound;

/// A key of a table as text.
pub fn place(table: u32, key: &[u8]) -> String {
    format!("{}{}", table_prefix(table), key.escape_ascii())
}

fn table_prefix(table: u32) -> String {
    if table == 0 { String::new() } else { format!("{table}/") }
}

fn range_of(table: u32, (low, high): &KeyRange) -> String {
    let low = match low {
        Bound::Unbounded => "[".to_owned(),
        Bound::Included(low) => format!("[{}", low.escape_ascii()),
        Bound::Excluded(low) => format!("({}", low.escape_ascii()),
    };
    let high = match high {
        Bound::Unbounded => "]".to_owned(),
        Bound::Included(high) => format!("{}]", high.escape_ascii()),
        Bound::Excluded(high) => format!("{})", high.escape_ascii()),
    };
    format!("{}{low}..{high}", table_prefix(table))
}

fn seen(mark: Option<Mark>) -> String {
    mark.map_or("-".to_owned(), |mark| mark.0.to_string())
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |at: &Place| place(at.table, &at.key);
        match self {
            Self::Read { place, saw } => write!(out, "r({})={}", name(place), seen(*saw)),
            Self::ReadRange { table, range, direction, saw, stopped } => {
                let verb = if *direction == Direction::Forward { "scan" } else { "back" };
                let rows = saw.iter().map(|(key, mark)| format!("{}:{}", key.escape_ascii(), mark.0));
                let rows = if saw.is_empty() { "-".to_owned() } else { rows.collect::<Vec<_>>().join(",") };
                write!(out, "{verb}{}={rows}{}", range_of(*table, range), if *stopped { ".." } else { "" })
            }
            Self::Put { place, mark } => write!(out, "w({})={}", name(place), mark.0),
            Self::Erase { place } => write!(out, "e({})", name(place)),
            Self::EraseRange { table, range } => write!(out, "e{}", range_of(*table, range)),
            Self::Savepoint => write!(out, "save"),
            Self::RollBackTo(savepoint) => write!(out, "undo{savepoint}"),
        }
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = if self.isolation == Isolation::Snapshot { " snapshot" } else { "" };
        let event = |number: Option<u64>| number.map_or(String::new(), |number| format!("#{number}"));
        write!(out, "T{}{level}: b@{}{}", self.id, self.snapshot.0, event(self.began))?;
        for operation in &self.operations {
            write!(out, " {operation}")?;
        }
        let acknowledged = event(self.acknowledged);
        match self.outcome {
            Outcome::Committed(Some(version)) => write!(out, " c@{}{acknowledged}", version.0),
            Outcome::Committed(None) => write!(out, " c{acknowledged}"),
            Outcome::Aborted => write!(out, " a"),
            Outcome::Unknown => write!(out, " ?"),
        }
    }
}

/// Reads a history. Each line is one transaction. If a word means nothing, the function panics and names this
/// word.
pub fn parse(text: &str) -> Vec<Transaction> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(transaction).collect()
}

fn transaction(line: &str) -> Transaction {
    let (head, rest) = line.split_once(':').unwrap_or_else(|| panic!("{line:?} does not begin with T1:"));
    let mut head = head.split_whitespace();
    let id = head.next().and_then(|id| id.strip_prefix('T')).map(number);
    let isolation = match head.next() {
        None => Isolation::Serializable,
        Some("snapshot") => Isolation::Snapshot,
        Some(word) => panic!("{word:?} is not a level"),
    };
    let mut transaction = Transaction {
        id: id.unwrap_or_else(|| panic!("{line:?} does not begin with T1:")),
        isolation,
        snapshot: Version(0),
        operations: Vec::new(),
        outcome: Outcome::Unknown,
        began: None,
        acknowledged: None,
    };
    for word in rest.split_whitespace() {
        let (what, event) = word.split_once('#').map_or((word, None), |(what, event)| (what, Some(number(event))));
        if let Some(snapshot) = what.strip_prefix("b@") {
            transaction.snapshot = Version(number(snapshot));
            transaction.began = event;
        } else if let Some(version) = what.strip_prefix("c@") {
            transaction.outcome = Outcome::Committed(Some(Version(number(version))));
            transaction.acknowledged = event;
        } else if what == "c" {
            transaction.outcome = Outcome::Committed(None);
            transaction.acknowledged = event;
        } else if matches!(what, "a" | "?") {
            transaction.outcome = if what == "a" { Outcome::Aborted } else { Outcome::Unknown };
        } else {
            let operation = operation(word).unwrap_or_else(|| panic!("{word:?} is no operation"));
            transaction.operations.push(operation);
        }
    }
    transaction
}

/// Reads a number. Panics if the text is not a number.
pub fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// An operation, if the word is one.
pub fn operation(word: &str) -> Option<Operation> {
    if word == "save" {
        return Some(Operation::Savepoint);
    }
    if let Some(savepoint) = word.strip_prefix("undo") {
        return Some(Operation::RollBackTo(number(savepoint)));
    }
    let (target, value) = word.split_once('=').map_or((word, None), |(target, value)| (target, Some(value)));
    for (verb, direction) in [("scan", Direction::Forward), ("back", Direction::Backward)] {
        if let Some(target) = target.strip_prefix(verb) {
            let (table, range) = parse_range(target)?;
            let (rows, stopped) = value?.strip_suffix("..").map_or((value?, false), |rows| (rows, true));
            let row = |row: &str| row.split_once(':').map(|(key, mark)| (key.into(), Mark(number(mark))));
            let saw = if rows == "-" { Some(Vec::new()) } else { rows.split(',').map(row).collect() };
            return Some(Operation::ReadRange { table, range, direction, saw: saw?, stopped });
        }
    }
    let (verb, target) = target.split_at_checked(1)?;
    let at = || {
        let (table, target) = parse_table(target);
        let key = target.strip_prefix('(')?.strip_suffix(')').filter(|key| !key.contains(".."))?;
        let (table, key) = key.split_once('/').map_or((table, key), |(table, key)| (number(table), key));
        Some(Place { table, key: key.into() })
    };
    match verb {
        "r" => Some(Operation::Read { place: at()?, saw: Some(value?).filter(|saw| *saw != "-").map(mark) }),
        "w" => Some(Operation::Put { place: at()?, mark: mark(value?) }),
        "e" => match at() {
            Some(place) => Some(Operation::Erase { place }),
            None => parse_range(target).map(|(table, range)| Operation::EraseRange { table, range }),
        },
        _ => None,
    }
}

fn mark(text: &str) -> Mark {
    Mark(number(text))
}

fn parse_table(text: &str) -> (u32, &str) {
    text.split_once('/')
        .filter(|(table, _)| !table.contains(['(', '[']))
        .map_or((0, text), |(table, rest)| (number(table), rest))
}

fn parse_range(text: &str) -> Option<(u32, KeyRange)> {
    let (table, text) = parse_table(text);
    let (low, high) = text.split_once("..")?;
    let low = match low.split_at_checked(1)? {
        (_, "") => Bound::Unbounded,
        ("[", key) => Bound::Included(key.into()),
        ("(", key) => Bound::Excluded(key.into()),
        _ => return None,
    };
    let high = match high.split_at_checked(high.len().checked_sub(1)?)? {
        ("", _) => Bound::Unbounded,
        (key, "]") => Bound::Included(key.into()),
        (key, ")") => Bound::Excluded(key.into()),
        _ => return None,
    };
    Some((table, (low, high)))
}
