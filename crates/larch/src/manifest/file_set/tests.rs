use super::*;
use os::Machine;
use sst::KeyBounds;

fn meta(newest: u64) -> Meta {
    Meta {
        file_id: 9,
        file_bytes: 8192,
        main: None,
        history: None,
        range_erases: None,
        bounds: KeyBounds::default(),
        oldest: Version(1),
        newest: Version(newest),
        value_bytes: 0,
        user_bytes: 0,
        groups: Vec::new(),
        unknown: Default::default(),
    }
}

/// What is said against `edits` in a set with a table 1, if anything is.
fn refusal(edits: &[Edit]) -> Option<String> {
    let (machine, disk) = Machine::simulated(1);
    let cache = PageCache::new(0, 1, sst::validate);
    let opener = FileOpener { directory: "db".into(), disk, cache, prefer_flat: false };
    let mut set = FileSet::default();
    let table = Edit::Table { id: TableId(1), name: "users".to_owned(), options: TableOptions::default() };
    set.apply(&table, &opener, &mut Vec::new()).expect("it is the first");
    drop(machine);
    edits.iter().find_map(|edit| set.apply(edit, &opener, &mut Vec::new()).err())
}

#[track_caller]
fn check(edit: Edit, expected: &str) {
    assert_eq!(refusal(&[edit]).as_deref(), Some(expected));
}

fn add_file(number: u64, version_offset: u64, newest: u64) -> Edit {
    Edit::AddFile { table: TableId(1), level: 0, number, epoch: 1, version_offset, meta: meta(newest) }
}

#[test]
fn numbers_that_nothing_can_follow_are_refused() {
    let table = |id| Edit::Table { id: TableId(id), name: "last".to_owned(), options: TableOptions::default() };
    check(table(u32::MAX), "table id 4294967295 is the last there can be");
    check(add_file(u64::MAX, 0, 1), "file number 18446744073709551615 is the last there can be");
    check(add_file(u64::MAX - 1, 0, 1), "file number 18446744073709551615 is the last there can be");
    check(add_file(3, u64::MAX, 1), "the versions of a file overflow");
    check(add_file(3, u64::MAX - 1, 1), "version 18446744073709551615 is the last there can be");
    check(Edit::NextNumber(u64::MAX), "file number 18446744073709551615 is the last there can be");
    check(Edit::LastVersion(Version::MAX), "version 18446744073709551615 is the last there can be");
    for edit in [table(u32::MAX - 1), add_file(u64::MAX - 2, u64::MAX - 2, 1), Edit::NextNumber(u64::MAX - 1)] {
        assert_eq!(refusal(&[edit]), None);
    }
}

#[test]
fn a_file_is_added_once() {
    let file = add_file(3, 0, 1);
    assert_eq!(refusal(&[add_file(4, 0, 1), file.clone(), add_file(2, 0, 1)]), None);
    let why = "file 3 is in level 0 of table 1 already";
    assert_eq!(refusal(&[file.clone(), add_file(4, 0, 1), file]).as_deref(), Some(why));
}
