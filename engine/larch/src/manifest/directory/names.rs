//! The names of files in the directory of a database that have fixed names, without a number.

/// The file that a process locks while it writes to the database, or makes a copy of one, in this directory.
pub const LOCK: &str = "LOCK";
/// The file that names the manifest in use. A directory without it has no database.
pub const CURRENT: &str = "CURRENT";
/// The next `CURRENT`. A rename turns it into `CURRENT`.
pub const CURRENT_NEW: &str = "CURRENT.new";
/// Takes the place of `CURRENT` while a copy of a database is made. The last step of the copy renames it to
/// `CURRENT`.
pub const UNFINISHED: &str = "UNFINISHED";
/// The reserve: disk space that is kept back for erases.
pub const RESERVE: &str = "RESERVE";
/// The warm state: which pages were in memory at the last close.
pub const WARM: &str = "WARM";
/// The next warm state, before it is renamed.
pub const WARM_NEW: &str = "WARM.new";
/// The directory in which followers say what they read.
pub const FOLLOWERS: &str = "followers";
/// The directory in which the writer and the compaction workers exchange files.
pub const WORKERS: &str = "workers";
/// The directory in which the writer publishes its metrics.
pub const METRICS: &str = "metrics";
/// The list of files that were built without a database, in the directory of these files. The directory of a
/// database never has it.
pub const LIST: &str = "LIST";
