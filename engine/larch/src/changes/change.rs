//! One change of a commit. This module does not know where it was found.

use crate::base::operand::{self, MergeOp};
use crate::base::ops::Op;
use crate::base::parts::Slices;
use crate::base::row_clock;
use crate::base::table::TableInfo;
use os::sync::Arc;
use sst::{Until, Version};
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// One change of a commit, from a feed of [`Changes`](super::Changes).
#[derive(Clone)]
pub struct Change {
    table: Arc<TableInfo>,
    version: Version,
    /// The key and the value with its parts joined; of a range erase, the start and the end, which is empty if there is none.
    bytes: Box<[u8]>,
    key_bytes: u32,
    what: What,
    is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    RangeErase,
    Erase,
    /// With the time until which the row is there.
    Put(Option<Until>),
    Merge,
    Failed,
}

/// What a change does.
#[expect(clippy::large_enum_variant, reason = "it lives on the stack while a change is looked at")]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ChangeKind<'c> {
    /// The key has this value from now on.
    Put {
        /// The key.
        key: &'c [u8],
        /// The value.
        value: ChangedParts<'c>,
        /// The time until which the row is there, since the beginning of 1970; `None` if it does not expire.
        until: Option<Duration>,
    },
    /// The value of the key is changed from now on. A feed that reads files and no log gives a put of the value
    /// instead, and leaves out what later commits have changed again, as [far as nothing keeps it](super::Changes).
    Merge {
        /// The key.
        key: &'c [u8],
        /// How it is changed.
        op: MergeOp<'c>,
    },
    /// The value of the key cannot be computed from its merges, see [`Error::Merge`](crate::Error::Merge). Reads of the key
    /// fail from now on.
    Failed {
        /// The key.
        key: &'c [u8],
        /// What is wrong.
        why: &'c str,
    },
    /// The key has no value from now on. It may have had none before, and then the change may be missing.
    Erase {
        /// The key.
        key: &'c [u8],
    },
    /// No key in the range has a value from now on, but for those that the same commit puts. A range may come in
    /// several pieces.
    EraseRange {
        /// The first key.
        start: &'c [u8],
        /// The first key after the range; `None` if the range has no end.
        end: Option<&'c [u8]>,
    },
}

/// A value in a change: one part for each column group of the table, or the whole value as its only part.
#[derive(Clone, Copy, Debug)]
pub struct ChangedParts<'c>(Slices<'c>);

impl<'c> ChangedParts<'c> {
    /// The whole value of a table without column groups; the first part of a table with some.
    pub fn whole(&self) -> &'c [u8] {
        self.0[0]
    }
}

impl<'c> Deref for ChangedParts<'c> {
    type Target = [&'c [u8]];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Change {
    /// The change that `op` makes at `version`. `None` if its value has not one part for each group of the table.
    pub(super) fn new(table: &Arc<TableInfo>, version: Version, op: Op<'_>) -> Option<Self> {
        let (what, key, rest) = match op {
            Op::Put { key, value, until } => {
                Slices::of(value, table.options.groups.len())?;
                (What::Put(until), key, value)
            }
            Op::Merge { key, operand } => (What::Merge, key, operand),
            Op::Erase { key } => (What::Erase, key, &[][..]),
            Op::RangeErase { start, end } => (What::RangeErase, start, end),
        };
        Some(Self::of(table, version, what, key, rest))
    }

    /// The change of a key whose merges cannot be applied.
    pub(super) fn failed(table: &Arc<TableInfo>, version: Version, key: &[u8], why: &str) -> Self {
        Self::of(table, version, What::Failed, key, why.as_bytes())
    }

    fn of(table: &Arc<TableInfo>, version: Version, what: What, key: &[u8], rest: &[u8]) -> Self {
        let key_bytes = u32::try_from(key.len()).expect("a key is short");
        Self { table: table.clone(), version, bytes: [key, rest].concat().into(), key_bytes, what, is_last: false }
    }

    /// The version of the commit.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.table.name
    }

    /// The [number](crate::Table::number) of the table.
    pub fn table_number(&self) -> u32 {
        self.table.id.0
    }

    /// The names of the table's column groups, one for each part of a value. Empty if it has none.
    pub fn groups(&self) -> &[String] {
        &self.table.options.groups
    }

    /// Whether it is the last change of its commit that the feed gives.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// What it does.
    pub fn kind(&self) -> ChangeKind<'_> {
        let (key, rest) = self.bytes.split_at(self.key_bytes as usize);
        match self.what {
            What::Put(until) => {
                let parts = Slices::of(rest, self.table.options.groups.len()).expect("checked when it was made");
                let until = until.map(row_clock::time_of);
                ChangeKind::Put { key, value: ChangedParts(parts), until }
            }
            What::Merge => {
                let mut op = None;
                operand::describe(rest, |step| op = Some(step));
                ChangeKind::Merge { key, op: op.expect("checked when it was read") }
            }
            What::Failed => ChangeKind::Failed { key, why: std::str::from_utf8(rest).unwrap_or_default() },
            What::Erase => ChangeKind::Erase { key },
            What::RangeErase => ChangeKind::EraseRange { start: key, end: (!rest.is_empty()).then_some(rest) },
        }
    }

    /// The key, or the first key of a range.
    pub fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes as usize]
    }

    pub(super) fn end_commit(&mut self) {
        self.is_last = true;
    }

    /// The bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        /// What an allocator takes beside the bytes.
        const ALLOCATION_BYTES: usize = 16;
        size_of::<Self>() + self.bytes.len() + ALLOCATION_BYTES
    }

    /// The order in which changes are given: by commit, by table, ranges that were erased before rows, by key.
    pub(super) fn order(&self) -> (Version, u32, bool, &[u8]) {
        (self.version, self.table.id.0, self.what != What::RangeErase, self.key())
    }

    /// If `next` erases the range that follows the one which this change erases, lets this change erase both.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        let is_same = (self.version, self.table.id) == (next.version, next.table.id);
        let are_ranges = self.what == What::RangeErase && next.what == What::RangeErase;
        let (start, end) = self.bytes.split_at(self.key_bytes as usize);
        if !is_same || !are_ranges || end.is_empty() || end != next.key() {
            return false;
        }
        let joined =
            Self::of(&self.table, self.version, What::RangeErase, start, &next.bytes[next.key_bytes as usize..]);
        *self = joined;
        true
    }

    /// Whether `next` puts or erases the same key in the same commit.
    pub(super) fn is_hidden_by(&self, next: &Self) -> bool {
        self.what != What::RangeErase && next.what != What::Merge && self.order() == next.order()
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, rest) = self.bytes.split_at(self.key_bytes as usize);
        let (table, version, what) = (&self.table.name, self.version.0, self.what);
        write!(f, "{table}@{version} {what:?} {} {}", key.escape_ascii(), rest.escape_ascii())
    }
}
