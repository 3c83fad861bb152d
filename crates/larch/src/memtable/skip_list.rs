//! A skip list of rows in an arena: sorted by key, then from the newest to the oldest version. It does not know which
//! versions a reader should see.
//!
//! ```text
//! level 2    head ─────────────────────▶ d@3 ───────────────────────▶ null
//! level 1    head ────────▶ b@9 ───────▶ d@3 ────────▶ f@2 ─────────▶ null
//! level 0    head ▶ a@1 ──▶ b@9 ▶ b@4 ─▶ d@3 ──▶ e@7 ▶ f@2 ──▶ g@5 ─▶ null
//! ```
//!
//! A quarter of the nodes of a level are in the level above, too. A search goes to the right on a level as long as the
//! next node comes before its place, and then down. An insert writes the node, and then links it from level 0 upwards:
//! it sets the link of the new node to the next node, and changes the link of the node before by a compare-and-swap. If
//! another thread was there first, it walks on from the node before and tries again, on this level only.
//!
//! Invariants:
//! - A node that is linked stays linked, and links only change to nodes in between. So a reader that holds a node can
//!   always go on from it.
//! - A node on a level is higher than the level, and is on all levels below. A node is linked with release after it
//!   was written, and links are followed with acquire, so every node that a thread reaches is whole.
//! - Among rows with the same key and version, the row that was inserted last comes first. One thread inserts all
//!   these rows.
//!
//! Thread safe: any number of threads insert and read at the same time, without locks.

use super::MemRow;
use super::arena::Arena;
use super::node::{Content, Header, Link, MAX_HEIGHT, Node};
use crate::base::key_head::{head, order_after_head};
use os::sync::Arc;
use os::sync::atomic::{AtomicUsize, Ordering};
use sst::{RowKind, Version};
use std::cmp;
use std::ptr::{self, NonNull};

/// Rows, sorted.
#[derive(Debug)]
pub(super) struct SkipList {
    /// The head of the list: a node in `arena` with all links, whose key counts as before all others.
    start: NonNull<Header>,
    /// The levels that may have nodes.
    height: AtomicUsize,
    arena: Arc<Arena>,
}

// SAFETY: what `start` points to lives in the arena and is shared only as a node, which is Send and Sync.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

/// A place in the order of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe<'k> {
    head: u64,
    key: &'k [u8],
    version: Version,
    /// Whether it is after all versions of the key.
    is_after: bool,
}

impl<'k> Probe<'k> {
    /// The place of `version` of `key`. The newest version at or before it is the first row from there on.
    pub(super) fn new(key: &'k [u8], version: Version) -> Self {
        Self { head: head(key), key, version, is_after: false }
    }

    /// The place before every version of `key`.
    pub(super) fn before(key: &'k [u8]) -> Self {
        Self::new(key, Version::MAX)
    }

    /// The place after every version of `key`.
    pub(super) fn after(key: &'k [u8]) -> Self {
        Self { is_after: true, ..Self::new(key, Version(0)) }
    }

    /// Whether `node` comes before this place.
    #[inline]
    fn follows(&self, node: Node<'_>) -> bool {
        let head = node.head();
        if head != self.head {
            return head < self.head;
        }
        match order_after_head(node.key(), self.key) {
            cmp::Ordering::Less => true,
            cmp::Ordering::Greater => false,
            cmp::Ordering::Equal => self.is_after || node.version() > self.version,
        }
    }
}

/// The nodes around a place, on each level. Each node before it is on the level, and comes before the place.
type Splice<'l> = [(Node<'l>, Option<Node<'l>>); MAX_HEIGHT];

/// Inserts rows one after the other. It begins each search where the last one ended, so that rows of one batch in
/// ascending order cost little more than their bytes.
#[derive(Debug)]
pub(super) struct Inserter<'l> {
    list: &'l SkipList,
    splice: Splice<'l>,
    /// How many levels of the splice are set.
    height: usize,
}

impl SkipList {
    /// An empty list, whose rows will lie in `arena`.
    pub(super) fn new(arena: Arc<Arena>) -> Self {
        let nothing = Content { key: &[], version: Version(0), kind: RowKind::Erase, value: &[] };
        let start = Node::write(&arena, MAX_HEIGHT, &nothing).address();
        Self { start, height: AtomicUsize::new(1), arena }
    }

