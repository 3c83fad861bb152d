//! Everything that can go wrong in a database, with messages that say what to do. Ordinary results, such as a
//! missing key, are not errors.

use super::conflict::Conflict;
use super::record::LogError;
use sst::Version;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The result of a function of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something broke, or the caller asked for something impossible. A missing key is not an error.
///
/// Errors are cheap to clone. `Display` says where something went wrong and what to do. New releases may add new
/// kinds of errors.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system failed to read or write a file, or the bytes of an SST are not the bytes that were written.
    #[error(transparent)]
    Page(pages::Error),
    /// The value of a key cannot be computed from its [merges](crate::Table::merge). Other keys can be read.
    #[error("{0}")]
    Merge(String),
    /// The write-ahead log or the manifest could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The directory has no database.
    #[error("{} has no database; create one by opening it for writing, or correct the path", .0.display())]
    NotADatabase(PathBuf),
    /// The database is open for writing already, in this process or in another one.
    #[error("the database {} is open for writing already, here or in another process; close it there, or open it read-only here", .0.display())]
    Locked(PathBuf),
    /// The operating system refused to start a thread for background work. Nothing was opened or created.
    #[error(
        "cannot start a thread for background work ({0}); raise the limit on threads (ulimit -u, or pids.max of the control group) or end other threads, or open the database read-only"
    )]
    NoThreads(String),
    /// A write needs room, but the background work that makes room failed. Nothing was written.
    #[error(
        "{what}, and the background work that makes room failed ({cause}); remove the cause and write again: the work is tried again by itself"
    )]
    Full {
        /// What is full.
        what: &'static str,
        /// Why the last attempt failed.
        cause: Box<Error>,
    },
    /// An earlier write or sync failed, so some rows may be in memory but not on the disk. Further writes are
    /// refused. Reads go on.
    #[error("writes are refused since one failed ({0}); remove the cause, then close the database and open it again")]
    WritesStopped(String),
    /// A sync failed, so it is not known whether the writes that waited for it are durable. Further writes are
    /// refused; reads still work.
    #[error(
        "it is not known whether {what}, because a sync failed ({cause}); writes are refused until the database is closed and \
         opened again, which shows what is durable"
    )]
    OutcomeUnknown {
        /// What is not known.
        what: &'static str,
        /// Why the sync failed.
        cause: LogError,
    },
    /// A process wrote to a database that its parent had opened before the process was forked.
    #[error(
        "the database was opened before this process was forked, and belongs to the process that opened it; close it there, then \
         open it here"
    )]
    Forked,
    /// A write to a database opened read-only.
    #[error("the database was opened read-only; open it for writing")]
    ReadOnly,
    /// A key is too long.
    #[error("a key of {bytes} bytes is longer than {max}; use a shorter key")]
    KeyTooLong {
        /// Length of the key.
        bytes: usize,
        /// Length of the longest key allowed.
        max: usize,
    },
    /// A value is too long for the write buffer.
    #[error(
        "a value of {bytes} bytes is longer than {max}, a quarter of the write buffer; store it in parts or enlarge the write buffer"
    )]
    ValueTooLong {
        /// Length of the value.
        bytes: usize,
        /// Length of the longest value allowed.
        max: u64,
    },
    /// The name is not valid for a table.
    #[error("a table cannot be named {0:?}; a name has 1 to 255 bytes and no control characters")]
    BadTableName(String),
    /// No table has this name.
    #[error("there is no table {0:?}; create it by opening the database for writing")]
    NoSuchTable(String),
    /// The table was dropped after its handle was made. A table that was later created under the same name is a
    /// different table.
    #[error("the table {0:?} was dropped; ask the database for a table of this name again, if there is a new one")]
    TableDropped(String),
    /// A read in a read-only database needs files that a writer has replaced. The new files only show a newer
    /// version than the read uses.
    #[error(
        "the read of {} at version {} cannot go on: a writer has replaced its files, and the newest version is {}; begin \
         the read again to see that one, or open the database for writing, where versions in use are kept",
        directory.display(), read.0, newest.0
    )]
    Outdated {
        /// The database.
        directory: PathBuf,
        /// The version at which the read began.
        read: Version,
        /// The newest version in files.
        newest: Version,
    },
    /// A database that is open read-only beside its writer has fewer commits than before: commits were lost, or an
    /// older copy or another database has taken its place. Reads still show the newest commits that this process has
    /// seen.
    #[error(
        "the database {} has commits up to version {} now, and version {} was read before: it has lost commits, or an older \
         copy or another database has taken its place; open it again to see what it has",
        directory.display(), newest.0, seen.0
    )]
    FellBehind {
        /// The directory of the database.
        directory: PathBuf,
        /// The newest version that reads have seen.
        seen: Version,
        /// The newest version that the database has now.
        newest: Version,
    },
    /// A transaction asked for statistics of a table to which it has written. Statistics do not count the
    /// transaction's own rows.
    #[error(
        "the transaction has written to table {0:?}, and statistics do not count its own rows; ask before the first write, or after \
         the commit"
    )]
    OwnWrites(String),
    /// A table has this name already.
    #[error("there is a table {0:?} already; choose another name or drop it first")]
    TableExists(String),
    /// A table has a [filter](crate::Table::filter) already.
    #[error("table {0:?} has a filter already; drop its handle first")]
    Filtered(String),
    /// A table has a [rule of its own](crate::Table::retain), by which it does not keep this version.
    #[error("version {} is not kept of table {table:?}, which keeps its past by a rule of its own", .version.0)]
    NotKeptOf {
        /// The name of the table.
        table: String,
        /// The version.
        version: Version,
    },
    /// A version cannot be kept under this name.
    #[error("a version cannot be kept as {0:?}; a name has 1 to 255 bytes and no control characters")]
    BadKeptName(String),
    /// A version is kept under this name already.
    #[error("version {} is kept as {name:?} already; choose another name, or forget that one first", .version.0)]
    KeptAlready {
        /// The name.
        name: String,
        /// The version that has it.
        version: Version,
    },
    /// As many versions have names as a database can keep.
    #[error("{0} versions are kept already; forget one of them first")]
    TooManyKept(usize),
    /// No version is kept under this name.
    #[error("{}", no_such_kept(.name, .kept))]
    NoSuchKept {
        /// The name.
        name: String,
        /// The names that are there.
        kept: Vec<String>,
    },
    /// A subscription cannot have this name.
    #[error("a subscription cannot be named {0:?}; a name has 1 to 255 bytes and no control characters")]
    BadSubscriptionName(String),
    /// As many subscriptions are there as a database can have.
    #[error("there are {0} subscriptions already; end one of them first")]
    TooManySubscriptions(usize),
    /// No subscription has this name.
    #[error("{}", no_such_subscription(.name, .subscriptions))]
    NoSuchSubscription {
        /// The name.
        name: String,
        /// The names that are there.
        subscriptions: Vec<String>,
    },
    /// The database is not kept as of this version.
    #[error(
        "version {} is not kept, and the newest one is {}; a version can be read later only if it was given a name while a reader saw it",
        .version.0, .newest.0
    )]
    NotKept {
        /// The version that was asked for.
        version: Version,
        /// The newest version.
        newest: Version,
    },
    /// The commits after this version are no longer known one by one.
    #[error("{}", changes_gone(.after, .oldest))]
    ChangesGone {
        /// The version at which the feed is.
        after: Version,
        /// The oldest version at which a feed could begin; `None` if the database keeps no past.
        oldest: Option<Version>,
    },
    /// It is not known which version was the newest at this time, or that version is not kept.
    #[error("{}", no_time(.asked, .oldest))]
    NoTime {
        /// The time that was asked for, in microseconds after the beginning of 1970.
        asked: u64,
        /// The oldest time whose version can be read, in the same unit; `None` if the database keeps no past.
        oldest: Option<u64>,
    },
    /// The given options of a database or a table cannot be used.
    #[error("the options cannot be used: {0}")]
    BadOptions(String),
    /// A batch or a read was given a table of another database.
    #[error("the table {0:?} belongs to another database; use a handle from this one")]
    ForeignTable(String),
    /// A call was given a snapshot of another database.
    #[error("the snapshot is of another database; take one of this database")]
    OtherSnapshot,
    /// The table has no column group with this name.
    #[error("{}", no_such_group(.table, .group, .groups))]
    NoSuchGroup {
        /// Name of the table.
        table: String,
        /// The group that was asked for.
        group: String,
        /// Groups of the table.
        groups: Vec<String>,
    },
    /// A selection names a column group twice.
    #[error("group {group} of table {table} is selected twice; name it once")]
    GroupTwice {
        /// Name of the table.
        table: String,
        /// The group.
        group: String,
    },
    /// A whole value was read or written, but this table splits its values into several column groups.
    #[error(
        "table {table} is split in the groups {}; write its rows with insert_parts and choose what to read with select",
        .groups.join(", ")
    )]
    Grouped {
        /// Name of the table.
        table: String,
        /// Its groups.
        groups: Vec<String>,
    },
    /// A value in the log or in memory cannot be split into one part for each column group of the table.
    #[error(
        "the value of key {} in table {table} does not split in {parts} parts; restore the database from a backup",
        .key[..key.len().min(SHOWN_KEY_BYTES)].escape_ascii()
    )]
    BadParts {
        /// Name of the table.
        table: String,
        /// The key.
        key: Box<[u8]>,
        /// How many parts there should be.
        parts: usize,
    },
    /// The directory for a repaired database is not empty.
    #[error("{} is not empty; name a directory that is not there yet for the repaired database", .0.display())]
    RepairTarget(PathBuf),
    /// The directory for a copy of a database, or for built files, is not empty.
    #[error("{} is not empty; name a directory that is not there yet, or an empty one", .0.display())]
    CopyTarget(PathBuf),
    /// The directory of a database, a copy, backups or built files lies within a database, or within the backups
    /// from which a database is restored.
    #[error(
        "{} lies in {}, whose files all belong to a database or to backups of one; name a directory outside of it",
        directory.display(), database.display()
    )]
    WithinDatabase {
        /// The directory.
        directory: Box<Path>,
        /// The database, or the backups, that it lies in.
        database: Box<Path>,
    },
    /// The directory for a copy of a database, or for built files, is locked.
    #[error("{} is locked, here or by another process, which may write files there; wait for its end, or name another directory", .0.display())]
    CopyLocked(PathBuf),
    /// The directory has an unfinished copy of a database, or unfinished built files.
    #[error(
        "{} has a copy of a database, or built files, that was not finished; make the copy again, or build the files again, in the same \
         directory, which first removes what is there, or remove the directory. What is in a store has to be dropped first: larch \
         drop-database",
        .0.display()
    )]
    UnfinishedCopy(PathBuf),
    /// The directory for backups has other files, and nothing that belongs to backups.
    #[error("{} has {found:?}, which is of no backup; name a directory that is not there yet, or one with backups", directory.display())]
    NotBackups {
        /// The directory.
        directory: PathBuf,
        /// A file in it.
        found: String,
    },
    /// A backup is being made or removed in the same directory, here or in another process.
    #[error("the backups in {} are being changed, here or in another process; wait for its end", .0.display())]
    BackupsLocked(PathBuf),
    /// The directory has backups of another database.
    #[error("{} has backups of another database; name a directory for the backups of this one", .0.display())]
    OtherDatabase(PathBuf),
    /// The directory does not have this backup.
    #[error("{}", no_such_backup(directory, *number, there))]
    NoSuchBackup {
        /// The directory.
        directory: PathBuf,
        /// The number of the backup that was asked for, or `None` for the newest backup.
        number: Option<u64>,
        /// The numbers of the backups that the directory has.
        there: Vec<u64>,
    },
    /// A file of a backup is missing or damaged.
    #[error(
        "{} of a backup cannot be used: {why}; restore another backup, or bring the file back from a copy of it; for a whole backup \
         from here on, remove the file, then make a new backup",
        file.display()
    )]
    BadBackup {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A newer release has made a backup.
    #[error("{} of a backup was {what}; use that release, or restore another backup", file.display())]
    NewerBackup {
        /// The list of the backup.
        file: PathBuf,
        /// What this release does not know.
        what: String,
    },
    /// The directory has no list of built files.
    #[error(
        "{} has no list of built files; name a directory in which files were built to the end, or build them there again",
        .0.display()
    )]
    NotBuiltFiles(PathBuf),
    /// The list of built files is damaged, or one of the listed files is missing or damaged.
    #[error("{} of built files cannot be used: {why}; bring the file back from where it was built, or build the files again", file.display())]
    BadBuiltFiles {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A newer release has built the files.
    #[error("{} of built files was {what}; use that release, or build the files with the option compat of this one", file.display())]
    NewerBuiltFiles {
        /// The list of the files.
        file: PathBuf,
        /// What this release does not know.
        what: String,
    },
    /// The built files split values into other column groups than the table does.
    #[error(
        "values of the files in {} {}, those of table {table} {}; build the files with the groups of the table, or take them into another \
         table",
        directory.display(), split(built), split(groups)
    )]
    OtherGroups {
        /// The directory of the files.
        directory: Box<Path>,
        /// The groups in the files.
        built: Box<[String]>,
        /// Name of the table.
        table: Box<str>,
        /// Its groups.
        groups: Box<[String]>,
    },
    /// A worker could not do a compaction, or wrote files that are not the result of it. The database does the
    /// compaction itself.
    #[error("the compaction of {} failed: {why}; the database does it itself", result.display())]
    WorkerFailed {
        /// The file that cannot be used: the worker's result, a file that the worker wrote, or the writer's job.
        result: PathBuf,
        /// Why the file cannot be used.
        why: String,
    },
    /// A worker's compaction makes more files than the writer has reserved numbers for.
    #[error("the compaction makes more files than the writer of the database expects; the writer does it itself")]
    NumbersUsedUp,
    /// A callback ended long work early, see [`GoOn`](crate::GoOn). The work can be started again.
    #[error("{0} was cancelled; nothing was lost, begin it again to finish it")]
    Cancelled(&'static str),
    /// Every attempt of a transaction ended with a conflict.
    #[error("the transaction conflicted {attempts} times, the last time because {conflict}")]
    TooManyConflicts {
        /// The number of attempts.
        attempts: u32,
        /// The last conflict.
        conflict: Conflict,
    },
    /// The body of [`transact_async`](crate::Database::transact_async) has returned while something still holds its
    /// [`Attempt`](crate::transaction::Attempt). Nothing was committed.
    #[error(
        "the body of transact_async returned and did not let its transaction go; drop the attempt before the body returns, also \
         in tasks and values that outlive the body"
    )]
    AttemptKept,
    /// A batch with expectations was committed by a call that does not check them.
    #[error("the batch expects values of keys, which its commit does not look at; commit it with commit_if")]
    HasConditions,
    /// The transaction has no such savepoint.
    #[error(
        "the transaction does not have this savepoint: it belongs to another one, or the transaction went back to an earlier one; \
         make a savepoint where it is to go back to"
    )]
    NoSuchSavepoint,
    /// The writes would give two rows of the table the same key in a unique index. Nothing was written.
    #[error(
        "key {} of the unique index {index} of table {table} belongs to row {}; write a row with another one, or change that row first",
        shown(.key), shown(.row)
    )]
    Duplicate {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
        /// The key in the index.
        key: Box<[u8]>,
        /// The key of the other row.
        row: Box<[u8]>,
    },
    /// A panic interrupted [`Transaction::remove_range`](crate::Transaction::remove_range), so the transaction would
    /// erase only a part of the range.
    #[error("a panic has ended the erase of a range of table {table} before its end; begin another transaction")]
    HalfErased {
        /// Name of the table.
        table: Box<str>,
    },
    /// A row does not fit the declaration of an index, or that of the times of the table's rows.
    #[error(
        "row {} of table {table} does not fit {}: {why}; write another row, or {}",
        shown(.key),
        misfit(.index.as_deref()),
        if .index.is_some() { "drop the index" } else { "alter the option expiry of the table" }
    )]
    BadRow {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index; `None` if the row does not fit the [expiry](crate::TableOptions::expiry) of the table.
        index: Option<Box<str>>,
        /// The key of the row.
        key: Box<[u8]>,
        /// What is wrong, as the extractor says.
        why: String,
    },
    /// The key of a row and its index key are too long together: an index entry consists of both.
    #[error(
        "row {} of table {table} would have an entry of {bytes} bytes in its index {index}, longer than {max}; use shorter keys",
        shown(.key)
    )]
    IndexKeyTooLong {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
        /// The key of the row.
        key: Box<[u8]>,
        /// Length of the entry.
        bytes: usize,
        /// Length of the longest entry allowed.
        max: usize,
    },
    /// No extractor can make the keys of an index. Writes to its table are refused; reads still work.
    #[error(
        "index {index} of table {table} is declared as {}, and no extractor for that is registered ({why}); open the database with \
         Builder::extractors, or drop the index",
        shown(.declaration)
    )]
    NoExtractor {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
        /// Its declaration.
        declaration: Box<[u8]>,
        /// Why no extractor was made.
        why: String,
    },
    /// Nothing can compute the times of the rows of a table. Writes of rows without a time of their own are refused;
    /// everything else works.
    #[error(
        "the rows of table {table} expire by {}, and nothing computes their times ({why}); open the database with \
         Builder::expiry_times, or alter the option expiry of the table",
        shown(.declaration)
    )]
    NoExpiryTime {
        /// Name of the table.
        table: Box<str>,
        /// The declaration.
        declaration: Box<[u8]>,
        /// Why no extractor was made.
        why: String,
    },
    /// A closure makes the keys of an index, and the program has not passed it since it opened the database. Writes
    /// to the table are refused; reads still work.
    #[error(
        "the keys of index {index} of table {table} are made by a closure, which the program has not given since the database was \
         opened; call index_by({index:?}, ..) on the table with this closure before the first write, or drop the index"
    )]
    NoClosure {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
    },
    /// A change of a table is refused because its indexes would no longer fit.
    #[error("{work} does not keep the indexes of table {table}, {}; drop them first, and create them again afterwards", listed(.indexes))]
    HasIndexes {
        /// Name of the table.
        table: String,
        /// The change that was asked for.
        work: &'static str,
        /// Names of the indexes.
        indexes: Vec<String>,
    },
    /// The table does not have this index.
    #[error("table {table} has no index {index:?}; create it, or correct the name")]
    NoSuchIndex {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
    },
    /// The table has an index of this name already.
    #[error("table {table} has an index {index:?} already; choose another name or drop it first")]
    IndexExists {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
    },
    /// The name is not valid for an index.
    #[error("an index cannot be named {0:?}; a name has 1 to 255 bytes and no control characters")]
    BadIndexName(String),
    /// An index was read before it had the entries of all rows, or in a snapshot or transaction that began before
    /// that.
    #[error(
        "index {index} of table {table} was not built yet at that moment; read it when that is done, in a snapshot or transaction that \
         begins afterwards"
    )]
    IndexNotReady {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
    },
    /// An index entry is malformed, or does not belong to any row.
    #[error(
        "index {index} of table {table} does not agree with the table at entry {} ({why}); drop the index and create it again, and \
         check the database",
        shown(.entry)
    )]
    BadEntry {
        /// Name of the table.
        table: Box<str>,
        /// Name of the index.
        index: Box<str>,
        /// The key of the entry.
        entry: Box<[u8]>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A row has a different number of parts than its table has column groups.
    #[error("{}", part_count(.table, .groups, *.parts))]
    PartCount {
        /// Name of the table.
        table: String,
        /// Its groups.
        groups: Vec<String>,
        /// Parts that were given.
        parts: usize,
    },
}

