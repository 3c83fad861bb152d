//! What joined reads promise. The files here are in memory, and only pretend to have a descriptor.

use super::super::{ReadRequest, Urgency};
use super::{RUN_BYTES, ReadRun, RunPart, join};
use crate::sync::{Arc, Mutex};
use crate::{BLOCK_BYTES, Buffer, File};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A file whose bytes are a function of their offsets. Its descriptor is that of standard input, and is never read
/// from.
#[derive(Debug)]
struct Memory {
    anything: std::io::Stdin,
    has_descriptor: bool,
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl File for Memory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (offset..).zip(buffer.iter_mut()).for_each(|(offset, byte)| *byte = byte_at(offset));
        Ok(buffer.len())
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn append(&self, _bytes: &[u8]) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_direct(&self) -> bool {
        true
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.has_descriptor.then(|| self.anything.as_fd())
    }
}

fn file(has_descriptor: bool) -> Arc<dyn File> {
    Arc::new(Memory { anything: io::stdin(), has_descriptor })
}

/// A read of `blocks` blocks that begins at block `block`.
fn read(file: &Arc<dyn File>, urgency: Urgency, block: u64, blocks: usize) -> ReadRequest {
    let buffer = Buffer::zeroed(blocks * BLOCK_BYTES);
    let offset = block * BLOCK_BYTES as u64;
    ReadRequest { source: file.clone(), offset, buffer, urgency, ticket: block, done: Box::new(|_, _| {}) }
}

/// Joins the reads, and returns the first blocks of the reads of each run, with the runs sorted.
fn joined(reads: Vec<ReadRequest>) -> Vec<Vec<u64>> {
    let mut runs: Vec<Vec<u64>> =
        join(reads).into_iter().map(|run| run.into_reads().map(|read| read.ticket).collect()).collect();
    runs.sort();
    runs
}

fn needed(reads: &[(u64, usize)]) -> Vec<ReadRequest> {
    let file = file(true);
    reads.iter().map(|&(block, blocks)| read(&file, Urgency::Needed, block, blocks)).collect()
}

#[test]
fn neighbours_in_any_order_become_one_read() {
    assert_eq!(joined(needed(&[(8, 4), (0, 4), (4, 4)])), [[0, 4, 8]]);
}

#[test]
fn a_gap_is_read_if_it_is_small() {
    assert_eq!(joined(needed(&[(0, 1), (5, 1)])), [[0, 5]]);
    assert_eq!(joined(needed(&[(0, 1), (6, 1)])), [[0], [6]]);
}

#[test]
fn what_shares_blocks_is_joined() {
    assert_eq!(joined(needed(&[(0, 2), (1, 2), (2, 2), (0, 8), (3, 1)])), [[0, 0, 1, 2, 3]]);
}

#[test]
fn a_run_has_an_end() {
    let blocks = RUN_BYTES as usize / BLOCK_BYTES;
    let reads: Vec<_> = (0..3 * blocks as u64).map(|block| (block, 1)).collect();
    let runs = join(needed(&reads));
    assert_eq!(runs.iter().map(ReadRun::bytes).collect::<Vec<_>>(), [RUN_BYTES as usize; 3]);
    assert_eq!(joined(needed(&[(0, 2 * blocks), (2 * blocks as u64, 1)])).len(), 2, "a long one is left alone");
}

#[test]
fn reads_of_other_files_and_urgencies_are_not_joined() {
    let (a, b) = (file(true), file(true));
    let reads = vec![
        read(&a, Urgency::Needed, 0, 1),
        read(&a, Urgency::Ahead, 1, 1),
        read(&b, Urgency::Needed, 2, 1),
        read(&a, Urgency::Needed, 3, 1),
    ];
    assert_eq!(joined(reads), [vec![0, 3], vec![1], vec![2]]);
}

#[test]
fn what_is_not_whole_blocks_of_a_descriptor_is_left_alone() {
    let (with, without) = (file(true), file(false));
    let mut odd = read(&with, Urgency::Needed, 1, 1);
    odd.offset += 1;
    let mut empty = read(&with, Urgency::Needed, 2, 1);
    empty.buffer = Buffer::zeroed(0);
    assert_eq!(joined(vec![read(&with, Urgency::Needed, 0, 1), odd]).len(), 2);
    assert_eq!(joined(vec![read(&with, Urgency::Needed, 0, 1), empty]).len(), 2);
    assert_eq!(joined(vec![read(&without, Urgency::Needed, 0, 1), read(&without, Urgency::Needed, 1, 1)]).len(), 2);
}

#[test]
fn the_parts_of_a_run_cover_it_once() {
    let runs = join(needed(&[(0, 2), (1, 3), (2, 1), (6, 1), (7, 1)]));
    let [run] = &runs[..] else { panic!("one run: {runs:?}") };
    let block = BLOCK_BYTES;
    let parts = [
        RunPart::Read { index: 0, from: 0 },
        RunPart::Read { index: 1, from: block },
        RunPart::Gap(2 * block),
        RunPart::Read { index: 3, from: 0 },
        RunPart::Read { index: 4, from: 0 },
    ];
    assert_eq!(run.parts(), parts);
    assert_eq!(run.bytes(), 8 * block);
}

/// Joins the reads, fills the parts of each run as the disk would, and checks every buffer.
fn check(reads: Vec<ReadRequest>) {
    let count = reads.len();
    let told = Arc::new(Mutex::new(0));
    let runs = join(reads);
    assert_eq!(runs.iter().map(ReadRun::len).sum::<usize>(), count);
    for mut run in runs {
        let lengths = run.extend();
        let mut offset = run.first.offset;
        let parts = if run.is_single() { vec![RunPart::Read { index: 0, from: 0 }] } else { run.parts() };
        for part in parts {
            offset += match part {
                RunPart::Gap(bytes) => bytes,
                RunPart::Read { index, from } => {
                    let target = &mut run.get_mut(index).buffer[from..];
                    (offset..).zip(target.iter_mut()).for_each(|(offset, byte)| *byte = byte_at(offset));
                    target.len()
                }
            } as u64;
        }
        assert_eq!(offset - run.first.offset, run.bytes() as u64);
        run.copy_shared();
        run.shrink(&lengths);
        for read in run.into_reads() {
            let expected: Vec<u8> = (read.offset..).take(read.buffer.len()).map(byte_at).collect();
            assert!(read.buffer[..] == expected, "{read:?}");
            *told.lock() += 1;
        }
    }
    assert_eq!(*told.lock(), count);
}

#[test]
fn every_read_of_a_run_gets_its_bytes() {
    let seeds = if cfg!(miri) { 0..3 } else { 0..300 };
    for seed in seeds {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let file = file(true);
        let blocks = rng.random_range(2..64);
        let reads = (0..rng.random_range(1..20)).map(|_| {
            let mut read = read(&file, Urgency::Needed, rng.random_range(0..blocks), rng.random_range(1..8));
            // A page may end anywhere, but its buffer has room for whole blocks.
            let len = read.buffer.len() - rng.random_range(0..BLOCK_BYTES);
            read.buffer.set_len_within_capacity(len);
            read
        });
        check(reads.collect());
    }
}
