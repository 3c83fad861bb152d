//! Tests of the pool of open files under random schedules (`cargo x shuttle`): it never has more open files than
//! its limit, and every waiting thread goes on in the end, even if others give back, close or fail to open files
//! meanwhile.

use super::{FileHandle, OpenFiles};
use os::sim::SimDisk;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use os::sync::shuttle::{self, thread};
use os::{Access, Disk};
use std::io;
use std::path::Path;

struct Files {
    disk: Arc<SimDisk>,
    pool: OpenFiles,
    handles: Vec<Arc<FileHandle>>,
}

impl Files {
    fn new(files: usize, limit: usize) -> Arc<Self> {
        let disk = SimDisk::new(0);
        for file in 0..files {
            disk.open(Path::new(&file.to_string()), Access::Create).expect("the disk is empty");
        }
        Arc::new(Self { disk, pool: OpenFiles::new(limit), handles: (0..files).map(|_| Arc::default()).collect() })
    }

    /// Reads a file, or fails to open it.
    fn read(&self, file: usize, fails: bool) {
        let open = || match fails {
            true => Err(io::Error::other("refused")),
            false => self.disk.open(Path::new(&file.to_string()), Access::Read),
        };
        if let Ok(opened) = self.pool.get(&self.handles[file], open) {
            assert!(self.disk.open_handles() <= self.pool.limit);
            thread::yield_now();
            drop(opened);
            self.pool.given_back();
        }
    }
}

fn check(limit: usize) {
    let test = move || {
        let files = Files::new(3, limit);
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let files = Arc::clone(&files);
                thread::spawn(move || {
                    files.read(number % 3, number == 3);
                    files.read((number + 1) % 3, false);
                    if number == 1 {
                        files.pool.close(&files.handles[1]);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        files.handles.iter().for_each(|handle| files.pool.close(handle));
        assert_eq!((files.pool.count(), files.disk.open_handles()), (0, 0));
        assert_eq!(files.pool.watchers.load(Ordering::Relaxed), 0);
    };
    shuttle::check_random(test, 5_000);
    shuttle::check_pct(test, 5_000, 3);
}

#[test]
fn threads_that_share_one_place_all_read() {
    check(1);
}

#[test]
fn threads_that_share_two_places_all_read() {
    check(2);
}
