use super::*;

#[test]
fn a_line_of_a_process_is_read_behind_its_name() {
    let line = "17 (a) b (c) S 4 17 17 0 -1 4194560 1 2 3 4 100 20 3000 400 20 0 1 0 5 6 7";
    assert_eq!(parsed(line), Some(Process { parent: 4, ticks: 120, ended_ticks: 3400 }));
    assert_eq!(parsed("17 (a) S 4"), None);
}

#[test]
fn children_of_children_are_below() {
    let process = |parent| Process { parent, ticks: 0, ended_ticks: 0 };
    let all = BTreeMap::from([(1, process(0)), (5, process(1)), (7, process(5)), (9, process(7)), (8, process(1))]);
    assert_eq!(below(&all, 5), [5, 7, 9]);
}

#[test]
fn this_process_is_below_the_one_that_started_it() {
    let this = std::process::id();
    let name = std::fs::read_to_string("/proc/self/comm").expect("Linux has it");
    let parent = parent_of(this, name.trim_end()).expect("it has a parent");
    assert_eq!(parent_of(this, "another name"), None);
    let (own, all) = (used_below(this).expect("it runs"), used_below(parent).expect("it runs"));
    assert!(own.nanos <= all.nanos, "{own:?} {all:?}");
    assert_eq!(used_below(u32::MAX), None);
}

#[test]
fn bytes_written_are_neither_those_of_whole_folios_nor_those_of_a_terminal() {
    // A process made a hundred writes of 8 KiB and synced each one. The file has folios of 2 MiB.
    let folios = "rchar: 1\nwchar: 819200\nread_bytes: 0\nwrite_bytes: 209715200\ncancelled_write_bytes: 0\n";
    assert_eq!(written_bytes(folios), Some(819_200));
    let terminal = "wchar: 500000\nwrite_bytes: 4096\n";
    assert_eq!(written_bytes(terminal), Some(4096));
    assert_eq!(written_bytes("wchar: 5\n"), None);
}
