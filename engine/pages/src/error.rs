//! What can break below a reader. An error names the file, the place, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something broke. A missing page is not an error: see [`crate::Stop::Fault`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The system refused to open, read or write a file.
    #[error("{}", os::failure::describe(action, file, source))]
    Io {
        /// What was tried: "read", "open", …
        action: &'static str,
        /// Which file.
        file: PathBuf,
        /// The system's error.
        source: os::sync::Arc<io::Error>,
    },
    /// Bytes on disk are not what was written.
    #[error("{} is corrupt: {page} page at offset {offset}: {why}; restore the file from a backup", file.display())]
    Corrupt {
        /// Which file.
        file: PathBuf,
        /// The kind of the page.
        page: &'static str,
        /// The offset of the page in the file.
        offset: u64,
        /// What was wrong.
        why: String,
    },
    /// The file is intact, but this build of the program cannot read one of its pages.
    #[error(
        "{} has pages compressed by {feature}, and this program was built without feature {feature} of larch-db; \
         build it with that feature",
        file.display()
    )]
    MissingFeature {
        /// Which file.
        file: PathBuf,
        /// The cargo feature, which has the name of the codec.
        feature: &'static str,
    },
    /// The pages are intact, but their reader cannot make an answer of what they hold.
    #[error("{0}")]
    Content(String),
    /// The file is intact, but only a newer release can read it.
    #[error("{} was made by a newer Larch: {what}; open it with that release or a later one", file.display())]
    Newer {
        /// Which file.
        file: PathBuf,
        /// What this release does not know, for example "feature 23".
        what: String,
    },
}

impl Error {
    /// An I/O error with its file.
    pub fn io(action: &'static str, file: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, file: file.into(), source: os::sync::Arc::new(source) }
    }
}
