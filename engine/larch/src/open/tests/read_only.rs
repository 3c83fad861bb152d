//! Opens a database read-only where nothing can be written.

use crate::{Database, Follow};
use os::sim::SimDisk;
use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};
use os::{Access, DirectoryEntry, Disk, File, Lock, Machine};
use std::io;
use std::io::ErrorKind::ReadOnlyFilesystem;
use std::path::Path;

/// A read-only file system. Counts the writes that it refuses.
#[derive(Debug)]
struct ReadOnlyDisk(Arc<SimDisk>, AtomicU64);

impl ReadOnlyDisk {
    fn refused<T>(&self) -> io::Result<T> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Err(ReadOnlyFilesystem.into())
    }
}

impl Disk for ReadOnlyDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        if matches!(access, Access::Create | Access::Write) { self.refused() } else { self.0.open(path, access) }
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        self.refused()
    }

    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        self.refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        self.refused()
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.0.list(directory)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        self.refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        self.refused()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        self.refused()
    }
}

/// A database with 100 rows in files and 100 rows in its log, on a read-only file system.
fn read_only() -> (Arc<ReadOnlyDisk>, Machine) {
    let disk = SimDisk::new(1);
    let machine = Machine::simulated_on(disk.clone(), 1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    for i in 0..200u32 {
        table.insert(i.to_be_bytes(), "value").expect("the disk works");
        if i == 99 {
            db.flush().expect("the disk works");
        }
    }
    drop((table, db));
    disk.crash_keeping_everything();
    let machine = Machine::simulated_on(disk.clone(), 2);
    let disk = Arc::new(ReadOnlyDisk(disk, AtomicU64::new(0)));
    (disk.clone(), Machine { disk, ..machine })
}

fn rows(db: &Database) -> usize {
    let table = db.existing_table("t").expect("the disk works").expect("it is there");
    table.iter().inspect(|row| assert!(row.is_ok(), "the disk works")).count()
}

#[test]
fn a_database_that_is_opened_read_only_writes_nothing_at_all() {
    let (disk, machine) = read_only();
    let db = Database::builder("db").machine(machine).read_only(true).warm_from_last(true).open().expect("it opens");
    assert_eq!(rows(&db), 100, "what is in files");
    db.close().expect("there is nothing to write");
    assert_eq!(disk.1.load(Ordering::Relaxed), 0);
}

#[test]
fn a_follower_that_may_not_write_follows_without_a_lease() {
    for (follow, expected) in [(Follow::Files, 100), (Follow::Commits, 200)] {
        let (_, machine) = read_only();
        let db = Database::builder("db").machine(machine).follow(follow).open().expect("it opens");
        assert_eq!(rows(&db), expected, "{follow:?}");
    }
}
