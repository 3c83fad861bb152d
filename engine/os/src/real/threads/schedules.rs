//! What a pool promises under random schedules (`cargo x shuttle`): every wake is followed by a poll, and a worker that
//! was stopped and joined is never polled again.

use super::ThreadPool;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::shuttle::{self, thread};
use crate::sync::{Arc, Condvar, Mutex};
use crate::{Job, Polled, Priority, Threads, Worker};
use std::time::Duration;

const SCHEDULES: usize = 2000;

/// Takes the waiting work, one piece in each poll.
#[derive(Default)]
struct Pieces {
    waiting: AtomicUsize,
    is_stopped: AtomicBool,
    done: Mutex<usize>,
    progress: Condvar,
}

impl Job for Pieces {
    fn poll(&self) -> Polled {
        assert!(!self.is_stopped.load(Ordering::SeqCst), "it was stopped");
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return Polled::Idle;
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        *self.done.lock() += 1;
        self.progress.notify_all();
        Polled::Worked
    }
}

#[test]
fn every_wake_is_followed_by_a_poll_and_none_comes_after_the_end() {
    let run = || {
        let pool = ThreadPool::with_spawn(3, Duration::ZERO, |life| {
            thread::spawn(life);
            Ok(())
        });
        let jobs: Vec<Arc<Pieces>> = (0..2).map(|_| Arc::default()).collect();
        let workers: Vec<Arc<dyn Worker>> = jobs
            .iter()
            .zip([Priority::Normal, Priority::High])
            .map(|(job, priority)| pool.worker(priority, job.clone()).into())
            .collect();
        let wakers: Vec<_> = (0..2)
            .map(|i| {
                let (job, worker) = (jobs[i].clone(), workers[i].clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        job.waiting.fetch_add(1, Ordering::SeqCst);
                        worker.wake();
                    }
                })
            })
            .collect();
        wakers.into_iter().for_each(|waker| waker.join().expect("it does not panic"));
        for (job, worker) in jobs.iter().zip(&workers) {
            let mut done = job.done.lock();
            while *done < 2 {
                done = job.progress.wait(done);
            }
            drop(done);
            worker.stop();
            worker.join();
            job.is_stopped.store(true, Ordering::SeqCst);
            worker.wake();
        }
    };
    shuttle::check_random(run, SCHEDULES);
}
