//! Histories on machines that crash, on disks that fail an operation, and on full disks.
//!
//! The promise is always the same: the database opens again and holds a prefix of the commit order that contains
//! everything that was acknowledged as durable.

use crate::history::History;
use larch::{Error, Result};
use os::sim::SimDisk;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::io::ErrorKind;

/// How many more crashes follow the first one, each at a sync of the recovery from the previous crash, or soon after
/// that recovery.
const MORE_CRASHES: usize = 4;

/// What was compared after crashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    /// Recoveries after a crash.
    pub recoveries: u64,
    /// Recoveries that found rows with values in several parts, each of which was compared.
    pub in_parts: u64,
}

/// Runs the history of `seed` once to count its syncs. Then runs it again up to a crash at each of these syncs, or
/// at `samples` of them if they are more. After each such crash, the history goes on and crashes several more times.
pub fn crash_at_syncs(seed: u64, steps: usize, samples: usize) -> Crashes {
    let mut crashes = Crashes::default();
    let syncs = whole_run(seed, steps).disk().sync_count();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for n in sample(&mut rng, syncs, samples) {
        let _place = Place("crash at sync", n);
        let mut history = History::new(seed);
        history.disk().crash_at_sync(n);
        let mut outcome = history.run(steps);
        for crash in 0..=MORE_CRASHES {
            expect_only_the_crash(&history, outcome);
            history.restart();
            if crash < MORE_CRASHES {
                history.disk().crash_at_sync(rng.random_range(1..20));
            }
            let before = history.compared_in_parts();
            outcome = history.recover();
            crashes.recoveries += u64::from(outcome.is_ok());
            crashes.in_parts += u64::from(outcome.is_ok() && history.compared_in_parts() > before);
            outcome = outcome.and_then(|()| history.go_on(steps / 8));
        }
        outcome.expect("nothing fails after the last crash");
    }
    crashes
}

/// Runs the history of `seed` once for each of its disk operations, or for `samples` of them if they are more, and
/// makes this operation fail.
pub fn fail_operations(seed: u64, steps: usize, samples: usize) {
    let operations = whole_run(seed, steps).disk().operation_count();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for n in sample(&mut rng, operations, samples) {
        let _place = Place("fail operation", n);
        let mut history = History::new(seed);
        let kind = if rng.random() { ErrorKind::Other } else { ErrorKind::StorageFull };
        history.disk().fail_operation(n, kind);
        let loses_writes = rng.random();
        if loses_writes {
            history.disk().lose_writes_of_failed_syncs();
        }
        let Err(error) = history.run(steps) else { continue };
        assert!(!error.is_corruption(), "a failed operation is not corruption: {error}");
        history.disk().clear_faults();
        if history.is_open() && is_final(&error) && !history.failed_in_copy() {
            history.expect_writes_stopped();
        } else if history.is_open() {
            // The failed operation took effect as a whole or not at all. In both cases, the history must go on.
            let outcome = history.resume().and_then(|()| history.go_on(steps / 8));
            expect_to_go_on(outcome);
        }
        // The fault has passed: the same process opens the database again. After that, the machine may crash.
        history.recover().expect("the fault has passed");
        if loses_writes || rng.random() {
            history.restart();
            history.recover().expect("the fault has passed");
        }
        history.go_on(steps / 8).expect("the fault has passed");
    }
}

/// Runs the history of `seed` up to a sync that fails and loses writes, and opens the database again in the same
/// process. The machine crashes after an operation of that recovery: each one in turn, or `samples` of them if they
/// are more. The next recovery must succeed. Returns the number of crashes.
pub fn crash_in_recoveries(seed: u64, steps: usize, samples: usize) -> u64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let n = rng.random_range(1..=whole_run(seed, steps).disk().sync_count());
    let _place = Place("fail sync", n);
    let failed = || {
        let mut history = History::new(seed);
        history.disk().lose_writes_of_failed_syncs();
        history.disk().fail_sync(n, ErrorKind::Other);
        let outcome = history.run(steps);
        history.abandon();
        history.disk().clear_faults();
        outcome.is_err().then_some(history)
    };
    let Some(mut history) = failed() else { return 0 };
    let before = history.disk().operation_count();
    history.recover().expect("the fault has passed");
    let chosen = sample(&mut rng, history.disk().operation_count() - before, samples);
    for &n in &chosen {
        let _place = Place("crash after operations of the recovery", n - 1);
        let mut history = failed().expect("it failed the first time");
        history.disk().fail_all_after(n - 1, ErrorKind::Other);
        if let Err(error) = history.recover() {
            assert!(!error.is_corruption(), "a failed operation is not corruption: {error}");
        }
        history.restart();
        history.recover().expect("the fault has passed");
        history.go_on(steps / 8).expect("the fault has passed");
    }
    chosen.len() as u64
}

/// How many faults a history meets one after the other in [`fail_recoveries`]. Only the recovery from the last one
/// meets no fault.
pub const NESTED_FAULTS: usize = 4;