/// How many bytes of a key a message shows.
const SHOWN_KEY_BYTES: usize = 64;

/// The beginning of a key, for a message.
fn shown(key: &[u8]) -> impl std::fmt::Display {
    key[..key.len().min(SHOWN_KEY_BYTES)].escape_ascii()
}

/// What a row does not fit: an index, or how the rows of its table expire.
fn misfit(index: Option<&str>) -> String {
    index.map_or("the declaration by which its rows expire".to_owned(), |index| format!("its index {index}"))
}

fn no_such_group(table: &str, group: &str, groups: &[String]) -> String {
    match groups {
        [] => format!("table {table} is not split in groups and so has no group {group}; read its rows whole"),
        _ => format!("table {table} has no group {group}; choose from {}", listed(groups)),
    }
}

fn no_such_subscription(name: &str, subscriptions: &[String]) -> String {
    match subscriptions {
        [] => format!("no subscription has the name {name:?}; the database has none"),
        _ => format!("no subscription has the name {name:?}; choose from {}", listed(subscriptions)),
    }
}

fn no_such_kept(name: &str, kept: &[String]) -> String {
    match kept {
        [] => format!("no version is kept as {name:?}, nor under any other name; keep one before it changes"),
        _ => format!("no version is kept as {name:?}; choose from {}", listed(kept)),
    }
}

