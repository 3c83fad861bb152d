//! Tests the invariants of visible versions under many schedules of threads. Shuttle runs several threads in random
//! schedules, and loom runs two threads in all schedules.

use super::*;
use os::sync::Arc;
use os::sync::atomic::Ordering::Relaxed;
#[cfg(loom)]
use os::sync::loom::thread;
#[cfg(shuttle)]
use os::sync::shuttle::{self, thread};

/// What the threads share.
struct Commits {
    visible: Visible,
    next: Mutex<u64>,
    /// For each version, the number that its commit wrote.
    rows: Vec<AtomicU64>,
    /// The version whose thread panics, or 0 if no thread panics.
    panicking: u64,
}

impl Commits {
    fn commit(&self) {
        let (version, applying) = {
            let mut next = self.next.lock();
            let version = Version(*next);
            if self.visible.wait_for_slot(version).is_err() {
                assert!(self.panicking != 0);
                return;
            }
            *next += 1;
            (version, self.visible.begin(version))
        };
        self.rows[version.0 as usize].store(version.0, Relaxed);
        if version.0 == self.panicking {
            return;
        }
        match applying.finish() {
            Ok(()) => {
                assert!(self.visible.newest() >= version, "a commit returns when reads see it");
                self.read();
            }
            Err(Broken) => assert!(self.panicking != 0 && self.panicking < version.0),
        }
    }

    fn read(&self) {
        let newest = self.visible.newest().0;
        assert!(self.panicking == 0 || newest < self.panicking);
        for version in 1..=newest {
            assert_eq!(self.rows[version as usize].load(Relaxed), version, "what is shown is applied");
        }
    }
}

fn check(threads: u64, commits: u64, panicking: u64) {
    let all = threads * commits;
    let commits_of = Arc::new(Commits {
        visible: Visible::new(Version(0)),
        next: Mutex::new(1),
        rows: (0..=all).map(|_| AtomicU64::new(0)).collect(),
        panicking,
    });
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let shared = commits_of.clone();
            thread::spawn(move || (0..commits).for_each(|_| shared.commit()))
        })
        .collect();
    commits_of.read();
    threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    let newest = commits_of.visible.newest().0;
    assert_eq!(newest, if panicking == 0 { all } else { panicking - 1 });
}

#[cfg(shuttle)]
fn check_schedules(threads: u64, commits: u64, panicking: u64) {
    shuttle::check_random(move || check(threads, commits, panicking), 5_000);
    shuttle::check_pct(move || check(threads, commits, panicking), 5_000, 3);
}

#[cfg(loom)]
fn check_schedules(_: u64, _: u64, panicking: u64) {
    let mut model = os::sync::loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || check(2, 1, panicking));
}

#[test]
fn every_commit_is_shown_in_order_in_every_schedule() {
    check_schedules(4, 3, 0);
}

#[test]
fn nothing_waits_for_a_commit_that_panicked_in_any_schedule() {
    check_schedules(3, 2, 1);
    check_schedules(3, 2, 2);
}
