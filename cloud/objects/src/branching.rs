//! Makes a branch of a database: a second database in the same store, which shares the SSTs of the first. This
//! module does not know which SSTs a database has; its caller does.
//!
//! ```text
//! 1  the journal of the branch is looked at: it has no files, and ends before sheet n
//! 2  a sheet in the journal of each database that has files of the branch: a branch is made at this prefix, with sheet n
//! 3  what the journal of the origin said before that sheet is read: the manifest and the logs
//! 4  sheet n of the branch: these files, and PARENTS, which says where its SSTs lie
//! ```
//!
//! After step 2, no writer removes an SST that is in the manifest of step 3: it reads the sheet of step 2 before it
//! can put a sheet that gives up a file. Step 4 succeeds only if nobody else has put sheet n. So a process that
//! must know whether the branch will exist tries to put sheet n itself. Either it succeeds, and the branch will
//! never exist, or it finds the sheet of the branch.
//!
//! | what ends in between | what is left |
//! |---|---|
//! | before step 2 | nothing |
//! | before step 4 | databases that keep all SSTs for a branch that is not there. Their writers make sure after an hour that it is not made |
//! | after step 4 | the branch |

use crate::branches::{Needs, journal_at, needs, parents_in, settled_needs};
use crate::disk::{EXCHANGE, Nearby, StoreDisk};
use crate::journal::{Branch, Journal, Outside, PARENTS};
use crate::parents::Parent;
use os::store::StoredObject;
use os::sync::Arc;
use os::{DirectoryEntry, Store};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// The most bytes that the origin's manifest and logs may have, because they are copied to one sheet.
const MOST_BYTES: u64 = 1 << 30;

/// How many times to try to make a branch. A try fails if sheets are removed while it reads them.
const ATTEMPTS: u32 = 3;

/// Returns the names and lengths of the SSTs of the database on a disk. The disk is read-only, and shows the
/// database's files as they were at one moment.
pub type SstsOf<'f> = &'f dyn Fn(&Arc<StoreDisk>) -> io::Result<Vec<DirectoryEntry>>;

/// What a new branch consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchReport {
    /// SSTs that the branch shares with the origin.
    pub files: u64,
    /// Bytes of these SSTs.
    pub bytes: u64,
    /// Bytes of the manifest and the logs, which were copied.
    pub copied_bytes: u64,
}

/// A branch of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchInfo {
    /// The prefix of the branch in the store.
    pub prefix: String,
    /// When the making of the branch began, as time since the start of 1970.
    pub since: Duration,
    /// How many SSTs of the database the branch needs, and their bytes. `None` if the branch does not exist,
    /// because it is still being made or was never finished.
    pub files: Option<(u64, u64)>,
}

/// What was removed with a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropReport {
    /// SSTs that only this database had.
    pub files: u64,
    /// Bytes of these SSTs.
    pub bytes: u64,
}

fn error(kind: ErrorKind, why: String) -> io::Error {
    io::Error::new(kind, why)
}

fn no_database(prefix: &str) -> io::Error {
    error(ErrorKind::NotFound, format!("there is no database at {prefix}"))
}

