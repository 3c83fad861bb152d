//! What a store in a directory promises, even after a crash.

use super::DirectoryStore;
use crate::Store;
use crate::sim::SimDisk;
use crate::store::tests::check;
use std::io::ErrorKind;
use std::path::Path;

#[test]
fn a_directory_is_a_store() {
    let disk = SimDisk::new(1);
    let store = DirectoryStore::new(disk.clone(), Path::new("/db"), 7);
    check(&store);
    let upload = store.create("sst/3").expect("the store works");
    disk.crash_keeping_everything();
    drop(upload);
    let store = DirectoryStore::new(disk.clone(), Path::new("/db"), 8);
    assert_eq!(store.list("sst").expect("the store works").len(), 1);
    store.remove_unfinished("sst").expect("the disk works");
    assert_eq!(crate::Disk::list(&*disk, Path::new("/db/sst")).expect("the disk works").len(), 1);
}

#[test]
fn an_object_of_a_directory_survives_a_crash_whole_or_not_at_all() {
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let store = DirectoryStore::new(disk.clone(), Path::new("/db"), 7);
        disk.crash_at_sync(seed % 12 + 1);
        let mut promised = 0;
        for number in 0..4 {
            let name = format!("journal/{number}");
            let mut upload = match store.create(&format!("sst/{number}")) {
                Ok(upload) => upload,
                Err(_) => break,
            };
            let is_whole = upload.write(&[number; 10_000]).is_ok() && upload.finish().is_ok();
            if !is_whole || store.put_if_absent(&name, &[number; 100]).is_err() {
                break;
            }
            promised = number + 1;
        }
        disk.crash();
        for number in 0..4_u8 {
            let found = [("sst", 10_000), ("journal", 100)].map(|(folder, bytes)| {
                let found = store.get(&format!("{folder}/{number}"));
                assert!(found.as_ref().ok().is_none_or(|found| *found == vec![number; bytes]), "seed {seed}");
                found.is_ok()
            });
            assert!(number >= promised || found == [true, true], "seed {seed}: object {number} was promised");
        }
    }
}

#[test]
fn a_name_of_a_directory_that_is_taken_is_durable() {
    let mut taken = 0;
    for sync in 1..8 {
        let disk = SimDisk::new(sync);
        let store = DirectoryStore::new(disk.clone(), Path::new("/db"), 7);
        disk.fail_sync(sync, ErrorKind::Other);
        let first = store.put_if_absent("journal/1", b"one");
        // The client puts the object again. If the name is taken now, the client takes that object for its own.
        let second = store.put_if_absent("journal/1", b"one");
        taken += u32::from(first.is_err() && second.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists));
        disk.crash_keeping_nothing();
        assert_eq!(store.get("journal/1").unwrap_or_else(|error| panic!("sync {sync}: {error}")), b"one");
    }
    assert!(taken > 0, "a sync failed after the name was given");
}