    /// Where its rows lie.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// What inserts rows.
    pub(super) fn inserter(&self) -> Inserter<'_> {
        Inserter { list: self, splice: [(self.start(), None); MAX_HEIGHT], height: 0 }
    }

    /// The row at a node of this list.
    pub(super) fn row(&self, node: Node<'_>) -> MemRow {
        MemRow::new(node, &self.arena)
    }

    /// The row after one of this list.
    #[inline]
    pub(super) fn following(&self, node: Node<'_>) -> Option<Node<'_>> {
        // SAFETY: the next node lies in the arena of the list, as all of its nodes do.
        next(node, 0).map(|next| unsafe { Node::at(next.address()) })
    }

    /// The first row at or after a place.
    pub(super) fn first_from(&self, probe: &Probe<'_>) -> Option<Node<'_>> {
        self.search(probe, |_, _| ()).1
    }

    /// The last row before a place.
    pub(super) fn last_before(&self, probe: &Probe<'_>) -> Option<Node<'_>> {
        let before = self.search(probe, |_, _| ()).0;
        (before.address() != self.start).then_some(before)
    }

    /// The first row.
    pub(super) fn first(&self) -> Option<Node<'_>> {
        next(self.start(), 0)
    }

    /// The last row.
    pub(super) fn last(&self) -> Option<Node<'_>> {
        let mut last = self.start();
        for level in (0..self.height()).rev() {
            while let Some(next) = next(last, level) {
                last = next;
            }
        }
        (last.address() != self.start).then_some(last)
    }

    #[inline]
    fn start(&self) -> Node<'_> {
        // SAFETY: `start` is a node in the arena that this list keeps.
        unsafe { Node::at(self.start) }
    }

    #[inline]
    fn height(&self) -> usize {
        // Relaxed: a new level that is not known yet is just not used, and a level that is known too early has only
        // null links.
        self.height.load(Ordering::Relaxed)
    }

    /// The nodes around a place on level 0. On the way down, `note` gets the nodes around the place on each level.
    #[inline]
    fn search<'l>(
        &'l self,
        probe: &Probe<'_>,
        note: impl FnMut(usize, (Node<'l>, Option<Node<'l>>)),
    ) -> (Node<'l>, Option<Node<'l>>) {
        descend((self.start(), None), self.height(), probe, note)
    }
}

/// The node after `node` on a level that `node` is on.
#[inline]
fn next(node: Node<'_>, level: usize) -> Option<Node<'_>> {
    // SAFETY: a node that is on a level is higher than the level; the start has all levels.
    let link = unsafe { node.link(level) };
    let address = NonNull::new(link.load(Ordering::Acquire))?;
    // SAFETY: links lead to nodes of the same arena, see `node`.
    Some(unsafe { Node::at(address) })
}

/// Goes down `levels` from known nodes around a place, or from the start and the end of the level. Returns the nodes
/// around the place on level 0.
#[inline]
fn descend<'l>(
    (mut before, mut after): (Node<'l>, Option<Node<'l>>),
    levels: usize,
    probe: &Probe<'_>,
    mut note: impl FnMut(usize, (Node<'l>, Option<Node<'l>>)),
) -> (Node<'l>, Option<Node<'l>>) {
    for level in (0..levels).rev() {
        if level > 0
            && let Some(below) = next(before, level - 1)
        {
            // This node is loaded while the next node on the level above is compared.
            below.prefetch();
        }
        (before, after) = walk((before, after), level, probe);
        note(level, (before, after));
    }
    (before, after)
}

/// The nodes around a place on a level. It walks from `before`, which is on the level and comes before the place, and
/// does not compare with `after`, which does not come before it.
#[inline]
fn walk<'l>(
    (mut before, after): (Node<'l>, Option<Node<'l>>),
    level: usize,
    probe: &Probe<'_>,
) -> (Node<'l>, Option<Node<'l>>) {
    let known = after.map(Node::address);
    loop {
        let Some(next) = next(before, level) else { return (before, None) };
        if Some(next.address()) == known || !probe.follows(next) {
            return (before, Some(next));
        }
        before = next;
    }
}

