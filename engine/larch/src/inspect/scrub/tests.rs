//! Tests that the background scrub reads every page at the given rate, and reports damage.

use crate::event::Event;
use crate::options::LevelOptions;
use crate::{Database, Table, TableOptions};
use os::sim::SimDisk;
use os::sync::{Arc, Mutex};
use os::{Disk, Machine};
use std::path::{Path, PathBuf};
use std::time::Duration;

const RATE: u64 = 32 << 10;

struct Scrubbed {
    machine: Machine,
    disk: Arc<SimDisk>,
    db: Database,
    events: Arc<Mutex<Vec<String>>>,
}

impl Scrubbed {
    fn open(disk: Arc<SimDisk>, rate: u64) -> Self {
        let machine = Machine::simulated_on(disk.clone(), 1);
        let levels = LevelOptions { level0_files: 100, ..LevelOptions::default() };
        let builder = Database::builder("db").machine(machine.clone()).levels(levels);
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = events.clone();
        let hook = move |event: &Event| {
            if event.name() == "damaged" {
                heard.lock().push(event.to_string());
            }
        };
        let db = builder.scrub_bytes_per_second(rate).on_event(hook).open().expect("the disk works");
        Self { machine, disk, db, events }
    }

    /// Lets `seconds` pass, and after each second runs the background work that is due.
    fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.machine.clock.sleep(Duration::from_secs(1));
            self.db.core().background.drive();
        }
    }
}

/// Begins to scrub a database with three files of pages of many kinds. Returns the database, its table, and the bytes
/// of the files.
fn filled(seed: u64, rate: u64) -> (Scrubbed, Table, u64) {
    let (_, disk) = Machine::simulated(seed);
    let of = Scrubbed::open(disk.clone(), 0);
    fill(&of.db);
    drop(of);
    let of = Scrubbed::open(disk, rate);
    let table = of.db.table("t").expect("it is there");
    let bytes = table.stats().expect("it is there").file_bytes;
    (of, table, bytes)
}

fn fill(db: &Database) {
    let groups = vec!["hot".to_owned(), "cold".to_owned()];
    let options = TableOptions { page_bytes: 512, node_bytes: 512, groups, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut snapshots = Vec::new();
    for round in 0u32..3 {
        // Newer files hide only few rows of older ones. If they hid many, the table would be compacted as soon as
        // it is at rest.
        for row in 0..if round == 0 { 300 } else { 40 } {
            let value = if row % 40 == 0 { vec![b'l'; 900] } else { vec![b's'; 30] };
            table.insert_parts(format!("row{row:04}"), &[&value[..], b"cold"]).expect("the disk works");
            if row == 20 {
                snapshots.push(db.snapshot());
            }
        }
        table
            .remove_range(format!("row{:04}", round * 10)..format!("row{:04}", round * 10 + 5))
            .expect("the disk works");
        db.flush().expect("the disk works");
    }
}

#[test]
fn every_page_is_read_at_the_rate_and_none_again_within_the_hour() {
    let (of, table, bytes) = filled(1, RATE);
    let pages = table.check(|_| {}).expect("the disk works").pages;
    let before = of.db.metrics();
    assert!(before.scrubbed_bytes < bytes / 2);
    of.pass(bytes / RATE / 2);
    let half = of.db.metrics();
    // The first piece begins at once, with the bytes of a whole second. The last page of a piece may exceed its
    // bytes.
    assert!(half.scrubbed_bytes - before.scrubbed_bytes <= bytes / 2 + 2 * RATE, "{} of {bytes}", half.scrubbed_bytes);
    assert_eq!(half.scrub_rounds, 0);
    of.pass(bytes / RATE + 5);
    let whole = of.db.metrics();
    assert_eq!((whole.scrub_rounds, whole.damaged_pages), (1, 0));
    // All bytes of the files, except the footers and the padding between pages.
    let stats = table.stats().expect("it is there");
    let of_pages = stats.data_bytes + stats.group_bytes + stats.group_history_bytes + stats.index_bytes;
    let of_pages = of_pages + stats.filter_bytes + stats.history_bytes + stats.value_bytes + stats.range_erase_bytes;
    assert_eq!(whole.scrubbed_bytes, of_pages, "{pages} pages");
    of.pass(600);
    assert_eq!(of.db.metrics().scrubbed_bytes, of_pages, "a round an hour");
    of.pass(3_600 + bytes / RATE);
    assert_eq!(of.db.metrics().scrub_rounds, 2);
}

#[test]
fn damage_is_counted_listed_and_said_although_the_page_is_in_memory() {
    let (of, table, bytes) = filled(2, RATE);
    // The whole table is in memory, so reads of rows do not find the damage on disk.
    table.warm(..).expect("the disk works");
    let entries = of.disk.list(Path::new("db")).expect("the disk works");
    let sst = entries.into_iter().find(|entry| entry.name.ends_with(".sst")).expect("it was flushed");
    let sst: PathBuf = Path::new("db").join(sst.name);
    of.disk.flip_bit(&sst, 100, 3);
    of.pass(2 * bytes / RATE + 5);
    let metrics = of.db.metrics();
    assert_eq!((metrics.scrub_rounds, metrics.damaged_pages), (1, 1));
    let problems = of.db.damage();
    assert!(problems.len() == 1 && problems[0].file == sst && problems[0].table == "t", "{problems:?}");
    assert!(problems[0].error.is_corruption());
    let said = of.events.lock().clone();
    assert!(said.len() == 1 && said[0].contains("offset 0"), "{said:?}");
}

#[test]
fn it_is_off_unless_asked_for() {
    let (of, ..) = filled(3, 0);
    of.pass(10_000);
    assert_eq!((of.db.metrics().scrubbed_bytes, of.db.metrics().scrub_rounds), (0, 0));
}

#[test]
fn files_that_a_compaction_replaces_are_no_damage() {
    let (of, table, bytes) = filled(4, RATE);
    of.pass(bytes / RATE / 3);
    table.compact().expect("the disk works");
    of.pass(3 * bytes / RATE);
    let metrics = of.db.metrics();
    assert_eq!((metrics.scrub_rounds, metrics.damaged_pages), (1, 0));
}
