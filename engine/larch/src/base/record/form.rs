//! How the records of a log file are encoded. Two forms exist; the feature bits in the header of the file say which one
//! all of its records have.
//!
//! ```text
//! full:  crc u32 | payload bytes u32 | log id u64 | synced end u64 | payload | zeros to a multiple of 8
//!        crc32c of everything after it in the record, padding included
//!
//! lean:  seal u32 | log u32 | payload bytes varint | unsynced varint | payload | zeros to a multiple of 4
//!        log:       the lower half of the log id
//!        unsynced:  (the record's offset - the synced end) / 4
//!        seal:      crc32c of everything after it in the record, padding included, XOR the upper half of the log id,
//!                   XOR the lowest 32 bits of a fourth of the record's offset
//! ```
//!
//! So the seal of a copy of a lean record at another offset, for example within a value, does not match.

use super::{HEADER_BYTES, Header};
use sst::format::varint;

/// The longest payload, in bytes. The lengths of the payload and of the padded record must fit in a u32.
const MAX_PAYLOAD_BYTES: usize = u32::MAX as usize - 64;

/// The most bytes of a record before its payload.
pub const MAX_HEAD_BYTES: usize = 4 + 4 + 2 * varint::MAX_BYTES;

/// Bytes of a full record before its payload.
const FULL_HEAD_BYTES: usize = 24;

/// The form of the records of one file.
#[derive(Clone, Copy, Debug)]
pub struct RecordForm {
    log_id: u64,
    is_lean: bool,
}

/// What is before the payload of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// The bytes before the payload.
    pub head_bytes: usize,
    pub payload_bytes: u64,
    /// The log was known to be durable up to here when the record was written; at most the offset of the record.
    pub synced_end: u64,
    /// The checksum of everything after the first four bytes.
    pub crc: u32,
    /// The bytes of the record, with its padding.
    pub record_bytes: u64,
}

impl RecordForm {
    /// The form of the records of a file with this header.
    pub fn of(header: &Header) -> Self {
        Self { log_id: header.log_id, is_lean: header.has_lean_records() }
    }

    /// The full form in a log with this id.
    pub fn full(log_id: u64) -> Self {
        Self { log_id, is_lean: false }
    }

    /// Records start at multiples of this number.
    pub fn align_bytes(self) -> usize {
        if self.is_lean { 4 } else { 8 }
    }

    /// What the first four bytes of a record at `offset` are if its checksum is 0.
    fn seal(self, offset: u64) -> u32 {
        if self.is_lean { (self.log_id >> 32) as u32 ^ (offset / 4) as u32 } else { 0 }
    }

    /// Encodes the record at `offset` into `record`, which may hold an older record. Its payload is the concatenation
    /// of `parts`, and has at most [`MAX_PAYLOAD_BYTES`] bytes. Both offsets are those at which records start or end.
    pub fn encode(self, record: &mut Vec<u8>, offset: u64, synced_end: u64, parts: &[&[u8]]) {
        let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
        assert!(payload_bytes <= MAX_PAYLOAD_BYTES, "the caller keeps a record below {MAX_PAYLOAD_BYTES} bytes");
        let mut head = [0; MAX_HEAD_BYTES];
        let head_bytes = if self.is_lean {
            head[4..8].copy_from_slice(&(self.log_id as u32).to_le_bytes());
            let at = 8 + varint::write(&mut head[8..], payload_bytes as u64);
            at + varint::write(&mut head[at..], (offset - synced_end) / 4)
        } else {
            head[4..8].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
            head[8..16].copy_from_slice(&self.log_id.to_le_bytes());
            head[16..24].copy_from_slice(&synced_end.to_le_bytes());
            FULL_HEAD_BYTES
        };
        let record_bytes = (head_bytes + payload_bytes).next_multiple_of(self.align_bytes());
        record.clear();
        record.reserve(record_bytes);
        record.extend_from_slice(&head[..head_bytes]);
        for part in parts {
            record.extend_from_slice(part);
        }
        record.resize(record_bytes, 0);
        self.close(record, offset);
    }

    /// Fills in the first four bytes of the record at `offset`, which is otherwise whole.
    pub fn close(self, record: &mut [u8], offset: u64) {
        let first = crc_fast::crc32_iscsi(&record[4..]) ^ self.seal(offset);
        record[..4].copy_from_slice(&first.to_le_bytes());
    }

    /// The head of the record at `offset`. `bytes` are those of the log from there to its end, or at least the first
    /// [`MAX_HEAD_BYTES`] of them, and `limit` is where the log ends.
    ///
    /// # Errors
    ///
    /// Says why no record begins at `offset`. The checksum is not compared here, so the payload may still be damaged.
    #[inline]
    pub fn decode(self, bytes: &[u8], offset: u64, limit: u64) -> Result<RecordHead, &'static str> {
        let head = if self.is_lean { self.lean_head(bytes, offset)? } else { self.full_head(bytes)? };
        if head.synced_end > offset {
            return Err("a record claims to have been durable before it was written");
        }
        if head.record_bytes > limit - offset {
            return Err("the file ends within a record");
        }
        Ok(head)
    }

    fn full_head(self, bytes: &[u8]) -> Result<RecordHead, &'static str> {
        let Some(head) = bytes.first_chunk::<FULL_HEAD_BYTES>() else { return Err(WITHIN_HEAD) };
        let u64_at = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        if u64_at(8) != self.log_id {
            return Err(ANOTHER_LOG);
        }
        let payload_bytes = u64_at(0) >> 32;
        Ok(self.head(FULL_HEAD_BYTES, payload_bytes, u64_at(16), u64_at(0) as u32))
    }

    #[inline]
    fn lean_head(self, bytes: &[u8], offset: u64) -> Result<RecordHead, &'static str> {
        let Some((first, rest)) = bytes.split_first_chunk() else { return Err(WITHIN_HEAD) };
        let Some((log, mut rest)) = rest.split_first_chunk() else { return Err(WITHIN_HEAD) };
        if u32::from_le_bytes(*log) != self.log_id as u32 {
            return Err(ANOTHER_LOG);
        }
        let (Some(payload_bytes), Some(unsynced)) = (varint::take(&mut rest), varint::take(&mut rest)) else {
            return Err(if bytes.len() < MAX_HEAD_BYTES { WITHIN_HEAD } else { NOT_WRITTEN });
        };
        let synced_end = unsynced.checked_mul(4).and_then(|bytes| offset.checked_sub(bytes));
        let synced_end =
            synced_end.filter(|end| *end >= HEADER_BYTES as u64 && payload_bytes <= MAX_PAYLOAD_BYTES as u64);
        let Some(synced_end) = synced_end else { return Err(NOT_WRITTEN) };
        let crc = u32::from_le_bytes(*first) ^ self.seal(offset);
        Ok(self.head(bytes.len() - rest.len(), payload_bytes, synced_end, crc))
    }

    fn head(self, head_bytes: usize, payload_bytes: u64, synced_end: u64, crc: u32) -> RecordHead {
        let record_bytes = (head_bytes as u64 + payload_bytes).next_multiple_of(self.align_bytes() as u64);
        RecordHead { head_bytes, payload_bytes, synced_end, crc, record_bytes }
    }
}

const WITHIN_HEAD: &str = "the file ends within a record's header";
const ANOTHER_LOG: &str = "there is no record of this log";
const NOT_WRITTEN: &str = "a record's length or synced end is none that is ever written";
