//! Checks that a client of a run takes a few hundred bytes and needs no thread.

#![allow(clippy::disallowed_methods, reason = "the machine's own allocator is counted")]

use harness::noop::Noop;
use harness::{Length, Pace, Plan};
use kit::allocations::{Counting, Process};
use std::sync::atomic::AtomicBool;
use ycsb::{Run, Settings, built_in};

#[global_allocator]
static COUNTING: Counting<Process> = Counting::new();

/// The most bytes of memory that a run of `workload` with `clients` clients takes. Each client does two operations.
fn peak_bytes(workload: &str, clients: usize, pace: Pace) -> u64 {
    let mut properties = built_in(workload).expect("it is built in");
    properties.set("recordcount", "1000");
    let settings = Settings::new(&properties, &|_| Err("no files".to_owned())).expect("good values");
    let run = Run::new(&settings, 1);
    let length = Length::Operations(2 * clients as u64);
    let plan = Plan { clients, workers: 2, pace, length, ..Plan::default() };
    Process::peak_during(|| {
        let store = Noop::flying(usize::MAX);
        let measured = harness::run(&store, &run, &plan, &AtomicBool::new(false), &mut |_| {}).expect("runs");
        assert_eq!((measured.operations, measured.cost.client_threads), (2 * clients as u64, 2));
    })
}

/// The bytes for a client that only reads. It has a buffer for a key. A client that writes also has a buffer for a
/// value of 100 bytes.
const READER_BYTES: u64 = 640;
const WRITER_BYTES: u64 = 800;

#[test]
fn a_hundred_thousand_clients_take_some_hundred_bytes_each_and_two_threads() {
    for (workload, pace, most) in [
        ("c", Pace::Closed, READER_BYTES),
        ("c", Pace::Open { per_second: 1e9 }, READER_BYTES),
        ("a", Pace::Closed, WRITER_BYTES),
    ] {
        let few = peak_bytes(workload, 1_000, pace);
        let many = peak_bytes(workload, 100_000, pace);
        let each = many.saturating_sub(few) / 99_000;
        println!("workload {workload}, {pace:?}: {each} bytes a client");
        assert!(each <= most, "workload {workload}, {pace:?}: {each} bytes a client, at most {most}");
    }
}
