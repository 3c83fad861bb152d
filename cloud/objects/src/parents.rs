//! Which files of a branch are stored with other databases of the same store, its parents. This module does not
//! know how a branch is made.
//!
//! ```text
//! PARENTS      a file of the journal, text:
//! LARCHPARENTS1
//! parent 3f2a00c41be7d905 tenants/a            the number of the branch there, and where that database lies
//! 00000024-9.sst 73728                         an SST that lies there, and its length
//! ```
//!
//! An SST that `PARENTS` does not name is stored with the branch itself. No two SSTs of a database have the same
//! name. Names are never added to `PARENTS`, and a name is removed when the SST leaves the branch's manifest.
//!
//! Thread safe.

use crate::journal::{Journal, PARENTS};
use crate::object_file::name_of;
use os::sync::{Arc, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};

const HEAD: &str = "LARCHPARENTS1";
const PARENT: &str = "parent";

/// Another database that stores files of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parent {
    /// The number of this branch in the parent's journal.
    pub id: u64,
    /// The prefix of the parent in the store.
    pub prefix: String,
    /// The names and lengths of the files that the parent stores.
    pub files: BTreeMap<String, u64>,
}

/// All parents of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parents(pub Vec<Parent>);

/// The name of the folder of the database at `prefix`, as other databases of the store use it.
pub fn folder_of(prefix: &str) -> String {
    if prefix.is_empty() { "/".to_owned() } else { format!("/{prefix}/") }
}

impl Parents {
    /// The parent that stores `file`.
    pub fn having(&self, file: &str) -> Option<&Parent> {
        self.0.iter().find(|parent| parent.files.contains_key(file))
    }

    /// The object of the SST `file`.
    pub fn object_of(&self, file: &str) -> String {
        match self.having(file) {
            Some(parent) => format!("{}{}", folder_of(&parent.prefix), name_of(file)),
            None => name_of(file),
        }
    }

    /// The bytes of the file `PARENTS`; `None` if all SSTs are stored with the branch itself.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut text = format!("{HEAD}\n");
        for parent in self.0.iter().filter(|parent| !parent.files.is_empty()) {
            text += &format!("{PARENT} {:016x} {}\n", parent.id, parent.prefix);
            parent.files.iter().for_each(|(file, bytes)| text += &format!("{file} {bytes}\n"));
        }
        self.0.iter().any(|parent| !parent.files.is_empty()).then(|| text.into_bytes())
    }

    /// Decodes the bytes of the file `PARENTS`.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the bytes are malformed.
    pub fn decode(bytes: &[u8]) -> io::Result<Parents> {
        let wrong = |what: &str| io::Error::new(ErrorKind::InvalidData, format!("{PARENTS} is corrupt: {what}"));
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is no text"))?;
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(wrong("it begins as none does, or a newer release has written it"));
        }
        let mut parents: Vec<Parent> = Vec::new();
        for line in lines {
            let (first, rest) = line.split_once(' ').ok_or_else(|| wrong("a line has one word"))?;
            if first == PARENT {
                let (id, prefix) = rest.split_once(' ').ok_or_else(|| wrong("a parent has no place"))?;
                let id = u64::from_str_radix(id, 16).map_err(|_| wrong("a parent has no number"))?;
                parents.push(Parent { id, prefix: prefix.to_owned(), files: BTreeMap::new() });
            } else {
                let parent = parents.last_mut().ok_or_else(|| wrong("a file has no parent"))?;
                let bytes = rest.parse().map_err(|_| wrong("a file has no length"))?;
                parent.files.insert(first.to_owned(), bytes);
            }
        }
        Ok(Parents(parents))
    }
}

/// The parents of a database, read from the file `PARENTS` in its journal.
#[derive(Debug)]
pub struct ParentsOf {
    journal: Arc<Journal>,
    /// The number and the contents of the newest version of `PARENTS` that this process has read.
    known: Mutex<Option<(u64, Arc<Parents>)>>,
}

impl ParentsOf {
    pub fn new(journal: &Arc<Journal>) -> ParentsOf {
        ParentsOf { journal: journal.clone(), known: Mutex::default() }
    }

    /// The present parents. Each version of `PARENTS` is read from the store only once.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the file is damaged; an error of the store.
    pub fn get(&self) -> io::Result<Arc<Parents>> {
        if !self.journal.is_known() {
            self.journal.refresh()?;
        }
        let Some(file) = self.journal.file(PARENTS) else { return Ok(Arc::default()) };
        if let Some((_, parents)) = self.known.lock().as_ref().filter(|(known, _)| *known == file) {
            return Ok(parents.clone());
        }
        let parents = Arc::new(Parents::decode(&self.journal.read(file, 0..self.journal.len(file))?)?);
        *self.known.lock() = Some((file, parents.clone()));
        Ok(parents)
    }

    /// Removes files from `PARENTS` that the manifest no longer has. The change is in the next sheet.
    ///
    /// # Errors
    ///
    /// The errors of [`ParentsOf::get`]; an error if this process is not the writer.
    pub fn release(&self, files: &BTreeSet<String>) -> io::Result<()> {
        let mut parents = Parents::clone(&*self.get()?);
        for parent in &mut parents.0 {
            parent.files.retain(|file, _| !files.contains(file));
        }
        match parents.encode() {
            Some(bytes) => self.journal.replace(PARENTS, bytes),
            None => self.journal.remove(PARENTS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let files = BTreeMap::from([("00000024-9.sst".to_owned(), 73_728), ("00000025-9.sst".to_owned(), 1)]);
        let parents = Parents(vec![
            Parent { id: 7, prefix: "tenants/a b".to_owned(), files },
            Parent { id: u64::MAX, prefix: String::new(), files: BTreeMap::from([("3-1.sst".to_owned(), 5)]) },
        ]);
        let bytes = parents.encode().expect("files lie elsewhere");
        assert_eq!(Parents::decode(&bytes).expect("it was just written"), parents);
        assert_eq!(parents.object_of("00000024-9.sst"), "/tenants/a b/sst/00000024-9.sst");
        assert_eq!((&*parents.object_of("3-1.sst"), &*parents.object_of("4-1.sst")), ("/sst/3-1.sst", "sst/4-1.sst"));
        assert_eq!(Parents(vec![Parent { id: 7, ..Parent::default() }]).encode(), None);
        for wrong in
            ["", "LARCHPARENTS2\n", "LARCHPARENTS1\nx", "LARCHPARENTS1\n1.sst 5\n", "LARCHPARENTS1\nparent x y\n"]
        {
            assert_eq!(Parents::decode(wrong.as_bytes()).expect_err(wrong).kind(), ErrorKind::InvalidData);
        }
    }
}
