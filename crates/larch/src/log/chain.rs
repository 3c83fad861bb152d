//! Finds which logs of a database may hold commits, and in which order they follow each other. This module does not
//! know where the files are.

use super::LogReader;
use crate::base::record::{KnownEnd, LogError, Previous, Result};
use std::path::Path;

/// A log that may hold commits.
pub struct UsedLog {
    /// The number of the log.
    pub number: u64,
    /// The log before it, which it continues.
    pub previous: Option<Previous>,
}

/// `numbers` are the numbers of the logs, ascending. Returns the logs among them that may hold commits, each after
/// the log that it continues. `open` opens a log. These logs are left out:
///
/// * A log that has not begun. But the log `oldest` is never left out for this reason, because the manifest may
///   need it. If the beginning of `oldest` was lost, the commits of the log before it were in files already.
/// * A log without commits, if the next log does not continue it. Such a log is left from a failed attempt to make
///   a log.
/// * A log whose commits were dropped by an earlier recovery, because commits before them were lost. If B is such
///   a log, the log after B continues the log before B, and says that the log before B is durable.
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

/// The error for a missing log at `path`, which is the oldest log that the database needs according to the
/// manifest.
pub fn oldest_is_missing(path: &Path) -> LogError {
    LogError::corrupt(path, 0, "it is missing, but the manifest needs it")
}

/// The end of the first log of `chain`, if the second log names this end.
pub fn named_end(chain: &[UsedLog]) -> Option<KnownEnd> {
    let [log, next, later @ ..] = chain else { return None };
    let end = next.previous.filter(|previous| previous.number == log.number)?.end;
    // If a third log exists, the beginning of the second log became durable before the third log began. Then the
    // first log is durable, too.
    Some(KnownEnd { is_durable: end.is_durable || !later.is_empty(), ..end })
}

/// The error for a log at `path` that ends at `end`, although the log `next` names a later end for it. `proof`
/// says why the missing part must have been synced.
pub fn ends_too_early(path: &Path, end: u64, next: &Path, proof: &str) -> LogError {
    LogError::corrupt(path, end, format!("the log ends too early: in {}, {proof}", next.display()))
}
