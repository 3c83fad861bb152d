//! Makes a branch of a database: a second database in the same store, which shares the SSTs of the first. It does
//! not know which SSTs a database has; its caller knows.
//!
//! ```text
//! 1  the journal of the branch is looked at: it has no files, and ends before sheet n
//! 2  a sheet in the journal of each database that has files of the branch: a branch is made at this prefix, with sheet n
//! 3  what the journal of the origin said before that sheet is read: the manifest and the logs
//! 4  sheet n of the branch: these files, and PARENTS, which says where its SSTs lie
//! ```
//!
//! After step 2, no writer removes an SST that the manifest of step 3 has: before it can say in a sheet that it
//! does not need the file any more, it reads the sheet of step 2. Step 4 succeeds only if nobody has put sheet n.
//! So whoever wants to know whether the branch will be there puts sheet n himself, or finds it.
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

/// The most bytes of growing files (manifest and logs) that are copied to one sheet.
const MOST_BYTES: u64 = 1 << 30;

/// The most attempts to make a branch. One fails if sheets were removed while it read them.
const ATTEMPTS: u32 = 3;

/// Returns the names and lengths of the SSTs of the database on a disk. The disk shows one moment and is read only.
pub type SstsOf<'f> = &'f dyn Fn(&Arc<StoreDisk>) -> io::Result<Vec<DirectoryEntry>>;

/// What a branch has when it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchReport {
    /// SSTs that it shares.
    pub files: u64,
    /// The bytes in them.
    pub bytes: u64,
    /// Bytes of the manifest and of logs, which were copied.
    pub copied_bytes: u64,
}

/// A branch that a database has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchInfo {
    /// Where it lies in the store.
    pub prefix: String,
    /// When it was asked for, since the start of 1970.
    pub since: Duration,
    /// How many SSTs of the database it needs, and the bytes in them. `None` if the branch is not there yet: it is
    /// being made, or its making was not finished.
    pub files: Option<(u64, u64)>,
}

/// What was removed with a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropReport {
    /// SSTs of its own.
    pub files: u64,
    /// The bytes in them.
    pub bytes: u64,
}

fn error(kind: ErrorKind, why: String) -> io::Error {
    io::Error::new(kind, why)
}

fn no_database(prefix: &str) -> io::Error {
    error(ErrorKind::NotFound, format!("there is no database at {prefix}"))
}

/// Makes a branch of the database at `from`, at the prefix `to`. It has all commits that were durable in the store
/// when the call began. `store` understands names that begin with `/`. `directory` is the path of the disk that is
/// given to `ssts_of`.
///
/// # Errors
///
/// `NotFound` if no database is at `from`; `AlreadyExists` if something is at `to`; an error of the store or of
/// `ssts_of`.
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
            // A sheet was removed while it was read, or files went to another parent.
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
        // The databases above the origin learn of the branch first. A file of theirs that the origin needs when it
        // learns of the branch, it also needed at that earlier time: it never gets new files of theirs.
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
                // The origin was dropped and made again meanwhile.
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

    /// If something is missing because it was removed while it was read, returns the error that begins the branch
    /// again.
    fn again(&self, cause: io::Error) -> io::Error {
        if cause.kind() != ErrorKind::NotFound {
            return cause;
        }
        error(ErrorKind::Interrupted, format!("the database at {} was changed too fast to be read: {cause}", self.from))
    }
}

/// The branches that may need files of the database at a prefix. Branches that need nothing any more are left out.
///
/// # Errors
///
/// If a journal cannot be read.
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

/// Drops the database at a prefix, with all its SSTs. Its writer is fenced, and it no longer needs any files of
/// other databases. The last sheet stays, and so do the sheets in which writers took over within a week; so nobody
/// who does not know of this writes to the database.
///
/// # Errors
///
/// `NotFound` if nothing is there; `InvalidInput` if there are directories, so it is no database;
/// `DirectoryNotEmpty` if branches need files of it; an error of the store. If a call has failed in the middle, the
/// next call continues its work.
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
    // If a branch needs files, the writer is not fenced.
    refuse_if_needed(store, outside, at, &table.branches, "")?;
    journal.take_over(|_| Ok(None))?;
    let dropped = journal.drop_files().and_then(|()| {
        // A branch that was made before all names of the files were taken away needs the SSTs.
        let objects = loop {
            let branches = journal.branches();
            refuse_if_needed(store, outside, at, &branches, "the database is dropped, but its files stay: ")?;
            let objects = objects_of(&journal)?;
            // Now all branches that were added before the reading are known. And the listed objects belong to this
            // database: a database that was made in its place before the listing would have put a sheet, and this
            // put would have met it.
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

/// The SSTs of a database, and the objects that its writer and its workers have put for each other.
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