fn changes_gone(after: &Version, oldest: &Option<Version>) -> String {
    let after = after.0;
    match oldest {
        None => format!(
            "the changes after version {after} were not kept, because the database keeps no past; have it keep some"
        ),
        Some(oldest) => format!(
            "the changes after version {after} were not kept: the past begins with version {}; begin again with what reads see \
             now, and have more kept from now on",
            oldest.0
        ),
    }
}

fn no_time(asked: &u64, oldest: &Option<u64>) -> String {
    let seconds = |micros: &u64| micros / 1_000_000;
    match oldest {
        None => "the database keeps no past; have it keep some, or give names to versions".to_owned(),
        Some(oldest) => format!(
            "second {} since the beginning of 1970 is before the past that is kept, which begins in second {}; ask for a later \
             time, or have more kept from now on",
            seconds(asked),
            seconds(oldest)
        ),
    }
}

fn part_count(table: &str, groups: &[String], parts: usize) -> String {
    let given = if parts == 1 { "1 was given".to_owned() } else { format!("{parts} were given") };
    match groups {
        [] => format!("a row of table {table}, which is not split in groups, has 1 part; {given}"),
        [only] => format!("a row of table {table} has 1 part, {only}; {given}"),
        _ => format!("a row of table {table} has {} parts, {}; {given}", groups.len(), listed(groups)),
    }
}

