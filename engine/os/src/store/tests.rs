//! What all stores promise.

use super::{FolderStore, Store, StoredObject};
use crate::sim::{SimClock, SimStore};
use crate::sync::Arc;
use std::io::{self, ErrorKind};

fn kind<T>(outcome: io::Result<T>) -> ErrorKind {
    outcome.map(drop).expect_err("this fails").kind()
}

/// Checks the promises of an empty store.
pub(crate) fn check(store: &dyn Store) {
    let bytes: Vec<u8> = (0..=250).cycle().take(2_500_000).collect();
    let mut upload = store.create("sst/1").expect("the store works");
    bytes.chunks(300_001).for_each(|part| upload.write(part).expect("the store works"));
    assert_eq!(kind(store.len("sst/1")), ErrorKind::NotFound, "it is not there before it is finished");
    assert!(store.list("sst").expect("the store works").is_empty());
    upload.finish().expect("the store works");
    assert_eq!(store.len("sst/1").expect("it is there"), 2_500_000);
    assert_eq!(store.get("sst/1").expect("it is there"), bytes);
    let mut buffer = vec![0; 1000];
    assert_eq!(store.read_at("sst/1", &mut buffer, 2_499_900).expect("it is there"), 100);
    assert_eq!(buffer[..100], bytes[2_499_900..]);
    drop(store.create("sst/2").expect("the store works"));
    assert_eq!(kind(store.get("sst/2")), ErrorKind::NotFound, "a dropped upload leaves nothing");
    store.put_if_absent("journal/1", b"one").expect("the name is free");
    assert_eq!(kind(store.put_if_absent("journal/1", b"two")), ErrorKind::AlreadyExists);
    assert_eq!(store.get("journal/1").expect("it is there"), b"one");
    let listed = [StoredObject { name: "journal/1".to_owned(), bytes: 3 }];
    assert_eq!(store.list("journal").expect("the store works"), listed);
    store.remove("journal/1").expect("it is there");
    store.remove("journal/1").expect("that there is none is no error");
    assert!(store.list("journal").expect("the store works").is_empty());
}

#[test]
fn a_simulated_store_is_one() {
    check(&*SimStore::new(1, Arc::new(SimClock::new())).client());
}

#[test]
fn a_folder_of_a_store_is_a_store_from_which_the_others_are_seen() {
    let store = SimStore::new(1, Arc::new(SimClock::new()));
    let folder = |name: &str| Arc::new(FolderStore::new(store.client(), name));
    check(&*folder("a"));
    let (one, other) = (folder("a/b"), folder("c"));
    one.put_if_absent("sst/1", b"one").expect("the name is free");
    assert_eq!(kind(other.get("sst/1")), ErrorKind::NotFound);
    assert_eq!(other.get("/a/b/sst/1").expect("it is there"), b"one");
    let within = FolderStore::new(other, "/a/b");
    assert_eq!(within.get("sst/1").expect("it is there"), b"one");
    assert_eq!(within.get("/a/b/sst/1").expect("it is there"), b"one");
    assert_eq!(within.list("sst").expect("the store works"), [StoredObject { name: "sst/1".to_owned(), bytes: 3 }]);
    let whole = FolderStore::new(folder("c"), "/");
    assert_eq!(whole.list("a/b/sst").expect("the store works")[0].name, "a/b/sst/1");
}
