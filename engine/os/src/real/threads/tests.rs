use super::{IDLE_TIME, ThreadPool};
use crate::job::Duty;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, OnceLock};
use crate::{Job, Polled, Priority, Threads, Worker};
use std::io;
use std::time::Duration;

/// Work that is handed over one piece at a time, and counted when done.
#[derive(Default)]
struct Pieces {
    waiting: AtomicU64,
    done: Mutex<u64>,
    progress: Condvar,
}

impl Job for Pieces {
    fn poll(&self) -> Polled {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return Polled::Idle;
        }
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        *self.done.lock() += 1;
        self.progress.notify_all();
        Polled::Worked
    }
}

impl Pieces {
    fn wait_for(&self, pieces: u64) {
        let mut done = self.done.lock();
        while *done < pieces {
            done = self.progress.wait(done);
        }
    }
}

/// A door at which jobs wait until it is opened. It knows how many jobs wait.
#[derive(Default)]
struct Door {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Door {
    fn pass(&self) {
        let mut state = self.state.lock();
        state.0 += 1;
        self.changed.notify_all();
        while !state.1 {
            state = self.changed.wait(state);
        }
    }

    fn open(&self) {
        self.state.lock().1 = true;
        self.changed.notify_all();
    }

    fn wait_for(&self, jobs: u64) {
        let mut state = self.state.lock();
        while state.0 < jobs {
            state = self.changed.wait(state);
        }
    }
}

/// A job whose only step waits at a door.
struct AtDoor(Arc<Door>);

impl Job for AtDoor {
    fn poll(&self) -> Polled {
        self.0.pass();
        Polled::Idle
    }
}

/// A job of several steps. Each step notes the name of the job.
struct Steps {
    name: &'static str,
    left: AtomicU64,
    notes: Arc<(Mutex<Vec<&'static str>>, Condvar)>,
}

impl Job for Steps {
    fn poll(&self) -> Polled {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Polled::Idle;
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        self.notes.0.lock().push(self.name);
        self.notes.1.notify_all();
        Polled::Worked
    }
}

fn no_threads() -> ThreadPool {
    ThreadPool::with_spawn(3, IDLE_TIME, |_| Err(io::Error::from(io::ErrorKind::WouldBlock)))
}

#[test]
fn wakes_are_never_lost() {
    // Each round waits for the piece for which it woke the worker. So a lost wake hangs the test.
    let pool = ThreadPool::new(3);
    let pieces = Arc::new(Pieces::default());
    let worker = pool.worker(Priority::Normal, pieces.clone());
    for round in 1..=20_000 {
        pieces.waiting.fetch_add(1, Ordering::AcqRel);
        match round % 3 {
            0 => worker.wake(),
            1 => worker.wake_first(),
            _ => worker.wake_after(Duration::ZERO),
        }
        worker.drive();
        pieces.wait_for(round);
    }
}

#[test]
fn work_from_before_the_worker_is_found_without_a_wake() {
    let pool = ThreadPool::new(2);
    let pieces = Arc::new(Pieces::default());
    pieces.waiting.store(3, Ordering::Release);
    let _worker = pool.worker(Priority::High, pieces.clone());
    pieces.wait_for(3);
}

#[test]
fn stopping_a_worker_ends_a_job_that_never_idles() {
    struct Endless(Mutex<bool>, Condvar);
    impl Job for Endless {
        fn poll(&self) -> Polled {
            *self.0.lock() = true;
            self.1.notify_all();
            Polled::Worked
        }
    }
    let pool = ThreadPool::new(2);
    let job = Arc::new(Endless(Mutex::new(false), Condvar::new()));
    let worker = pool.worker(Priority::Low, job.clone());
    let mut polled = job.0.lock();
    while !*polled {
        polled = job.1.wait(polled);
    }
    drop(polled);
    worker.stop();
    worker.join();
    assert_eq!(Arc::strong_count(&job), 1, "nobody polls it any more");
}

#[test]
fn a_job_that_panics_is_polled_no_more_and_its_thread_goes_on() {
    struct Panics(AtomicU64);
    impl Job for Panics {
        fn poll(&self) -> Polled {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose: a job that panics");
        }
    }
    let pool = ThreadPool::new(2);
    let job = Arc::new(Panics(AtomicU64::new(0)));
    let panics = pool.worker(Priority::Normal, job.clone());
    let pieces = Arc::new(Pieces::default());
    let works = pool.worker(Priority::Normal, pieces.clone());
    // This job is behind the one that panics, because one thread polls both.
    for round in 1..=3 {
        panics.wake();
        pieces.waiting.fetch_add(1, Ordering::AcqRel);
        works.wake();
        pieces.wait_for(round);
    }
    panics.join();
    assert_eq!(job.0.load(Ordering::Relaxed), 1);
}

#[test]
fn jobs_of_one_class_leave_a_thread_to_the_others() {
    let check = |blocking: Priority, other: Priority| {
        for threads in [2, 3, 5] {
            let pool = ThreadPool::new(threads);
            let door = Arc::new(Door::default());
            let blocked: Vec<Box<dyn Worker>> =
                (0..10).map(|_| pool.worker(blocking, Arc::new(AtDoor(door.clone())))).collect();
            let fit = match blocking {
                Priority::Low => (threads - 2).max(1),
                _ => threads - 1,
            };
            door.wait_for(fit as u64);
            let pieces = Arc::new(Pieces::default());
            pieces.waiting.store(5, Ordering::Release);
            let _other = pool.worker(other, pieces.clone());
            pieces.wait_for(5);
            assert_eq!(door.state.lock().0, fit as u64, "the others of {blocking:?} wait, of {threads} threads");
            assert!(pool.running_threads() <= threads);
            door.open();
            door.wait_for(blocked.len() as u64);
        }
    };
    check(Priority::Normal, Priority::High);
    check(Priority::Low, Priority::High);
    check(Priority::High, Priority::Normal);
    // One of the two threads is kept for jobs that are not of high priority.
    let pool = ThreadPool::new(3);
    let door = Arc::new(Door::default());
    let _low: Vec<_> = (0..3).map(|_| pool.worker(Priority::Low, Arc::new(AtDoor(door.clone())))).collect();
    door.wait_for(1);
    let pieces = Arc::new(Pieces::default());
    pieces.waiting.store(5, Ordering::Release);
    let _normal = pool.worker(Priority::Normal, pieces.clone());
    pieces.wait_for(5);
    door.open();
}

#[test]
fn an_urgent_job_waits_for_no_other_class() {
    for threads in [2, 3] {
        let pool = ThreadPool::new(threads);
        let door = Arc::new(Door::default());
        let classes = [Priority::High, Priority::Normal];
        let blocked: Vec<Box<dyn Worker>> =
            (0..10).map(|i| pool.worker(classes[i % 2], Arc::new(AtDoor(door.clone())))).collect();
        door.wait_for(threads as u64);
        let pieces = Arc::new(Pieces::default());
        pieces.waiting.store(5, Ordering::Release);
        let urgent = pool.worker(Priority::Urgent, pieces.clone());
        pieces.wait_for(5);
        urgent.join();
        assert_eq!(door.state.lock().0, threads as u64, "the thread for urgent jobs polls no others");
        assert_eq!(pool.running_threads(), threads + 1);
        door.open();
        door.wait_for(blocked.len() as u64);
    }
}

#[test]
fn jobs_take_turns_and_those_that_were_woken_first_go_first() {
    let pool = ThreadPool::new(2);
    let door = Arc::new(Door::default());
    let _blocks = pool.worker(Priority::Normal, Arc::new(AtDoor(door.clone())));
    door.wait_for(1);
    let notes = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let job = |name| {
        let steps = Steps { name, left: AtomicU64::new(2), notes: notes.clone() };
        pool.worker(Priority::Normal, Arc::new(steps))
    };
    let workers = [job("a"), job("b"), job("c")];
    workers[1].wake();
    workers[2].wake_first();
    door.open();
    let mut seen = notes.0.lock();
    while seen.len() < 6 {
        seen = notes.1.wait(seen);
    }
    assert_eq!(*seen, ["c", "a", "b", "c", "a", "b"]);
}

#[test]
fn a_job_may_drop_its_own_worker() {
    #[derive(Default)]
    struct Dropping {
        worker: Mutex<Option<Box<dyn Worker>>>,
        gone: OnceLock<()>,
    }
    impl Job for Dropping {
        fn poll(&self) -> Polled {
            if let Some(worker) = self.worker.lock().take() {
                worker.stop();
                worker.join();
                drop(worker);
                self.gone.set(()).expect("it is dropped once");
            }
            Polled::Worked
        }
    }
    let pool = ThreadPool::new(2);
    let job = Arc::new(Dropping::default());
    let worker = pool.worker(Priority::Normal, job.clone());
    *job.worker.lock() = Some(worker);
    job.gone.wait();
}

#[test]
fn what_is_handed_over_is_done_once_by_a_thread_on_duty() {
    let pool = ThreadPool::new(2);
    let (send, receive) = std::sync::mpsc::channel();
    pool.hand_over(Box::new(move || send.send(Duty::is_taken()).expect("it is waited for")));
    assert_eq!(receive.recv(), Ok(true));
    assert!(receive.recv().is_err(), "it is gone");
    assert!(!Duty::is_taken());
}

#[test]
fn threads_are_started_when_needed_and_end_when_they_have_nothing_to_do() {
    let pool = ThreadPool::with_spawn(5, Duration::ZERO, |life| std::thread::Builder::new().spawn(life).map(|_| ()));
    assert_eq!(pool.running_threads(), 0);
    let pieces = Arc::new(Pieces::default());
    let worker = pool.worker(Priority::Normal, pieces.clone());
    let wait_for_the_end = || {
        let mut state = pool.shared.state.lock();
        while state.threads > 0 {
            state = pool.shared.ended.wait(state);
        }
    };
    wait_for_the_end();
    for round in 1..=3 {
        pieces.waiting.fetch_add(1, Ordering::AcqRel);
        worker.wake_after(Duration::from_millis(round));
        pieces.wait_for(round);
        wait_for_the_end();
    }
}

#[test]
fn one_thread_keeps_the_time_while_others_work() {
    let pool = ThreadPool::new(3);
    let pieces = Arc::new(Pieces::default());
    let late = pool.worker(Priority::High, pieces.clone());
    let door = Arc::new(Door::default());
    let _blocks = pool.worker(Priority::Normal, Arc::new(AtDoor(door.clone())));
    door.wait_for(1);
    // Only the last call of `wake_after` counts, whether its time is later or earlier than that of the first.
    for round in 1..=3 {
        pieces.waiting.fetch_add(1, Ordering::AcqRel);
        late.wake_after(Duration::from_secs(3600));
        late.wake_after(Duration::from_millis(round));
        pieces.wait_for(round);
        // The job is polled once more after this piece. Without the wait, that poll might do the next piece too early.
        while !is_at_rest(&pool, Priority::High) {
            std::thread::yield_now();
        }
        assert!(!late_is_due(&pool), "a job that was polled waits for no time");
    }
    late.wake_after(Duration::from_secs(3600));
    while !pool.shared.state.lock().has_timekeeper {
        std::thread::yield_now();
    }
    assert!(pool.running_threads() <= 3);
    door.open();
}

/// Whether no job of the given class runs or waits for a thread.
fn is_at_rest(pool: &ThreadPool, class: Priority) -> bool {
    let state = pool.shared.state.lock();
    state.queues[class as usize].is_empty() && state.running[class as usize] == 0
}

fn late_is_due(pool: &ThreadPool) -> bool {
    !pool.shared.state.lock().due.is_empty()
}

#[test]
fn a_pool_without_a_single_thread_says_so_and_is_driven_by_who_waits() {
    let pool = no_threads();
    assert_eq!(pool.start().expect_err("there is none").kind(), io::ErrorKind::WouldBlock);
    let pieces = Arc::new(Pieces::default());
    pieces.waiting.store(3, Ordering::Release);
    let worker = pool.worker(Priority::Normal, pieces.clone());
    worker.drive();
    assert_eq!(*pieces.done.lock(), 3);
    worker.stop();
    worker.join();
    drop(worker);
    assert_eq!(Arc::strong_count(&pieces), 1);
}

#[test]
fn a_process_has_one_pool_while_somebody_uses_it() {
    assert!(Arc::ptr_eq(&ThreadPool::of_process(), &ThreadPool::of_process()) || cfg!(miri));
    let (one, other) = (ThreadPool::of_process(), ThreadPool::of_process());
    assert!(Arc::ptr_eq(&one, &other));
}