/// Makes a branch, at the prefix `to`, of the database at the prefix `from`. It has all commits that were durable
/// in the store when the call began. `store` must understand names that begin with `/`. `directory` is the path of
/// the disk that `ssts_of` is called with.
///
/// # Errors
///
/// `NotFound` if no database is at `from`; `AlreadyExists` if one is at `to`; `InvalidInput` if `to` equals `from`
/// or has line breaks; `FileTooLarge` if the manifest and the logs are too long to copy; `Interrupted` if sheets
/// were removed again and again while this call read them; an error of the store or of `ssts_of`.
pub fn branch(
    store: &Arc<dyn Store>,
    outside: &Outside,
    (from, to): (&str, &str),
    directory: &Path,
    ssts_of: SstsOf<'_>,
) -> io::Result<BranchReport> {
    let mut attempt = 1;
    loop {
        let branching = Branching { store, outside, from, to, directory };
        match branching.make(ssts_of) {
            // A sheet was removed while it was read, or files were moved to another parent.
            Err(error) if error.kind() == ErrorKind::Interrupted && attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}

struct Branching<'b> {
    store: &'b Arc<dyn Store>,
    outside: &'b Outside,
    from: &'b str,
    to: &'b str,
    directory: &'b Path,
}

impl Branching<'_> {
    fn make(&self, ssts_of: SstsOf<'_>) -> io::Result<BranchReport> {
        let Branching { store, outside, from, to, directory } = *self;
        if from == to || to.contains(['\n', '\r']) {
            return Err(error(ErrorKind::InvalidInput, format!("a branch of {from} cannot lie at {to:?}")));
        }
        let (target, origin) = (journal_at(store, outside, to), journal_at(store, outside, from));
        let (before, sheet) = target.newest()?;
        if !before.names.is_empty() {
            let why = format!("there is a database at {to} already; drop it, or choose another place");
            return Err(error(ErrorKind::AlreadyExists, why));
        }
        let (seen, _) = origin.newest()?;
        if seen.names.is_empty() {
            return Err(no_database(from));
        }
        let branch = Branch { prefix: to.to_owned(), sheet, since: outside.clock.wall().as_secs() };
        // Add the branch to the databases above the origin first, then to the origin. The origin never gets further
        // files of the databases above it. So every file of theirs that the branch gets was still needed by the
        // origin when the branch was added to them.
        let mut parents = parents_in(&origin, &seen).map_err(|error| self.again(error))?;
        for parent in &mut parents.0 {
            parent.id = outside.random.next_u64();
            journal_at(store, outside, &parent.prefix).add_branch(parent.id, &branch)?;
        }
        let id = outside.random.next_u64();
        let table = origin.add_branch(id, &branch).map_err(|error| self.again(error))?;
        if table.names.is_empty() {
            return Err(no_database(from));
        }
        let contents = origin.contents(&table).map_err(|error| self.again(error))?;
        let copied_bytes: u64 = contents.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        if copied_bytes > MOST_BYTES {
            let why = format!(
                "the manifest and the logs of {from} have {copied_bytes} bytes, and {MOST_BYTES} are the most that a branch \
                 begins with; have its writer flush"
            );
            return Err(error(ErrorKind::FileTooLarge, why));
        }
        let lying = parents_in(&origin, &table).map_err(|error| self.again(error))?;
        let fixed = Journal::fixed(store.clone(), outside.clone(), table.clone(), &contents);
        let ssts = ssts_of(&StoreDisk::of_journal(fixed, directory, Nearby::default()))?;
        let mut report = BranchReport { copied_bytes, ..BranchReport::default() };
        parents.0.iter_mut().for_each(|parent| parent.files.clear());
        parents.0.push(Parent { id, prefix: from.to_owned(), files: BTreeMap::new() });
        for DirectoryEntry { name, bytes } in ssts {
            report.files += 1;
            report.bytes += bytes;
            let prefix = lying.having(&name).map_or(from, |parent| &parent.prefix);
            let Some(parent) = parents.0.iter_mut().find(|parent| parent.prefix == prefix) else {
                // The list of parents has changed during this call, because the origin was dropped and made again.
                return Err(self.again(ErrorKind::NotFound.into()));
            };
            parent.files.insert(name, bytes);
        }
        let mut files: Vec<_> = contents.into_iter().filter(|(name, _)| name != PARENTS).collect();
        files.extend(parents.encode().map(|bytes| (PARENTS.to_owned(), bytes)));
        target.begin_at(sheet, &before, table.epoch(), &files).map_err(|cause| match cause.kind() {
            ErrorKind::AlreadyExists => {
                error(ErrorKind::AlreadyExists, format!("another process has begun a database at {to} meanwhile"))
            }
            _ => cause,
        })?;
        Ok(report)
    }

    /// Turns an error about a missing object, which was probably removed during this call, into the error that
    /// makes the caller try again. Other errors are returned as they are.
    fn again(&self, cause: io::Error) -> io::Error {
        if cause.kind() != ErrorKind::NotFound {
            return cause;
        }
        error(ErrorKind::Interrupted, format!("the database at {} was changed too fast to be read: {cause}", self.from))
    }
}

/// The branches that may need files of the database at the prefix `of`. Branches that no longer need any are left
/// out.
///
/// # Errors
///
/// `NotFound` if no database is at `of`; an error of the store, or `InvalidData`, if a journal cannot be read.
pub fn branches(store: &Arc<dyn Store>, outside: &Outside, of: &str) -> io::Result<Vec<BranchInfo>> {
    let (table, next) = journal_at(store, outside, of).newest()?;
    if next == 1 {
        return Err(no_database(of));
    }
    needing(&table.branches, |id, branch| needs(store, outside, id, branch))
}

