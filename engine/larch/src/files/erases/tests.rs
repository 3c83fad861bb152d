//! Tests that a merge of range erases stops when it is told to, and refuses a damaged file. Tests of whole
//! databases check the merged range erases.

use crate::compact::execute;
use crate::levels::pick;
use crate::manifest::Edit;
use crate::manifest::directory::fresh::FreshFiles;
use crate::{Database, Durability, Error, Table};
use os::sim::SimDisk;
use os::{Access, Disk, Machine};
use sst::{BuildOptions, KeyRange, SstBuilder, Version};

fn key(i: u32) -> Vec<u8> {
    format!("{i:08}").into_bytes()
}

/// Merges all files of `table`, as long as `go_on` returns true.
fn merge_while(table: &Table, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<bool, Error> {
    let core = table.core();
    let files = core.views.newest().files.tables[&table.id()].clone();
    let _levels = core.writes.levels.own();
    execute::execute(core, &files, &pick::everything(&files, 0, false), go_on)
}

#[test]
fn a_merge_of_nothing_but_range_erases_stops_when_it_is_told_to() {
    const ERASES: u32 = 40_000;
    let disk = SimDisk::new(1);
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1));
    let db = builder.write_buffer_bytes(64 << 20).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let _snapshot = db.snapshot();
    for first in (0..ERASES).step_by(1000) {
        let mut batch = db.batch().durability(Durability::Buffered);
        (first..first + 1000).for_each(|i| batch.remove_range(&table, key(2 * i)..key(2 * i + 1)));
        batch.commit().expect("the disk works");
    }
    db.flush().expect("the disk works");
    let files = || disk.list("db".as_ref()).expect("it is there");
    let before = files().len();
    let mut asked = Vec::new();
    let done = merge_while(&table, &mut |done, all| {
        asked.push((done, all));
        asked.len() < 2
    });
    assert!(!done.expect("the disk works"), "it did not stop");
    assert_eq!(asked.len(), 2);
    assert!(asked[0].0 < asked[1].0 && asked[1].0 < asked[1].1 / 2, "{asked:?}");
    assert_eq!(files().len(), before, "nothing is left of it");
    assert!(merge_while(&table, &mut |_, _| true).expect("the disk works"));
}

#[test]
fn range_erases_that_leave_the_bounds_of_their_file_make_no_merge_panic() {
    let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let core = table.core();
    for start in [b"b", b"a"] {
        let number = core.writes.new_number();
        let path = core.env.opener.path(number, core.env.epoch);
        let file = core.env.machine.disk.open(&path, Access::Create).expect("the disk works");
        let mut builder = SstBuilder::new(file, path, number, BuildOptions::default());
        builder.add_range_erase(&KeyRange { start, end: Some(b"d") }, &[Version(number)]).expect("the disk works");
        let mut meta = builder.finish().expect("the disk works");
        meta.bounds.low = b"c".to_vec();
        let (table, epoch) = (table.id(), core.env.epoch);
        let edit = Edit::AddFile(crate::manifest::NewFile { table, level: 0, number, epoch, version_offset: 0, meta });
        core.install(&[edit], FreshFiles::new(&core.env.opener.leftovers), |_| {}).expect("the disk works");
    }
    let error = merge_while(&table, &mut |_, _| true).expect_err("the bounds are wrong");
    assert!(error.to_string().contains("begins before the bounds of the file"), "{error}");
}