/// Runs the history of `seed` until it meets a fault. A second fault hits the recovery from the first, a third one
/// the recovery from the second, and so on: [`NESTED_FAULTS`] faults of any kind, each perhaps followed by a crash
/// of the machine. Does all this `samples` times.
pub fn fail_recoveries(seed: u64, steps: usize, samples: usize) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for sample in 0..samples as u64 {
        let _place = Place("faults in recoveries, sample", sample);
        let mut history = History::new(seed);
        history.run(rng.random_range(0..=steps)).expect("the disk does not fail");
        for _ in 0..NESTED_FAULTS {
            let is_crash = arm(&mut rng, history.disk());
            let outcome = if history.is_open() { Ok(()) } else { history.recover() };
            let outcome = outcome.and_then(|()| history.go_on(rng.random_range(0..=steps / 4)));
            if let Err(error) = outcome {
                assert!(!error.is_corruption(), "a fault is not corruption: {error}");
                history.abandon();
            }
            history.disk().set_capacity(u64::MAX);
            if is_crash || rng.random() {
                history.restart();
            } else {
                history.disk().clear_faults();
            }
        }
        history.abandon();
        history.recover().expect("the faults have passed");
        history.go_on(steps / 8).expect("the faults have passed");
    }
}

/// Makes the disk fail soon, in a random way. Returns whether the fault is a crash of the machine.
pub(crate) fn arm(rng: &mut Xoshiro256PlusPlus, disk: &SimDisk) -> bool {
    // A recovery takes a few dozen operations.
    let soon = rng.random_range(1..60);
    let kind = if rng.random() { ErrorKind::Other } else { ErrorKind::StorageFull };
    if rng.random() {
        disk.lose_writes_of_failed_syncs();
    }
    let choice = rng.random_range(0..5);
    match choice {
        0 => disk.crash_at_sync(rng.random_range(1..20)),
        1 => disk.fail_operation(soon, kind),
        2 => disk.fail_all_after(soon, kind),
        3 => disk.fail_sync(rng.random_range(1..20), kind),
        _ => disk.set_capacity(disk.used_bytes() + rng.random_range(0..16 << 10)),
    }
    choice == 0
}

/// Runs the history of `seed` on a disk that fills up again and again.
pub fn fill_the_disk(seed: u64, steps: usize) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut history = History::new(seed);
    history.run(steps / 4).expect("the disk has room");
    for round in 0..6 {
        let _place = Place("fill the disk, round", round);
        let room = rng.random_range(0..40 << 10);
        history.disk().set_capacity(history.disk().used_bytes() + room);
        if let Err(error) = history.go_on(steps) {
            expect_full(&error);
            if rng.random()
                && let Err(error) = history.recover()
            {
                expect_full(&error);
            }
        }
        history.disk().set_capacity(u64::MAX);
        if history.is_open() && rng.random() {
            let outcome = history.resume().and_then(|()| history.go_on(steps / 4));
            expect_to_go_on(outcome);
        }
        if rng.random() {
            history.restart();
            history.recover().expect("the disk has room again");
        } else {
            history.recover().expect("the disk has room again");
        }
        history.go_on(steps / 4).expect("the disk has room again");
    }
}

fn whole_run(seed: u64, steps: usize) -> History {
    let mut history = History::new(seed);
    history.run(steps).expect("the disk does not fail");
    history
}

/// The numbers `1..=last`, or `samples` of them if they are more, in ascending order.
fn sample(rng: &mut Xoshiro256PlusPlus, last: u64, samples: usize) -> Vec<u64> {
    if last <= samples as u64 {
        return (1..=last).collect();
    }
    let mut chosen = rand::seq::index::sample(rng, last as usize, samples).into_vec();
    chosen.sort_unstable();
    chosen.into_iter().map(|n| n as u64 + 1).collect()
}

fn expect_only_the_crash(history: &History, outcome: Result<()>) {
    if let Err(error) = outcome {
        assert!(!error.is_corruption(), "a crash is not corruption: {error}");
        assert!(history.disk().has_crashed(), "an error without a crash: {error}");
    }
}

/// Whether the error means that writes are refused until the database is opened again.
pub(crate) fn is_final(error: &Error) -> bool {
    matches!(error, Error::WritesStopped(_) | Error::OutcomeUnknown { .. })
}

/// Checks the outcome of a call after a fault has passed. The call may succeed, writes may be refused until the
/// database is opened again, or writes may find no room until background work has been tried again.
pub(crate) fn expect_to_go_on(outcome: Result<()>) {
    match outcome {
        Err(error) if !is_final(&error) && !matches!(error, Error::Full { .. }) => {
            panic!("the fault has passed: {error}")
        }
        _ => {}
    }
}

fn expect_full(error: &Error) {
    assert!(error.to_string().contains("space"), "a full disk gives other errors than {error}");
}

/// Says in a panic which fault led to it.
struct Place(&'static str, u64);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} {}", self.0, self.1);
        }
    }
}
