//! How much is being read now, and how much was read so far. This module does not know what is read.

use super::request::Urgency;

/// A number of reads, and the bytes that they take from the disk. The bytes are counted in whole blocks, and the
/// gaps between joined reads are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadLoad {
    /// How many reads.
    pub reads: usize,
    /// How many bytes.
    pub bytes: usize,
}

impl ReadLoad {
    #[inline]
    pub(crate) fn add(&mut self, more: ReadLoad) {
        self.reads += more.reads;
        self.bytes += more.bytes;
    }

    #[inline]
    pub(crate) fn subtract(&mut self, less: ReadLoad) {
        self.reads -= less.reads;
        self.bytes -= less.bytes;
    }
}

/// What reads are doing now, and what they have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of reads that have begun and are not over, by urgency.
    pub under_way: [ReadLoad; Urgency::ALL.len()],
    /// Reads that have not begun, by urgency.
    pub queued: [ReadLoad; Urgency::ALL.len()],
    /// Reads that were asked for so far.
    pub reads: u64,
    /// How many of `reads` were made together with others, as one read of the disk.
    pub joined: u64,
}
