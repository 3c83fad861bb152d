//! The reasons why a command ends without doing what was asked for, and the exit code for each of them.

use crate::colours::ERROR;
use crate::interrupt;
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

/// The result of a command.
pub type Result<T, E = CommandFailure> = std::result::Result<T, E>;

/// Why a command did not do what was asked for.
#[derive(Debug)]
pub enum CommandFailure {
    /// No such row, table or backup exists. Exit code 1.
    NotFound(String),
    /// `check` or `verify-backup` found damage. Exit code 1.
    Damaged(String),
    /// `repair` could not read everything. Exit code 4.
    Lost(String),
    /// The command line asks for something that makes no sense. Exit code 2.
    Usage(String),
    /// The input is not what it should be. Exit code 3.
    Input(String),
    /// The engine failed. Exit code 3.
    Engine(larch::Error),
    /// The engine failed to write a row. Exit code 3.
    Write {
        /// The place of the row that was being written, as `file:line` or as a table's name.
        at: String,
        /// Why.
        error: larch::Error,
        /// The end of the message. It says what happens to the rows that came before this row.
        kept: &'static str,
    },
    /// The output cannot be written. Exit code 3, or 0 if the output is a pipe whose reader has read enough and
    /// ended.
    Output(io::Error),
}

impl CommandFailure {
    /// The failure of a command that needs a cargo feature which this binary was built without.
    pub fn not_built(what: &str, feature: &str) -> Self {
        Self::Usage(format!(
            "{what} is not in this build of larch; to get it: cargo install --locked --path cli --features {feature}"
        ))
    }

    /// Prints the failure on stderr, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        if self.is_silent() || writeln!(anstream::stderr(), "{ERROR}larch:{ERROR:#} {self}").is_err() {
            // If stderr cannot be written, only the exit code reports the failure.
        }
        match self {
            Self::Output(_) if self.is_silent() => ExitCode::SUCCESS,
            Self::NotFound(_) | Self::Damaged(_) => ExitCode::from(1),
            Self::Engine(
                larch::Error::NoSuchBackup { .. }
                | larch::Error::NoSuchKept { .. }
                | larch::Error::NoSuchSubscription { .. }
                | larch::Error::NotKept { .. }
                | larch::Error::NotKeptOf { .. }
                | larch::Error::ChangesGone { .. },
            ) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Lost(_) => ExitCode::from(4),
            Self::Engine(larch::Error::Cancelled(_)) | Self::Write { error: larch::Error::Cancelled(_), .. } => {
                ExitCode::from(interrupt::EXIT_CODE)
            }
            Self::Engine(error) if is_of_arguments(error) => ExitCode::from(2),
            Self::Input(_) | Self::Engine(_) | Self::Write { .. } | Self::Output(_) => ExitCode::from(3),
        }
    }

    /// A failure about the value of the flag `flag`.
    pub fn of_flag(self, flag: &str) -> Self {
        match self {
            Self::Usage(why) => Self::Usage(format!("{flag}: {why}")),
            other => other,
        }
    }

    fn is_silent(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(text) | Self::Damaged(text) | Self::Lost(text) | Self::Usage(text) | Self::Input(text) => {
                f.write_str(text)
            }
            Self::Engine(error) => f.write_str(&told(error)),
            Self::Write { at, error, kept } => write!(f, "{at}: {}; {kept}", told(error)),
            Self::Output(error) => write!(f, "cannot write the output: {error}; send it to a place with room"),
        }
    }
}

/// Whether the engine refused an argument, so that the exit code is that of wrong usage.
fn is_of_arguments(error: &larch::Error) -> bool {
    use larch::Error::{
        BadIndexName, BadKeptName, BadOptions, BadSubscriptionName, BadTableName, CopyTarget, HasIndexes, IndexExists,
        KeptAlready, KeyTooLong, NotBackups, NotBuiltFiles, OtherDatabase, OtherGroups, RepairTarget, TableExists,
        TooManyKept, TooManySubscriptions, ValueTooLong, WithinDatabase,
    };
    matches!(
        error,
        BadIndexName(_)
            | IndexExists { .. }
            | HasIndexes { .. }
            | RepairTarget(_)
            | CopyTarget(_)
            | WithinDatabase { .. }
            | NotBackups { .. }
            | OtherDatabase(_)
            | NotBuiltFiles(_)
            | OtherGroups { .. }
            | BadTableName(_)
            | BadKeptName(_)
            | BadSubscriptionName(_)
            | TooManySubscriptions(_)
            | KeptAlready { .. }
            | TooManyKept(_)
            | TableExists(_)
            | BadOptions(_)
            | KeyTooLong { .. }
            | ValueTooLong { .. }
    )
}

