//! Errors of the system, with the action and the path added to their text. This module does not know how the errors
//! are handled.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The action that failed, its path, and the system's reason.
#[derive(Debug)]
struct DescribedError {
    action: &'static str,
    path: PathBuf,
    reason: io::Error,
}

impl fmt::Display for DescribedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.path.display(), self.reason)
    }
}

impl Error for DescribedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.reason)
    }
}

/// An error of the same kind as `reason`, with the text "cannot `action` `path`: reason".
pub(crate) fn cannot(action: &'static str, path: &Path, reason: io::Error) -> io::Error {
    io::Error::new(reason.kind(), DescribedError { action, path: path.to_owned(), reason })
}

/// The error of a process whose held directory, or the lock file in it, was removed. After this error, the process
/// writes nothing more in the directory.
pub(crate) fn lost(directory: &Path) -> io::Error {
    let why = format!(
        "the directory {} is not the one any more that this process has opened: it, or the file LOCK in it, was removed; nothing \
         more is written to it here, so open it again",
        directory.display()
    );
    io::Error::new(io::ErrorKind::StaleNetworkFileHandle, why)
}

/// The text of `error`, with the action and the path. Errors of this crate already have both in their text.
pub fn describe(action: &str, path: &Path, error: &io::Error) -> String {
    if error.get_ref().is_some_and(|inner| inner.is::<DescribedError>()) {
        error.to_string()
    } else {
        format!("cannot {action} {}: {error}", path.display())
    }
}