fn needing(
    branches: &BTreeMap<u64, Branch>,
    needs: impl Fn(u64, &Branch) -> io::Result<Needs>,
) -> io::Result<Vec<BranchInfo>> {
    let mut found = Vec::new();
    for (id, branch) in branches {
        let files = match needs(*id, branch)? {
            Needs::All => None,
            Needs::These(files) => Some((files.len() as u64, files.values().sum())),
            Needs::Nothing => continue,
        };
        found.push(BranchInfo { prefix: branch.prefix.clone(), since: Duration::from_secs(branch.since), files });
    }
    Ok(found)
}

/// Drops the database at the prefix `at`, with all its SSTs. A takeover stops its writer. A branch releases the
/// files of other databases. The last sheet stays, and so do the fences, which are sheets that an earlier writer
/// would meet: they keep a process that does not know of the drop from writing to the database.
///
/// # Errors
///
/// `NotFound` if nothing is at this prefix; `InvalidInput` if the prefix has directories, because then it is not a
/// database; `DirectoryNotEmpty` if branches need files of the database; an error of the store. A call that fails
/// halfway can be repeated to finish the work.
pub fn drop_database(store: &Arc<dyn Store>, outside: &Outside, at: &str) -> io::Result<DropReport> {
    let journal = journal_at(store, outside, at);
    let (table, next) = journal.newest()?;
    if next == 1 {
        return Err(no_database(at));
    }
    if table.names.keys().any(|name| name.ends_with('/')) {
        let why =
            format!("{at} has backups, and no database; to remove them all, remove every object whose name begins so");
        return Err(error(ErrorKind::InvalidInput, why));
    }
    // If a branch needs files, fail before the writer is stopped.
    refuse_if_needed(store, outside, at, &table.branches, "")?;
    journal.take_over(|_| Ok(None))?;
    let dropped = journal.drop_files().and_then(|()| {
        // A branch may have been made before the names of all files were removed. It then needs the SSTs.
        let objects = loop {
            let branches = journal.branches();
            refuse_if_needed(store, outside, at, &branches, "the database is dropped, but its files stay: ")?;
            let objects = objects_of(&journal)?;
            // After this put, all branches are known that were added before their lists were read. If nothing has
            // changed, the listed objects are this database's: had another database been made in its place before
            // the listing, this put would have met one of its sheets.
            journal.put_now()?;
            if journal.branches() == branches {
                break objects;
            }
        };
        remove_objects(&journal, objects)
    });
    journal.release();
    dropped
}

fn refuse_if_needed(
    store: &Arc<dyn Store>,
    outside: &Outside,
    at: &str,
    branches: &BTreeMap<u64, Branch>,
    before: &str,
) -> io::Result<()> {
    let needing = needing(branches, |id, branch| settled_needs(store, outside, id, branch))?;
    if needing.is_empty() {
        return Ok(());
    }
    let texts = needing.iter().map(|branch| match branch.files {
        Some((files, bytes)) => format!("{} needs {files} of its files with {bytes} bytes", branch.prefix),
        None => format!("{} is being made, or is given up an hour after it was begun", branch.prefix),
    });
    let texts: Vec<String> = texts.collect();
    let why = format!("{before}branches of {at} need it: {}; drop these first, and then {at} again", texts.join(", "));
    Err(error(ErrorKind::DirectoryNotEmpty, why))
}

/// The SSTs of a database, and the objects through which its writer and its workers exchange jobs.
fn objects_of(journal: &Journal) -> io::Result<[Vec<StoredObject>; 2]> {
    let list = |folder| journal.again().ask(|| journal.store().list(folder));
    Ok([list(crate::object_file::FOLDER)?, list(EXCHANGE)?])
}

/// Removes the objects of a database that was dropped.
fn remove_objects(journal: &Journal, [files, exchanged]: [Vec<StoredObject>; 2]) -> io::Result<DropReport> {
    let bytes = files.iter().map(|object| object.bytes).sum();
    let report = DropReport { files: files.len() as u64, bytes };
    for object in files.iter().chain(&exchanged) {
        journal.again().ask(|| journal.store().remove(&object.name))?;
    }
    journal.remove_sheets_before_begin()?;
    Ok(report)
}
