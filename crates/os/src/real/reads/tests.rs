//! What reads of the real machine promise, however they are made. The files are in the system's temporary directory.

use super::{Choice, RealReads};
use crate::real::{RealDisk, RealRandom};
use crate::sync::{Arc, Condvar, Mutex};
use crate::{Access, Buffer, Disk, File, Random, Read, Reads, Urgency};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::io;
use std::path::PathBuf;

/// A file of random bytes, removed when dropped.
struct Scratch {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Scratch {
    fn new(seed: u64, len: usize) -> Scratch {
        let path = std::env::temp_dir().join(format!("larch-os-reads-{:016x}", RealRandom.next_u64()));
        let mut bytes = vec![0; len];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill(&mut bytes[..]);
        let file = RealDisk.open(&path, Access::Create).expect("the temporary directory can be written");
        file.append(&bytes).expect("there is room");
        Scratch { path, bytes }
    }

    fn open(&self, access: Access) -> Arc<dyn File> {
        RealDisk.open(&self.path, access).expect("the file is there")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A failed test should be seen to fail for its own reason.
        if let Err(error) = RealDisk.remove(&self.path) {
            eprintln!("{error}");
        }
    }
}

/// Ends of reads, by ticket.
#[derive(Default)]
struct Ends {
    ends: Mutex<Vec<(u64, Buffer, io::Result<usize>)>>,
    changed: Condvar,
}

impl Ends {
    /// A read that is told of here.
    fn read(self: &Arc<Self>, file: &Arc<dyn File>, offset: usize, bytes: usize, urgency: Urgency, ticket: u64) -> Read {
        let ends = self.clone();
        let done = move |buffer, outcome| {
            ends.ends.lock().push((ticket, buffer, outcome));
            ends.changed.notify_all();
        };
        let (offset, buffer) = (offset as u64, Buffer::zeroed(bytes));
        Read { file: file.clone(), offset, buffer, urgency, ticket, done: Box::new(done) }
    }

    /// Waits for so many, and takes them.
    fn take(&self, count: usize) -> Vec<(u64, Buffer, io::Result<usize>)> {
        let mut ends = self.ends.lock();
        while ends.len() < count {
            ends = self.changed.wait(ends);
        }
        std::mem::take(&mut *ends)
    }
}

/// Every way to read that this system has.
fn engines() -> Vec<RealReads> {
    let ring = RealReads::alone(Choice::Ring);
    let mut engines = vec![RealReads::alone(Choice::Threads), RealReads::alone(Choice::Caller)];
    match ring.name() {
        "io_uring" => engines.push(ring),
        _ => println!("this system forbids io_uring: what is promised of it was not looked at"),
    }
    engines
}

#[test]
fn reads_give_what_the_file_has_at_every_offset_and_length() {
    let scratch = Scratch::new(1, (1 << 20) + 5000);
    let len = scratch.bytes.len();
    for reads in engines() {
        for access in [Access::Read, Access::ReadDirect] {
            let file = scratch.open(access);
            let ends = Arc::new(Ends::default());
            let edges = [0, 1, 4095, 4096, 8192, 12_288, 65_536, 1 << 20, (1 << 20) + 4096, len, len + 5000];
            let lengths = [0, 1, 4096, 5000, 16_384, 1 << 20, (1 << 20) + 8192];
            let asked: Vec<_> = edges.iter().flat_map(|&edge| lengths.map(|bytes| (edge, bytes))).collect();
            for urgency in Urgency::ALL {
                let batch = asked.iter().enumerate();
                let batch = batch.map(|(ticket, &(at, bytes))| ends.read(&file, at, bytes, urgency, ticket as u64));
                reads.submit(batch.collect());
                let mut told = vec![false; asked.len()];
                for (ticket, buffer, outcome) in ends.take(asked.len()) {
                    let (at, bytes) = asked[ticket as usize];
                    let expected = &scratch.bytes[at.min(len)..(at + bytes).min(len)];
                    let read = outcome.expect("the file can be read");
                    assert_eq!(buffer.len(), bytes);
                    assert!(buffer[..read] == *expected, "{bytes} at {at} by {} {access:?}", reads.name());
                    assert!(!std::mem::replace(&mut told[ticket as usize], true), "told once");
                }
            }
            let usage = reads.usage();
            assert_eq!((usage.under_way, usage.queued), Default::default());
        }
    }
}
