//! The range erases of a memtable, cut where another one begins or ends, so that each key is in at most one fragment.
//! This module does not know rows.
//!
//! ```text
//! erase @5       a ──────────── m
//! erase @9            f ───────────────── t
//! fragments      a ── f ─────── m ─────── t
//!                 [5]   [9, 5]     [9]
//! ```
//!
//! A fragment lists the versions of all range erases that cover it, because readers at different versions share it.
//! So n overlapping range erases may make fragments with n² versions in all. The memory estimate includes them.

use std::collections::BTreeMap;
use std::ops::Bound;

use os::sync::Arc;
use sst::{CoverAround, Direction, KeyRange, RangeErase, Version};

use super::allocated::allocated_bytes;

/// All range erases of a memtable.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// The fragments by their start. They do not overlap.
    by_start: BTreeMap<Arc<[u8]>, Fragment>,
    memory_bytes: u64,
}

#[derive(Debug)]
struct Fragment {
    /// Empty if the fragment has no end.
    end: Arc<[u8]>,
    /// The versions of the range erases that cover the fragment, oldest first.
    versions: Vec<Version>,
}

/// The most bytes that a fragment takes in the standard library's B-tree. A node of it has 11 entries, a fragment
/// takes 56 bytes, and 11 × 56 + 16 = 632 bytes become 640 in the allocator. After a split at least 5 entries of a
/// node are used, so a fragment takes at most 128 bytes. Inner nodes are not included, but most leaves have more than
/// 5 fragments.
const PLACE_BYTES: u64 = 128;
/// The bytes of the tree's first node, which exists as soon as there is a fragment.
const NODE_BYTES: u64 = 640;
/// The two counts of an `Arc`.
const SHARED_BYTES: usize = 16;

impl Fragments {
    /// Adds a range erase of `start..end`, which must not be empty. An empty `end` means no end.
    pub(super) fn insert(&mut self, start: &[u8], end: &[u8], version: Version) {
        assert!(end.is_empty() || start < end, "the caller drops empty ranges");
        let start: Arc<[u8]> = start.into();
        let end: Arc<[u8]> = end.into();
        self.split_at(&start);
        if !end.is_empty() {
            self.split_at(&end);
        }
        let upper = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(&*end) };
        let mut gaps = Vec::new();
        // The start of what no fragment covers yet. `None` after a fragment without end.
        let mut open = Some(start.clone());
        for (inside, fragment) in self.by_start.range_mut::<[u8], _>((Bound::Included(&*start), upper)) {
            let gap = open.take().expect("a fragment without end is the last");
            if gap < *inside {
                gaps.push((gap, inside.clone()));
            }
            let before = versions_bytes(&fragment.versions);
            fragment.note(version);
            self.memory_bytes += versions_bytes(&fragment.versions) - before;
            open = (!fragment.end.is_empty()).then(|| fragment.end.clone());
        }
        if let Some(gap) = open
            && (end.is_empty() || gap < end)
        {
            gaps.push((gap, end.clone()));
        }
        for (start, end) in gaps {
            self.put(start, Fragment { end, versions: vec![version] });
        }
        for bound in [start, end] {
            if Arc::strong_count(&bound) > 1 {
                self.memory_bytes += allocated_bytes(SHARED_BYTES + bound.len());
            }
        }
    }

    /// If `key` is inside a fragment, cuts the fragment in two at `key`.
    fn split_at(&mut self, key: &Arc<[u8]>) {
        let before = self.by_start.range_mut::<[u8], _>((Bound::Unbounded, Bound::Excluded(&**key))).next_back();
        let Some((_, fragment)) = before else { return };
        if !fragment.end.is_empty() && fragment.end <= *key {
            return;
        }
        let end = std::mem::replace(&mut fragment.end, key.clone());
        let versions = fragment.versions.clone();
        self.put(key.clone(), Fragment { end, versions });
    }

    fn put(&mut self, start: Arc<[u8]>, fragment: Fragment) {
        if self.by_start.is_empty() {
            self.memory_bytes += NODE_BYTES;
        }
        self.memory_bytes += PLACE_BYTES + versions_bytes(&fragment.versions);
        let replaced = self.by_start.insert(start, fragment);
        assert!(replaced.is_none(), "fragments do not overlap");
    }

    /// The newest range erase at or before `at` that covers `key`.
    pub(super) fn cover(&self, key: &[u8], at: Version) -> Option<Version> {
        let (_, fragment) = self.by_start.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        if !fragment.end.is_empty() && &*fragment.end <= key {
            return None;
        }
        fragment.newest(at)
    }

    /// The newest range erase at or before `at` that covers `key`, and up to where the answer stays the same in
    /// `direction`.
    pub(super) fn cover_around(&self, key: &[u8], at: Version, direction: Direction) -> CoverAround {
        let before = self.by_start.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        let at_key = before.filter(|(_, fragment)| fragment.end.is_empty() || key < &*fragment.end);
        let cover = at_key.and_then(|(_, fragment)| fragment.newest(at));
        let edge = match (direction, at_key, before) {
            (Direction::Forward, Some((_, fragment)), _) if fragment.end.is_empty() => Bound::Unbounded,
            (Direction::Forward, Some((_, fragment)), _) => Bound::Excluded(fragment.end.to_vec()),
            (Direction::Forward, None, _) => {
                let after = self.by_start.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded)).next();
                after.map_or(Bound::Unbounded, |(start, _)| Bound::Excluded(start.to_vec()))
            }
            (Direction::Backward, Some((start, _)), _) => Bound::Included(start.to_vec()),
            (Direction::Backward, None, Some((_, fragment))) => Bound::Included(fragment.end.to_vec()),
            (Direction::Backward, None, None) => Bound::Unbounded,
        };
        CoverAround { cover, edge }
    }

    /// The first `most` fragments that begin at or after `from`, sorted by start.
    pub(super) fn list(&self, from: &[u8], most: usize) -> Vec<RangeErase<Arc<[u8]>>> {
        let end = |fragment: &Fragment| (!fragment.end.is_empty()).then(|| fragment.end.clone());
        let erase = |(start, fragment): (&Arc<[u8]>, &Fragment)| RangeErase {
            keys: KeyRange { start: start.clone(), end: end(fragment) },
            versions: fragment.versions.iter().rev().copied().collect(),
        };
        self.by_start.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).take(most).map(erase).collect()
    }

    /// The start of the first fragment that begins in `range` and has a `wanted` newest version.
    pub(super) fn first_beginning_in(
        &self,
        range: &KeyRange<&[u8]>,
        wanted: impl Fn(Version) -> bool,
    ) -> Option<Vec<u8>> {
        let begin_in = self.by_start.range::<[u8], _>((range.low(), range.high()));
        let newest = |fragment: &Fragment| fragment.versions.last().copied();
        let mut found = begin_in.filter(|(_, fragment)| newest(fragment).is_some_and(&wanted));
        found.next().map(|(start, _)| start.to_vec())
    }

    /// The bytes that the fragments take.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

impl Fragment {
    /// The newest version at or before `at`.
    fn newest(&self, at: Version) -> Option<Version> {
        let visible = self.versions.partition_point(|version| *version <= at);
        self.versions[..visible].last().copied()
    }

    /// Adds the version of a range erase. Versions come in ascending order. One version may come twice, because a
    /// batch may erase a range twice.
    fn note(&mut self, version: Version) {
        if let Err(place) = self.versions.binary_search(&version) {
            self.versions.insert(place, version);
        }
    }
}

fn versions_bytes(versions: &Vec<Version>) -> u64 {
    allocated_bytes(versions.capacity() * size_of::<Version>())
}
