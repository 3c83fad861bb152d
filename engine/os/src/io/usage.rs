//! Counts of the reads under way, the reads that wait, and the reads so far. This module does not know what is read.

use super::request::Urgency;

/// A number of reads, and the bytes that they take from the disk: whole blocks, with the gaps between joined reads.
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

/// The reads of an engine, now and so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Reads that have begun and not ended, by urgency.
    pub under_way: [ReadLoad; Urgency::ALL.len()],
    /// Reads that have not begun, by urgency.
    pub queued: [ReadLoad; Urgency::ALL.len()],
    /// Reads that were asked for so far.
    pub reads: u64,
    /// How many of `reads` were joined with others into one disk read.
    pub joined: u64,
}
