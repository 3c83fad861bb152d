//! The open descriptors of SSTs, whether in use or kept for later, must stay within `open_files`, however many reads
//! are under way at once.

#![allow(clippy::disallowed_methods, reason = "descriptors are the machine's, and so are the threads that use them")]

#[cfg(target_os = "linux")]
use kit::Scratch;
use larch::options::LevelOptions;
use larch::{Cache, Database, Table, TableOptions};
use os::Machine;
#[cfg(target_os = "linux")]
use os::real::{ReadsChoice, RealReads};
use os::sim::SimDisk;
use os::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use os::sync::{Mutex, MutexGuard, OnceLock};
use std::io::ErrorKind;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

const OPEN_FILES: usize = 4;
const FILES: u32 = 60;
const THREADS: u32 = 6;

fn key(i: u32) -> Vec<u8> {
    format!("key {i:06}").into_bytes()
}

/// A database with many files that are not merged and do not overlap.
fn filled(machine: &Machine, directory: &Path, cache: Option<&Cache>) -> (Database, Table) {
    let levels = LevelOptions { level0_files: 1_000, slow_files: 2_000, ..LevelOptions::default() };
    let builder = Database::builder(directory).machine(machine.clone()).levels(levels).open_files(OPEN_FILES);
    let builder = match cache {
        Some(cache) => builder.cache(cache),
        // A small cache, so that most reads go to the disk.
        None => builder.cache_bytes(1 << 20),
    };
    let db = builder.open().expect("the disk works");
    let options = TableOptions { page_bytes: 4096, node_bytes: 4096, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    if table.stats().expect("it is there").files == 0 {
        for file in 0..FILES {
            let mut batch = db.batch();
            (0..50).for_each(|row| batch.insert(&table, key(file * 50 + row), [b'v'; 400]));
            batch.commit().expect("the disk works");
            db.flush().expect("the disk works");
        }
    }
    (db, table)
}

#[test]
fn no_more_files_stay_open_than_allowed_whatever_fails() {
    let (machine, disk): (Machine, Arc<SimDisk>) = Machine::simulated(11);
    let cache = Cache::with_open_files(1 << 20, OPEN_FILES);
    let (db, table) = filled(&machine, Path::new("db"), Some(&cache));
    let open = || db.metrics().cache.open_files;
    let mut failed = 0;
    for i in 0..3_000 {
        // Every third read meets an error when it opens the file, asks for its length or reads it.
        if i % 3 == 0 {
            disk.fail_operation(u64::from(i % 5), ErrorKind::Other);
        }
        failed += u64::from(table.get(key(i * 7 % (FILES * 50))).is_err());
        disk.clear_faults();
        assert!(open() <= OPEN_FILES, "{} open after read {i}", open());
    }
    assert!(failed > 100, "{failed}");
    assert!(db.check(|_| {}).expect("nothing fails any more").problems.is_empty());
    assert!(open() <= OPEN_FILES);
    table.compact().expect("nothing fails any more");
    assert!(open() <= OPEN_FILES);
    drop((table, db));
    assert_eq!(cache.usage().open_files, 0, "nothing stays open");
}

/// The descriptors of SSTs in `directory` that this process has open.
#[cfg(target_os = "linux")]
fn descriptors(directory: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").expect("it is there on Linux");
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|path| path.starts_with(directory) && path.extension().is_some_and(|end| end == "sst")).count()
}

/// A machine for each way of reading files that a user can choose and this system allows.
#[cfg(target_os = "linux")]
fn machines() -> Vec<Machine> {
    let mut machines = Vec::new();
    for (choice, name) in
        [(ReadsChoice::Ring, "io_uring"), (ReadsChoice::Threads, "threads"), (ReadsChoice::Caller, "caller")]
    {
        let machine = Machine { reads: Arc::new(RealReads::alone(choice)), ..Machine::real() };
        if machine.reads.name() == name {
            machines.push(machine);
        } else {
            println!("this system forbids {name}: what is promised of it was not looked at");
        }
    }
    machines
}

/// Lets only one test run at a time. Descriptors are counted by looking at them one after the other, which is exact
/// only if nobody else opens and closes files meanwhile. A new descriptor gets the lowest free number, so if at most
/// `n` are open at a time, they use only `n` numbers.
#[cfg(target_os = "linux")]
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: OnceLock<Mutex<()>> = OnceLock::new();
    ALONE.get_or_init(Mutex::default).lock()
}

/// The most descriptors of SSTs in `directory` that were open at the same time while `act` ran.
#[cfg(target_os = "linux")]
fn most_descriptors(directory: &Path, act: impl FnOnce()) -> usize {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = 0;
            while !is_done.load(Ordering::Acquire) {
                most = most.max(descriptors(directory));
            }
            most
        });
        // Ends the sampler even if `act` panics.
        struct Done<'d>(&'d AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        let done = Done(&is_done);
        act();
        drop(done);
        sampler.join().expect("it does not panic")
    })
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_has_few_descriptors_while_many_threads_read_many_files() {
    let _alone = alone();
    for machine in machines() {
        let scratch = Scratch::new("descriptors");
        let directory = scratch.path();
        let (db, table) = filled(&machine, directory, None);
        let most = most_descriptors(directory, || {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let table = &table;
                    scope.spawn(move || {
                        for i in 0..2_000 {
                            table.get(key((i * 31 + thread * 977) % (FILES * 50))).expect("the disk works");
                        }
                    });
                }
            });
        });
        assert!(most > 0 && most <= OPEN_FILES, "{most} by {}", machine.reads.name());
        assert!(db.metrics().cache.open_files <= OPEN_FILES);
        drop((table, db));
        assert_eq!(descriptors(directory), 0);
    }
}

/// Wakes the thread of the test.
#[cfg(target_os = "linux")]
struct Unpark(std::thread::Thread);

#[cfg(target_os = "linux")]
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_has_few_descriptors_while_thousands_of_tasks_read_many_files() {
    const TASKS: u32 = 2_000;
    let _alone = alone();
    for machine in machines() {
        let scratch = Scratch::new("descriptors");
        let directory = scratch.path();
        drop(filled(&machine, directory, None));
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut most = 0;
        for _ in 0..5 {
            // The database starts with an empty cache.
            let (db, table) = filled(&machine, directory, None);
            let seen = most_descriptors(directory, || {
                let read = |i: u32| table.get_async(key(i * 31 % (FILES * 50)));
                let mut tasks: Vec<Pin<Box<_>>> = (0..TASKS).map(|i| Box::pin(read(i))).collect();
                while !tasks.is_empty() {
                    let before = tasks.len();
                    tasks.retain_mut(|task| match task.as_mut().poll(&mut context) {
                        Poll::Ready(row) => {
                            assert!(row.expect("the disk works").is_some());
                            false
                        }
                        Poll::Pending => true,
                    });
                    if tasks.len() == before {
                        std::thread::park();
                    }
                }
            });
            most = most.max(seen);
            assert!(db.metrics().cache.open_files <= OPEN_FILES);
        }
        assert!(most > 0 && most <= OPEN_FILES, "{most} by {}", machine.reads.name());
        assert_eq!(descriptors(directory), 0);
    }
}
