//! What a pool that reads promises under random schedules (`cargo x shuttle`): the callback of every read is called
//! once, whatever reads are raised, and whenever the pool is closed.

use super::Pool;
use crate::io::queue::QueueLimits;
use crate::sim::SimDisk;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::shuttle::{self, thread};
use crate::sync::{Arc, Condvar, Mutex};
use crate::{Access, Buffer, Disk, File, ReadRequest, Reads, Urgency};
use std::path::Path;

const LIMITS: QueueLimits = QueueLimits {
    depth: 3,
    unneeded: 2,
    bytes: [usize::MAX, 8192, 4096],
    strained_bytes: [usize::MAX, 4096, 4096],
    calm_bytes: 8192,
};

fn file() -> Arc<dyn File> {
    let file = SimDisk::new(0).open(Path::new("f"), Access::Create).expect("the disk is empty");
    file.append(&[7; 8 * 4096]).expect("there is room");
    file
}

/// How often the callback of each read was called, by ticket.
#[derive(Default)]
struct Told {
    counts: [AtomicUsize; 8],
    all: Mutex<usize>,
    changed: Condvar,
}

impl Told {
    fn read(self: &Arc<Self>, file: &Arc<dyn File>, ticket: usize) -> ReadRequest {
        let told = self.clone();
        let done = move |buffer: Buffer, outcome: std::io::Result<usize>| {
            assert!(outcome.is_err() || buffer.iter().all(|&byte| byte == 7));
            told.counts[ticket].fetch_add(1, Ordering::SeqCst);
            *told.all.lock() += 1;
            told.changed.notify_all();
        };
        ReadRequest {
            source: file.clone(),
            offset: ticket as u64 * 4096,
            buffer: Buffer::zeroed(4096),
            urgency: Urgency::ALL[ticket % 3],
            ticket: ticket as u64,
            done: Box::new(done),
        }
    }

    fn wait_for_all(&self) {
        let mut all = self.all.lock();
        while *all < self.counts.len() {
            all = self.changed.wait(all);
        }
        drop(all);
        assert!(self.counts.iter().all(|count| count.load(Ordering::SeqCst) == 1));
    }
}

/// Two threads submit and raise reads, and then `close` ends the pool.
fn check(close: fn(Pool, &Told)) {
    shuttle::check_random(
        move || {
            let (file, told) = (file(), Arc::new(Told::default()));
            let pool = Arc::new(Pool::new(LIMITS, 2));
            let submitters: Vec<_> = (0..2)
                .map(|thread| {
                    let (pool, file, told) = (pool.clone(), file.clone(), told.clone());
                    thread::spawn(move || {
                        pool.submit((0..3).map(|at| told.read(&file, thread * 4 + at)).collect());
                        pool.raise(5);
                        pool.submit(vec![told.read(&file, thread * 4 + 3)]);
                    })
                })
                .collect();
            for submitter in submitters {
                submitter.join().expect("it does not panic");
            }
            let pool = Arc::into_inner(pool).expect("the submitters have ended");
            close(pool, &told);
        },
        2000,
    );
}

#[test]
fn every_read_is_told_of_once() {
    check(|pool, told| {
        told.wait_for_all();
        assert_eq!((pool.usage().under_way, pool.usage().queued), Default::default());
    });
}

#[test]
fn closing_tells_every_read_once() {
    check(|pool, told| {
        drop(pool);
        assert_eq!(*told.all.lock(), told.counts.len());
        told.wait_for_all();
    });
}
