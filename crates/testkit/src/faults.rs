//! Histories on machines that crash, on disks that fail an operation, and on disks that are full.
//!
//! What must hold is always the same: the database opens again and holds a prefix of the commit order that contains
//! everything acknowledged as durable.

use crate::history::History;
use larch::{Error, LogError, Result};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::io::ErrorKind;

/// Crashes after the first, at syncs of the recovery or soon after it.
const MORE_CRASHES: usize = 4;

/// What was compared after crashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    /// Recoveries after a crash.
    pub recoveries: u64,
    /// Of these, recoveries that found rows in several parts, and compared each part.
    pub in_parts: u64,
}

/// Runs the history of `seed` once, then `samples` times up to a crash at one of its syncs; every sync if there are not
/// more. After a crash it goes on and crashes again, several times.
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

/// Runs the history of `seed` with one failing operation, `samples` times, every operation if there are not more.
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
        if history.is_open() && is_failed_write(&error) {
            history.expect_writes_stopped();
        }
        // The fault has passed: the same process opens again, and the machine may crash after that.
        history.recover().expect("the fault has passed");
        if loses_writes || rng.random() {
            history.restart();
            history.recover().expect("the fault has passed");
        }
        history.go_on(steps / 8).expect("the fault has passed");
    }
}

/// Runs the history of `seed` into a full disk, again and again.
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

/// At most `samples` of `1..=last`, ascending.
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

/// Whether a log or the manifest could not be written.
fn is_failed_write(error: &Error) -> bool {
    match error {
        Error::WritesStopped(_) => true,
        Error::Log(LogError::Io { action, .. }) => ["append to", "sync"].contains(action),
        _ => false,
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