/// The text of an engine error, with advice in terms of the command line.
fn told(error: &larch::Error) -> String {
    match error {
        larch::Error::NotADatabase(dir) => {
            let dir = dir.display();
            return format!("{dir} has no database; correct the path, or make one with larch import, load or put");
        }
        larch::Error::Locked(dir) => {
            let dir = dir.display();
            return format!(
                "{dir} is in use by another process, and one at a time can change a database; wait for its end (commands that only \
                 read do not wait)"
            );
        }
        larch::Error::NoThreads(why) => {
            return format!(
                "cannot start a thread ({why}); raise the limit on threads (ulimit -u, or pids.max of the control group), or end \
                 other processes (commands that only read need no threads with --read-only)"
            );
        }
        larch::Error::Full { what, cause } => {
            let cause = told(cause);
            return format!(
                "{what}, and the work that makes room failed ({cause}); once that is mended, run the command again"
            );
        }
        larch::Error::WritesStopped(why) => {
            return format!("writes are refused since one failed ({why}); remove the cause and run the command again");
        }
        larch::Error::OutcomeUnknown { what, cause } => {
            return format!(
                "it is not known whether {what}, because a sync failed ({cause}); remove the cause, and run a command that reads to \
                 see what is there"
            );
        }
        larch::Error::Outdated { directory, read, newest } => {
            let dir = directory.display();
            return format!(
                "the read of {dir} at version {} cannot go on: a writer has replaced its files, and the newest version is {}; run \
                 the command again, without --read-only if it was given (the writer keeps the files of a command that may make \
                 a file in {dir})",
                read.0, newest.0
            );
        }
        larch::Error::FellBehind { directory, newest, seen } => {
            return format!(
                "{} has commits up to version {} now, and version {} was read before: it has lost commits, or an older copy or \
                 another database has taken its place; run the command again to see what it has",
                directory.display(),
                newest.0,
                seen.0
            );
        }
        larch::Error::NoClosure { table, index } => {
            return format!(
                "the keys of index {index} of table {table} are made by the program that made it; change the table with this program, \
                 or drop the index with larch index drop"
            );
        }
        larch::Error::NoExpiryTime { table, declaration, why } => {
            let declared = declaration.escape_ascii();
            return format!(
                "the rows of table {table} expire by {declared}, which this command does not understand ({why}); write \
                 them with the program that made the table, or change that with larch alter --expire-after"
            );
        }
        larch::Error::NoExtractor { table, index, declaration, why } => {
            let declared = declaration.escape_ascii();
            return format!(
                "index {index} of table {table} is declared as {declared}, which this command does not understand ({why}); change the \
                 table with the program that made it, or drop the index with larch index drop"
            );
        }
        _ => {}
    }
    // The errors of the system already name the file and the action, because the crate `os` adds them.
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Arc<io::Error>>());
    let Some(source) = source else { return error.to_string() };
    let advice = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the disk and try again",
        io::ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f) and try again",
        io::ErrorKind::PermissionDenied => "check whose files these are and who may read and write them",
        io::ErrorKind::NotFound => "check the path",
        os::store::UNAVAILABLE | io::ErrorKind::TimedOut => "check the way to the store and try again",
        // An error of a store already says what to correct.
        io::ErrorKind::InvalidInput => return source.to_string(),
        io::ErrorKind::NotADirectory => "a database is a directory; correct the path",
        _ => "check the disk and try again",
    };
    format!("{source}; {advice}")
}

#[cfg(test)]
mod tests;

impl From<larch::Error> for CommandFailure {
    fn from(error: larch::Error) -> Self {
        Self::Engine(error)
    }
}
