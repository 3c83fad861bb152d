//! The page protocol: readers ask, the source answers from memory or notes what is missing. Nothing here blocks.

use crate::{Address, Error, PageKind, PageRef, PagedFile, Result};
use os::sync::Arc;

/// Gives pages that are in memory and notes the ones that are not.
///
/// A *step* is one physical move of one cursor. It has no effect before its last page is in hand, so that running it
/// again after a fault is always right. A composite step runs all its parts before it returns [`Stop::Fault`], so that
/// they fault together.
pub trait PageSource {
    /// The page at `at`, needed now: without it the step cannot go on. On a miss the page is noted for the next
    /// [`PageSource::fetch`] and the answer is [`Stop::Fault`].
    fn page(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Result<PageRef, Stop>;

    /// As [`PageSource::page`], for child `i` of `parent`, a source may know where it is from there.
    fn child(
        &self,
        (_parent, _i): (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Result<PageRef, Stop> {
        self.page(file, at, kind)
    }

    /// As [`PageSource::peek`], for who looks what the page leads to before a step needs it: it counts as no use of the page.
    fn glance(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.peek(file, at, kind)
    }

    /// As [`PageSource::peek`], for child `i` of `parent`.
    fn peek_child(
        &self,
        (_parent, _i): (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Option<PageRef> {
        self.peek(file, at, kind)
    }

    /// The page at `at` if it is in memory, for a reader that can do without it. Notes nothing and never fails: what is
    /// there of another kind, or with another checksum, is not the page. A step that peeks may find less when it runs
    /// again, for nothing is pinned.
    fn peek(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef>;

    /// Wanted soon: brought in the same round as the faults, waited for by nobody.
    ///
    /// `true` if the page was noted; `false` if it is in memory, or on its way there already, or the address is none.
    /// Noting looks for no duplicates: a page asked for twice before a round may be `true` twice, and is brought once.
    /// Nor is it a promise: a source forgets the oldest hints when there are many, and where it has no room for all
    /// leaves out those asked for last, so who waits until nothing is noted any more may wait forever.
    fn ahead(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> bool;

    /// Memory for what was asked for ahead and not needed yet, in bytes: who asks for no more is not turned away. Nothing
    /// where pages need not be asked for ahead.
    fn ahead_bytes(&self) -> u64 {
        0
    }

    /// Brings everything noted since the last round into memory, pinned until [`PageSource::release`].
    fn fetch(&self) -> Result<()>;

    /// Whether the step had to read the page at `at` from disk: `true` once for each read of a page that it needed. A source
    /// that cannot tell says `false`; one that stands around another passes the question on.
    fn take_read(&self, _file: &Arc<PagedFile>, _at: &Address) -> bool {
        false
    }

    /// The step is done: its pins are given back.
    fn release(&self);
}

/// Why a step ended early.
#[derive(Debug)]
pub enum Stop {
    /// Some pages are missing; the source remembers which. Not an error.
    Fault,
    /// Something broke.
    Failed(Box<Error>),
}

const _: () = assert!(size_of::<Stop>() <= 16, "a stop travels up every frame of a step");

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(Box::new(error))
    }
}
