//! Tests that others read what a writer publishes, and never the figures of a dead one.

use super::{METRICS, PERIOD, WRITER, WriterMetrics};
use crate::{Builder, Database};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk as _, Machine};
use std::path::Path;

fn builder(machine: &Machine) -> Builder {
    Database::builder("db").machine(machine.clone())
}

fn machine(seed: u64) -> (Machine, Arc<SimDisk>) {
    Machine::simulated(seed)
}

/// Lets a period pass, and then runs the background work that is due.
fn pass(machine: &Machine, database: &Database) {
    machine.clock.sleep(PERIOD);
    database.core().background.drive();
}

#[test]
fn a_reader_sees_the_figures_of_the_writer_until_it_closes() {
    let (machine, disk) = machine(1);
    let read = || builder(&machine).writer_metrics().expect("the disk works");
    assert_eq!(read(), None, "there is no database");
    let database = builder(&machine).publish_metrics(true).open().expect("the disk works");
    assert_eq!(read(), None, "it has not written for a period");
    pass(&machine, &database);
    let first = read().expect("it publishes");
    assert_eq!((first.process, &first.json), (std::process::id(), &database.metrics().to_json()));
    assert_eq!(first.prometheus, database.metrics().to_prometheus());
    let table = database.table("t").expect("the disk works");
    table.insert("k", "v").expect("the disk works");
    database.flush().expect("the disk works");
    assert_eq!(read().as_ref(), Some(&first), "a write publishes nothing itself");
    pass(&machine, &database);
    let second = read().expect("it publishes");
    assert!(first.json.contains("\"flushes\": 0") && second.json.contains("\"flushes\": 1"), "{}", second.json);
    drop(table);
    database.close().expect("the disk works");
    assert_eq!(read(), None, "it is closed");
    assert!(!disk.exists(&Path::new("db").join(METRICS)).expect("the disk works"));
}

#[test]
fn figures_that_do_not_change_are_not_written_again() {
    let (machine, disk) = machine(2);
    let database = builder(&machine).publish_metrics(true).open().expect("the disk works");
    pass(&machine, &database);
    pass(&machine, &database);
    let writes = disk.counts().writes;
    for _ in 0..5 {
        pass(&machine, &database);
    }
    assert_eq!(disk.counts().writes, writes);
}

#[test]
fn nothing_is_published_unless_it_is_asked_for() {
    let (machine, disk) = machine(3);
    let database = builder(&machine).open().expect("the disk works");
    pass(&machine, &database);
    assert!(!disk.exists(&Path::new("db").join(METRICS)).expect("the disk works"));
    assert_eq!(builder(&machine).writer_metrics().expect("the disk works"), None);
}

#[test]
fn the_file_of_a_dead_writer_is_recognized_and_removed_and_taken_over() {
    let (machine, disk) = machine(4);
    let dead = WriterMetrics { process: 4242, json: "{}\n".to_owned(), prometheus: "# x\n".to_owned() };
    let directory = Path::new("db").join(METRICS);
    let leave = || {
        builder(&machine).open().expect("the disk works").close().expect("the disk works");
        disk.create_dir(&directory).expect("the disk works");
        disk.create_with(&directory.join(WRITER), &dead.to_bytes()).expect("the disk works");
    };
    leave();
    assert_eq!(builder(&machine).writer_metrics().expect("the disk works"), None);
    assert!(!disk.exists(&directory).expect("the disk works"));
    leave();
    let database = builder(&machine).publish_metrics(true).open().expect("the disk works");
    pass(&machine, &database);
    let found = builder(&machine).writer_metrics().expect("the disk works").expect("it publishes");
    assert_eq!(found.json, database.metrics().to_json());
}

#[test]
fn a_state_is_read_as_it_was_written_and_not_after_a_change_of_a_byte() {
    let state = WriterMetrics { process: 4242, json: "{\n}\n".to_owned(), prometheus: "# HELP x\n".to_owned() };
    let bytes = state.to_bytes();
    assert_eq!(
        String::from_utf8_lossy(&bytes),
        "process 4242\njson 4\nprometheus 9\nchecksum f876a1be\n{\n}\n# HELP x\n"
    );
    assert_eq!(WriterMetrics::from_bytes(&bytes), Some(state.clone()));
    let longer = [&bytes[..], b"the end of an older state"].concat();
    assert_eq!(WriterMetrics::from_bytes(&longer), Some(state));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(WriterMetrics::from_bytes(&changed), None, "byte {at}");
        assert_eq!(WriterMetrics::from_bytes(&bytes[..at]), None, "the first {at} bytes");
    }
}
