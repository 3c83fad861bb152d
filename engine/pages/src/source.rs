//! The page protocol: readers ask for pages, and a source gives those in memory and notes the missing ones. Nothing
//! here blocks, except [`PageSource::fetch`].

use crate::frame::Part;
use crate::page::verify_address;
use crate::page_key::PageKey;
use crate::{Address, Error, Excerpt, ExcerptName, LivePage, Page, PageKind, PageRef, PagedFile, Result};
use os::sync::Arc;

/// A page as a step asks for it.
#[derive(Clone, Copy, Debug)]
pub struct PageAt<'a> {
    /// The file.
    pub file: &'a Arc<PagedFile>,
    /// Where the page lies in the file, and its checksum.
    pub address: Address,
    /// What the page is for.
    pub kind: PageKind,
    /// The page's parent and the page's number among its children, if the caller has the parent at hand. The parent
    /// may know where the page is in memory.
    pub parent: Option<(LivePage<'a>, usize)>,
    /// Whether the page was already prefetched; see [`PageRef::prefetch_child`].
    pub prefetched: bool,
}

impl<'a> PageAt<'a> {
    /// The same page, as child `i` of `parent`.
    #[inline]
    pub fn under(self, parent: &'a impl Page, i: usize) -> Self {
        Self { parent: Some((parent.live(), i)), ..self }
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

    /// Refuses an address that cannot be valid.
    pub(crate) fn verify(&self) -> Result<()> {
        verify_address(&self.address).map_err(|why| self.corrupt(why))
    }

    /// Whether `page`, found under this page's name, really is this page.
    #[inline]
    pub(crate) fn is(&self, page: &impl Page) -> bool {
        page.live().is(&self.address, self.kind)
    }

    /// The error for finding another page under this page's name.
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

/// Gives the pages that are in memory. What it does about those that are not is up to it: a [`PageSource`] notes them
/// and can fetch them, a [`Guard`](crate::Guard) leaves them to another source.
///
/// A *step* is one physical move of one cursor. It has no effect before it has its last page, so it can always be
/// run again after a fault. A composite step runs all its parts before it returns [`Stop::Fault`], so that the
/// parts fault together.
///
/// Only the methods about excerpts have a default, which is never wrong, only slower. The others have none, so that a
/// source that wraps another one cannot forget to pass a call on.
pub trait PageLender {
    /// A page as the source gives it.
    type Page: Page;

    /// Whether a step that faults is run again after a fetch. If not, it need not look for the other pages that it
    /// would need.
    fn fetches(&self) -> bool;

    /// The page at `at`, which the step needs now. If it is not in memory, the source returns [`Stop::Fault`]; a
    /// [`PageSource`] also notes the page for the next [`PageSource::fetch`].
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if the page is not in memory; [`Stop::Failed`] with [`Error::Corrupt`] if the address is
    /// invalid or another page lies there.
    fn page(&self, at: PageAt<'_>) -> Result<Self::Page, Stop>;

    /// The page at `at` if it is in memory, for a step that can go on without it. `None` also if a page of another
    /// kind or with another checksum lies there. The call notes nothing and never fails. It pins nothing beyond the
    /// result, so a step may find less when it runs again.
    fn peek(&self, at: PageAt<'_>) -> Option<Self::Page>;

    /// Asks for a page that a later step will need. It is read in the same round as the faults, and no step waits
    /// for it.
    ///
    /// Returns `true` if the page was noted, and `false` if it is in memory, on its way, or at an invalid address.
    /// A page that is asked for twice before a round may be noted twice, but is read once. A noted page may never
    /// be read: a source with many hints forgets the oldest ones, and a source without room for all pages leaves
    /// out those that were asked for last. So a caller that repeats its requests until nothing more is noted may
    /// never end.
    fn ahead(&self, at: PageAt<'_>) -> bool;

    /// Like [`PageLender::ahead`], but for a page that would save the caller some work, though no reads, and is not
    /// worth an eviction. The page is noted only if the source has unused memory for it and another thread makes
    /// the read, so that this thread can go on meanwhile.
    fn ahead_if_spare(&self, at: PageAt<'_>) -> bool;

    /// Whether the page at `at` was read from disk because this step needed it. Only the first call after each such
    /// read returns `true`. A source that cannot tell returns `false`.
    fn take_read(&self, at: PageAt<'_>) -> bool;

    /// The excerpt with this name, if it is in memory and `fits` accepts its content, for a step that has just
    /// missed the page that it comes from. If so, the step does not need that page. A source without excerpts has none.
    fn excerpt(&self, _name: &ExcerptName<'_>, _fits: &dyn Fn(&[u8]) -> bool) -> Option<Excerpt<Self::Page>> {
        None
    }

    /// Notes that the step has found what it wanted in this part of the page. If the page leaves, the cache may keep an
    /// excerpt of this part. A source without excerpts notes nothing.
    fn note_part(&self, _page: &Self::Page, _part: Part) {}

    /// Ends the step: the source gives back its pins.
    fn release(&self);
}

/// Gives the pages that are in memory, notes those that are not, and fetches what it has noted.
pub trait PageSource: PageLender<Page = PageRef> {
    /// Like [`PageLender::peek`], but for a step that wants to see where the page leads before it needs the page.
    /// The cache does not count this as a use.
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef>;

    /// How many bytes the source has for pages that were asked for ahead and are not needed yet. A caller that asks
    /// for no more than this gets all of them. 0 if the source does not read ahead.
    fn ahead_bytes(&self) -> u64;

    /// Brings all pages noted since the last round into memory, and waits for those that the step needs. They stay
    /// pinned until [`PageLender::release`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Corrupt`] or [`Error::MissingFeature`] for the first page that the step needs and
    /// that could not be read. The other pages are pinned nevertheless.
    fn fetch(&self) -> Result<()>;
}

/// Passes the named methods of [`PageLender`] or [`PageSource`] on to the source in a field, within an `impl`: `pass_on!(source:
/// peek, ahead, release)`. The methods are named one by one, so that none is passed on by mistake.
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
    (@excerpt $source:ident) => {
        fn excerpt(
            &self,
            name: &$crate::ExcerptName<'_>,
            fits: &dyn ::std::ops::Fn(&[u8]) -> bool,
        ) -> ::std::option::Option<$crate::Excerpt<$crate::PageRef>> {
            self.$source.excerpt(name, fits)
        }
    };
    (@note_part $source:ident) => {
        fn note_part(&self, page: &$crate::PageRef, part: $crate::Part) {
            self.$source.note_part(page, part);
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
    /// Pages are missing. The source has noted them. Not an error.
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
