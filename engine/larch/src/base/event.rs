//! Events tell a program what the engine does. They go to a hook of the program and, with the feature `tracing`,
//! also to the crate `tracing`.
//!
//! An event is built only if a hook or `tracing` listens. The hook runs on the thread that does the reported work.
//! If a hook panics, the engine catches the panic and goes on; that event is lost.

use os::sync::Arc;
use sst::Version;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Something that the engine did, or a problem that it met. New releases may add new kinds of events.
///
/// `Display` writes one line for people. Sizes are stored bytes, and durations are measured by the machine's clock.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The database was opened.
    Opened {
        /// In words: whether the database is open for reading or writing, and the main options.
        with: String,
        /// Files that the manifest names.
        files: u64,
        /// Logs that were replayed.
        logs: u64,
        /// Commits found in these logs.
        commits: u64,
        /// Files to which the rows of the logs were written.
        recovered_files: u64,
        /// The newest version.
        version: Version,
        /// How long it took.
        time: Duration,
    },
    /// A flush writes memtables to level 0.
    FlushStarted {
        /// Memory of their rows.
        bytes: u64,
    },
    /// The flush is done, and its files are part of the database.
    FlushFinished {
        /// Files that were written.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// How long it took.
        time: Duration,
    },
    /// A compaction merges files of a table.
    CompactionStarted {
        /// Name of the table.
        table: String,
        /// Files that are merged.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// Level of the result.
        to: usize,
        /// Why it was chosen.
        reason: CompactionReason,
    },
    /// The compaction is done, and its files have replaced the inputs.
    CompactionFinished {
        /// Name of the table.
        table: String,
        /// Files that were written.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// How long it took.
        time: Duration,
    },
    /// A [worker](crate::worker::CompactionWorker) could not do a compaction. The database does it itself.
    WorkerFailed {
        /// Name of the table.
        table: String,
        /// Why.
        error: String,
    },
    /// A file was moved down one or more levels without being rewritten.
    FileMoved {
        /// Name of the table.
        table: String,
        /// The level where the file was.
        from: usize,
        /// The level where the file is now.
        to: usize,
    },
    /// Files in which all rows had expired were removed, without being read.
    FilesExpired {
        /// Name of the table.
        table: String,
        /// How many files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// Older rows, which are [retained](crate::Database::retain) or kept for names and snapshots, take more than the disk
    /// has room left. Comes once until there is more room.
    PastFillsDisk {
        /// The bytes of older rows in files.
        history_bytes: u64,
        /// The bytes that the disk has left.
        free_bytes: u64,
    },
    /// Rows were imported.
    Imported {
        /// Name of the table.
        table: String,
        /// Files that were written.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A database that [follows](crate::Builder::follow) a writer in another process shows new files of that writer.
    FilesShown {
        /// The newest version that it shows.
        version: Version,
        /// How long loading pages of the new files took, before and after the switch.
        time: Duration,
    },
    /// Commits begin to wait for background work.
    Stalled {
        /// What they wait for.
        reason: StallReason,
    },
    /// Commits no longer wait for background work.
    Resumed {
        /// What they waited for.
        reason: StallReason,
        /// The time from when the first commit began to wait until commits went on.
        time: Duration,
    },
    /// Background work failed, and the engine will retry it.
    Retrying {
        /// What failed.
        work: &'static str,
        /// Why.
        error: String,
        /// How often it has failed in a row.
        failures: u64,
        /// The pause before the next try.
        after: Duration,
    },
    /// Background work failed, and the engine will not retry it, because it would fail in the same way.
    GivenUp {
        /// What failed.
        work: &'static str,
        /// Why.
        error: String,
    },
    /// The background scrub found a page that cannot be read, or whose bytes are not what was written.
    Damaged {
        /// Name of the table.
        table: String,
        /// The file, the page, and what is wrong.
        error: String,
    },
    /// Writes are refused until the database is opened again.
    WritesStopped {
        /// Why.
        error: String,
    },
}

/// Why files of a table are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionReason {
    /// Level 0 has too many files.
    Level0,
    /// A level is larger than it should be.
    LevelSize,
    /// Much of a file is dead weight: the table sees only a part of it, or newer files hide much of it.
    Sparse,
    /// A file has many erased rows.
    ErasedRows,
    /// The caller asked for it.
    Asked,
    /// Many rows of a file have expired.
    Expired,
}

/// What commits wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallReason {
    /// Rows in memory fill the write buffer while earlier rows are being flushed.
    WriteBuffer,
    /// Level 0 of a table has many files.
    Level0,
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventLevel {
    /// Ordinary work.
    Info,
    /// Commits wait, or failed work is retried.
    Warn,
    /// The operator must act.
    Error,
}

impl Event {
    /// The kind of the event in words with hyphens, such as `flush-started`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::FlushStarted { .. } => "flush-started",
            Self::FlushFinished { .. } => "flush-finished",
            Self::CompactionStarted { .. } => "compaction-started",
            Self::CompactionFinished { .. } => "compaction-finished",
            Self::WorkerFailed { .. } => "worker-failed",
            Self::FileMoved { .. } => "file-moved",
            Self::FilesExpired { .. } => "files-expired",
            Self::PastFillsDisk { .. } => "past-fills-disk",
            Self::Imported { .. } => "imported",
            Self::FilesShown { .. } => "files-shown",
            Self::Stalled { .. } => "stalled",
            Self::Resumed { .. } => "resumed",
            Self::Retrying { .. } => "retrying",
            Self::GivenUp { .. } => "given-up",
            Self::Damaged { .. } => "damaged",
            Self::WritesStopped { .. } => "writes-stopped",
        }
    }

    /// How much the event matters.
    pub fn level(&self) -> EventLevel {
        match self {
            Self::Stalled { .. } | Self::Retrying { .. } | Self::WorkerFailed { .. } | Self::PastFillsDisk { .. } => {
                EventLevel::Warn
            }
            Self::Damaged { .. } | Self::GivenUp { .. } | Self::WritesStopped { .. } => EventLevel::Error,
            _ => EventLevel::Info,
        }
    }
}

