//! Which of the pages that a session reads the cache keeps. *Admission* means that the cache takes in a page that was
//! read. This module does not know how the cache chooses which admitted pages stay.

use crate::PageKind;

/// Whether the cache keeps the pages a session reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// The cache keeps all pages that the session reads, and a hit makes a page stay longer. The default.
    #[default]
    Keep,
    /// Admits pages that lead to rows: index nodes, filters and range erases. All other pages pass through as with
    /// [`Admit::Pass`].
    Nodes,
    /// The cache admits no page: pages pass through the session's pins. The session also reads pages that the
    /// cache has already, but the cache does not count this as a use of these pages.
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
