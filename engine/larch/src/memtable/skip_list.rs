//! A skip list of rows in an arena: sorted by key, then from the newest to the oldest version. This module does not
//! know which versions a reader should see.
//!
//! ```text
//! level 2    head ─────────────────────▶ d@3 ───────────────────────▶ null
//! level 1    head ────────▶ b@9 ───────▶ d@3 ────────▶ f@2 ─────────▶ null
//! level 0    head ▶ a@1 ──▶ b@9 ▶ b@4 ─▶ d@3 ──▶ e@7 ▶ f@2 ──▶ g@5 ─▶ null
//! ```
//!
//! On average, a quarter of the nodes of a level are also in the level above. A search starts at the top. On each
//! level it goes right while the next node comes before the sought place, and then down. Keys between two keys that
//! begin with the same bytes begin with these bytes, too. So a search compares only the next eight bytes, as numbers.
//!
//! An insert writes the node and links it from level 0 upwards. On each level it first sets the new node's link to the
//! next node, and then swings the link of the node before to the new node with a compare-and-swap. If another thread
//! was faster, the insert goes on from the node before and tries again, on this level only.
//!
//! Invariants:
//! - A linked node stays linked. A link between two nodes changes only when a new node comes between them, and then
//!   leads to the new node. So a reader can always go on from a node that it has.
//! - A node of height h has links for the levels 0 to h - 1. A node that is linked on a level is also linked on all
//!   lower levels. It is written first and then linked with a release store, and readers follow links with acquire
//!   loads. So every node that a thread reaches is complete.
//! - If rows have the same key and version, the row that was inserted last comes first. One thread inserts all rows
//!   of one version.
//!
//! Thread-safe: any number of threads may insert and read at the same time, without locks.

use super::MemRow;
use super::arena::Arena;
use super::node::{Content, Header, Link, MAX_HEIGHT, Node};
use crate::base::key_head::head;
use os::sync::Arc;
use os::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use sst::format::key::common_prefix;
use sst::{RowKind, Version};
use std::cmp;
use std::ptr::{self, NonNull};

/// Sorted rows.
#[derive(Debug)]
pub(super) struct SkipList {
    /// The head of the list: a node in `arena` with links on all levels, before all keys.
    start: NonNull<Header>,
    /// The number of levels that may have nodes besides the head.
    height: AtomicUsize,
    /// The row that was inserted last, which is linked on all of its levels. Null while there is none.
    last_inserted: AtomicPtr<Header>,
    arena: Arc<Arena>,
}

// SAFETY: the nodes that the list points to live in the arena. Other code sees them only as a `Node`, which is Send
// and Sync.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

/// A sought place in the order of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe<'k> {
    key: &'k [u8],
    version: Version,
    /// Whether the place is after all versions of the key.
    is_after: bool,
}

impl<'k> Probe<'k> {
    /// The place of `version` of `key`. The first row at or after it is the newest version of `key` at or before
    /// `version`, if there is one.
    pub(super) fn new(key: &'k [u8], version: Version) -> Self {
        Self { key, version, is_after: false }
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
    fn follows(&self, node: Node<'_>) -> bool {
        self.follows_in(node.key().cmp(self.key), node)
    }

    /// Whether `node` comes before this place, if `order` is the order of its key and the key of the place.
    #[inline]
    fn follows_in(&self, order: cmp::Ordering, node: Node<'_>) -> bool {
        match order {
            cmp::Ordering::Less => true,
            cmp::Ordering::Greater => false,
            cmp::Ordering::Equal => self.is_after || node.version() > self.version,
        }
    }
}

/// The nodes before and after a place, or the start and the end of the list.
type Around<'l> = (Node<'l>, Option<Node<'l>>);

/// A search for a place.
#[derive(Debug)]
struct Search<'l, 'p> {
    probe: &'p Probe<'p>,
    /// The nearest known nodes around the place. The node before is linked on the level of the search.
    around: Around<'l>,
    /// How many bytes the key of the node before shares with the sought key, at least, and that of the node after.
    shared: (usize, usize),
    /// All keys between the two nodes have the same bytes as the sought key before this one.
    at: usize,
    /// The eight bytes of the sought key from `at` on.
    number: u64,
}

impl<'l, 'p> Search<'l, 'p> {
    /// A search between two nodes around the place.
    fn between(around: Around<'l>, probe: &'p Probe<'p>) -> Self {
        Self { probe, around, shared: (0, 0), at: 0, number: head(probe.key) }
    }

