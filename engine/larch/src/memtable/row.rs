//! A row of a memtable that a reader holds. This module does not know which rows are visible.

use super::arena::Arena;
use super::node::{Content, Header, Node};
use super::row_memory::RowMemory;
use os::sync::Arc;
use sst::{RowKind, Until, Version};
use std::fmt;
use std::ptr::NonNull;

/// One version of a key. It keeps the row's arena alive, so it may outlive the memtable.
#[derive(Clone)]
pub struct MemRow {
    node: NonNull<Header>,
    arena: Arc<Arena>,
}

// SAFETY: a row is a node, which is Send and Sync, together with the arena that has the node.
unsafe impl Send for MemRow {}
// SAFETY: as above.
unsafe impl Sync for MemRow {}

impl MemRow {
    /// The row at `node`, which is in `arena`.
    #[inline]
    pub(super) fn new(node: Node<'_>, arena: &Arc<Arena>) -> Self {
        Self { node: node.address(), arena: arena.clone() }
    }

    /// A row that is in no memtable and puts `value`, until a time if one is given. It takes about the memory of its
    /// bytes, which is counted in `memory`, if there is one, as long as the row lives.
    pub fn alone(
        memory: Option<Arc<RowMemory>>,
        (key, version): (&[u8], Version),
        value: &[u8],
        until: Option<Until>,
    ) -> Self {
        let kind = if until.is_some() { RowKind::PutUntil } else { RowKind::Put };
        let (arena, node) = Node::write_alone(memory, &Content { key, version, kind, value, until });
        Self { node, arena: Arc::new(arena) }
    }

    /// Makes this value stand for the row at `node`, which must be in the same arena.
    #[inline]
    pub(super) fn set(&mut self, node: Node<'_>) {
        self.node = node.address();
    }

    #[inline]
    pub(super) fn node(&self) -> Node<'_> {
        // SAFETY: the node is in the arena, and this row keeps the arena.
        unsafe { Node::at(self.node) }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.node().key()
    }

    /// The value; empty for an erase.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.node().value()
    }

    /// Whether this version puts a value or erases the key.
    #[inline]
    pub fn kind(&self) -> RowKind {
        self.node().kind()
    }

    /// The time until which the row is there, if it has one.
    pub fn until(&self) -> Option<Until> {
        self.node().until()
    }

    /// The version of the commit that wrote the row.
    #[inline]
    pub fn version(&self) -> Version {
        self.node().version()
    }

    /// The bytes that the row takes in a memtable.
    pub fn memory_bytes(&self) -> u64 {
        self.node().memory_bytes()
    }

    /// Whether a reader may keep the row for an unlimited time, although this keeps the whole arena alive; see
    /// [`super::row_memory`].
    pub fn may_be_kept(&self) -> bool {
        self.arena.may_be_kept()
    }
}

impl fmt::Debug for MemRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, value) = (self.key().escape_ascii(), self.value().escape_ascii());
        write!(f, "{key} @{} {:?} {value}", self.version().0, self.kind())
    }
}
