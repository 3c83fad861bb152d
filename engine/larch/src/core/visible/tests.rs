//! Tests which versions are visible when commits are applied in any order.

#![allow(clippy::disallowed_methods, reason = "threads that commit at the same time are what is tested")]

use super::*;
use std::thread;

#[test]
fn a_version_is_shown_once_all_older_ones_are_applied() {
    let visible = Visible::new(Version(6));
    let [a, b, c] = [7, 8, 9].map(|version| visible.begin(Version(version)));
    visible.note_applied(c.version);
    assert_eq!(visible.newest(), Version(6));
    a.finish().expect("it is the oldest");
    assert_eq!(visible.newest(), Version(7));
    b.finish().expect("it is the oldest");
    assert_eq!(visible.newest(), Version(9));
    c.finish().expect("it is shown");
    visible.advance(Version(10));
    visible.begin(Version(11)).finish().expect("it is the only one");
    assert_eq!(visible.newest(), Version(11));
}

#[test]
fn commits_after_one_that_panicked_get_an_error_and_those_before_it_do_not() {
    let visible = Visible::new(Version(0));
    let [a, b, c] = [1, 2, 3].map(|version| visible.begin(Version(version)));
    drop(b);
    assert!(c.finish().is_err() && visible.wait(Version(2)).is_err());
    a.finish().expect("it is older");
    assert_eq!(visible.newest(), Version(1));
    assert!(visible.wait(Version(1)).is_ok() && visible.wait_for_slot(Version(SLOTS + 2)).is_err());
}

#[test]
fn each_commit_of_many_threads_returns_when_it_is_shown() {
    const THREADS: u64 = 8;
    const COMMITS: u64 = 2000;
    let (visible, next) = (Visible::new(Version(0)), Mutex::new(1));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..COMMITS {
                    let applying = {
                        let mut next = next.lock();
                        visible.wait_for_slot(Version(*next)).expect("no thread panics");
                        *next += 1;
                        visible.begin(Version(*next - 1))
                    };
                    let version = applying.version;
                    applying.finish().expect("no thread panics");
                    assert!(visible.newest() >= version);
                }
            });
        }
    });
    assert_eq!(visible.newest(), Version(THREADS * COMMITS));
}

/// A worker that counts its wakes.
#[derive(Debug, Default)]
struct Woken(AtomicUsize);

impl Worker for Woken {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn wake_first(&self) {}
    fn wake_after(&self, _: Duration) {}
    fn drive(&self) {}
    fn stop(&self) {}
    fn join(&self) {}
}

#[test]
fn a_watcher_is_woken_once_when_its_version_is_shown_or_never_will_be() {
    let visible = Visible::new(Version(0));
    let workers: [Arc<Woken>; 3] = Default::default();
    let numbers = [(); 3].map(|()| visible.new_watcher());
    let woken = || workers.each_ref().map(|worker| worker.0.swap(0, Ordering::Relaxed));
    let watch = |at: usize, version| visible.watch(numbers[at], Version(version), workers[at].clone());
    assert!(matches!(watch(0, 0), Ok(false)), "it is shown");
    assert!(matches!((watch(0, 1), watch(1, 2), watch(2, 1)), (Ok(true), Ok(true), Ok(true))));
    assert!(matches!(watch(2, 3), Ok(true)), "it watches another version from now on");
    visible.begin(Version(1)).finish().expect("it is the only one");
    assert_eq!(woken(), [1, 0, 0]);
    visible.unwatch(numbers[1]);
    visible.begin(Version(2)).finish().expect("it is the only one");
    assert_eq!(woken(), [0; 3]);
    drop(visible.begin(Version(3)));
    assert_eq!(woken(), [0, 0, 1], "a commit has panicked");
    assert!(watch(0, 3).is_err() && watch(0, 2).is_ok());
    assert_eq!(visible.waiting.load(Ordering::Relaxed), 0, "nobody waits any more");
}