    /// Whether `node`, which lies between the nearest known nodes, comes before the place.
    #[inline]
    fn passes(&mut self, node: Node<'_>) -> bool {
        match node.number(self.at) {
            Some(number) if number != self.number => number < self.number,
            _ => self.look_closer(node),
        }
    }

    /// Compares all bytes of a key, and then knows more of the bytes that the keys around the place share.
    #[inline(never)]
    fn look_closer(&mut self, node: Node<'_>) -> bool {
        let sought = self.probe.key;
        let shared = common_prefix(node.key(), sought);
        let is_before = self.probe.follows_in(node.key().get(shared).cmp(&sought.get(shared)), node);
        *(if is_before { &mut self.shared.0 } else { &mut self.shared.1 }) = shared;
        // The eight bytes may begin with some that are known to be the same.
        self.at = self.shared.0.min(self.shared.1).min(sought.len().saturating_sub(size_of::<u64>()));
        self.number = head(&sought[self.at..]);
        is_before
    }

    /// Walks to the place on `level`.
    #[inline]
    fn walk(&mut self, level: usize) {
        let known = self.around.1.map(Node::address);
        loop {
            let next = next(self.around.0, level);
            if next.map(Node::address) == known {
                return;
            }
            match next {
                Some(next) if self.passes(next) => self.around.0 = next,
                _ => {
                    self.around.1 = next;
                    return;
                }
            }
        }
    }

    /// Descends to the place through the lowest `levels` levels, on all of which the node before is linked. Calls
    /// `note` with the nodes around the place on each level, and returns those on level 0.
    #[inline(always)]
    fn descend(mut self, levels: usize, mut note: impl FnMut(usize, Around<'l>)) -> Around<'l> {
        for level in (0..levels).rev() {
            if level > 0
                && let Some(below) = next(self.around.0, level - 1)
            {
                // The processor loads this node while the search compares nodes of the level above.
                below.prefetch();
            }
            self.walk(level);
            note(level, self.around);
        }
        self.around
    }
}

/// For each level, the nodes before and after a place. The node before is linked on this level.
type Splice<'l> = [Around<'l>; MAX_HEIGHT];

/// Inserts rows one after the other. The search for a row's place begins where the previous search ended, so rows in
/// ascending order cost little more than copying their bytes. Where that does
/// not help, it begins at the row that was inserted last into the list, if the new row comes right after it.
#[derive(Debug)]
pub(super) struct Inserter<'l> {
    list: &'l SkipList,
    splice: Splice<'l>,
    /// The splice is set for the levels below this.
    height: usize,
    /// The level of the splice at which the next search looks first.
    nearest: usize,
}

/// A place for a new row, to which the splice of an [`Inserter`] is set.
#[derive(Debug)]
pub(super) struct Place<'l> {
    /// The height that the row's node will have.
    height: usize,
    /// The first row at or after the place, as far as [`Inserter::seek`] knows it.
    pub after: Option<Node<'l>>,
}

impl SkipList {
    /// An empty list, whose rows will be in `arena`.
    pub(super) fn new(arena: Arc<Arena>) -> Self {
        let nothing = Content { key: &[], version: Version(0), kind: RowKind::Erase, value: &[], until: None };
        let start = Node::write(&arena, MAX_HEIGHT, &nothing).address();
        Self { start, height: AtomicUsize::new(1), last_inserted: AtomicPtr::new(ptr::null_mut()), arena }
    }

