//! The bytes of one simulated file: as the process sees them (`live`), as they are on the platter (`durable`), and the
//! writes that have not reached the platter (`unsynced`). This module does not know the name of the file.
//!
//! Invariant: `durable` with all of `unsynced` applied is `live`, unless a failed sync has lost writes. On a disk that
//! never crashes, a file has only `live`.

use super::random::Draws;

/// A torn write keeps or loses pieces of this length.
const SECTOR_BYTES: usize = 512;

/// How many of the unsynced writes a crash keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spared {
    Nothing,
    Everything,
    /// As many as the seed decides.
    Some,
}

/// The bytes of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct SimContent {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Operation>,
    /// Whether the file has only `live`.
    never_crashes: bool,
}

#[derive(Clone, Debug)]
enum Operation {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl SimContent {
    /// An empty file of a disk that never crashes.
    pub(super) fn that_never_crashes() -> Self {
        Self { never_crashes: true, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// The memory that the file takes, including spare capacity.
    pub(super) fn memory_bytes(&self) -> usize {
        let unsynced = self.unsynced.iter().map(|operation| match operation {
            Operation::Write { bytes, .. } => bytes.capacity(),
            Operation::SetLen(_) => 0,
        });
        let operations = self.unsynced.capacity() * size_of::<Operation>();
        self.live.capacity() + self.durable.capacity() + operations + unsynced.sum::<usize>()
    }

    /// Copies the bytes from `offset` on into `buffer`, and returns how many it copied.
    pub(super) fn read(&self, buffer: &mut [u8], offset: usize) -> usize {
        let rest = self.live.get(offset..).unwrap_or_default();
        let bytes = buffer.len().min(rest.len());
        buffer[..bytes].copy_from_slice(&rest[..bytes]);
        bytes
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        if self.never_crashes {
            put(bytes, offset, &mut self.live);
        } else {
            self.perform(Operation::Write { offset, bytes: bytes.to_vec() });
        }
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.perform(Operation::SetLen(len));
    }

    fn perform(&mut self, operation: Operation) {
        operation.apply(&mut self.live);
        if !self.never_crashes {
            self.unsynced.push(operation);
        }
    }

    /// Makes all writes durable, except those that a failed sync lost.
    pub(super) fn sync(&mut self) {
        for operation in self.unsynced.drain(..) {
            operation.apply(&mut self.durable);
        }
    }

    /// Forgets a random part of the unsynced writes, although the process still sees them. A real system does this
    /// when it fails to write a page, but marks it as clean.
    pub(super) fn lose_unsynced(&mut self, draws: &mut Draws) {
        self.unsynced.retain(|_| draws.coin());
    }

    /// Crashes: some of the unsynced writes reach the platter, one of them perhaps torn, and from now on the process
    /// sees what is on the platter.
    pub(super) fn crash(&mut self, spared: Spared, draws: &mut Draws) {
        if self.never_crashes {
            return;
        }
        let mut operations = std::mem::take(&mut self.unsynced);
        match spared {
            Spared::Nothing => operations.clear(),
            Spared::Everything => {}
            Spared::Some => {
                // With a coin toss for each write, a crash would almost never keep all or none of many writes.
                match draws.below(4) {
                    0 => operations.clear(),
                    1 => {}
                    2 => operations.truncate(draws.below(operations.len() + 1)),
                    _ => operations.retain(|_| draws.coin()),
                }
                if !operations.is_empty() && draws.coin() {
                    let torn = draws.below(operations.len());
                    let pieces = operations[torn].torn(draws);
                    operations.splice(torn..=torn, pieces);
                }
            }
        }
        for operation in operations {
            operation.apply(&mut self.durable);
        }
        // When only the process dies, writes that a failed sync lost are still in the system's page cache.
        if spared != Spared::Everything {
            self.live.clone_from(&self.durable);
        }
    }

    /// Lets only the first `keep` bytes of the newest unsynced write reach the platter. Returns false if none exists.
    pub(super) fn tear_last_write(&mut self, keep: usize) -> bool {
        let last = self.unsynced.iter_mut().rev().find_map(|operation| match operation {
            Operation::Write { bytes, .. } => Some(bytes),
            Operation::SetLen(_) => None,
        });
        last.map(|bytes| bytes.truncate(keep)).is_some()
    }

    /// Flips a bit in every copy of a byte.
    pub(super) fn flip_bit(&mut self, byte: usize, bit: u32) {
        let mask = 1 << bit;
        for image in [&mut self.live, &mut self.durable] {
            if let Some(byte) = image.get_mut(byte) {
                *byte ^= mask;
            }
        }
        for operation in &mut self.unsynced {
            if let Operation::Write { offset, bytes } = operation
                && let Some(byte) = byte.checked_sub(*offset).and_then(|at| bytes.get_mut(at))
            {
                *byte ^= mask;
            }
        }
    }
}

/// Puts `bytes` at `offset` of `image`. If the image is too short, it grows.
fn put(bytes: &[u8], offset: usize, image: &mut Vec<u8>) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

impl Operation {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Operation::Write { offset, bytes } => put(bytes, *offset, image),
            Operation::SetLen(len) => image.resize(*len, 0),
        }
    }

    /// What a crash leaves of an operation that was under way: of a write, either a prefix, or any of its sectors with
    /// the length of the file as after the whole write. A change of length is never torn.
    fn torn(&self, draws: &mut Draws) -> Vec<Operation> {
        let Operation::Write { offset, bytes } = self else { return vec![self.clone()] };
        if draws.coin() {
            let kept = draws.below(bytes.len());
            return vec![Operation::Write { offset: *offset, bytes: bytes[..kept].to_vec() }];
        }
        let end = offset + bytes.len();
        let mut pieces = Vec::new();
        let mut start = *offset;
        while start < end {
            let next = (start + 1).next_multiple_of(SECTOR_BYTES).min(end);
            if draws.coin() {
                pieces.push(Operation::Write { offset: start, bytes: bytes[start - offset..next - offset].to_vec() });
            }
            start = next;
        }
        pieces.push(Operation::Write { offset: end, bytes: Vec::new() });
        pieces
    }
}
