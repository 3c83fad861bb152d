//! Errors of the system with the action and the path added to their text. It does not know who handles them.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What failed, where, and the system's reason.
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

/// `reason` told as "cannot `action` `path`: reason", of the same kind.
pub(crate) fn cannot(action: &'static str, path: &Path, reason: io::Error) -> io::Error {
    io::Error::new(reason.kind(), DescribedError { action, path: path.to_owned(), reason })
}

/// `error` told with action and path, once: an error made by this crate has them already.
pub fn describe(action: &str, path: &Path, error: &io::Error) -> String {
    if error.get_ref().is_some_and(|inner| inner.is::<DescribedError>()) {
        error.to_string()
    } else {
        format!("cannot {action} {}: {error}", path.display())
    }
}
