#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a thread of the test ends reads, as the machine's do"
)]

mod beside;
mod level0;
mod many;
mod retries;
mod space;

use crate::options::LevelOptions;
use crate::{Database, Error};
use os::io::CallerReads;
use os::real::ThreadPool;
use os::sim::SimDisk;
use os::sync::{Arc, Condvar, Mutex};
use os::{Disk, Duty, Job, Machine, Priority, ReadRequest, Reads, Threads, Urgency, Worker};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Wake, Waker};

/// Holds reads back until the test releases them.
#[derive(Debug)]
struct HeldReads {
    /// The reads held back, or `None` once the test has released them.
    reads: Mutex<Option<Vec<ReadRequest>>>,
    changed: Condvar,
}

impl Default for HeldReads {
    fn default() -> Self {
        Self { reads: Mutex::new(Some(Vec::new())), changed: Condvar::default() }
    }
}

impl HeldReads {
    /// Waits until a read of this urgency is held back, and takes all reads of this urgency.
    fn take(&self, urgency: Urgency) -> Vec<ReadRequest> {
        let mut reads = self.reads.lock();
        loop {
            let held = reads.iter_mut().flat_map(|reads| reads.extract_if(.., |read| read.urgency == urgency));
            let taken: Vec<ReadRequest> = held.collect();
            if !taken.is_empty() {
                return taken;
            }
            reads = self.changed.wait(reads);
        }
    }

    /// Releases all reads. Later reads are not held back.
    fn open(&self) {
        let reads = self.reads.lock().take();
        CallerReads.submit(reads.unwrap_or_default());
    }
}

impl Reads for HeldReads {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let mut held = self.reads.lock();
        if let Some(held) = &mut *held {
            held.extend(reads);
            self.changed.notify_all();
            return;
        }
        drop(held);
        CallerReads.submit(reads);
    }

    fn make(&self, read: ReadRequest) {
        self.submit(vec![read]);
    }

    fn raise(&self, _ticket: u64) {}

    fn name(&self) -> &'static str {
        "held"
    }
}

fn open(machine: &Machine, level0_files: usize) -> crate::Result<Database> {
    let levels = LevelOptions { level0_files, ..LevelOptions::default() };
    Database::builder("db").machine(machine.clone()).levels(levels).open()
}

/// A machine with a database whose table `t` is due for a compaction.
fn with_files() -> (Machine, Arc<SimDisk>) {
    let (machine, disk) = Machine::simulated(1);
    let db = open(&machine, 100).expect("a new database");
    let table = db.table("t").expect("a table");
    for file in 0..3 {
        for i in 0..100 {
            table.insert(format!("k{i:03}"), format!("{file}")).expect("a row");
        }
        db.flush().expect("the disk works");
    }
    // The row of `other` is in a file that the compaction of `t` does not read.
    db.table("other").expect("a table").insert("k", "v").expect("a row");
    db.flush().expect("the disk works");
    drop((table, db));
    (machine, disk)
}

/// A database with a compaction that waits for a read. Also returns the held reads.
fn compacting() -> (Machine, Arc<HeldReads>, Database) {
    let (machine, _) = with_files();
    let reads = Arc::new(HeldReads::default());
    let machine = Machine { reads: reads.clone(), threads: ThreadPool::new(2), ..machine };
    let db = open(&machine, 2).expect("it opens");
    let mut held = reads.reads.lock();
    while !held.iter().flatten().any(|read| read.urgency == Urgency::Background) {
        held = reads.changed.wait(held);
    }
    drop(held);
    (machine, reads, db)
}

#[test]
fn a_waker_on_a_thread_that_reads_drops_the_last_handle_without_waiting_for_that_thread() {
    type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
    struct Dropping(Mutex<Option<(Task, Database)>>);
    impl Wake for Dropping {
        fn wake(self: Arc<Self>) {
            let gone = self.0.lock().take();
            drop(gone.expect("it is woken once"));
        }
    }
    let (machine, reads, db) = compacting();
    let table = db.table("other").expect("a table");
    let mut task: Task = Box::pin(async move {
        table.get_async("k").await.expect("it is dropped before it is done");
    });
    let dropping = Arc::new(Dropping(Mutex::new(None)));
    let waker = Waker::from(dropping.clone());
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    *dropping.0.lock() = Some((task, db));
    // Finish the read of the task, as a reading thread of the machine would, while the reads of the compaction are
    // still held back.
    CallerReads.submit(reads.take(Urgency::Needed));
    assert!(dropping.0.lock().is_none(), "the last handle is gone, and a compaction still waits");
    let opened = std::thread::spawn(move || open(&machine, 100));
    reads.open();
    let db = opened.join().expect("it does not panic").expect("it waits for the close");
    assert_eq!(db.table("t").expect("a table").get("k007").expect("the disk works").as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_background_job_drops_the_last_handle_without_waiting_for_another() {
    let (machine, reads, db) = compacting();
    let (send, receive) = std::sync::mpsc::channel();
    machine.threads.hand_over(Box::new(move || {
        drop(db);
        send.send(()).expect("it is waited for");
    }));
    receive.recv().expect("the handle is gone, and a compaction still waits");
    reads.open();
    open(&machine, 100).expect("it waits for the close");
}

#[test]
fn an_open_on_a_thread_on_duty_does_not_wait_for_a_close() {
    let (machine, reads, db) = compacting();
    {
        let _duty = Duty::take();
        drop(db);
        assert!(matches!(open(&machine, 100), Err(Error::Locked(_))));
    }
    reads.open();
    open(&machine, 100).expect("it waits for the close");
}

#[test]
fn dropping_the_last_handle_elsewhere_waits_for_what_runs() {
    let (machine, reads, db) = compacting();
    let dropped = std::thread::spawn(move || drop(db));
    reads.open();
    dropped.join().expect("it does not panic");
    assert!(machine.disk.lock(Path::new("db/LOCK")).is_ok(), "the database is closed");
}

/// A machine whose system refuses to start threads.
#[derive(Debug)]
struct NoThreads(Arc<dyn Threads>);

impl Threads for NoThreads {
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        self.0.sleeping_worker(priority, job)
    }

    fn start(&self) -> io::Result<()> {
        Err(io::Error::new(ErrorKind::WouldBlock, "Resource temporarily unavailable"))
    }

    fn hand_over(&self, work: Box<dyn FnOnce() + Send>) {
        self.0.hand_over(work);
    }

    fn are_real(&self) -> bool {
        self.0.are_real()
    }
}

#[test]
fn a_system_without_threads_is_an_error_that_leaves_nothing_behind() {
    let (machine, disk) = Machine::simulated(2);
    let refusing = Machine { threads: Arc::new(NoThreads(machine.threads.clone())), ..machine.clone() };
    let error = open(&refusing, 4).expect_err("there are no threads");
    assert!(matches!(error, Error::NoThreads(_)), "{error}");
    let said = error.to_string();
    assert!(said.contains("Resource temporarily unavailable") && said.contains("ulimit -u"), "{said}");
    assert!(!disk.exists(Path::new("db")).expect("the disk works"), "nothing was made");
    open(&machine, 4).expect("with threads it opens");
    let read_only = Database::builder("db").machine(refusing).read_only(true).open();
    read_only.expect("a database that is only read needs no thread");
}
