//! Tests that a run does not reset the peak memory of the process, because programs that watch the process read
//! this peak.

#![allow(clippy::disallowed_methods, reason = "the process is asked of the machine")]

use harness::noop::Noop;
use harness::{Client, Extra, Failure, Fields, Kind, Length, Next, Outcome, Plan, Reply, Request, Workload};
use std::hint::black_box;
use std::sync::atomic::AtomicBool;

struct Reads;

struct Reader;

impl Workload for Reads {
    type Client = Reader;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ"]
    }

    fn client(&self, _: usize, _: usize) -> Reader {
        Reader
    }
}

impl Client for Reader {
    fn begin(&mut self) -> bool {
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(0), Request::Read { key: b"key", fields: Fields::All })
    }

    fn served(&mut self, _: Result<Outcome, &Failure>, _: &Reply, _: &mut Extra<'_>) -> Next {
        Next::Done
    }
}

/// The peak memory of this process in bytes, as `/usr/bin/time` sees it.
fn greatest_bytes() -> u64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("the system tells");
    usage.max_rss() as u64 * 1024
}

#[test]
fn a_run_does_not_reset_what_others_read_of_the_process() {
    const BYTES: u64 = 128 << 20;
    // The vector is so large that the allocator returns its memory to the system when the vector is dropped.
    drop(black_box(vec![1_u8; BYTES as usize]));
    let before = greatest_bytes();
    assert!(before >= BYTES, "{before}");
    let plan = Plan { length: Length::Operations(1000), ..Plan::default() };
    let measured = harness::run(&Noop::waiting(), &Reads, &plan, &AtomicBool::new(false), &mut |_| {}).expect("runs");
    assert!(greatest_bytes() >= before, "{} of {before}", greatest_bytes());
    let cost = measured.cost;
    assert!(cost.peak_of_window && cost.peak_bytes >= cost.resident_bytes && cost.peak_bytes < BYTES, "{cost:?}");
}
