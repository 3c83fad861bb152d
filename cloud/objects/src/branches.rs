//! Knows which SSTs of a database its branches may need, so that the writer does not remove them. A branch is
//! another database that uses SSTs of the first one. This module does not know how a branch is made.
//!
//! Each branch has the file `PARENTS` in its own journal, which lists the files that it needs. Over time a branch
//! may need fewer files, but never others, so an old list always includes the files that it needs now. A list that
//! keeps a file from being removed is read again.
//!
//! | the journal of the branch | |
//! |---|---|
//! | is shorter than the place where the branch was to begin | it is being made, or never will be: it may need all |
//! | is longer, and names this database | it needs the files that it names |
//! | is longer, and does not name this database | it needs nothing, and will need nothing |
//!
//! A branch of a branch may need files of all databases above it. Let C be a branch of B, and B a branch of this
//! database. C is added to this database before B can give up a file that C needs. But this writer may have read
//! the list of B before it learned of C. So after it has read that a branch does not need a file, it puts a sheet
//! before it removes the file. By putting this sheet, it learns of all branches that were added before it read the
//! list.
//!
//! Thread safe.

use crate::journal::{Branch, CUTS, Journal, Outside, PARENTS, Table};
use crate::parents::{Parents, ParentsOf, folder_of};
use os::Store;
use os::store::FolderStore;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Mutex};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How long it may take to make a branch, measured by the clocks of two machines. After this time, the writer makes
/// sure that the branch is never made.
pub const MADE_WITHIN: Duration = Duration::from_secs(3600);

/// After this time, the list of a branch that keeps a file from being removed is read again.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// What a branch needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The branch does not exist yet, so it may need all SSTs.
    All,
    /// The branch needs these SSTs: names and lengths.
    These(BTreeMap<String, u64>),
    /// The branch needs no SST of this database, and never will.
    Nothing,
}

/// The journal of the database at `prefix` in the store.
pub fn journal_at(store: &Arc<dyn Store>, outside: &Outside, prefix: &str) -> Journal {
    let folder = FolderStore::new(store.clone(), &folder_of(prefix));
    Journal::new(Arc::new(folder), outside.clone(), CUTS)
}

/// The parents of a database, according to `table` of its journal.
pub fn parents_in(journal: &Journal, table: &Table) -> io::Result<Parents> {
    let mut table = table.clone();
    table.names.retain(|name, _| name == PARENTS);
    let contents = journal.contents(&table)?;
    contents.first().map_or(Ok(Parents::default()), |(_, bytes)| Parents::decode(bytes))
}

/// Reads what a branch needs.
///
/// # Errors
///
/// An error of the store, or `InvalidData`, if the journal of the branch cannot be read.
pub fn needs(store: &Arc<dyn Store>, outside: &Outside, id: u64, branch: &Branch) -> io::Result<Needs> {
    let journal = journal_at(store, outside, &branch.prefix);
    let (table, next) = journal.newest()?;
    if next <= branch.sheet {
        return Ok(Needs::All);
    }
    let parents = parents_in(&journal, &table)?;
    let of_this = parents.0.into_iter().find(|parent| parent.id == id);
    Ok(of_this.map_or(Needs::Nothing, |parent| Needs::These(parent.files)))
}

/// Makes sure that a missing branch is never made, by putting a sheet without files under the number of the
/// branch's first sheet.
///
/// # Errors
///
/// `AlreadyExists` if the branch, or another database in its place, was made meanwhile; an error of the store.
fn prevent(store: &Arc<dyn Store>, outside: &Outside, branch: &Branch) -> io::Result<()> {
    let journal = journal_at(store, outside, &branch.prefix);
    let (table, _) = journal.newest()?;
    journal.begin_at(branch.sheet, &table, 0, &[])
}

