//! What a held directory promises, on the real disk and on the simulated disk.

use crate::real::RealDisk;
use crate::real::tests::Scratch;
use crate::sim::SimDisk;
use crate::sync::Arc;
use crate::{Access, Disk, hold};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A disk, a directory on it, and what a user does there with other tools.
struct Place {
    disk: Arc<dyn Disk>,
    simulated: Option<Arc<SimDisk>>,
    directory: PathBuf,
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn mv(&self, from: &str, to: &str) {
        match &self.simulated {
            Some(disk) => disk.move_directory(self.path(from), self.path(to)),
            None => fs::rename(self.path(from), self.path(to)).expect("both are on one disk"),
        }
    }

    fn rm(&self, name: &str) {
        match &self.simulated {
            Some(disk) => disk.remove_directory(self.path(name)),
            None => fs::remove_dir_all(self.path(name)).expect("it is there"),
        }
    }
}

/// Runs a test on each disk.
fn on_each_disk(name: &str, test: impl Fn(&Place)) {
    let scratch = Scratch::new(name);
    RealDisk.create_dir(&scratch.path("here")).expect("the disk works");
    test(&Place { disk: Arc::new(RealDisk), simulated: None, directory: scratch.path("here") });
    let disk = SimDisk::new(1);
    let directory = PathBuf::from("/somewhere");
    disk.create_dir(&directory).expect("the disk works");
    test(&Place { disk: disk.clone(), simulated: Some(disk), directory });
}

fn write(disk: &dyn Disk, path: &Path, text: &str) {
    let file = disk.open(path, Access::Create).expect("the name is free");
    file.append(text.as_bytes()).and_then(|_| file.sync()).expect("the disk works");
}

fn read(disk: &dyn Disk, path: &Path) -> String {
    String::from_utf8(disk.read_all(path).expect("it is there")).expect("a text")
}

fn names(disk: &dyn Disk, directory: &Path) -> Vec<String> {
    disk.list(directory).expect("it is there").into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_held_directory_is_the_same_one_wherever_it_is_moved() {
    on_each_disk("held-moved", |place| {
        let db = place.path("db");
        place.disk.create_dir(&db).expect("the disk works");
        let held = hold(&place.disk, &db).expect("it is there");
        let lock = held.lock(&db.join("LOCK")).expect("nobody has it");
        write(&*held, &db.join("before"), "1");
        place.mv("db", "moved");
        // Another directory is made at the old path.
        place.disk.create_dir(&db).expect("the disk works");
        write(&*place.disk, &db.join("before"), "other");
        assert_eq!(read(&*held, &db.join("before")), "1");
        write(&*held, &db.join("after"), "2");
        held.rename(&db.join("after"), &db.join("renamed")).expect("the directory is there");
        held.link(&db.join("renamed"), &db.join("linked")).expect("the directory is there");
        held.create_dir(&db.join("within")).expect("the directory is there");
        write(&*held, &db.join("within/deep"), "3");
        held.remove(&db.join("before")).expect("it is there");
        held.sync_dir(&db).expect("the directory is there");
        let other =
            hold(&place.disk, &db).and_then(|other| other.lock(&db.join("LOCK"))).expect("the new directory has none");
        assert_eq!(held.list(&db).expect("the directory is there").len(), 4);
        assert_eq!(names(&*place.disk, &place.path("moved")), ["LOCK", "linked", "renamed", "within"]);
        assert_eq!(names(&*place.disk, &db), ["LOCK", "before"]);
        assert_eq!(read(&*place.disk, &place.path("moved/within/deep")), "3");
        assert_eq!(read(&*place.disk, &db.join("before")), "other");
        drop((lock, other));
        for name in ["db", "moved"] {
            place.rm(name);
        }
    });
}

#[test]
fn nothing_is_written_where_a_held_directory_was_removed() {
    on_each_disk("held-removed", |place| {
        let db = place.path("db");
        place.disk.create_dir(&db).expect("the disk works");
        let held = hold(&place.disk, &db).expect("it is there");
        let lock = held.lock(&db.join("LOCK")).expect("nobody has it");
        write(&*held, &db.join("file"), "1");
        let open = held.open(&db.join("file"), Access::Write).expect("it is there");
        open.append(b"2").and_then(|_| open.sync()).expect("the directory is there");
        place.rm("db");
        place.disk.create_dir(&db).expect("the disk works");
        write(&*place.disk, &db.join("file"), "other");
        let all = [
            ("sync", open.append(b"3").and_then(|_| open.sync()).err()),
            ("create", held.open(&db.join("new"), Access::Create).err()),
            ("open to write", held.open(&db.join("file"), Access::Write).err()),
            ("open to read", held.open(&db.join("file"), Access::Read).err()),
            ("rename", held.rename(&db.join("file"), &db.join("new")).err()),
            ("link", held.link(&db.join("file"), &db.join("new")).err()),
            ("remove", held.remove(&db.join("file")).err()),
            ("create directory", held.create_dir(&db.join("within")).err()),
            ("sync directory", held.sync_dir(&db).err()),
            ("list", held.list(&db).err()),
            ("look for a file", held.exists(&db.join("file")).err()),
            ("look for the directory", held.exists(&db).err()),
        ];
        for (action, error) in all {
            let error = error.unwrap_or_else(|| panic!("{action} works in a directory that was removed"));
            assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "{action}: {error}");
            assert!(error.to_string().contains("was removed"), "{action}: {error}");
        }
        drop(lock);
        assert_eq!(names(&*place.disk, &db), ["file"]);
        assert_eq!(read(&*place.disk, &db.join("file")), "other");
        place.rm("db");
    });
}

#[test]
fn nothing_is_changed_once_the_lock_file_was_removed() {
    on_each_disk("held-unlocked", |place| {
        let db = place.path("db");
        place.disk.create_dir(&db).expect("the disk works");
        let held = hold(&place.disk, &db).expect("it is there");
        let lock = held.lock(&db.join("LOCK")).expect("nobody has it");
        let file = held.open(&db.join("file"), Access::Create).expect("the name is free");
        file.append(b"1").and_then(|_| file.sync()).expect("the lock file is there");
        place.disk.remove(&db.join("LOCK")).expect("it is there");
        let other = hold(&place.disk, &db).expect("it is there");
        let second = other.lock(&db.join("LOCK")).expect("this lock file is a new one");
        for (action, error) in [
            ("sync", file.append(b"2").and_then(|_| file.sync()).err()),
            ("create", held.open(&db.join("new"), Access::Create).err()),
            ("rename", held.rename(&db.join("file"), &db.join("new")).err()),
            ("remove", held.remove(&db.join("file")).err()),
            ("sync directory", held.sync_dir(&db).err()),
        ] {
            let error = error.unwrap_or_else(|| panic!("{action} works although another process has the lock"));
            assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "{action}: {error}");
        }
        write(&*other, &db.join("new"), "other");
        other.remove(&db.join("LOCK")).expect("its holder removes it");
        // The other process has removed its own lock file, so it no longer excludes any process.
        write(&*other, &db.join("last"), "other");
        drop((lock, second));
        place.rm("db");
    });
}
