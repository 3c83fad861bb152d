//! What a pool of open files promises: it never has more open files than its limit, and every thread that waits
//! goes on.
#![allow(clippy::disallowed_methods, reason = "these tests are about threads that wait for each other's files")]

use super::*;
use os::sim::SimDisk;
use os::{Access, Disk};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

/// A pool, and a disk with files named by numbers.
struct Files {
    disk: Arc<SimDisk>,
    pool: OpenFiles,
    handles: Vec<Arc<FileHandle>>,
}

impl Files {
    fn new(files: usize, limit: usize) -> Self {
        let disk = SimDisk::new(0);
        for file in 0..files {
            disk.open(Path::new(&file.to_string()), Access::Create).expect("the disk is empty");
        }
        assert_eq!(disk.open_handles(), 0);
        Self { disk, pool: OpenFiles::new(limit), handles: (0..files).map(|_| Arc::default()).collect() }
    }

    fn get(&self, file: usize) -> Arc<dyn File> {
        let open = || self.disk.open(Path::new(&file.to_string()), Access::Read);
        let opened = self.pool.get(&self.handles[file], open).expect("the disk works");
        assert!(self.disk.open_handles() <= self.pool.limit, "{} open", self.disk.open_handles());
        opened
    }

    fn is_busy(&self, file: usize) -> bool {
        let open = || self.disk.open(Path::new(&file.to_string()), Access::Read);
        self.pool.try_get(&self.handles[file], open).expect("the disk works").is_none()
    }

    fn give_back(&self, file: Arc<dyn File>) {
        drop(file);
        self.pool.given_back();
    }

    /// Waits until the given number of threads stands in line.
    fn await_line(&self, threads: usize) {
        while self.pool.ring.lock().line.len() < threads {
            thread::yield_now();
        }
    }
}

#[test]
fn a_thread_waits_for_the_only_place_and_goes_on() {
    let files = Files::new(2, 1);
    let first = files.get(0);
    thread::scope(|scope| {
        let second = scope.spawn(|| files.give_back(files.get(1)));
        files.await_line(1);
        assert!(!second.is_finished());
        files.give_back(first);
        second.join().expect("it gets its file");
    });
    assert_eq!((files.pool.count(), files.disk.open_handles()), (1, 1), "the second is kept");
}

#[test]
fn who_may_not_wait_learns_that_all_places_are_in_use() {
    let files = Files::new(2, 1);
    let first = files.get(0);
    assert!(files.is_busy(1));
    assert!(!files.is_busy(0), "a file that is open needs no place");
    files.give_back(first);
    assert!(!files.is_busy(1));
}

#[test]
fn a_file_that_is_always_read_does_not_keep_others_out() {
    let files = Files::new(2, 1);
    let first = files.get(0);
    thread::scope(|scope| {
        let second = scope.spawn(|| files.give_back(files.get(1)));
        files.await_line(1);
        while files.handles[0].file.read().is_some() {
            thread::yield_now();
        }
        // A new reader of the first file has its turn after the reader of the second file, although the first file
        // is open.
        let again = scope.spawn(|| files.give_back(files.get(0)));
        files.await_line(2);
        files.give_back(first);
        second.join().expect("it gets its file");
        again.join().expect("it gets its file");
    });
    assert_eq!((files.pool.count(), files.disk.open_handles()), (1, 1));
    assert_eq!(files.pool.watchers.load(Ordering::Relaxed), 0);
}

#[test]
fn an_open_that_fails_or_panics_gives_its_place_back() {
    let files = Files::new(2, 1);
    let refuse = || Err(io::Error::other("refused"));
    assert!(files.pool.get(&files.handles[0], refuse).is_err());
    assert!(files.pool.try_get(&files.handles[0], refuse).is_err());
    assert_eq!(files.pool.count(), 0);
    let panics = || files.pool.get(&files.handles[0], || panic!("on purpose: an open panics"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(files.pool.count(), 0);
    files.give_back(files.get(1));
    assert_eq!(files.pool.count(), 1);
}

#[test]
fn an_open_that_fails_lets_the_next_in_line_go_on() {
    let files = Files::new(2, 1);
    thread::scope(|scope| {
        let refuse = || {
            scope.spawn(|| files.give_back(files.get(1)));
            files.await_line(1);
            Err(io::Error::other("refused"))
        };
        assert!(files.pool.get(&files.handles[0], refuse).is_err());
    });
    assert_eq!(files.pool.count(), 1);
}

#[test]
fn a_file_closed_in_use_keeps_its_place_until_it_is_given_back() {
    let files = Files::new(2, 1);
    let first = files.get(0);
    files.pool.close(&files.handles[0]);
    assert_eq!((files.pool.count(), files.disk.open_handles()), (1, 1));
    thread::scope(|scope| {
        let second = scope.spawn(|| files.give_back(files.get(1)));
        files.await_line(1);
        // Closing a file that is not open changes nothing, even while somebody waits for the file.
        files.pool.close(&files.handles[0]);
        files.pool.close(&files.handles[1]);
        files.give_back(first);
        second.join().expect("it gets its file");
    });
    files.pool.close(&files.handles[1]);
    assert_eq!((files.pool.count(), files.disk.open_handles()), (0, 0));
    let last = files.get(0);
    files.pool.close(&files.handles[0]);
    files.give_back(last);
    assert_eq!((files.pool.count(), files.disk.open_handles()), (0, 0), "closed without anybody waiting");
}

#[test]
fn many_threads_share_few_places() {
    let files = Files::new(7, 3);
    thread::scope(|scope| {
        for first in 0..8 {
            let files = &files;
            scope.spawn(move || {
                for step in 0..2000 {
                    let file = (first * 3 + step * (first + 1)) % 7;
                    let opened = files.get(file);
                    if step % 5 == 0 {
                        files.pool.close(&files.handles[file]);
                    }
                    files.give_back(opened);
                }
            });
        }
    });
    files.handles.iter().for_each(|handle| files.pool.close(handle));
    assert_eq!((files.pool.count(), files.disk.open_handles()), (0, 0));
    assert_eq!(files.pool.watchers.load(Ordering::Relaxed), 0);
}
