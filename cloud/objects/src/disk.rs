//! The disk of a database in a store. This module does not know how sheets are put, or how objects are read.
//!
//! The disk has one directory, which may have subdirectories, but no deeper ones. Files whose names end with `.sst`
//! are objects of the store: they are written once, and durable when they are synced. Opening one for reads does
//! not check that it exists. Files in the directory `workers` are objects, too, each put as a whole. All other
//! files are in the journal and can grow. The journal also has the names of directories, which end with `/` there.
//! Hard links, and directories anywhere else, are refused.
//!
//! Some files may be on this machine, see [`Local`].

use crate::branches::Branches;
use crate::grown_file::GrownFile;
use crate::journal::{CUTS, Cuts, Journal, Outside, PARENTS};
use crate::local_logs::{LOG, LocalLog, LocalLogs, Uploads};
use crate::object_file::{FOLDER, NewObject, ObjectFile, name_of};
use crate::parents::ParentsOf;
use crate::put::{Put, put_once};
use crate::removals::{REMOVED_AFTER, Removals};
use os::store::{Bill, StoredObject};
use os::sync::Arc;
use os::{Access, DirectoryEntry, Disk, File, Lock, Store, read_whole};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The directory of files through which the writer and the workers exchange jobs, and the folder in the store with
/// the same name.
pub(crate) const EXCHANGE: &str = "workers";

/// A file that exists if and only if the directory has a database.
const DATABASE: &str = "CURRENT";

/// Which files are on a disk of this machine.
#[derive(Clone, Debug)]
pub struct Local {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The directory for the logs of one database. A synced commit is in this directory at once, and in the store
    /// about two puts later. If another machine takes over, it may lack the last commits, but it always has a
    /// prefix of all commits.
    pub logs: Option<PathBuf>,
    /// The directory for data that a process writes and reads again soon, see [`Disk::scratch`].
    pub scratch: Option<PathBuf>,
}

/// [`Local`], as a [`StoreDisk`] uses it.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    pub logs: Option<LocalLogs>,
    pub scratch: Option<(Arc<dyn Disk>, PathBuf)>,
}

/// A disk of one directory in a store.
#[derive(Debug)]
pub struct StoreDisk {
    removals: Arc<Removals>,
    journal: Arc<Journal>,
    /// The databases whose files this database uses because it is a branch.
    parents: Arc<ParentsOf>,
    directory: PathBuf,
    /// Files on this machine, for example logs. A sync of such a file does not wait for the store.
    nearby: Nearby,
    uploads: Arc<Uploads>,
}

impl StoreDisk {
    /// A disk that shows the files in `store` as if they were in `directory`. A synced commit is in the store.
    pub fn new(store: Arc<dyn Store>, directory: &Path, outside: Outside) -> Arc<StoreDisk> {
        StoreDisk::with_cuts(CUTS, store, directory, outside, Nearby::default())
    }

    /// Like [`StoreDisk::new`], but with the files of `local` on this machine.
    pub fn with_local(store: Arc<dyn Store>, directory: &Path, outside: Outside, local: Local) -> Arc<StoreDisk> {
        let Local { disk, logs, scratch } = local;
        let logs = logs.map(|logs| LocalLogs::new(disk.clone(), &logs));
        let nearby = Nearby { logs, scratch: scratch.map(|scratch| (disk, scratch)) };
        StoreDisk::with_cuts(CUTS, store, directory, outside, nearby)
    }

    /// Like [`StoreDisk::new`], but `cuts` says how the journal is divided into sheets.
    pub(crate) fn with_cuts(
        cuts: Cuts,
        store: Arc<dyn Store>,
        directory: &Path,
        outside: Outside,
        nearby: Nearby,
    ) -> Arc<StoreDisk> {
        StoreDisk::of_journal(Journal::new(store, outside, cuts), directory, nearby)
    }

    /// A disk with the files of a journal.
    pub(crate) fn of_journal(mut journal: Journal, directory: &Path, nearby: Nearby) -> Arc<StoreDisk> {
        // While the store fails, the logs on this machine may have synced bytes that the journal lacks. So a failed
        // put is repeated as soon as the store answers.
        journal.puts_again = nearby.logs.is_some();
        let (journal, directory) = (Arc::new(journal), directory.to_owned());
        let parents = Arc::new(ParentsOf::new(&journal));
        let removals = Removals::new(&journal, Branches::new(&journal, &parents));
        let uploads = Uploads::new(&journal);
        Arc::new(StoreDisk { removals, journal, parents, directory, nearby, uploads })
    }

