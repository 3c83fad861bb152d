//! A run: several reads of neighbouring bytes that are made as one read of the disk. A run does not know when it
//! is made, or by which thread.
//!
//! If two reads share blocks, these blocks are read once, into the buffer of the first read. Then they are copied
//! into the other buffer. A gap between two reads is read into memory that is never looked at:
//!
//! ```text
//! file       |  a  a  a  |  .  .  |  b  b  b  |           blocks
//! reads      [ first  ]          [ third ]
//!                  [ second ]
//! one read   [ first  ][2nd][gap ][ third ]               2nd: all of the second but the blocks it shares
//! ```

use super::queue::Queued;
use super::request::{ReadRequest, Urgency};
use super::usage::ReadLoad;
use crate::sync::Arc;
use crate::{BLOCK_BYTES, Buffer, File, OpenSource};
use std::collections::HashMap;
use std::io::{self, IoSliceMut};

/// The most bytes that one read of the disk takes. If several reads are under way, a disk is as fast with reads of
/// this size as with larger reads. At 1 GB/s, a needed read waits for 0.13 ms if such a read is before it.
const RUN_BYTES: u64 = 128 << 10;

/// The largest gap between two reads that are joined. The bytes of the gap are read needlessly. At 750 MB/s,
/// reading 16 KiB takes as long as one more read on a disk that makes 46,000 reads per second.
pub(crate) const GAP_BYTES: u64 = 16 << 10;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// How far reads are joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinLimits {
    /// The most that one run takes.
    pub(crate) run_bytes: u64,
    /// The largest gap between two reads that are joined. The bytes of the gap are read needlessly.
    pub(crate) gap_bytes: u64,
}

/// Reads that are made as one.
#[derive(Debug)]
pub(crate) struct ReadRun {
    pub(crate) first: ReadRequest,
    /// The other reads of the run, in the order of their offsets.
    pub(crate) rest: Vec<ReadRequest>,
    /// The number of bytes that the run takes from the disk.
    bytes: usize,
}

/// A part of the bytes of a run. The parts of a run are in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPart {
    /// This many bytes that no read asked for.
    Gap(usize),
    /// Bytes of the read number `index`: from its byte `from` to the end of the last block that it touches.
    Read { index: usize, from: usize },
}

/// Bytes at the beginning of a read that are copied from the buffer of an earlier read of the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Overlap {
    from: usize,
    from_start: usize,
    to: usize,
    bytes: usize,
}

impl ReadRun {
    /// A read alone.
    pub(crate) fn alone(read: ReadRequest) -> ReadRun {
        let bytes = whole_blocks(read.buffer.len());
        ReadRun { first: read, rest: Vec::new(), bytes }
    }

    /// The urgency that all reads of the run had when they were asked for. Since then, the reads may have become
    /// more urgent.
    pub(crate) fn urgency(&self) -> Urgency {
        self.first.urgency
    }

