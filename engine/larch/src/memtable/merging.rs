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
//! - A commit with merges is applied after all commits before it, and its [`Rows`] are made after that, because they
//!   remember places from then on. So no row is ever inserted between a merge and the row below it, and the merge finds
//!   that row.
//! - Which range erases hide the rows below is decided when a merge is applied: then its operand is complete.

use super::node::{Content, Node};
use super::skip_list::{Place, Probe};
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

impl<'m> Rows<'m> {
    /// Adds a merge by `operand`. All commits before `version` must have been applied before these `Rows` were made.
    pub fn merge(&mut self, key: &[u8], version: Version, operand: &[u8], functions: &MergeFunctions) {
        let cover = self.memtable.cover(key, version);
        // All rows of the key up to this version were there when the inserter was made, or this thread has inserted
        // them with it. So the row below is known exactly.
        let place = self.inserter.seek(key, version);
        let below = place.after.filter(|below| below.key() == key);
        debug_assert_eq!(
            below.map(Node::address),
            self.memtable.rows.first_from(&Probe::new(key, version)).filter(|row| row.key() == key).map(Node::address),
            "all rows of the key up to {version:?} were there when the inserter was made",
        );
        // A key with a row below was noted in the filter with that row, and stays noted where it was.
        if below.is_none() {
            self.note_key(key);
        }
        let below = below.filter(|below| cover.is_none_or(|cover| cover <= below.version()));
        match below.and_then(|below| operand::add_to((below.kind(), below.value()), operand)) {
            Some((kind, row, bytes)) => self.add_at(place, key, version, (kind, &row[..bytes])),
            None => {
                let (kind, value) = joined(key, (below, cover.is_some()), operand, functions);
                self.add_at(place, key, version, (kind, &value));
            }
        }
    }

    /// Adds a row at its place. The filter has its key.
    fn add_at(&mut self, place: Place<'m>, key: &[u8], version: Version, (kind, value): (RowKind, &[u8])) {
        let inserted = self.inserter.insert_at(place, &Content { key, version, kind, value, until: None });
        self.count(kind, inserted);
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
    let below = below.map(|below| (below.kind(), below.value(), below.until()));
    if below.is_none() && !is_covered {
        return (RowKind::Merge, operand.into());
    }
    let mut collected = Collected::default();
    collected.add(operand);
    let mut goes_on = None;
    match below {
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
    /// Adds what the memtable says of `key` to a reader at `at`. Returns the version of the newest row that says
    /// something, if there is one, and whether older sources matter.
    pub fn collect<'m>(&'m self, key: &[u8], at: Version, collected: &mut Collected<'m>) -> (Option<Version>, bool) {
        let cover = self.cover(key, at);
        let newest = self.rows.first_from(&Probe::new(key, at)).filter(|node| node.key() == key);
        match newest.filter(|node| cover.is_none_or(|cover| cover <= node.version())) {
            Some(node) => (Some(node.version()), self.collect_from(node, collected)),
            None if cover.is_none() => (None, true),
            None => {
                collected.end();
                (None, false)
            }
        }
    }

    /// Adds what the memtable says of the key of `row`, which is in it, from `row` on. Returns whether older
    /// sources matter.
    pub fn collect_row<'m>(&'m self, row: &'m MemRow, collected: &mut Collected<'m>) -> bool {
        self.collect_from(row.node(), collected)
    }

    fn collect_from<'m>(&'m self, mut node: Node<'m>, collected: &mut Collected<'m>) -> bool {
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

#[cfg(test)]
mod tests;
