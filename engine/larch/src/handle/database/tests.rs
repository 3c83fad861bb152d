//! Tests databases without a directory: temporary ones and those in memory.
#![allow(clippy::disallowed_methods, reason = "the database lies on the machine's disk")]

use super::*;
use std::path::PathBuf;

fn directory(db: &Database) -> PathBuf {
    db.handle().core().env.directory.clone()
}

#[test]
fn a_temporary_database_is_there_until_the_last_handle_is_gone() {
    let db = Builder::temporary().write_buffer_bytes(64 << 10).open().expect("the disk works");
    let (path, table) = (directory(&db), db.table("t").expect("the disk works"));
    for i in 0..1000_u32 {
        table.insert(i.to_be_bytes(), [7; 100]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    drop(db);
    assert_eq!(table.iter().count(), 1000, "the table is a handle, too");
    assert!(path.exists());
    drop(table);
    assert!(!path.exists());
}

#[test]
fn each_open_of_a_builder_is_a_temporary_database_of_its_own() {
    for builder in [Builder::temporary(), Builder::in_memory()] {
        let (one, other) = (builder.clone().open().expect("it opens"), builder.open().expect("it opens"));
        one.table("t").expect("the disk works").insert("a", "1").expect("the disk works");
        assert_eq!(one.tables(), ["t"]);
        assert!(other.tables().is_empty());
    }
}

#[test]
fn a_database_in_memory_flushes_compacts_and_takes_about_the_memory_of_its_files() {
    let machine = Machine::in_memory();
    let db = Builder::in_memory().machine(machine.clone()).write_buffer_bytes(256 << 10).open().expect("it opens");
    let table = db.table("t").expect("the disk works");
    for round in 0..3_u8 {
        for i in 0..2000_u32 {
            table.insert(i.to_be_bytes(), [round; 400]).expect("the disk works");
        }
    }
    table.remove_range(..100_u32.to_be_bytes()).expect("the disk works");
    db.compact().expect("the disk works");
    assert_eq!(table.iter().count(), 1900);
    assert_eq!(table.get(1999_u32.to_be_bytes()).expect("the disk works").as_deref(), Some(&[2; 400][..]));
    assert_eq!(
        smol::block_on(table.get_async(100_u32.to_be_bytes())).expect("it works").map(|value| value.len()),
        Some(400)
    );
    assert!(!Path::new("memory").exists(), "the machine's disk has nothing of it");
    drop((table, db));
    let db = Builder::in_memory().machine(machine).open().expect("the machine is there still");
    assert_eq!(db.table("t").expect("the disk works").iter().count(), 1900);
}

#[test]
fn what_others_are_to_find_needs_a_directory() {
    for builder in [Builder::temporary(), Builder::in_memory()] {
        let built = builder.clone().build_files(TableOptions::default());
        assert!(matches!(built, Err(Error::BadOptions(_))));
        assert!(matches!(builder.compaction_worker(), Err(Error::BadOptions(_))));
    }
}