    /// The number of bytes that the run takes from the disk.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the run has only one read.
    pub(crate) fn is_single(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of reads in the run.
    pub(crate) fn len(&self) -> usize {
        1 + self.rest.len()
    }

    /// All reads of the run, in the order of their offsets.
    pub(crate) fn into_reads(self) -> impl Iterator<Item = ReadRequest> {
        std::iter::once(self.first).chain(self.rest)
    }

    fn get(&self, index: usize) -> &ReadRequest {
        if index == 0 { &self.first } else { &self.rest[index - 1] }
    }

    #[cfg(any(test, target_os = "linux"))]
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut ReadRequest {
        if index == 0 { &mut self.first } else { &mut self.rest[index - 1] }
    }

    fn iter(&self) -> impl Iterator<Item = &ReadRequest> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut ReadRequest> {
        std::iter::once(&mut self.first).chain(&mut self.rest)
    }

    /// Extends every buffer to whole blocks, because direct I/O needs this. [`ReadRun::shrink`] undoes this.
    pub(crate) fn extend(&mut self) -> Lengths {
        let extend = |read: &mut ReadRequest| {
            let len = read.buffer.len();
            read.buffer.set_len_within_capacity(whole_blocks(len));
            len
        };
        let first = extend(&mut self.first);
        Lengths { first, rest: self.rest.iter_mut().map(extend).collect() }
    }

    /// Gives every buffer its original length again.
    pub(crate) fn shrink(&mut self, lengths: &Lengths) {
        self.first.buffer.set_len_within_capacity(lengths.first);
        for (read, len) in self.rest.iter_mut().zip(&lengths.rest) {
            read.buffer.set_len_within_capacity(*len);
        }
    }

    /// The parts of the run, from the offset of its first read to its end.
    pub(crate) fn parts(&self) -> Vec<RunPart> {
        let mut parts = Vec::with_capacity(self.len() + 4);
        let mut end = self.first.offset;
        for (index, read) in self.iter().enumerate() {
            if read.offset > end {
                parts.push(RunPart::Gap(memory_bytes(read.offset - end)));
                end = read.offset;
            }
            let read_end = end_of(read);
            if read_end > end {
                parts.push(RunPart::Read { index, from: memory_bytes(end - read.offset) });
                end = read_end;
            }
        }
        parts
    }

    /// Copies the bytes that several reads share. It is called after all parts were read, while every buffer still
    /// has whole blocks.
    pub(crate) fn copy_shared(&mut self) {
        // A read may share bytes with several earlier reads. Of these, the read with the greatest end has all
        // bytes that are shared.
        let mut farthest = 0;
        for to in 1..self.len() {
            let (source, read) = (self.get(farthest), self.get(to));
            let (end, read_end) = (end_of(source), end_of(read));
            if read.offset < end {
                let bytes = memory_bytes(end.min(read_end) - read.offset);
                let from_start = memory_bytes(read.offset - source.offset);
                self.copy(Overlap { from: farthest, from_start, to, bytes });
            }
            if read_end > end {
                farthest = to;
            }
        }
    }

    fn copy(&mut self, Overlap { from, from_start, to, bytes }: Overlap) {
        let (source, target) = if from == 0 {
            (&self.first, &mut self.rest[to - 1])
        } else {
            let (before, after) = self.rest.split_at_mut(to - 1);
            (&before[from - 1], &mut after[0])
        };
        target.buffer[..bytes].copy_from_slice(&source.buffer[from_start..from_start + bytes]);
    }

    /// Opens the source of the reads. `None` if the source would have to wait.
    #[cfg(target_os = "linux")]
    pub(crate) fn try_open(&self) -> io::Result<Option<OpenSource>> {
        Arc::clone(&self.first.source).try_open()
    }

    /// Opens the source of the reads. The call waits until the source can be opened.
    pub(crate) fn open(&self) -> io::Result<OpenSource> {
        Arc::clone(&self.first.source).open()
    }

    /// Makes the reads on this thread, which must have no source open.
    pub(crate) fn read(&mut self) -> RunOutcome {
        // The source is closed here, before the reads are made one by one and each opens it again.
        let is_filled = !self.is_single() && self.open().is_ok_and(|open| self.read_joined(open.file()));
        if is_filled { RunOutcome::Filled } else { self.read_each() }
    }

    /// Makes each read by itself on this thread, which must have no source open.
    pub(crate) fn read_each(&mut self) -> RunOutcome {
        RunOutcome::Each(self.iter_mut().map(ReadRequest::open_and_read).collect())
    }

    /// Makes all reads of the run as one read on this thread. Returns false if this read did not get all bytes.
    fn read_joined(&mut self, file: &dyn File) -> bool {
        let Some(descriptor) = file.descriptor() else {
            return false;
        };
        let (offset, bytes) = (self.first.offset, self.bytes);
        let lengths = self.extend();
        let parts = self.parts();
        let gap_bytes = parts.iter().map(|part| if let RunPart::Gap(bytes) = part { *bytes } else { 0 }).sum();
        let mut gaps = Buffer::zeroed(gap_bytes);
        let mut gaps = &mut gaps[..];
        let mut reads = self.iter_mut().enumerate();
        let mut slices = Vec::with_capacity(parts.len());
        for part in &parts {
            let slice = match *part {
                RunPart::Gap(bytes) => {
                    let gap;
                    (gap, gaps) = gaps.split_at_mut(bytes);
                    gap
                }
                RunPart::Read { index, from } => {
                    let (_, read) = reads.find(|(at, _)| *at == index).expect("parts are in the order of the reads");
                    &mut read.buffer[from..]
                }
            };
            slices.push(IoSliceMut::new(slice));
        }
        let filled = loop {
            match rustix::io::preadv(descriptor, &mut slices, offset) {
                Err(rustix::io::Errno::INTR) => {}
                read => break read == Ok(bytes),
            }
        };
        drop((slices, reads));
        if filled {
            self.copy_shared();
        }
        self.shrink(&lengths);
        filled
    }

    /// Reports the end of every read.
    pub(crate) fn tell(self, outcome: RunOutcome) {
        match outcome {
            RunOutcome::Filled => {
                for read in self.into_reads() {
                    let len = read.buffer.len();
                    read.finish(Ok(len));
                }
            }
            RunOutcome::Each(outcomes) => {
                for (read, outcome) in self.into_reads().zip(outcomes) {
                    read.finish(outcome);
                }
            }
        }
    }

    /// Leaks the extended buffers, so that they stay where they are forever, and puts new buffers of the original
    /// lengths into their places.
    #[cfg(target_os = "linux")]
    pub(crate) fn renew_buffers(&mut self, lengths: &Lengths) {
        let lengths = std::iter::once(lengths.first).chain(lengths.rest.iter().copied());
        for (read, len) in self.iter_mut().zip(lengths) {
            std::mem::forget(std::mem::replace(&mut read.buffer, Buffer::zeroed(len)));
        }
    }

    /// Gives every read its part of the bytes, and reports its end. `pieces` are the bytes of the source from the
    /// offset of the first read on. They are all bytes of the run, or fewer if the source has ended.
    pub(crate) fn fill(self, pieces: &[&[u8]]) {
        let start = self.first.offset;
        // In the loop, `pieces` begins with the piece in which the read before this one began, and `piece_at` is
        // the offset of that piece. This works because the reads come in the order of their offsets.
        let (mut pieces, mut piece_at) = (pieces, 0);
        for mut read in self.into_reads() {
            let at = memory_bytes(read.offset - start);
            while let Some((piece, rest)) = pieces.split_first()
                && piece_at + piece.len() <= at
            {
                (pieces, piece_at) = (rest, piece_at + piece.len());
            }
            let (mut filled, mut skipped) = (0, at - piece_at);
            for piece in pieces {
                let room = &mut read.buffer[filled..];
                let part = piece.get(skipped..).unwrap_or_default();
                let bytes = part.len().min(room.len());
                room[..bytes].copy_from_slice(&part[..bytes]);
                (filled, skipped) = (filled + bytes, 0);
                if filled == read.buffer.len() {
                    break;
                }
            }
            read.finish(Ok(filled));
        }
    }

    /// Reports an error to every read.
    pub(crate) fn fail(self, error: impl Fn() -> io::Error) {
        for read in self.into_reads() {
            read.finish(Err(error()));
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum RunOutcome {
    /// All buffers are full.
    Filled,
    /// The outcome of each read.
    Each(Vec<io::Result<usize>>),
}

/// The lengths of buffers of a run.
#[derive(Debug)]
pub(crate) struct Lengths {
    first: usize,
    rest: Vec<usize>,
}

impl Lengths {
    /// The length for the first read.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_first(&self) -> usize {
        self.first
    }
}

impl Queued for ReadRun {
    fn load(&self) -> ReadLoad {
        ReadLoad { reads: self.len(), bytes: self.bytes }
    }

    fn tickets(&self) -> impl Iterator<Item = u64> {
        self.iter().map(|read| read.ticket)
    }
}

/// Joins reads that are near each other. Only reads with the same source and the same urgency are joined, and only
/// if they can be made with a descriptor.
pub(crate) fn join(reads: Vec<ReadRequest>) -> Vec<ReadRun> {
    join_within(reads, JoinLimits { run_bytes: RUN_BYTES, gap_bytes: GAP_BYTES })
}

/// As [`join`], within other limits.
pub(crate) fn join_within(mut reads: Vec<ReadRequest>, limits: JoinLimits) -> Vec<ReadRun> {
    let identity = |read: &ReadRequest| Arc::as_ptr(&read.source).addr();
    if reads.len() > 1 {
        // Files are ranked in the order in which `reads` first names them. If they were sorted by their addresses
        // in memory, the order of the reads would be different each time the program is started.
        let mut ranks: HashMap<usize, usize> = HashMap::new();
        for read in &reads {
            let next = ranks.len();
            ranks.entry(identity(read)).or_insert(next);
        }
        reads.sort_by_key(|read| (read.urgency, ranks[&identity(read)], read.offset));
    }
    let mut runs: Vec<ReadRun> = Vec::with_capacity(reads.len());
    // The end of the newest run, if another read can join this run.
    let mut open_end = None;
    for read in reads {
        let end = (is_whole(&read) && read.source.may_join()).then(|| end_of(&read));
        match (runs.last_mut(), open_end, end) {
            (Some(run), Some(run_end), Some(end))
                if run.first.urgency == read.urgency
                    && identity(&run.first) == identity(&read)
                    && limits.are_near(run.first.offset, run_end, read.offset, end) =>
            {
                let farthest = end.max(run_end);
                run.bytes = memory_bytes(farthest - run.first.offset);
                run.rest.push(read);
                open_end = Some(farthest);
            }
            _ => {
                runs.push(ReadRun::alone(read));
                open_end = end;
            }
        }
    }
    runs
}

impl JoinLimits {
    /// Whether a read from `offset` to `end` may join a run from `start` to `run_end`.
    fn are_near(self, start: u64, run_end: u64, offset: u64, end: u64) -> bool {
        offset.saturating_sub(run_end) <= self.gap_bytes && end - start <= self.run_bytes
    }
}

/// Whether a descriptor can make this read, because its buffer has whole blocks once it is [extended](ReadRun::extend).
pub(crate) fn is_whole(read: &ReadRequest) -> bool {
    let end = read.offset.checked_add(whole_blocks(read.buffer.len()) as u64);
    read.offset.is_multiple_of(BLOCK) && !read.buffer.is_empty() && end.is_some_and(|end| i64::try_from(end).is_ok())
}

/// The end of the last block of a read.
fn end_of(read: &ReadRequest) -> u64 {
    read.offset + whole_blocks(read.buffer.len()) as u64
}

fn whole_blocks(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK_BYTES)
}

/// A length within a run as a `usize`: it fits, because the run is in memory.
fn memory_bytes(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a run is in memory")
}

/// Memory for gaps.
#[cfg(target_os = "linux")]
pub(crate) fn scratch() -> Buffer {
    Buffer::zeroed(memory_bytes(GAP_BYTES))
}

#[cfg(test)]
mod tests;
