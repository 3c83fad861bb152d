//! Which of a session's pages the cache admits, which means that it takes them in after they were read. This module
//! does not know which admitted pages then stay.

use crate::PageKind;

/// Whether the cache keeps the pages that a session reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// The cache admits all pages that the session reads, and a hit makes a page stay longer. The default.
    #[default]
    Keep,
    /// The cache admits pages that lead to rows: index nodes, filters and range erases. All other pages pass
    /// through as with [`Admit::Pass`].
    Nodes,
    /// The cache admits no page: pages pass through the session's pins. Resident pages are read from the cache, but
    /// this does not count as a use.
    Pass,
}

impl Admit {
    /// Whether the cache admits pages of the given kind.
    #[inline]
    pub(super) fn admits(self, kind: PageKind) -> bool {
        match self {
            Self::Keep => true,
            Self::Nodes => is_node(kind) || matches!(kind, PageKind::Filter | PageKind::RangeErase),
            Self::Pass => false,
        }
    }
}

/// Whether a page leads to many others.
#[inline]
pub(super) fn is_node(kind: PageKind) -> bool {
    matches!(kind, PageKind::Index | PageKind::Flat)
}