/// How values are split into groups.
fn split(groups: &[String]) -> String {
    match groups {
        [] => "are not split".to_owned(),
        _ => format!("are split into {}", listed(groups)),
    }
}

fn no_such_backup(directory: &Path, number: Option<u64>, there: &[u64]) -> String {
    let (directory, numbers) = (directory.display(), there.iter().map(u64::to_string).collect::<Vec<_>>());
    match (number, there) {
        (_, []) | (None, _) => format!("{directory} has no backup; correct the path"),
        (Some(number), _) => format!("{directory} has no backup {number}; choose from {}", listed(&numbers)),
    }
}

/// Joins names for a message, such as `hot`, `hot and cold` or `hot, warm and cold`.
fn listed(names: &[String]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Serialized as its message.
#[cfg(feature = "serde")]
impl serde::Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Error {
    pub(crate) fn io(action: &'static str, file: &Path, source: std::io::Error) -> Self {
        Self::Page(pages::Error::io(action, file, source))
    }

    /// The path of the missing file, if this is what the error is about.
    pub(crate) fn missing_file(&self) -> Option<&Path> {
        match self {
            Self::Page(pages::Error::Io { file, source, .. }) if source.kind() == ErrorKind::NotFound => Some(file),
            _ => None,
        }
    }

    /// Whether the disk is full, or this user's disk quota is used up.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Page(pages::Error::Io { source, .. }) | Self::Log(LogError::Io { source, .. }) => {
                is_disk_full(source)
            }
            Self::Full { cause, .. } => cause.is_disk_full(),
            _ => false,
        }
    }

    /// Whether the same call may succeed later, without a change to the program and without reopening the database:
    /// the disk had no room, or background work that makes room failed; a store was unreachable; the system refused
    /// a thread; other transactions conflicted; another process was using something; or a writer replaced files that
    /// a read needed.
    pub fn is_retryable(&self) -> bool {
        self.is_disk_full()
            || matches!(self.kind(), os::store::UNAVAILABLE | ErrorKind::TimedOut)
            || matches!(
                self,
                Self::Full { .. }
                    | Self::TooManyConflicts { .. }
                    | Self::Locked(_)
                    | Self::BackupsLocked(_)
                    | Self::Outdated { .. }
                    | Self::NoThreads(_)
            )
    }

    /// The `std::io` [`ErrorKind`] that fits this error best, or [`ErrorKind::Other`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Page(pages::Error::Io { source, .. }) | Self::Log(LogError::Io { source, .. }) => source.kind(),
            Self::Full { cause, .. } => cause.kind(),
            Self::NotADatabase(_)
            | Self::NoSuchTable(_)
            | Self::NoSuchIndex { .. }
            | Self::NoSuchBackup { .. }
            | Self::NoSuchKept { .. }
            | Self::NoSuchSubscription { .. }
            | Self::NotKept { .. }
            | Self::NotKeptOf { .. }
            | Self::ChangesGone { .. }
            | Self::NoTime { .. } => ErrorKind::NotFound,
            Self::TableExists(_)
            | Self::IndexExists { .. }
            | Self::Duplicate { .. }
            | Self::Filtered(_)
            | Self::KeptAlready { .. } => ErrorKind::AlreadyExists,
            Self::Locked(_) | Self::BackupsLocked(_) => ErrorKind::ResourceBusy,
            Self::ReadOnly => ErrorKind::ReadOnlyFilesystem,
            Self::Cancelled(_) => ErrorKind::Interrupted,
            Self::BadOptions(_)
            | Self::BadTableName(_)
            | Self::BadKeptName(_)
            | Self::BadSubscriptionName(_)
            | Self::KeyTooLong { .. }
            | Self::ValueTooLong { .. } => ErrorKind::InvalidInput,
            error if error.is_corruption() => ErrorKind::InvalidData,
            _ => ErrorKind::Other,
        }
    }

    /// Whether stored bytes are not the bytes that were written.
    pub fn is_corruption(&self) -> bool {
        matches!(
            self,
            Self::Page(pages::Error::Corrupt { .. })
                | Self::Log(LogError::Corrupt { .. })
                | Self::BadParts { .. }
                | Self::BadEntry { .. }
                | Self::BadBackup { .. }
                | Self::BadBuiltFiles { .. }
        )
    }
}

