//! How a run ended: what was measured, which messages are printed about it, and the exit code. Every command that
//! makes a run uses this module.

use crate::say;
use harness::report::Run;
use harness::{Failure, Measured, RunError};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All was done.
    Good,
    /// Nothing was measured, or something was wrong. For example, more than one operation in a hundred failed, a
    /// limit of errors was reached, rows are not as they were written, or a condition does not hold.
    Bad,
    /// The store failed before the end.
    Failed,
    /// The runs of the same side differ so much from each other that the comparison cannot decide.
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
    /// What was measured until the end.
    pub measured: Measured,
    /// Why the run ended early.
    pub error: Option<String>,
    /// Whether the store, or a thread of the client, was lost.
    pub is_lost: bool,
}

impl Ended {
    /// The ending of a run as the harness returns it.
    ///
    /// # Errors
    ///
    /// Fails if the run did not begin.
    pub fn of(ended: Result<Measured, RunError>) -> Result<Self, Failure> {
        let is_lost = matches!(&ended, Err(RunError::Lost { .. } | RunError::Panicked { .. }));
        let (measured, error) = match ended {
            Ok(measured) => (measured, None),
            // If the run was interrupted before its window began, its partial result is reported as an interrupted
            // run.
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

/// A run as it is reported, with warnings and settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// The result, with everything that decided what was measured.
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

    /// Prints which requests failed, and why the run failed. But prints no failures if each failed request succeeded
    /// at a later attempt.
    pub fn say_what_failed(&self) {
        say_failures(&self.run.measured, "");
        // The result keeps the whole text. Its first line is enough here.
        let first = self.run.error.iter().filter_map(|text| text.lines().next());
        first.for_each(|text| say(&format!("larch: {text}")));
    }
}

/// Prints the first failure of each kind if a request failed and was not made again with success. `whose` names the
/// run.
pub fn say_failures(measured: &Measured, whose: &str) {
    if measured.has_failed() {
        measured.failures.iter().for_each(|(kind, text)| say(&format!("larch: {whose}{kind}: {text}")));
    }
}

/// The message about a run in which more than one operation in a hundred failed. The result of such a run is not
/// what the user wanted to measure, however fast the run was.
pub fn failed_much(measured: &Measured) -> Option<String> {
    let (failed, all) = (measured.failed, measured.operations + measured.failed);
    (failed * 100 > all).then(|| format!("{failed} of {all} operations failed"))
}

/// Joins two errors into one text, so that neither is lost.
pub fn joined(errors: [Option<String>; 2]) -> Option<String> {
    let all: Vec<String> = errors.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}
