//! Finds the logs of a database that may hold commits, and their order. This module does not know where the files
//! are.

use super::LogReader;
use crate::base::record::{KnownEnd, LogError, Previous, Result};
use std::path::Path;

/// A log that may hold commits.
pub struct UsedLog {
    /// The number of the log.
    pub number: u64,
    /// The log that it continues.
    pub previous: Option<Previous>,
}

/// Of the logs with these `numbers`, in ascending order, returns those that may hold commits, each after the log
/// that it continues. `open` opens a log. These logs are left out:
///
/// * A log that has not begun. But the log `oldest` is kept if it has a header, because the manifest may need it.
///   If its begin record was lost, the commits of the log before it were in files already.
/// * A log without commits that the next log does not continue. It is left from a failed attempt to begin a log.
/// * A log whose commits an earlier recovery dropped, because commits before them were lost. For example, if log C
///   continues log A and says that A is durable, it drops a log B between them that began before A was durable.
///
/// # Errors
///
/// An error if a log cannot be opened or read.
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

/// The error for a missing log at `path` that the manifest names as the oldest log that the database needs.
pub fn oldest_is_missing(path: &Path) -> LogError {
    LogError::corrupt(path, 0, "it is missing, but the manifest needs it")
}

/// The end of the first log of `chain`, if the second log names this end.
pub fn named_end(chain: &[UsedLog]) -> Option<KnownEnd> {
    let [log, next, later @ ..] = chain else { return None };
    let end = next.previous.filter(|previous| previous.number == log.number)?.end;
    // A third log begins only after the begin of the second is durable, and that comes after all of the first log.
    Some(KnownEnd { is_durable: end.is_durable || !later.is_empty(), ..end })
}

/// The error for a log at `path` that ends at `end`, although the log `next` names a later end for it. `proof` says
/// why the missing part must have been synced.
pub fn ends_too_early(path: &Path, end: u64, next: &Path, proof: &str) -> LogError {
    LogError::corrupt(path, end, format!("the log ends too early: in {}, {proof}", next.display()))
}
