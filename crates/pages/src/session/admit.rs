//! Which of the pages that a session reads the cache keeps: taking a page that was read into the cache is *admission*.
//! It does not know how the cache chooses among them.

use crate::PageKind;

/// Whether the cache keeps the pages a session reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// The cache keeps all of them, and a hit makes a page stay longer. The default.
    #[default]
    Keep,
    /// Admits pages that lead to rows: index nodes, filters and range erases. The others pass through as with
    /// [`Admit::Pass`].
    Nodes,
    /// It does not: pages pass through the session's pins. Pages that are in memory are used, and no warmer for it.
    Pass,
}

impl Admit {
    /// Whether the cache admits pages of this kind.
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
