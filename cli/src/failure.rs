//! Why a command ends without doing what it was asked, and the exit code that says so.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// A command that did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// There is no such row or table. Exit code 1.
    NotFound(String),
    /// `check` found damage. Exit code 1.
    Damaged(String),
    /// The command line asks for something that makes no sense. Exit code 2.
    Usage(String),
    /// What was read is not what it should be. Exit code 3.
    Input(String),
    /// The engine failed. Exit code 3.
    Engine(larch::Error),
    /// The output cannot be written. Exit code 3, or 0 if its reader just had enough.
    Output(io::Error),
}

impl Failure {
    /// Says what happened on stderr; returns the exit code.
    pub fn report(&self) -> ExitCode {
        if self.is_silent() || writeln!(io::stderr(), "larch: {self}").is_err() {
            // Without stderr there is nobody left to tell; the exit code still does.
        }
        match self {
            Self::Output(_) if self.is_silent() => ExitCode::SUCCESS,
            Self::NotFound(_) | Self::Damaged(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Input(_) | Self::Engine(_) | Self::Output(_) => ExitCode::from(3),
        }
    }

    fn is_silent(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(text) | Self::Damaged(text) | Self::Usage(text) | Self::Input(text) => f.write_str(text),
            Self::Engine(error) => error.fmt(f),
            Self::Output(error) => write!(f, "cannot write the output: {error}; send it to a place with room"),
        }
    }
}

impl From<larch::Error> for Failure {
    fn from(error: larch::Error) -> Self {
        Self::Engine(error)
    }
}