    /// The arena with the rows of the list.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// An inserter for this list.
    pub(super) fn inserter(&self) -> Inserter<'_> {
        Inserter { list: self, splice: [(self.start(), None); MAX_HEIGHT], height: 0, nearest: 0 }
    }

    /// The row at a node of this list.
    pub(super) fn row(&self, node: Node<'_>) -> MemRow {
        MemRow::new(node, &self.arena)
    }

    /// The row after `node`, which must be in this list.
    #[inline]
    pub(super) fn following(&self, node: Node<'_>) -> Option<Node<'_>> {
        // SAFETY: the next node is in the arena of the list, as are all nodes of the list.
        next(node, 0).map(|next| unsafe { Node::at(next.address()) })
    }

    /// The first row at or after the place of `probe`.
    pub(super) fn first_from(&self, probe: &Probe<'_>) -> Option<Node<'_>> {
        self.search(probe).1
    }

    /// The last row before the place of `probe`.
    pub(super) fn last_before(&self, probe: &Probe<'_>) -> Option<Node<'_>> {
        let before = self.search(probe).0;
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
        // Relaxed: a thread that does not know a new level yet searches without it, and a thread that knows it before
        // it has nodes finds only null links there.
        self.height.load(Ordering::Relaxed)
    }

    /// The nodes before and after a place on level 0.
    #[inline]
    fn search<'l>(&'l self, probe: &Probe<'_>) -> Around<'l> {
        Search::between((self.start(), None), probe).descend(self.height(), |_, _| ())
    }

    /// The row that was inserted last, if the place comes right after it.
    #[inline(always)]
    fn last_inserted_before(&self, probe: &Probe<'_>) -> Option<Node<'_>> {
        let address = NonNull::new(self.last_inserted.load(Ordering::Acquire))?;
        // SAFETY: it is the address of a node in the arena of the list.
        let last = unsafe { Node::at(address) };
        let is_right_before = || next(last, 0).is_none_or(|after| !probe.follows(after));
        (probe.follows(last) && is_right_before()).then_some(last)
    }
}

/// The node after `node` on `level`. `node` must be on this level.
#[inline]
fn next(node: Node<'_>, level: usize) -> Option<Node<'_>> {
    // SAFETY: the node is linked on `level`, so its height is greater than `level`. The head of the list has links
    // on all levels.
    let link = unsafe { node.link(level) };
    let address = NonNull::new(link.load(Ordering::Acquire))?;
    // SAFETY: links lead to nodes of the same arena; see `node`.
    Some(unsafe { Node::at(address) })
}

impl<'l> Inserter<'l> {
    /// Adds a row, before any row with the same key and version. Returns the row's memory in bytes, and whether the
    /// list had no row with its key and version. All on this way is inlined, although merges use most of it, too: each
    /// row goes through it.
    #[inline(always)]
    pub(super) fn insert(&mut self, content: &Content<'_>) -> (u64, bool) {
        let place = self.seek(content.key, content.version);
        self.insert_at(place, content)
    }

    /// Finds the place for a row with this key and version. Rows that other threads have added since this inserter was
    /// made may be missing from what the place says of the row after it.
    #[inline(always)]
    pub(super) fn seek(&mut self, key: &[u8], version: Version) -> Place<'l> {
        let list = self.list;
        let height = random_height(&list.arena);
        if height > list.height() {
            // Relaxed: see `SkipList::height`.
            list.height.fetch_max(height, Ordering::Relaxed);
        }
        self.locate(&Probe::new(key, version), height);
        Place { height, after: self.splice[0].1 }
    }

    /// As [`Inserter::insert`], at the place that was found last for this key and version.
    #[inline(always)]
    pub(super) fn insert_at(&mut self, place: Place<'l>, content: &Content<'_>) -> (u64, bool) {
        let (list, Place { height, .. }) = (self.list, place);
        let node = Node::write(&list.arena, height, content);
        let probe = Probe::new(content.key, content.version);
        let mut was_alone = true;
        for level in 0..height {
            was_alone &= self.link(node, level, &probe);
        }
        let after = self.splice[0].1;
        let is_new = after.is_none_or(|after| after.version() != content.version || after.key() != content.key);
        list.last_inserted.store(node.address().as_ptr(), Ordering::Release);
        if was_alone {
            for around in &mut self.splice[..height] {
                around.0 = node;
            }
        } else {
            // Another thread has inserted a row next to the place. The splice has that row's node on some levels but
            // not on others, while the next search assumes that the nodes of a lower level are at least as near to
            // the place as those of a higher one. So the inserter starts over with an empty splice.
            *self = list.inserter();
        }
        (node.memory_bytes(), is_new)
    }

    /// Sets the splice to the nodes around a place, at least on the levels of a node of this height.
    #[inline(always)]
    fn locate(&mut self, probe: &Probe<'_>, height: usize) {
        let (from, levels) = self.nearest(probe, height).unwrap_or_else(|| {
            self.height = self.list.height();
            ((self.list.start(), None), self.height)
        });
        Search::between(from, probe).descend(levels, |level, around| self.splice[level] = around);
    }

    /// Nodes near a place, known from earlier inserts, and how many levels a search between them has to descend.
    /// `None` if no near nodes are known, or if a node of this height has to be linked on levels where they are not.
    #[inline(always)]
    fn nearest(&mut self, probe: &Probe<'_>, height: usize) -> Option<(Around<'l>, usize)> {
        if self.height < height {
            let last = self.list.last_inserted_before(probe).filter(|last| last.height() >= height)?;
            self.height = last.height();
            return Some(((last, None), self.height));
        }
        // Looks first where the last search has found nodes, and then further up. If nodes of a level are around the
        // place, those of all higher levels are, too.
        let mut level = self.nearest;
        while level < self.height && !self.is_around(level, probe) {
            level += 2;
        }
        let is_found = level < self.height;
        self.nearest = level.min(self.height).saturating_sub(1);
        is_found.then(|| (self.splice[level], level))
    }

    /// Whether the nodes of the splice on `level` are around a place.
    #[inline(always)]
    fn is_around(&self, level: usize, probe: &Probe<'_>) -> bool {
        let (before, after) = self.splice[level];
        let begins_before = before.address() == self.list.start || probe.follows(before);
        begins_before && after.is_none_or(|after| !probe.follows(after))
    }

    /// Links the node on `level`. Returns false if another thread has inserted a row next to it since its place was
    /// found.
    #[inline(always)]
    fn link(&mut self, node: Node<'l>, level: usize, probe: &Probe<'_>) -> bool {
        // SAFETY: the caller links a node only on levels below its height.
        let own = unsafe { node.link(level) };
        let mut was_alone = true;
        loop {
            let (before, after) = self.splice[level];
            let address = |node: Option<Node<'_>>| node.map_or(ptr::null_mut(), |node| node.address().as_ptr());
            // Relaxed: the compare-and-swap below makes this link visible to other threads.
            own.store(address(after), Ordering::Relaxed);
            // SAFETY: `before` is linked on this level, so its height is greater than the level.
            let link: &Link = unsafe { before.link(level) };
            let change =
                link.compare_exchange(address(after), address(Some(node)), Ordering::Release, Ordering::Relaxed);
            if change.is_ok() {
                return was_alone;
            }
            was_alone = false;
            let mut search = Search::between((before, None), probe);
            search.walk(level);
            self.splice[level] = search.around;
        }
    }
}

/// A height for the next node: 2 or more for a quarter of the nodes, 3 or more for a sixteenth, and so on. It is a
/// hash of the bytes that the arena has used, which grow with each node. So threads share no random generator, and a
/// simulated run can be repeated. Two threads that read the same number get the same height, which does no harm.
fn random_height(arena: &Arena) -> usize {
    // The finalizer of SplitMix64, which spreads each bit over all others.
    let mut bits = arena.used_bytes().wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (1 + bits.trailing_zeros() as usize / 2).min(MAX_HEIGHT)
}

/// Checks that each level has some of the nodes of the level below, in the same order, and that each node is on as
/// many levels as its height says.
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
        // SAFETY: the addresses belong to nodes in the arena of the list.
        let high = all.iter().filter(|&&address| unsafe { Node::at(address) }.height() > level);
        assert_eq!(level_nodes(level), high.copied().collect::<Vec<_>>());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, any(loom, shuttle)))]
mod schedules;
