//! Bytes must arrive in order, whichever thread writes them. An error must be returned once, and must end the
//! writing.

use super::*;
use os::real::ThreadPool;
use os::sim::SimDisk;
use os::{Access, Disk, Job, Priority, Worker};
use std::path::Path;

/// Threads that keep each task that they are given, and run it only when the test tells them to.
#[derive(Default)]
struct Later(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

impl Later {
    fn run(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        all.into_iter().for_each(|work| work());
    }
}

impl Threads for Later {
    fn sleeping_worker(&self, _: Priority, _: Arc<dyn Job>) -> Box<dyn Worker> {
        unreachable!("nothing is polled")
    }

    fn start(&self) -> io::Result<()> {
        Ok(())
    }

    fn hand_over(&self, work: Box<dyn FnOnce() + Send>) {
        self.0.lock().push(work);
    }

    fn are_real(&self) -> bool {
        false
    }
}

fn filled_with(byte: u8) -> Buffer {
    let mut buffer = Buffer::zeroed(8);
    buffer.fill(byte);
    buffer
}

fn written(disk: &Arc<SimDisk>) -> Vec<u8> {
    let file = disk.open(Path::new("f"), Access::Read).expect("it is there");
    let mut bytes = vec![0; file.len().expect("the disk works") as usize];
    file.read_at(&mut bytes, 0).expect("the disk works");
    bytes
}

/// Writes the bytes 1, 2, 3, ... by a `WritesBehind`. Calls `between` after each write has begun.
fn write_all(threads: &Arc<dyn Threads>, between: impl Fn(u8)) -> Vec<u8> {
    let disk = SimDisk::new(1);
    let behind = WritesBehind::new(Arc::clone(threads), disk.open(Path::new("f"), Access::Create).expect("it is new"));
    for i in 0..20_u8 {
        let free = behind.finish().expect("the disk works");
        assert_eq!(free.is_some(), i > 0, "buffers come back");
        behind.begin(filled_with(i), 8, u64::from(i) * 8);
        between(i);
    }
    assert!(behind.finish().expect("the disk works").is_some());
    assert!(behind.finish().expect("there is none").is_none());
    written(&disk)
}

#[test]
fn all_is_written_whoever_is_first() {
    let expected: Vec<u8> = (0..20).flat_map(|i| [i; 8]).collect();
    let later = Arc::new(Later::default());
    let threads: Arc<dyn Threads> = later.clone();
    assert_eq!(write_all(&threads, |_| {}), expected, "the caller makes all writes");
    assert_eq!(write_all(&threads, |_| later.run()), expected, "the threads do");
    assert_eq!(
        write_all(&threads, |i| if i % 3 == 0 {
            later.run()
        }),
        expected,
        "both do"
    );
    later.run();
    let threads: Arc<dyn Threads> = ThreadPool::of_process();
    assert_eq!(write_all(&threads, |_| {}), expected);
}

#[test]
fn an_error_comes_back_and_nothing_is_written_after_it() {
    for by_thread in [false, true] {
        let disk = SimDisk::new(1);
        drop(disk.open(Path::new("f"), Access::Create).expect("it is new"));
        let read_only = disk.open(Path::new("f"), Access::Read).expect("it is there");
        let later = Arc::new(Later::default());
        let behind = WritesBehind::new(later.clone(), read_only);
        behind.begin(filled_with(1), 8, 0);
        if by_thread {
            later.run();
        }
        let error = behind.finish().expect_err("the file is open for reading");
        let again = behind.finish().expect_err("it is remembered");
        assert!(error.to_string() != again.to_string() && again.to_string().contains("before"), "{error}, {again}");
        later.run();
        assert_eq!(written(&disk), []);
    }
}

#[test]
fn a_write_that_panics_on_another_thread_ends_with_an_error() {
    let later = Arc::new(Later::default());
    let file = SimDisk::new(1).open(Path::new("f"), Access::Create).expect("it is new");
    let behind = WritesBehind::new(later.clone(), file);
    behind.begin(filled_with(1), 99, 0);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| later.run()));
    assert!(outcome.is_err(), "99 bytes of 8 cannot be written");
    assert!(behind.finish().expect_err("nothing was written").to_string().contains("panicked"));
}
