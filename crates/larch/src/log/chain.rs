//! Which logs of a database may hold commits, and how they follow each other. It does not know where the files are.

use super::LogReader;
use crate::base::record::{KnownEnd, LogError, Previous, Result};
use std::path::Path;

/// A log that may hold commits.
pub struct UsedLog {
    /// Its number.
    pub number: u64,
    /// The log that it continues.
    pub previous: Option<Previous>,
}

/// The logs among `numbers`, which ascend, that may hold commits, each after the one that it continues. `open` opens a
/// log. These are left out:
///
/// * A log that has not begun, except that the manifest may need the `oldest`: the commits of the one before it were in
///   files when its beginning was lost.
/// * A log without commits that the next one does not continue: creating it failed.
/// * A log whose commits an earlier recovery dropped, because those before them were lost. The next log continues the
///   one before it, and says that what it continues is durable.
///
/// # Errors
///
/// A log cannot be opened or read.
pub fn chain(numbers: &[u64], oldest: u64, open: impl Fn(u64) -> Result<LogReader>) -> Result<Vec<UsedLog>> {
    let mut chain: Vec<UsedLog> = Vec::new();
    for &number in numbers {
        let log = open(number)?;
        if !log.has_begun() && (log.header().is_none() || number != oldest) {
            continue;
        }
        let previous = log.previous();
        if let Some(previous) = previous {
            while let Some(last) = chain.last()
                && last.number > previous.number
                && (previous.drops(last.number, last.previous) || open(last.number)?.next_commit()?.is_none())
            {
                chain.pop();
            }
        }
        chain.push(UsedLog { number, previous });
    }
    Ok(chain)
}

/// The error about the log at `path`, which the manifest says is the oldest one needed, and which is not there.
pub fn oldest_is_missing(path: &Path) -> LogError {
    LogError::corrupt(path, 0, "it is missing, but the manifest needs it")
}

/// Where the first log of `chain` ended, as the second one says.
pub fn named_end(chain: &[UsedLog]) -> Option<KnownEnd> {
    let [log, next, later @ ..] = chain else { return None };
    let end = next.previous.filter(|previous| previous.number == log.number)?.end;
    // A log ends only when it is durable that it has begun, and then the log before it is durable.
    Some(KnownEnd { is_durable: end.is_durable || !later.is_empty(), ..end })
}

/// The error about the log at `path`, which ends at `end`, before the place where the log `next` says that it ended,
/// although `proof` says that it was synced.
pub fn ends_too_early(path: &Path, end: u64, next: &Path, proof: &str) -> LogError {
    LogError::corrupt(path, end, format!("the log ends too early: in {}, {proof}", next.display()))
}