impl fmt::Display for CompactionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level0 => "level 0 has too many files",
            Self::LevelSize => "a level is too large",
            Self::Sparse => "little of a file is seen",
            Self::ErasedRows => "a file has many erased rows",
            Self::Asked => "the caller asked for it",
            Self::Expired => "many rows of a file have expired",
        })
    }
}

impl fmt::Display for StallReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WriteBuffer => "the write buffer is full",
            Self::Level0 => "level 0 has too many files",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { with, files, logs, commits, recovered_files, version, time } => {
                write!(f, "opened {with}, in {}: {files} files, version {}", Seconds(*time), version.0)?;
                match commits {
                    0 => Ok(()),
                    _ => write!(f, "; {commits} commits of {logs} logs recovered to {recovered_files} files"),
                }
            }
            Self::FlushStarted { bytes } => write!(f, "flush: {} of rows", Bytes(*bytes)),
            Self::FlushFinished { files, bytes, time } => {
                write!(f, "flush done in {}: {files} files of {}", Seconds(*time), Bytes(*bytes))
            }
            Self::CompactionStarted { table, files, bytes, to, reason } => {
                write!(f, "compaction of {table:?}: {files} files of {} to level {to}: {reason}", Bytes(*bytes))
            }
            Self::CompactionFinished { table, files, bytes, time } => {
                let (bytes, time) = (Bytes(*bytes), Seconds(*time));
                write!(f, "compaction of {table:?} done in {time}: {files} files of {bytes}")
            }
            Self::WorkerFailed { table, error } => write!(f, "compaction of {table:?}: {error}"),
            Self::FileMoved { table, from, to } => write!(f, "a file of {table:?} moved from level {from} to {to}"),
            Self::FilesExpired { table, files, bytes } => {
                write!(f, "all rows of {files} files of {table:?} have expired: {} removed", Bytes(*bytes))
            }
            Self::PastFillsDisk { history_bytes, free_bytes } => write!(
                f,
                "older rows take {}, and the disk has {} left: keep less of the past, or add room",
                Bytes(*history_bytes),
                Bytes(*free_bytes)
            ),
            Self::Imported { table, files, bytes } => {
                write!(f, "imported to {table:?}: {files} files of {}", Bytes(*bytes))
            }
            Self::FilesShown { version, time } => {
                write!(f, "new files shown in {}, version {}", Seconds(*time), version.0)
            }
            Self::Stalled { reason } => write!(f, "commits wait: {reason}"),
            Self::Resumed { reason, time } => write!(f, "commits go on after {}: {reason} no longer", Seconds(*time)),
            Self::Retrying { work, error, failures, after } => {
                write!(f, "{work} failed {failures} times, again in {}: {error}", Seconds(*after))
            }
            Self::GivenUp { work, error } => write!(f, "{work} failed and is not tried again: {error}"),
            Self::Damaged { table, error } => write!(f, "damage in table {table:?}: {error}"),
            Self::WritesStopped { error } => write!(f, "writes are refused from now on: {error}"),
        }
    }
}

/// A duration for people.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.0.as_secs_f64())
    }
}

/// A size for people.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes < 1 << 10 => write!(f, "{bytes} B"),
            bytes if bytes < 1 << 20 => write!(f, "{:.1} KiB", bytes as f64 / 1024.0),
            bytes => write!(f, "{:.1} MiB", bytes as f64 / (1024.0 * 1024.0)),
        }
    }
}

/// The program's function that receives each event.
type Hook = dyn Fn(&Event) + Send + Sync;

/// The event hook of a database, if it has one.
#[derive(Clone, Default)]
pub struct EventHook(Option<Arc<Hook>>);

impl EventHook {
    /// Calls `hook` with each event.
    pub fn new(hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// If the database has a hook or `tracing` listens, calls `event` and reports the result.
    pub fn report(&self, event: impl FnOnce() -> Event) {
        if self.0.is_none() && !tracing_listens() {
            return;
        }
        let event = event();
        trace(&event);
        if let Some(hook) = &self.0 {
            // Rust has already printed the panic's message. The engine goes on without this event.
            catch_unwind(AssertUnwindSafe(|| hook(&event))).unwrap_or_default();
        }
    }
}

impl fmt::Debug for EventHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "EventHook(given)" } else { "EventHook(none)" })
    }
}

#[cfg(feature = "tracing")]
fn tracing_listens() -> bool {
    tracing::level_filters::LevelFilter::current() > tracing::level_filters::LevelFilter::OFF
}

#[cfg(not(feature = "tracing"))]
fn tracing_listens() -> bool {
    false
}

#[cfg(feature = "tracing")]
fn trace(event: &Event) {
    let name = event.name();
    match event.level() {
        EventLevel::Info => tracing::info!(target: "larch", name, "{event}"),
        EventLevel::Warn => tracing::warn!(target: "larch", name, "{event}"),
        EventLevel::Error => tracing::error!(target: "larch", name, "{event}"),
    }
}

#[cfg(not(feature = "tracing"))]
fn trace(_: &Event) {}

#[cfg(test)]
mod tests;