    #[cfg(test)]
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Does the work of timers that are due, on a machine without threads.
    #[cfg(test)]
    pub(crate) fn drive(&self) {
        self.removals.drive();
        self.uploads.drive();
    }

    /// The logs on this machine, if they are kept here and `name` is one of them.
    fn logs(&self, name: &str) -> Option<&LocalLogs> {
        // Copies of the database are in subdirectories, and their logs are in the journal.
        self.nearby.logs.as_ref().filter(|_| name.ends_with(LOG) && !name.contains('/'))
    }

    /// Creates a file that is an object.
    fn create_object(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.check_directory_of(name)?;
        if self.parents.get()?.having(name).is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(Arc::new(NewObject::create(&self.journal, name)?))
    }

    /// Creates a file that can grow.
    fn create_grown(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.check_directory_of(name)?;
        let grown = GrownFile::new(&self.journal, self.journal.create(name)?);
        let Some(logs) = self.logs(name) else { return Ok(Arc::new(grown)) };
        let local = logs.create(name);
        if local.is_err() {
            self.journal.remove(name)?;
        }
        Ok(Arc::new(LocalLog { grown, local: local?, uploads: self.uploads.clone() }))
    }

    /// Opens a file that can grow.
    fn open_grown(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>> {
        self.journal.refresh()?;
        let grown = GrownFile::new(&self.journal, self.journal.file(name).ok_or(ErrorKind::NotFound)?);
        let logs = self.logs(name).filter(|_| access == Access::Write);
        Ok(match logs.map(|logs| logs.open(name)).transpose()?.flatten() {
            Some(local) => Arc::new(LocalLog { grown, local, uploads: self.uploads.clone() }),
            None => Arc::new(grown),
        })
    }

    /// The growing files and the directories in the directory `within`. [`PARENTS`] is left out, because the engine
    /// does not know it.
    fn grown_entries(&self, within: &str) -> impl Iterator<Item = DirectoryEntry> + use<> {
        let start = if within.is_empty() { String::new() } else { as_directory(within) };
        let files = self.journal.list_files().into_iter().filter(|(name, _)| name != PARENTS);
        files.filter_map(move |(name, bytes)| {
            let name = name.strip_prefix(&start)?;
            let name = name.strip_suffix('/').unwrap_or(name);
            (!name.is_empty() && !name.contains('/')).then(|| DirectoryEntry { name: name.to_owned(), bytes })
        })
    }

    /// Returns an error if the directory of `name` does not exist.
    fn check_directory_of(&self, name: &str) -> io::Result<()> {
        match name.split_once('/') {
            Some((within, _)) if self.journal.file(&as_directory(within)).is_none() => Err(ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    /// The object of the SST `name`, which is stored with this database or with one of its parents.
    fn object_of(&self, name: &str) -> io::Result<String> {
        Ok(self.parents.get()?.object_of(name))
    }

    /// The object of a file in the directory `workers`; `None` for other files.
    fn exchanged(&self, path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        (path.parent()? == self.directory.join(EXCHANGE)).then(|| format!("{EXCHANGE}/{name}"))
    }

    fn is_exchange(&self, directory: &Path) -> bool {
        directory == self.directory.join(EXCHANGE)
    }

    /// The name of a file in this directory or in a subdirectory.
    fn name<'p>(&self, action: &'static str, path: &'p Path) -> io::Result<&'p str> {
        let within = path.strip_prefix(&self.directory).ok();
        let is_file = |within: &&Path| {
            let parts: Vec<Component<'_>> = within.components().collect();
            (1..=2).contains(&parts.len()) && parts.iter().all(|part| matches!(part, Component::Normal(_)))
        };
        within.filter(is_file).and_then(Path::to_str).ok_or_else(|| {
            let why = format!("what is in a store is in one directory, {}", self.directory.display());
            cannot(action, path, io::Error::new(ErrorKind::Unsupported, why))
        })
    }

    /// The name of a subdirectory; empty for this directory itself.
    fn directory_name<'p>(&self, action: &'static str, directory: &'p Path) -> io::Result<&'p str> {
        if directory == self.directory {
            return Ok("");
        }
        let name = self.name(action, directory)?;
        if name.contains('/') {
            let why = "a directory within a directory of a store has none";
            return Err(cannot(action, directory, io::Error::new(ErrorKind::Unsupported, why)));
        }
        Ok(name)
    }

    /// The entries of a directory, in any order.
    fn entries(&self, within: &str) -> io::Result<Vec<DirectoryEntry>> {
        self.journal.refresh()?;
        if !within.is_empty() && self.journal.file(&as_directory(within)).is_none() {
            return Err(ErrorKind::NotFound.into());
        }
        let folder = if within.is_empty() { FOLDER.to_owned() } else { name_of(within) };
        let objects = self.journal.again().ask(|| self.journal.store().list(&folder))?;
        let mut entries: Vec<DirectoryEntry> = objects.into_iter().filter_map(entry_of).collect();
        entries.extend(self.grown_entries(within));
        if within.is_empty() {
            let parents = self.parents.get()?;
            let lying = parents.0.iter().flat_map(|parent| &parent.files);
            entries.extend(lying.map(|(name, bytes)| DirectoryEntry { name: name.clone(), bytes: *bytes }));
        }
        Ok(entries)
    }
}

/// A directory's name in the journal.
fn as_directory(name: &str) -> String {
    format!("{name}/")
}

/// An object as an entry of its directory.
fn entry_of(object: StoredObject) -> Option<DirectoryEntry> {
    let (_, name) = object.name.rsplit_once('/')?;
    Some(DirectoryEntry { name: name.to_owned(), bytes: object.bytes })
}

/// Whether a file is an object.
fn is_object(name: &str) -> bool {
    name.ends_with(".sst")
}

fn cannot(action: &str, path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {action} {}: {error}", path.display()))
}

impl Disk for StoreDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let name = self.name("open", path)?;
        let opened = match (is_object(name), access) {
            (true, Access::Create | Access::CreateDirect) => self.create_object(name),
            (true, Access::Read | Access::ReadDirect) => {
                self.object_of(name).map(|object| Arc::new(ObjectFile::new(&self.journal, &object)) as Arc<dyn File>)
            }
            (true, Access::Write) => {
                Err(io::Error::new(ErrorKind::Unsupported, "an object of a store is not written to again"))
            }
            (false, Access::Create | Access::CreateDirect) => self.create_grown(name),
            (false, Access::Read | Access::ReadDirect | Access::Write) => self.open_grown(name, access),
        };
        opened.map_err(|error| cannot("open", path, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.name("rename", from)?, self.name("rename", to)?);
        if is_object(old) || is_object(new) {
            let why = io::Error::new(ErrorKind::Unsupported, "an object of a store keeps its name");
            return Err(cannot("rename", from, why));
        }
        self.journal.rename(old, new).map_err(|error| cannot("rename", from, error))
    }

    fn link(&self, from: &Path, _to: &Path) -> io::Result<()> {
        Err(cannot("link", from, io::Error::new(ErrorKind::Unsupported, "an object of a store has one name")))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if let Some(object) = self.exchanged(path) {
            let removed = self.journal.again().ask(|| self.journal.store().remove(&object));
            return removed.map_err(|error| cannot("remove", path, error));
        }
        let name = self.name("remove", path)?;
        let removed = if is_object(name) {
            self.removals.add(name)
        } else {
            self.logs(name).map_or(Ok(()), |logs| logs.remove(name)).and_then(|()| self.journal.remove(name))
        };
        removed.map_err(|error| cannot("remove", path, error))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        if self.is_exchange(directory) {
            let listed = self.journal.again().ask(|| self.journal.store().list(EXCHANGE));
            let entries = listed.map(|objects| objects.into_iter().filter_map(entry_of).collect());
            return entries.map_err(|error| cannot("list", directory, error));
        }
        let within = self.directory_name("list", directory)?;
        let mut entries = self.entries(within).map_err(|error| cannot("list", directory, error))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn list_ending(&self, directory: &Path, ending: &str) -> io::Result<Vec<DirectoryEntry>> {
        if directory != self.directory || is_object(ending) {
            return Ok(self.list(directory)?.into_iter().filter(|entry| entry.name.ends_with(ending)).collect());
        }
        self.journal.refresh().map_err(|error| cannot("list", directory, error))?;
        let mut entries: Vec<_> = self.grown_entries("").filter(|entry| entry.name.ends_with(ending)).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn keeps_removed(&self) -> Option<Duration> {
        Some(REMOVED_AFTER)
    }

    fn bill(&self) -> Option<Bill> {
        self.journal.store().bill()
    }

    fn scratch(&self) -> Option<(Arc<dyn Disk>, PathBuf)> {
        self.nearby.scratch.clone()
    }

    fn bind(&self, owner: u64) {
        self.journal.store().bind(owner);
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        if path == self.directory {
            return Ok(true);
        }
        let object = match self.exchanged(path) {
            None => match Some(self.name("look for", path)?).filter(|name| is_object(name)) {
                Some(name) => Some(self.object_of(name).map_err(|error| cannot("look for", path, error))?),
                None => None,
            },
            exchanged => exchanged,
        };
        let found = match object {
            Some(object) => match self.journal.again().ask(|| self.journal.store().len(&object)) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            },
            None => {
                let name = self.name("look for", path)?;
                let is_there = |name: &str| self.journal.file(name).is_some();
                self.journal.refresh().map(|()| is_there(name) || is_there(&as_directory(name)))
            }
        };
        found.map_err(|error| cannot("look for", path, error))
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        if directory == self.directory || self.is_exchange(directory) {
            return Ok(());
        }
        let name = self.directory_name("create directory", directory)?;
        let is_there = |name: &str| self.journal.file(name).is_some();
        let created = if is_there(name) {
            Err(ErrorKind::AlreadyExists.into())
        } else if is_there(DATABASE) {
            let why = "a database is there, which has no directories within its own; name another place";
            Err(io::Error::new(ErrorKind::Unsupported, why))
        } else if is_there(&as_directory(name)) {
            Ok(())
        } else {
            self.journal.create(&as_directory(name)).map(drop)
        };
        created.and_then(|()| self.journal.sync()).map_err(|error| cannot("create directory", directory, error))
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        if self.is_exchange(directory) {
            // In a store, a folder exists exactly as long as it has an object.
            return Ok(());
        }
        let name = self.directory_name("remove directory", directory)?;
        let removed = match self.entries(name) {
            // A directory that still has objects is not removed: listings find these objects by the directory's
            // name.
            Ok(entries) if !entries.is_empty() || name.is_empty() => Err(ErrorKind::DirectoryNotEmpty.into()),
            Ok(_) => self.journal.remove(&as_directory(name)),
            Err(error) => Err(error),
        };
        removed.map_err(|error| cannot("remove directory", directory, error))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        // Names of objects are durable as soon as the objects are. So only names that changed in the journal need a
        // sync.
        if !self.journal.has_changed_names() {
            return Ok(());
        }
        self.journal.sync().map_err(|error| cannot("sync directory", directory, error))
    }

    fn create_with(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let Some(object) = self.exchanged(path) else {
            return self.open(path, Access::Create)?.write_at(bytes, 0);
        };
        let put = put_once(&**self.journal.store(), self.journal.again(), &object, bytes).and_then(|put| match put {
            Put::Own => Ok(()),
            Put::Taken(_) => Err(ErrorKind::AlreadyExists.into()),
        });
        put.map_err(|error| cannot("create", path, error))
    }

    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.exchanged(path) {
            Some(object) => {
                let read = self.journal.again().ask(|| self.journal.store().get(&object));
                read.map_err(|error| cannot("read", path, error))
            }
            None => read_whole(&*self.open(path, Access::Read)?),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        if self.name("lock", path)?.contains('/') {
            let why = "a store has one lock, that of the directory";
            return Err(cannot("lock", path, io::Error::new(ErrorKind::Unsupported, why)));
        }
        let local =
            self.nearby.logs.as_ref().map(LocalLogs::lock).transpose().map_err(|error| cannot("lock", path, error))?;
        let find_left = |epoch| self.nearby.logs.as_ref().map(|logs| logs.left(epoch)).transpose();
        let epoch = self.journal.take_over(find_left).map_err(|error| cannot("lock", path, error))?;
        self.uploads.forget();
        let lock = Box::new(StoreLock {
            journal: self.journal.clone(),
            removals: self.removals.clone(),
            epoch,
            _local: local,
        });
        if let Some(logs) = &self.nearby.logs {
            logs.begin(epoch).map_err(|error| cannot("lock", path, error))?;
        }
        Ok(lock)
    }
}

/// The right to write to the database. It ends when another writer takes over.
#[derive(Debug)]
struct StoreLock {
    journal: Arc<Journal>,
    removals: Arc<Removals>,
    epoch: u64,
    /// The right to write logs on this machine, given back only after the last sheet was put.
    _local: Option<Box<dyn Lock>>,
}

impl Lock for StoreLock {
    fn holder(&self) -> Option<u64> {
        Some(self.epoch)
    }

    fn check(&self) -> io::Result<()> {
        self.journal.check_still_writer()
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        if !self.removals.is_empty() {
            // Removals may take long, so sync first. If this fails, only bytes that were never synced are lost.
            self.journal.sync().ok();
        }
        self.removals.remove_all();
        self.journal.release();
    }
}