impl<'l> Inserter<'l> {
    /// Adds a row. If there is a row with the same key and version, the new row comes before it. Returns the memory
    /// of the row in bytes, and whether the list was empty.
    pub(super) fn insert(&mut self, content: &Content<'_>) -> (u64, bool) {
        let list = self.list;
        let height = random_height(&list.arena);
        let node = Node::write(&list.arena, height, content);
        let probe = Probe::new(content.key, content.version);
        let mut levels = list.height();
        if height > levels {
            // Relaxed: see `SkipList::height`.
            levels = list.height.fetch_max(height, Ordering::Relaxed).max(height);
        }
        self.locate(&probe, levels);
        let mut was_alone = true;
        for level in 0..height {
            was_alone &= self.link(node, level, &probe);
        }
        let after = self.splice[0].1;
        let is_new = after.is_none_or(|after| after.version() != content.version || after.key() != content.key);
        if was_alone {
            for around in &mut self.splice[..height] {
                around.0 = node;
            }
        } else {
            // Another thread inserted next to the place. Its row is in the splice on some levels, but not on others.
            // Then the levels are not nested, although the next search relies on that.
            *self = list.inserter();
        }
        (node.memory_bytes(), is_new)
    }

    /// Puts the nodes around a place into the splice.
    fn locate(&mut self, probe: &Probe<'_>, levels: usize) {
        let Self { list, splice, height } = self;
        let fits = |around: &(Node<'l>, Option<Node<'l>>)| {
            (around.0.address() == list.start || probe.follows(around.0))
                && around.1.is_none_or(|after| !probe.follows(after))
        };
        // Only up to the lowest level on which the new place lies between the same nodes as the last place.
        let known = splice[..*height].iter().position(fits).unwrap_or(*height);
        let (from, known) = match splice[..*height].get(known) {
            Some(around) => (*around, known),
            None => ((list.start(), None), levels),
        };
        descend(from, known, probe, |level, around| splice[level] = around);
        *height = levels.max(*height);
    }

    /// Links the node on a level. Returns whether nothing was inserted next to it since it was located.
    fn link(&mut self, node: Node<'l>, level: usize, probe: &Probe<'_>) -> bool {
        // SAFETY: the caller links a node up to its height.
        let own = unsafe { node.link(level) };
        let mut was_alone = true;
        loop {
            let (before, after) = self.splice[level];
            let address = |node: Option<Node<'_>>| node.map_or(ptr::null_mut(), |node| node.address().as_ptr());
            // Relaxed: the compare-and-swap below shows it to other threads.
            own.store(address(after), Ordering::Relaxed);
            // SAFETY: the node before is on this level, so it is higher.
            let link: &Link = unsafe { before.link(level) };
            let change =
                link.compare_exchange(address(after), address(Some(node)), Ordering::Release, Ordering::Relaxed);
            if change.is_ok() {
                return was_alone;
            }
            was_alone = false;
            self.splice[level] = walk((before, None), level, probe);
        }
    }
}

/// The height of the next node: 2 or more for a quarter of them, 3 or more for a sixteenth, and so on. It is drawn from
/// the number of bytes that were used before, which grows with each node. So threads share no generator, and a
/// simulated run can be repeated. Two threads that see the same number get the same height, which does no harm.
fn random_height(arena: &Arena) -> usize {
    // The finalizer of SplitMix64, which spreads each bit over all others.
    let mut bits = arena.used_bytes().wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (1 + bits.trailing_zeros() as usize / 2).min(MAX_HEIGHT)
}

/// Checks that each level is a part of the level below, in the same order, and that nodes are on as many levels as
/// their height says.
#[cfg(test)]
fn check_levels(list: &SkipList) {
    let level_nodes = |level: usize| {
        let mut nodes = Vec::new();
        let mut last = list.start();
        while let Some(node) = next(last, level) {
            nodes.push(node.address());
            last = node;
        }
        nodes
    };
    let all = level_nodes(0);
    for level in 0..MAX_HEIGHT {
        // SAFETY: the addresses are those of nodes in the arena of the list.
        let high = all.iter().filter(|&&address| unsafe { Node::at(address) }.height() > level);
        assert_eq!(level_nodes(level), high.copied().collect::<Vec<_>>());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, any(loom, shuttle)))]
mod schedules;