impl From<pages::Error> for Error {
    fn from(error: pages::Error) -> Self {
        match error {
            pages::Error::Content(why) => Self::Merge(why),
            error => Self::Page(error),
        }
    }
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}

/// Whether the disk is full, or this user's disk quota is used up.
pub(crate) fn is_disk_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Whether the error says that nothing can be written to a place: the disk is full, the user may not write there, or
/// the file system is read-only.
pub(crate) fn is_write_refused(error: &std::io::Error) -> bool {
    is_disk_full(error) || matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: Error, expected: &str) {
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn errors_about_groups_name_the_groups_there_are() {
        let table = || "users".to_owned();
        let groups = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let no_such = |names| Error::NoSuchGroup { table: table(), group: "warm".to_owned(), groups: groups(names) };
        check(no_such(&["hot", "cold"]), "table users has no group warm; choose from hot and cold");
        check(no_such(&["hot", "cold", "old"]), "table users has no group warm; choose from hot, cold and old");
        check(no_such(&["hot"]), "table users has no group warm; choose from hot");
        check(no_such(&[]), "table users is not split in groups and so has no group warm; read its rows whole");
        check(
            Error::Grouped { table: table(), groups: groups(&["hot", "cold"]) },
            "table users is split in the groups hot, cold; write its rows with insert_parts and choose what to read \
             with select",
        );
        let twice = Error::GroupTwice { table: table(), group: "hot".to_owned() };
        check(twice, "group hot of table users is selected twice; name it once");
        let parts = |names, parts| Error::PartCount { table: table(), groups: groups(names), parts };
        check(parts(&["hot", "cold"], 3), "a row of table users has 2 parts, hot and cold; 3 were given");
        check(parts(&["hot", "cold"], 1), "a row of table users has 2 parts, hot and cold; 1 was given");
        check(parts(&["hot"], 0), "a row of table users has 1 part, hot; 0 were given");
        check(parts(&[], 2), "a row of table users, which is not split in groups, has 1 part; 2 were given");
        let other = Error::OtherGroups {
            directory: Path::new("shard").into(),
            built: Box::default(),
            table: "users".into(),
            groups: groups(&["hot", "cold"]).into(),
        };
        check(
            other,
            "values of the files in shard are not split, those of table users are split into hot and cold; build the files with the \
             groups of the table, or take them into another table",
        );
    }

    #[test]
    fn an_error_says_what_kind_it_is_and_whether_to_try_again() {
        let io = |kind: ErrorKind| Error::io("write", Path::new("db/1.log"), kind.into());
        let full = || Error::Full { what: "the write buffer is full", cause: Box::new(io(ErrorKind::StorageFull)) };
        for (error, kind, is_retryable) in [
            (io(ErrorKind::StorageFull), ErrorKind::StorageFull, true),
            (full(), ErrorKind::StorageFull, true),
            (io(os::store::UNAVAILABLE), os::store::UNAVAILABLE, true),
            (io(ErrorKind::PermissionDenied), ErrorKind::PermissionDenied, false),
            (Error::Locked("db".into()), ErrorKind::ResourceBusy, true),
            (Error::NoSuchTable("t".to_owned()), ErrorKind::NotFound, false),
            (Error::TableExists("t".to_owned()), ErrorKind::AlreadyExists, false),
            (Error::Cancelled("the check"), ErrorKind::Interrupted, false),
            (Error::OwnWrites("t".to_owned()), ErrorKind::Other, false),
        ] {
            assert_eq!((error.kind(), error.is_retryable()), (kind, is_retryable), "{error}");
            let text = error.to_string();
            let error = std::io::Error::from(error);
            assert_eq!((error.kind(), error.to_string()), (kind, text));
        }
    }
}
