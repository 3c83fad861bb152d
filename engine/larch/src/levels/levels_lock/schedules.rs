//! Tests the lock under many thread schedules: a change holds it exclusively, and every wait ends.

use super::LevelsLock;
use os::sync::Arc;
use os::sync::atomic::{AtomicUsize, Ordering};
use os::sync::shuttle::{check_random, thread};

#[test]
fn a_change_has_the_lock_alone_and_every_wait_ends() {
    check_random(
        || {
            let lock = Arc::new(LevelsLock::default());
            let (shared, owned) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let (lock, shared, owned) = (lock.clone(), shared.clone(), owned.clone());
                    thread::spawn(move || {
                        if i % 2 == 0 {
                            let _owned = lock.own();
                            assert_eq!(owned.fetch_add(1, Ordering::SeqCst), 0);
                            assert_eq!(shared.load(Ordering::SeqCst), 0);
                            thread::yield_now();
                            owned.fetch_sub(1, Ordering::SeqCst);
                        } else if let Some(_shared) = lock.try_share() {
                            shared.fetch_add(1, Ordering::SeqCst);
                            assert_eq!(owned.load(Ordering::SeqCst), 0);
                            thread::yield_now();
                            shared.fetch_sub(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
            assert!(lock.try_share().is_some(), "nothing is left of the others");
        },
        1000,
    );
}