/// Like [`needs`], but also makes sure that a branch which does not exist after [`MADE_WITHIN`] is never made.
///
/// # Errors
///
/// The errors of [`needs`]; an error of the store.
pub fn settled_needs(store: &Arc<dyn Store>, outside: &Outside, id: u64, branch: &Branch) -> io::Result<Needs> {
    let found = needs(store, outside, id, branch)?;
    let made_until = Duration::from_secs(branch.since).saturating_add(MADE_WITHIN);
    if found != Needs::All || outside.clock.wall() < made_until {
        return Ok(found);
    }
    match prevent(store, outside, branch) {
        Ok(()) => Ok(Needs::Nothing),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => needs(store, outside, id, branch),
        Err(error) => Err(error),
    }
}

/// What the writer of a database knows about its branches' needs.
#[derive(Debug)]
pub struct Branches {
    journal: Arc<Journal>,
    parents: Arc<ParentsOf>,
    known: Mutex<HashMap<u64, Known>>,
    /// Whether any branch's list was read since the last sheet was put.
    has_read: AtomicBool,
    /// Held while lists of branches are read. Otherwise a thread could use a list that another thread has read
    /// before a sheet was put.
    dividing: Mutex<()>,
}

/// What was read about a branch, and when it was read.
#[derive(Clone, Debug)]
struct Known {
    needs: Arc<Needs>,
    at: Duration,
}

impl Branches {
    pub fn new(journal: &Arc<Journal>, parents: &Arc<ParentsOf>) -> Branches {
        let (journal, parents) = (journal.clone(), parents.clone());
        let (known, has_read) = (Mutex::default(), AtomicBool::new(false));
        Branches { journal, parents, known, has_read, dividing: Mutex::new(()) }
    }

    /// Divides SSTs that are no longer in the manifest into those that can be removed and those that branches may
    /// need. SSTs that are stored with other databases are in neither list; this database just releases them.
    ///
    /// # Errors
    ///
    /// An error if this process is no longer the writer, or if its parents cannot be read.
    pub fn divide(&self, files: Vec<String>) -> io::Result<(Vec<String>, Vec<String>)> {
        let _dividing = self.dividing.lock();
        // Lists that are read after this moment are fresh enough, however long this call takes.
        let begin = self.journal.outside.clock.now();
        let parents = self.parents.get()?;
        let (others, own): (BTreeSet<_>, BTreeSet<_>) =
            files.into_iter().partition(|file| parents.having(file).is_some());
        if !others.is_empty() {
            self.parents.release(&others)?;
        }
        loop {
            let (kept, free): (Vec<String>, Vec<String>) =
                own.iter().cloned().partition(|file| self.may_need(file, begin));
            if !self.has_read.swap(false, Ordering::Relaxed) {
                return Ok((free, kept));
            }
            // This put may find branches that were not known before, so start again.
            self.journal.put_now()?;
        }
    }

    fn may_need(&self, file: &str, now: Duration) -> bool {
        self.journal.branches().iter().any(|(id, branch)| match &*self.needs(*id, branch, file, now) {
            Needs::All => true,
            Needs::These(files) => files.contains_key(file),
            Needs::Nothing => {
                self.journal.forget_branch(*id);
                false
            }
        })
    }

    /// What a branch needs. The list is read again if the known one keeps `file` and was not read shortly before
    /// `now`.
    fn needs(&self, id: u64, branch: &Branch, file: &str, now: Duration) -> Arc<Needs> {
        let known = self.known.lock().get(&id).cloned();
        let is_enough = |known: &Known| match &*known.needs {
            Needs::These(files) if !files.contains_key(file) => true,
            Needs::Nothing => true,
            _ => now < known.at + ASKED_AGAIN_AFTER,
        };
        if let Some(known) = known.filter(is_enough) {
            return known.needs;
        }
        // A branch whose journal cannot be read may need all files.
        let read = settled_needs(self.journal.store(), &self.journal.outside, id, branch).unwrap_or(Needs::All);
        self.has_read.store(true, Ordering::Relaxed);
        // Reading the list may have taken long, so read the clock again.
        let (needs, at) = (Arc::new(read), self.journal.outside.clock.now());
        self.known.lock().insert(id, Known { needs: needs.clone(), at });
        needs
    }
}
