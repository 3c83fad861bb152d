//! The names of the files in the directory of a database that have no number.

/// A file that is locked by the process that writes to the database in the directory, or that makes a copy of a
/// database there.
pub const LOCK: &str = "LOCK";
/// The file that names the manifest in use. Without it a directory has no database.
pub const CURRENT: &str = "CURRENT";
/// The next `CURRENT`, until a rename makes it the current one.
pub const CURRENT_NEW: &str = "CURRENT.new";
/// A file in a directory in which a copy of a database is being made. The last step of the copy renames it to
/// `CURRENT`.
pub const UNFINISHED: &str = "UNFINISHED";
/// Disk space that is kept back for erases.
pub const RESERVE: &str = "RESERVE";
/// The warm state: which pages were in memory at the last close.
pub const WARM: &str = "WARM";
/// The next warm state. It is written under this name and then renamed.
pub const WARM_NEW: &str = "WARM.new";
/// The directory in which followers tell what they read.
pub const FOLLOWERS: &str = "followers";
/// The directory by which writer and compaction workers exchange files.
pub const WORKERS: &str = "workers";
/// The list of files that were built without a database; it is in their directory, and in no database.
pub const LIST: &str = "LIST";
