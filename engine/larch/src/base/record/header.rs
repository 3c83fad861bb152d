//! The header of a log file: its first 64 bytes. This module does not read or write files.
//!
//! ```text
//!  0  magic "LARCHLOG"              8
//!  8  format version                u32   1
//! 12  feature bits                  u32   of this kind of file, see `sst::format::features`
//! 16  log id                        u64   random per file, never 0; binds the records to the file
//! 24  number                        u64   of the file
//! 32  previous log's number         u64   0 if there is none, or if the first record names it
//! 40  previous log's synced end     u64   0 if there is none, or if the first record names it
//! 48  kind                          u32   1 write-ahead log, 2 manifest
//! 52  zeros                         8
//! 60  crc32c of bytes 0..60         u32
//! ```
//!
//! Numbers are little-endian. The length of the header and the place of its checksum are the same in every format
//! version, so that a reader can tell a damaged header from a newer one.

use sst::format::features::{self, Unreadable};

/// Bytes of the header. The first record follows it.
pub const HEADER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"LARCHLOG";
const FORMAT_VERSION: u32 = 1;
const CRC_AT: usize = 60;

/// Feature bit of a manifest whose edits are lists of numbered fields, each with its length.
pub const EDIT_FIELDS: u32 = 1 << 16;

/// Feature bit of a write-ahead log whose first record names the previous log, so that the log can begin before the
/// previous log is durable.
pub const BEGIN_RECORD: u32 = 1 << 16;

/// Feature bit of a write-ahead log whose records and commits are lean: their heads have numbers of variable length.
pub const LEAN_RECORDS: u32 = 1 << 17;

/// Feature bit of a write-ahead log whose commits may have rows with times until which they are there.
pub const TIMES: u32 = 1 << 18;

/// What the records of a log file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LogKind {
    /// Commits.
    WriteAhead = 1,
    /// Edits of the file set.
    Manifest = 2,
}

impl LogKind {
    /// The feature bits that this release knows in files of this kind.
    pub fn features(self) -> u32 {
        match self {
            Self::WriteAhead => BEGIN_RECORD | LEAN_RECORDS | TIMES,
            Self::Manifest => EDIT_FIELDS,
        }
    }

    fn from_u32(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::WriteAhead),
            2 => Some(Self::Manifest),
            _ => None,
        }
    }
}

/// The log before a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Previous {
    /// The number of the previous log's file, which is not 0.
    pub number: u64,
    /// Where the previous log ends.
    pub end: KnownEnd,
}

/// The end of a log, as the next log states it. Bytes past it were never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownEnd {
    /// The offset at which the log ends, in bytes from the start of its file.
    pub at: u64,
    /// Whether everything before the end was durable when the next log stated it. A header states only durable ends.
    pub is_durable: bool,
}

impl Previous {
    /// Whether the number and the end are possible for a log.
    pub fn is_valid(&self) -> bool {
        self.number != 0 && self.end.at >= HEADER_BYTES as u64
    }

    /// Whether a log that names this previous log invalidates the older log `number`, which names the previous log
    /// `own`. It does if a recovery dropped the commits of the older log because commits before them were lost.
    pub fn drops(&self, number: u64, own: Option<Previous>) -> bool {
        self.end.is_durable && number > self.number && own.is_some_and(|own| !own.end.is_durable)
    }
}

impl KnownEnd {
    /// A durable end at this offset.
    pub fn durable(at: u64) -> Self {
        Self { at, is_durable: true }
    }
}

/// What a log file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the records of the file are.
    pub kind: LogKind,
    /// A random number other than 0, to which each record of the file is bound. So a record of another file cannot be
    /// mistaken for one of this file.
    pub log_id: u64,
    /// The number of the file, which is not 0.
    pub number: u64,
    /// The previous log, if the header names it.
    pub previous: Option<Previous>,
    /// The feature bits. A reader ignores unknown bits among the lowest 16.
    pub features: u32,
}

impl Header {
    /// A header without features.
    pub fn new(kind: LogKind, log_id: u64, number: u64, previous: Option<Previous>) -> Self {
        Self { kind, log_id, number, previous, features: 0 }
    }

    /// Whether the first record of the log names the previous log.
    pub fn has_begin_record(&self) -> bool {
        self.kind == LogKind::WriteAhead && self.features & BEGIN_RECORD != 0
    }

    /// Whether the records of the log, and the commits in them, are lean.
    pub fn has_lean_records(&self) -> bool {
        self.kind == LogKind::WriteAhead && self.features & LEAN_RECORDS != 0
    }

    /// Whether commits of the log may have rows with times.
    pub fn has_times(&self) -> bool {
        self.kind == LogKind::WriteAhead && self.features & TIMES != 0
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        assert!(self.log_id != 0 && self.number != 0, "log ids and file numbers start at 1");
        let (previous_number, previous_end) =
            self.previous.map_or((0, 0), |previous| (previous.number, previous.end.at));
        assert!(
            self.previous.is_none_or(|previous| previous.is_valid() && previous.end.is_durable),
            "file numbers start at 1, a log ends after its header, and a header names a durable end"
        );
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.features.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&previous_number.to_le_bytes());
        bytes[40..48].copy_from_slice(&previous_end.to_le_bytes());
        bytes[48..52].copy_from_slice(&(self.kind as u32).to_le_bytes());
        let crc = crc_fast::crc32_iscsi(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Unreadable> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let corrupt = |why: &str| Err(Unreadable::from(why));
        if &bytes[..8] != MAGIC {
            return corrupt("the header does not start with LARCHLOG");
        }
        if u32_at(CRC_AT) != crc_fast::crc32_iscsi(&bytes[..CRC_AT]) {
            return corrupt("the header's checksum does not match");
        }
        features::check_version(u32_at(8), FORMAT_VERSION)?;
        let Some(kind) = LogKind::from_u32(u32_at(48)) else {
            return corrupt("the header names no known kind of log");
        };
        let features = u32_at(12);
        features::check(features, kind.features())?;
        let (log_id, number, previous_number) = (u64_at(16), u64_at(24), u64_at(32));
        if log_id == 0 || number == 0 {
            return corrupt("the header has a log id or a file number of 0");
        }
        let end = KnownEnd::durable(u64_at(40));
        let previous = (previous_number != 0).then_some(Previous { number: previous_number, end });
        if previous.is_some_and(|previous| !previous.is_valid()) {
            return corrupt("the header says that the previous log ended within its own header");
        }
        let header = Self { kind, log_id, number, previous, features };
        if header.has_begin_record() && previous.is_some() {
            return corrupt("the header names a previous log, which its feature bit leaves to the first record");
        }
        Ok(header)
    }
}
