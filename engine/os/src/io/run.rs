//! A run: reads of neighbouring bytes that are joined into one disk read. A run does not know when it is made, or by
//! which thread.
//!
//! Blocks that two reads share are read once, into the buffer of the first read, and then copied into the other
//! buffer. A gap between two reads is read into scratch memory:
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

/// The longest disk read that reads are joined into. With several reads under way, a disk is as fast with reads of
/// this size as with larger ones. At 1 GB/s, such a read delays a needed read behind it by 0.13 ms.
const RUN_BYTES: u64 = 128 << 10;

/// The largest gap between two reads that are joined. Its bytes are read for nothing: at 750 MB/s, 16 KiB take as
/// long as one more read on a disk that makes 46,000 reads per second.
pub(crate) const GAP_BYTES: u64 = 16 << 10;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Which reads are joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinLimits {
    /// The longest run.
    pub(crate) run_bytes: u64,
    /// The largest gap between two reads that are joined.
    pub(crate) gap_bytes: u64,
}

/// One or more reads that are made as one disk read.
#[derive(Debug)]
pub(crate) struct ReadRun {
    pub(crate) first: ReadRequest,
    /// The other reads, in the order of their offsets.
    pub(crate) rest: Vec<ReadRequest>,
    /// The length of the disk read.
    bytes: usize,
}

/// A part of the bytes of a run. The parts of a run are in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPart {
    /// Bytes that no read asked for.
    Gap(usize),
    /// The bytes of read `index` from its byte `from` to the end of its last block.
    Read { index: usize, from: usize },
}

/// The first bytes of read `to`, which are copied from the buffer of the earlier read `from`.
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

    /// The urgency with which all reads of the run were submitted. The run may have been raised since.
    pub(crate) fn urgency(&self) -> Urgency {
        self.first.urgency
    }

    /// The length of the disk read.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_single(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of reads.
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

    /// Extends every buffer to whole blocks, as direct I/O needs. [`ReadRun::shrink`] undoes this.
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

    /// Copies the bytes that several reads share into the buffers of all of them. Called after all parts were read
    /// and before [`ReadRun::shrink`].
    pub(crate) fn copy_shared(&mut self) {
        // A read may share bytes with several earlier reads. The one that ends last has all of these bytes.
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

    /// Opens the source of the reads. `None` if that would need a wait.
    #[cfg(target_os = "linux")]
    pub(crate) fn try_open(&self) -> io::Result<Option<OpenSource>> {
        Arc::clone(&self.first.source).try_open()
    }

    /// Opens the source of the reads, and waits for that if necessary.
    pub(crate) fn open(&self) -> io::Result<OpenSource> {
        Arc::clone(&self.first.source).open()
    }

    /// Makes the reads on this thread, which must have no source open. If the joined read fails or is short, the
    /// reads are made one by one.
    pub(crate) fn read(&mut self) -> RunOutcome {
        // The source is closed here, because each of the single reads opens it again.
        let is_filled = !self.is_single() && self.open().is_ok_and(|open| self.read_joined(open.file()));
        if is_filled { RunOutcome::Filled } else { self.read_each() }
    }

    /// Makes each read by itself on this thread, which must have no source open.
    pub(crate) fn read_each(&mut self) -> RunOutcome {
        RunOutcome::Each(self.iter_mut().map(ReadRequest::open_and_read).collect())
    }

    /// Makes one joined read on this thread. Returns false if it did not get all bytes.
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

    /// Calls the callback of every read.
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

    /// Leaks the extended buffers, so that the kernel can still write to them, and replaces them with new buffers of
    /// the original lengths.
    #[cfg(target_os = "linux")]
    pub(crate) fn renew_buffers(&mut self, lengths: &Lengths) {
        let lengths = std::iter::once(lengths.first).chain(lengths.rest.iter().copied());
        for (read, len) in self.iter_mut().zip(lengths) {
            std::mem::forget(std::mem::replace(&mut read.buffer, Buffer::zeroed(len)));
        }
    }

    /// Copies to every read its part of the bytes, and calls its callback. `pieces` are the bytes of the run, or
    /// fewer if the source ends before.
    pub(crate) fn fill(self, pieces: &[&[u8]]) {
        let start = self.first.offset;
        // Reads come in the order of their offsets, so `pieces` can be advanced to the piece in which the current
        // read begins. `piece_at` is the offset of that piece in the run.
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

    /// Calls the callback of every read with an error.
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

/// The lengths that the buffers of a run had before [`ReadRun::extend`].
#[derive(Debug)]
pub(crate) struct Lengths {
    first: usize,
    rest: Vec<usize>,
}

impl Lengths {
    /// The length of the first read's buffer.
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

/// Joins reads that are near each other into runs. Only reads with the same source and urgency are joined, and only
/// if they begin at a block and their source [allows it](crate::ReadSource::may_join).
pub(crate) fn join(reads: Vec<ReadRequest>) -> Vec<ReadRun> {
    join_within(reads, JoinLimits { run_bytes: RUN_BYTES, gap_bytes: GAP_BYTES })
}

/// As [`join`], within other limits.
pub(crate) fn join_within(mut reads: Vec<ReadRequest>, limits: JoinLimits) -> Vec<ReadRun> {
    let identity = |read: &ReadRequest| Arc::as_ptr(&read.source).addr();
    if reads.len() > 1 {
        // Sources are ranked by their first appearance in `reads`. Sorted by their addresses in memory, the reads
        // would come in another order each time the program runs.
        let mut ranks: HashMap<usize, usize> = HashMap::new();
        for read in &reads {
            let next = ranks.len();
            ranks.entry(identity(read)).or_insert(next);
        }
        reads.sort_by_key(|read| (read.urgency, ranks[&identity(read)], read.offset));
    }
    let mut runs: Vec<ReadRun> = Vec::with_capacity(reads.len());
    // The end of the newest run, if more reads can join it.
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

/// Whether this read can be made as aligned whole blocks, once its buffer is [extended](ReadRun::extend).
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

/// A length within a run as a `usize`. It fits, because the run is in memory.
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
