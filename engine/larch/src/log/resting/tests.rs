#![allow(clippy::disallowed_methods, reason = "threads that sync beside each other are what is tested")]

use super::*;
use crate::log::tests::{Gate, GatedDisk};
use os::sim::SimDisk;
use std::io::ErrorKind;
use std::thread;

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

/// Of two concurrent syncs, the system reports a failure to only one.
#[test]
fn syncs_of_a_file_do_not_run_beside_each_other_so_that_both_learn_of_an_error() {
    for _ in 0..20 {
        let gate = Gate::new(true);
        let resting = RestingDisk::new(Arc::new(GatedDisk(SimDisk::new(1), gate.clone())));
        let file = resting.open(Path::new("f"), Access::Create).expect("the name is free");
        file.write_at(b"abc", 0).expect("there is room");
        gate.set(false);
        let is_second_there = &AtomicU64::new(0);
        thread::scope(|scope| {
            let first = scope.spawn(|| resting.rest());
            gate.wait_for_arrivals(1);
            let second = scope.spawn(|| {
                is_second_there.store(1, Ordering::SeqCst);
                file.sync()
            });
            // The second thread is about to sync. If the gate opens before it does, the test proves less, but does
            // not fail.
            while is_second_there.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            gate.set(true);
            assert!(first.join().expect("it does not panic").is_err());
            assert!(second.join().expect("it does not panic").is_err());
        });
        assert_eq!(gate.arrived(), 1, "the second one has not asked the system");
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
