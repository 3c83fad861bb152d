//! Tests how often reads of a distant object store wait: once for all requests that are under way together.

use super::{MACHINE_BYTES, ahead_bytes};
use crate::{Builder, Database, Table};
use os::sync::{Arc, Mutex};
use os::{Machine, ReadRequest, Reads};
use std::fmt;
use std::time::Duration;

const DIRECTORY: &str = "db";
const ROWS: u32 = 40_000;
const VALUE_BYTES: usize = 400;

/// A disk whose reads all take the same time, however many are under way together.
struct FarReads {
    latency: Duration,
    state: Mutex<FarReadsState>,
}

#[derive(Default)]
struct FarReadsState {
    under_way: Vec<ReadRequest>,
    trips: u64,
    most_bytes: usize,
}

impl FarReads {
    fn new(latency: Duration) -> Arc<FarReads> {
        Arc::new(FarReads { latency, state: Mutex::default() })
    }

    /// Returns how often a reader has waited and the most bytes that were under way together, and resets both to 0.
    fn take(&self) -> (u64, usize) {
        let state = &mut *self.state.lock();
        (std::mem::take(&mut state.trips), std::mem::take(&mut state.most_bytes))
    }
}

impl Reads for FarReads {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let state = &mut *self.state.lock();
        state.under_way.extend(reads);
        let bytes = state.under_way.iter().map(|read| read.buffer.len()).sum();
        state.most_bytes = state.most_bytes.max(bytes);
    }

    fn raise(&self, _: u64) {}

    fn make(&self, read: ReadRequest) {
        self.state.lock().trips += 1;
        read.make();
    }

    fn latency(&self) -> Duration {
        self.latency
    }

    fn name(&self) -> &'static str {
        "far"
    }

    fn drive(&self) -> bool {
        let arrived = {
            let state = &mut *self.state.lock();
            state.trips += u64::from(!state.under_way.is_empty());
            std::mem::take(&mut state.under_way)
        };
        let has_some = !arrived.is_empty();
        arrived.into_iter().for_each(ReadRequest::make);
        has_some
    }
}

impl fmt::Debug for FarReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FarReads").field("latency", &self.latency).finish_non_exhaustive()
    }
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

/// Bytes that cannot be compressed.
fn value(row: u32) -> Vec<u8> {
    let mut state = u64::from(row) + 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..VALUE_BYTES).map(|_| next()).collect()
}

/// A machine with a database that has 16 MB in files.
fn filled() -> Machine {
    let (machine, _) = Machine::simulated(1);
    let db = builder(&machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut import = table.import().expect("the disk works");
    (0..ROWS).for_each(|row| import.add(&key(row), &value(row)).expect("the disk works"));
    import.finish(|_| {}).expect("the disk works");
    machine
}

fn builder(machine: &Machine) -> Builder {
    Database::builder(DIRECTORY).machine(machine.clone()).reserve_bytes(0).cache_bytes(64 << 20)
}

/// Opens the database on a disk whose reads take `latency`, with no page in memory.
fn open_far(machine: &Machine, latency: Duration) -> (Table, Arc<FarReads>) {
    let reads = FarReads::new(latency);
    let machine = Machine { reads: reads.clone(), ..machine.clone() };
    let db = builder(&machine).read_only(true).open().expect("it is there");
    let table = db.existing_table("t").expect("the disk works").expect("it is there");
    reads.take();
    (table, reads)
}

#[test]
fn a_scan_waits_less_often_the_further_away_it_reads() {
    let machine = filled();
    let mut trips = Vec::new();
    for millis in [0, 5, 30, 1000] {
        let (table, reads) = open_far(&machine, Duration::from_millis(millis));
        let rows = table.range(..).map(|row| row.expect("the disk works").0);
        assert!(rows.eq((0..ROWS).map(|row| Box::from(key(row)))), "{millis} ms");
        let (waits, most_bytes) = reads.take();
        assert!(most_bytes as u64 <= (64 << 20) / 4, "{millis} ms: {most_bytes} bytes were under way");
        trips.push(waits);
    }
    // The data has 16 MB. Without latency, a reader first asks for one page and then for 16 KiB. Each later request
    // is twice as large, up to windows of 8 MiB.
    assert!(trips[0] >= 11, "{trips:?}");
    assert!(trips[1] <= trips[0] - 3, "{trips:?}: what comes in 5 ms are 320 KiB");
    assert!(trips[2] < trips[1] && trips[3] <= trips[2], "{trips:?}");
    println!("waits for near reads, and for those 5 ms, 30 ms and 1 s away: {trips:?}");
}

#[test]
fn a_short_range_asks_for_no_more_than_a_page_before_it_goes_on() {
    let machine = filled();
    let (table, reads) = open_far(&machine, Duration::from_millis(30));
    let (first, _) = table.range(key(17)..).next().expect("there are more").expect("the disk works");
    assert_eq!(*first, key(17));
    let (_, most_bytes) = reads.take();
    assert!(most_bytes <= 64 << 10, "{most_bytes} bytes were under way");
}

#[test]
fn pages_are_loaded_in_larger_pieces_from_far_away() {
    let machine = filled();
    let mut trips = Vec::new();
    for millis in [0, 5, 30] {
        let (table, reads) = open_far(&machine, Duration::from_millis(millis));
        let warmed = table.warm(..).expect("the disk works");
        assert!(warmed.is_whole, "{millis} ms");
        trips.push(reads.take().0);
    }
    // Without latency, pages are loaded in pieces of 1 MiB. With a latency of 5 ms, a piece is an eighth of the
    // cache.
    assert!(trips[0] >= 16 && trips[1] <= trips[0] / 3, "{trips:?}");
    assert!(trips[2] <= trips[1], "{trips:?}");
}

#[test]
fn windows_widen_up_to_a_quarter_of_the_cache() {
    let (machine, _) = Machine::simulated(2);
    let db = builder(&machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let cache = &table.core().env.cache;
    let bytes = |micros| ahead_bytes(cache, Duration::from_micros(micros));
    assert_eq!((bytes(0), bytes(100)), (8 << 20, 8 << 20), "an eighth");
    assert_eq!(bytes(5_000), MACHINE_BYTES / 100, "twice what comes in 5 ms");
    assert_eq!(bytes(1_000_000), 16 << 20);
}
