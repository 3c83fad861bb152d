use super::*;
use os::sim::SimDisk;
use std::io::ErrorKind;

fn create() -> (Arc<SimDisk>, RestingDisk, Arc<dyn File>) {
    let disk = SimDisk::new(1);
    let resting = RestingDisk::new(disk.clone());
    let file = resting.open(Path::new("f"), Access::Create).expect("the name is free");
    disk.sync_dir(Path::new("")).expect("no faults");
    (disk, resting, file)
}

#[test]
fn a_file_that_rests_is_open_again_when_it_is_written() {
    let (disk, resting, file) = create();
    file.write_at(b"abc", 0).expect("there is room");
    assert_eq!(disk.open_handles(), 1);
    resting.rest().expect("no faults");
    assert_eq!(disk.open_handles(), 0, "it takes no descriptor");
    file.sync().expect("nothing is left to sync");
    assert_eq!(disk.open_handles(), 0);
    file.write_at(b"def", 3).expect("there is room");
    assert_eq!((file.append(b"ghi").expect("there is room"), disk.open_handles()), (6, 1));
    file.sync().expect("no faults");
    disk.crash_keeping_nothing();
    assert_eq!(disk.read_all(Path::new("f")).expect("it is there"), b"abcdefghi");
}

#[test]
fn what_was_written_is_durable_before_the_file_is_closed() {
    let (disk, resting, file) = create();
    file.write_at(b"abc", 0).expect("there is room");
    let syncs = disk.sync_count();
    resting.rest().expect("no faults");
    assert_eq!(disk.sync_count(), syncs + 1);
    resting.rest().expect("no faults");
    assert_eq!(disk.sync_count(), syncs + 1, "a file that rests is not synced");
    disk.crash_keeping_nothing();
    assert_eq!(disk.read_all(Path::new("f")).expect("it is there"), b"abc");
}

#[test]
fn a_failed_sync_is_final_though_the_file_could_be_opened_again() {
    for by_rest in [false, true] {
        let (disk, resting, file) = create();
        file.write_at(b"abc", 0).expect("there is room");
        disk.fail_operation(1, ErrorKind::Other);
        let outcome = if by_rest { resting.rest() } else { file.sync() };
        assert!(outcome.is_err());
        disk.clear_faults();
        resting.rest().expect("it has told of the error");
        for _ in 0..2 {
            assert!(file.sync().is_err(), "the bytes may be gone");
            assert!(file.write_at(b"d", 3).is_err());
        }
    }
}

#[test]
fn an_open_that_fails_is_an_error_of_the_write_and_is_tried_again() {
    let (disk, resting, file) = create();
    resting.rest().expect("no faults");
    disk.fail_opens("f", ErrorKind::Other);
    assert!(file.write_at(b"abc", 0).is_err());
    disk.clear_faults();
    file.write_at(b"abc", 0).expect("there is room");
    file.sync().expect("no faults");
    assert_eq!(disk.read_all(Path::new("f")).expect("it is there"), b"abc");
}
