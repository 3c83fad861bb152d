//! Which SSTs of a database its branches may need, so that its writer does not remove them. It does not know how a
//! branch is made.
//!
//! A branch says itself which files it needs, in its own journal (`PARENTS`), and needs fewer of them as time goes by.
//! So what was read of it once is never too little. It is read again when it keeps a file from being removed.
//!
//! | the journal of the branch | |
//! |---|---|
//! | is not as long as where the branch was to begin | it is being made, or never will be: it may need all |
//! | is longer, and names this database | it needs what it names |
//! | is longer, and does not | it needs nothing, and will need nothing |
//!
//! A branch of a branch has files of all that are above. It was added here before the branch in the middle could give
//! up a file that it has. So after a branch was read, and before a file is removed because that one does not need it,
//! this writer puts a sheet: then it knows all branches that were added before.
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

/// Whoever makes a branch has this long, by the clocks of two machines. Then the writer makes sure that it will not be
/// made.
pub const MADE_WITHIN: Duration = Duration::from_secs(3600);

/// A branch that keeps a file is asked again after this time.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// What a branch needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It is not there yet.
    All,
    /// Names and lengths of these SSTs.
    These(BTreeMap<String, u64>),
    /// Nothing, for ever.
    Nothing,
}

/// The journal of a database of the store, by where it lies.
pub fn journal_at(store: &Arc<dyn Store>, outside: &Outside, prefix: &str) -> Journal {
    let folder = FolderStore::new(store.clone(), &folder_of(prefix));
    Journal::new(Arc::new(folder), outside.clone(), CUTS)
}

/// The parents of a database, as `table` of its journal says.
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
/// The journal of the branch cannot be read.
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

/// Makes sure that a missing branch is never made: its first sheet is put, without it.
///
/// # Errors
///
/// `AlreadyExists` if it was made meanwhile, or another database in its place; the store's.
fn prevent(store: &Arc<dyn Store>, outside: &Outside, branch: &Branch) -> io::Result<()> {
    let journal = journal_at(store, outside, &branch.prefix);
    let (table, _) = journal.newest()?;
    journal.begin_at(branch.sheet, &table, 0, &[])
}

/// As [`needs`]. A branch that is not there after [`MADE_WITHIN`] is given up.
///
/// # Errors
///
/// As [`needs`]; the store's.
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

/// What the branches of a database need, as its writer knows.
#[derive(Debug)]
pub struct Branches {
    journal: Arc<Journal>,
    parents: Arc<ParentsOf>,
    known: Mutex<HashMap<u64, Known>>,
    /// Whether a branch was read since a sheet was put.
    has_read: AtomicBool,
    /// One thread at a time asks: what one has read is not safe for another before a sheet is put.
    dividing: Mutex<()>,
}

/// What is known of a branch, and since when.
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

    /// Divides SSTs that the manifest does not have any more into those that can be removed and those that branches may
    /// need. Files of other databases are given up, and are of neither kind.
    ///
    /// # Errors
    ///
    /// This process is not the writer any more; its parents cannot be read.
    pub fn divide(&self, files: Vec<String>) -> io::Result<(Vec<String>, Vec<String>)> {
        let _dividing = self.dividing.lock();
        // What is read from now on is new enough, however long this takes.
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
            // Now branches may be known that were not.
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

    /// What a branch needs; read again if it keeps this file, and that was not done lately before `now`.
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
        // What cannot be read may need all.
        let read = settled_needs(self.journal.store(), &self.journal.outside, id, branch).unwrap_or(Needs::All);
        self.has_read.store(true, Ordering::Relaxed);
        // It may have taken long.
        let (needs, at) = (Arc::new(read), self.journal.outside.clock.now());
        self.known.lock().insert(id, Known { needs: needs.clone(), at });
        needs
    }
}
