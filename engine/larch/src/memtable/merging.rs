//! Merges in a memtable: what a merge finds in the memtable below it is joined with it when it is applied, so that a
//! reader needs one row of each memtable. This module does not know files.
//!
//! ```text
//! rows of a key, newest first:
//!
//!   short:   add +3 (1 + 2)          append "cde"            put "abcde"          each row says all that the
//!            add +1                  append "c"              put "ab"             memtable knows of its key
//!
//!   long:    append "fg", goes on 2 rows below  ─┐           put (300 bytes)      a value is copied only while
//!            append "f",  goes on 1 row below   ─┤                                it is short
//!            put "abcde…"  (300 bytes)         ◀─┘
//! ```
//!
//! Invariants:
//! - A commit with merges is applied after all commits before it. So no row is ever inserted between a merge and the
//!   row below it.
//! - Which range erases hide the rows below is decided when a merge is applied: then its operand is complete.

use super::node::Node;
use super::skip_list::Probe;
use super::{MemRow, Memtable, Rows};
use crate::base::operand::{self, Collected, MergeFunctions, Merged};
use sst::{RowKind, Version};
use std::borrow::Cow;

/// What is joined has at most this many bytes. A longer row would be copied again with each merge.
const JOINED_BYTES: usize = 256;

/// A merge goes on at most this many rows below itself.
const JOINED_ROWS: u8 = 64;

/// Begins the value of a row that goes on with a row below it in the same memtable. The next byte says how many rows
/// below, and then comes the operand.
const GOES_ON: u8 = 0xff;

/// The operand of a merge row, and how many rows below it the memtable goes on, if it does.
fn split(value: &[u8]) -> (Option<u8>, &[u8]) {
    match value {
        [GOES_ON, below, operand @ ..] => (Some(*below), operand),
        operand => (None, operand),
    }
}

impl Rows<'_> {
    /// Adds a merge by `operand`. All commits before `version` must have been applied.
    pub fn merge(&mut self, key: &[u8], version: Version, operand: &[u8], functions: &MergeFunctions) {
        let memtable = self.memtable;
        let cover = memtable.cover(key, version);
        let below = memtable.rows.first_from(&Probe::new(key, version)).filter(|below| below.key() == key);
        let below = below.filter(|below| cover.is_none_or(|cover| cover <= below.version()));
        if let Some((kind, row, bytes)) =
            below.and_then(|below| operand::add_to((below.kind(), below.value()), operand))
        {
            return self.apply(key, version, kind, &row[..bytes]);
        }
        let (kind, value) = joined(key, (below, cover.is_some()), operand, functions);
        self.apply(key, version, kind, &value);
    }
}

/// What a row says that merges `operand` into the visible row `below` it. `is_covered` says whether a range erase hides
/// all rows below.
fn joined<'o>(
    key: &[u8],
    (below, is_covered): (Option<Node<'_>>, bool),
    operand: &'o [u8],
    functions: &MergeFunctions,
) -> (RowKind, Cow<'o, [u8]>) {
    let mut collected = Collected::default();
    let mut goes_on = None;
    let below = below.map(|below| (below.kind(), below.value(), below.until()));
    match below {
        None if !is_covered => return (RowKind::Merge, operand.into()),
        None | Some((RowKind::Erase, ..)) => collected.end(),
        Some((_, value, _)) if value.len() + operand.len() > JOINED_BYTES => goes_on = Some(1),
        Some((RowKind::Put | RowKind::PutUntil, value, until)) => collected.end_with(value, until),
        Some((RowKind::Merge, value, _)) => {
            let (below, older) = split(value);
            if below == Some(JOINED_ROWS) {
                goes_on = Some(1);
            } else {
                goes_on = below.map(|below| below + 1);
                collected.add(older);
            }
        }
    }
    collected.add_newer(operand);
    // What has expired is found by readers and flushes.
    match collected.finish(key, functions, 0) {
        // A short operand may make a long value, which is not written for each merge.
        Merged::Value(long) | Merged::Operand(long) if long.len() > JOINED_BYTES.max(operand.len() + 2) => {
            let has_value = below.is_some_and(|(kind, ..)| kind != RowKind::Erase);
            let head = if has_value { &[GOES_ON, 1] } else { operand::NO_VALUE };
            (RowKind::Merge, [head, operand].concat().into())
        }
        Merged::Value(value) => (RowKind::Put, value.into()),
        Merged::Operand(joined) => match goes_on {
            None => (RowKind::Merge, joined.into()),
            Some(below) => (RowKind::Merge, [&[GOES_ON, below], joined.as_slice()].concat().into()),
        },
    }
}

/// Whether a merge row of a memtable says all by itself.
pub fn is_whole(row: &MemRow) -> bool {
    split(row.value()).0.is_none()
}

impl Memtable {
    /// Adds what the memtable says of the key of `row`, a merge of this memtable, from `row` on. Returns whether older
    /// sources matter.
    pub fn collect(&self, row: &MemRow, collected: &mut Collected) -> bool {
        let mut node = row.node();
        loop {
            let (below, operand) = match node.kind() {
                RowKind::Merge => split(node.value()),
                RowKind::Put | RowKind::PutUntil => {
                    collected.end_with(node.value(), node.until());
                    return false;
                }
                RowKind::Erase => {
                    collected.end();
                    return false;
                }
            };
            let is_open = collected.add(operand);
            let Some(below) = below else { return is_open };
            node = (0..below).fold(node, |node, _| self.below(node));
        }
    }

    /// The row below one that goes on.
    fn below<'m>(&'m self, node: Node<'m>) -> Node<'m> {
        self.rows.following(node).expect("a merge goes on only with rows of its key")
    }
}

/// Adds what `memtables`, newest first, say of `key` to a reader at `at`. Returns whether older sources matter.
pub fn collect<'m>(
    memtables: impl IntoIterator<Item = &'m Memtable>,
    key: &[u8],
    at: Version,
    collected: &mut Collected,
) -> bool {
    memtables.into_iter().all(|memtable| {
        let cover = memtable.cover(key, at);
        match memtable.get(key, at).filter(|row| cover.is_none_or(|cover| cover <= row.version())) {
            Some(row) => memtable.collect(&row, collected),
            None if cover.is_none() => true,
            None => {
                collected.end();
                false
            }
        }
    })
}

#[cfg(test)]
mod tests;
