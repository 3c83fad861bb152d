//! How a run ended: what was measured, the messages about it, and the exit code. Shared by all commands that make
//! runs.

use crate::say;
use harness::report::Run;
use harness::{Failure, Measured, RunError};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was done.
    Good,
    /// Nothing was measured, or something was wrong: more than one operation in a hundred failed, the error limit
    /// was reached, rows were not as written, or a consistency condition does not hold.
    Bad,
    /// The store failed before the end.
    Failed,
    /// Runs of one side differ too much for a comparison to decide.
    CannotTell,
    /// The user stopped the command by ^C.
    Interrupted,
}

impl Ending {
    /// The exit code of the process.
    pub fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Failed => 3,
            Self::CannotTell => 4,
            Self::Interrupted => 130,
        })
    }
}

/// The outcome of a run, which may have ended early.
#[derive(Debug)]
pub struct Ended {
    /// What was measured before the run ended.
    pub measured: Measured,
    /// Why the run ended early.
    pub error: Option<String>,
    /// Whether the store, or a thread of the client, was lost.
    pub is_lost: bool,
}

impl Ended {
    /// Converts what the harness returned for a run.
    ///
    /// # Errors
    ///
    /// Fails if the run did not begin.
    pub fn of(ended: Result<Measured, RunError>) -> Result<Self, Failure> {
        let is_lost = matches!(&ended, Err(RunError::Lost { .. } | RunError::Panicked { .. }));
        let (measured, error) = match ended {
            Ok(measured) => (measured, None),
            // ^C before the window began: report it as an interrupted run, not as an error.
            Err(RunError::NothingMeasured { partial }) if partial.interrupted => (*partial, None),
            Err(RunError::Plan(text)) => return Err(Failure::session("target", text)),
            Err(error) => match error.partial() {
                Some(partial) => (partial.clone(), Some(error.to_string())),
                None => return Err(Failure::session("run", error.to_string())),
            },
        };
        Ok(Self { measured, error, is_lost })
    }
}

/// A run as it is reported.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// The result, with the settings that produced it.
    pub run: Run,
    /// Whether the store, or a thread of the client, was lost.
    pub is_lost: bool,
}

impl Ran {
    /// How the command ends.
    pub fn ending(&self) -> Ending {
        match &self.run.measured {
            _ if self.is_lost => Ending::Failed,
            Measured { interrupted: true, .. } => Ending::Interrupted,
            Measured { operations: 0, .. } => Ending::Bad,
            _ if self.run.error.is_some() => Ending::Bad,
            _ => Ending::Good,
        }
    }

    /// Prints why the run failed, and which requests failed, unless each of them succeeded when it was retried.
    pub fn say_what_failed(&self) {
        say_failures(&self.run.measured, "");
        // The result keeps the whole text. Its first line is enough here.
        let first = self.run.error.iter().filter_map(|text| text.lines().next());
        first.for_each(|text| say(&format!("larch: {text}")));
    }
}

/// Prints the first failure of each kind, unless every failed request succeeded when it was retried. `whose` is a
/// prefix that names the run.
pub fn say_failures(measured: &Measured, whose: &str) {
    if measured.has_failed() {
        measured.failures.iter().for_each(|(kind, text)| say(&format!("larch: {whose}{kind}: {text}")));
    }
}

/// The message about a run in which more than one operation in a hundred failed. However fast such a run was, it
/// did not measure what the user wanted.
pub fn failed_much(measured: &Measured) -> Option<String> {
    let (failed, all) = (measured.failed, measured.operations + measured.failed);
    (failed * 100 > all).then(|| format!("{failed} of {all} operations failed"))
}

/// Joins two errors into one text, so that neither is lost.
pub fn joined(errors: [Option<String>; 2]) -> Option<String> {
    let all: Vec<String> = errors.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}
