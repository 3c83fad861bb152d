//! Tests which events the hook gets, and that a hook that panics changes nothing else.

use super::*;
use crate::options::Release;
use crate::{Database, Durability, Error, Follow};
use os::Machine;
use os::sync::Mutex;
use std::io::ErrorKind;

/// Opens a database on a simulated machine. Returns it with a list that collects the text of each event.
fn database(machine: &Machine) -> (Database, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let builder = Database::builder("db").machine(machine.clone());
    let db = builder.on_event(move |event| told.lock().push(event.to_string())).open().expect("the disk works");
    (db, seen)
}

/// The names of the events since the last call, without sizes and times.
fn names(seen: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *seen.lock())
        .iter()
        .map(|text| text.split([':', '"']).next().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn the_hook_sees_recovery_flush_and_import() {
    let (machine, _) = Machine::simulated(1);
    let (db, seen) = database(&machine);
    let with = "a cache of 64.0 MiB, a write buffer of 64.0 MiB, synced commits";
    assert_eq!(names(&seen), [format!("opened for writing with {with}, in 0.000 s")]);
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    db.flush().expect("the disk works");
    assert_eq!(names(&seen), ["flush", "flush done in 0.000 s"]);
    let mut import = table.import().expect("the disk works");
    import.add(b"b", b"2").expect("the disk works");
    import.finish(|_| {}).expect("the disk works");
    assert_eq!(names(&seen), ["imported to "]);
    table.insert("c", "3").expect("the disk works");
    drop((table, db));
    let (_db, seen) = database(&machine);
    let texts = seen.lock().clone();
    assert!(texts[0].ends_with("3 files, version 3; 1 commits of 1 logs recovered to 1 files"), "{texts:?}");
}

#[test]
fn opening_says_what_for_and_with_which_options() {
    let (machine, _) = Machine::simulated(1);
    drop(database(&machine));
    let texts = Arc::new(Mutex::new(Vec::new()));
    let told = texts.clone();
    let builder = Database::builder("db").machine(machine).on_event(move |event| told.lock().push(event.to_string()));
    let small = builder.cache_bytes(1 << 20).write_buffer_bytes(4 << 10);
    let shape = || small.clone().durability(Durability::Buffered).compaction_workers(true);
    drop(shape().compat(Release::ALL[0]).prefer_flat_index(true).open().expect("the disk works"));
    drop(shape().read_only(true).open().expect("the disk works"));
    drop(shape().follow(Follow::Files).prefer_flat_index(true).open().expect("the disk works"));
    drop(shape().follow(Follow::Commits).open().expect("the disk works"));
    let texts = std::mem::take(&mut *texts.lock());
    let with = |text: &String| text.split(", in 0.000 s").next().unwrap_or("").to_owned();
    assert_eq!(
        texts.iter().map(with).collect::<Vec<_>>(),
        [
            "opened for writing with a cache of 1.0 MiB, reading flat indexes, a write buffer of 4.0 KiB, buffered commits, compaction \
             workers, files for release 0.1",
            "opened read-only with a cache of 1.0 MiB",
            "opened to follow files with a cache of 1.0 MiB, reading flat indexes",
            "opened to follow commits with a cache of 1.0 MiB",
        ]
    );
}

#[test]
fn a_compaction_says_what_it_merges_and_why() {
    let (machine, _) = Machine::simulated(1);
    let (db, seen) = database(&machine);
    let table = db.table("t").expect("the disk works");
    for value in ["1", "2"] {
        table.insert("a", value).expect("the disk works");
        db.flush().expect("the disk works");
    }
    names(&seen);
    table.compact().expect("the disk works");
    let texts = seen.lock().clone();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("compaction of \"t\": 2 files of "), "{texts:?}");
    assert!(texts[0].ends_with(" to level 6: the caller asked for it"), "{texts:?}");
    assert!(texts[1].starts_with("compaction of \"t\" done in 0.000 s: 1 files of "), "{texts:?}");
}

#[test]
fn a_failed_sync_is_reported_once() {
    let (machine, disk) = Machine::simulated(1);
    let (db, seen) = database(&machine);
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    names(&seen);
    disk.fail_operation(2, ErrorKind::Other);
    assert!(table.insert("b", "2").is_err());
    assert!(matches!(table.insert("c", "3"), Err(Error::WritesStopped(_))));
    assert_eq!(names(&seen), ["writes are refused from now on"]);
}

#[test]
fn a_hook_that_panics_does_not_disturb_the_engine() {
    let (machine, _) = Machine::simulated(1);
    let builder = Database::builder("db").machine(machine).on_event(|_| panic!("a bad hook"));
    let db = builder.open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    db.flush().expect("the disk works");
    assert_eq!(table.get("a").expect("the disk works").as_deref(), Some(&b"1"[..]));
}
