//! The page protocol: readers ask, and the source answers from memory or notes what is missing. Nothing here blocks.

use crate::page::verify_address;
use crate::page_key::PageKey;
use crate::{Address, Error, PageKind, PageRef, PagedFile, Result};
use os::sync::Arc;

/// A page as a step asks for it: which file, where in the file, and for what.
#[derive(Clone, Copy, Debug)]
pub struct PageAt<'a> {
    /// The file.
    pub file: &'a Arc<PagedFile>,
    /// Where the page lies in the file, and its checksum.
    pub address: Address,
    /// What the page is for.
    pub kind: PageKind,
    /// The parent of the page and the number of the page among the parent's children, if the caller has the parent
    /// at hand. The parent may tell a source where the page is in memory.
    pub parent: Option<(&'a PageRef, usize)>,
    /// Whether the page was already prefetched; see [`PageRef::prefetch_child`].
    pub prefetched: bool,
}

impl<'a> PageAt<'a> {
    /// The same page, as child `i` of `parent`.
    #[inline]
    pub fn under(self, parent: &'a PageRef, i: usize) -> Self {
        Self { parent: Some((parent, i)), ..self }
    }

    /// The same page, marked as already prefetched.
    #[inline]
    pub fn prefetched(self) -> Self {
        Self { prefetched: true, ..self }
    }

    /// An error about the bytes of the page.
    pub fn corrupt(&self, why: impl Into<String>) -> Error {
        self.file.corrupt(self.kind, self.address.offset, why)
    }

    /// The page's name in the cache.
    #[inline]
    pub(crate) fn key(&self) -> PageKey {
        PageKey::new(self.file.slot(), &self.address)
    }

    /// Refuses an address at which no page can lie.
    pub(crate) fn verify(&self) -> Result<()> {
        verify_address(&self.address).map_err(|why| self.corrupt(why))
    }

    /// Whether `page`, which was found under the name of the wanted page, is really the wanted page.
    #[inline]
    pub(crate) fn is(&self, page: &PageRef) -> bool {
        page.is(&self.address, self.kind)
    }

    /// The error if the page that was found under the name of the wanted page is another page.
    pub(crate) fn is_another(&self, page: &PageRef) -> Error {
        let Self { address, kind, .. } = self;
        self.corrupt(format!("asked for as a {} page at {address:?}, read before as {page:?}", kind.name()))
    }
}

impl PagedFile {
    /// The page at `address` of this file.
    #[inline]
    pub fn at<'a>(self: &'a Arc<Self>, address: &Address, kind: PageKind) -> PageAt<'a> {
        PageAt { file: self, address: *address, kind, parent: None, prefetched: false }
    }
}

/// Gives pages that are in memory, and notes pages that are not.
///
/// A *step* is one physical move of one cursor. A step has no effect before it has its last page. So it can always
/// be run again after a fault. A composite step runs all its parts before it returns [`Stop::Fault`], so that the
/// parts fault together.
///
/// No method has a default. So a source that wraps another source cannot forget a method: it has to pass on each
/// call that it does not answer itself.
pub trait PageSource {
    /// The page at `at`, which the step needs now. On a miss the source notes the page for the next
    /// [`PageSource::fetch`] and answers [`Stop::Fault`].
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if the page is not in memory, and [`Stop::Failed`] with [`Error::Corrupt`] if the address is
    /// invalid or another page lies there.
    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop>;

    /// The page at `at` if it is in memory, for a step that can go on without it. The call notes nothing and never
    /// fails. If another page lies there, of another kind or with another checksum, the result is `None`. Nothing
    /// is pinned, so a step that peeks may find less when it runs again.
    fn peek(&self, at: PageAt<'_>) -> Option<PageRef>;

    /// Does the same as [`PageSource::peek`], for a step that wants to see where the page leads before it needs
    /// the page. The cache does not count this as a use of the page.
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef>;

    /// Asks for a page that a later step will need. The page is read in the same round as the faults, and no step
    /// waits for it.
    ///
    /// `true` if the page was noted. `false` if the page is already in memory or on its way into memory, or if the
    /// address is invalid. The source does not look for duplicates: if a page is asked for twice before a round,
    /// it may be noted twice, and is read once. A page that was noted may never be read. If a source has many
    /// hints, it forgets the oldest. If it has no room for all pages, it leaves out those that were asked for
    /// last. So a caller that repeats its requests until nothing more is noted may never end.
    fn ahead(&self, at: PageAt<'_>) -> bool;

    /// Does the same as [`PageSource::ahead`], for a page that would save the caller some work, but no reads of
    /// other pages. No other page should be evicted for such a page. The page is noted only if two conditions
    /// hold. The source must have room for the page in memory that nothing uses. And another thread must make the
    /// read, so that this thread can go on meanwhile.
    fn ahead_if_spare(&self, at: PageAt<'_>) -> bool;

    /// How many bytes of memory the source has for pages that were asked for ahead and are not needed yet. A caller
    /// that asks for no more than this gets all these pages. 0 if the source does not read ahead.
    fn ahead_bytes(&self) -> u64;

    /// Brings all pages that were noted since the last round into memory. They stay pinned until
    /// [`PageSource::release`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::Corrupt`] for the first page that the step needs and that could not be read. The
    /// other pages are pinned nevertheless.
    fn fetch(&self) -> Result<()>;

    /// Whether the page at `at` was read from disk because this step needed it. After each such read, only the
    /// first call returns `true`. A source that does not know this returns `false`.
    fn take_read(&self, at: PageAt<'_>) -> bool;

    /// Says that the step is done: the source gives back its pins.
    fn release(&self);
}

/// For use within an `impl PageSource`: passes the named methods on to the source in a field. `pass_on!(source:
/// peek, glance, release)`. The methods are named one by one, so that none is passed on by mistake.
#[macro_export]
macro_rules! pass_on {
    ($source:ident: $($verb:ident),+) => { $($crate::pass_on!(@$verb $source);)+ };
    (@page $source:ident) => {
        fn page(&self, at: $crate::PageAt<'_>) -> ::std::result::Result<$crate::PageRef, $crate::Stop> {
            self.$source.page(at)
        }
    };
    (@peek $source:ident) => {
        fn peek(&self, at: $crate::PageAt<'_>) -> ::std::option::Option<$crate::PageRef> {
            self.$source.peek(at)
        }
    };
    (@glance $source:ident) => {
        fn glance(&self, at: $crate::PageAt<'_>) -> ::std::option::Option<$crate::PageRef> {
            self.$source.glance(at)
        }
    };
    (@ahead $source:ident) => {
        fn ahead(&self, at: $crate::PageAt<'_>) -> bool {
            self.$source.ahead(at)
        }
    };
    (@ahead_if_spare $source:ident) => {
        fn ahead_if_spare(&self, at: $crate::PageAt<'_>) -> bool {
            self.$source.ahead_if_spare(at)
        }
    };
    (@ahead_bytes $source:ident) => {
        fn ahead_bytes(&self) -> u64 {
            self.$source.ahead_bytes()
        }
    };
    (@fetch $source:ident) => {
        fn fetch(&self) -> $crate::Result<()> {
            self.$source.fetch()
        }
    };
    (@take_read $source:ident) => {
        fn take_read(&self, at: $crate::PageAt<'_>) -> bool {
            self.$source.take_read(at)
        }
    };
    (@release $source:ident) => {
        fn release(&self) {
            self.$source.release();
        }
    };
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
