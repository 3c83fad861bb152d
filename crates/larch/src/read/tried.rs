//! What comes of a read that may not wait.

use crate::error::Result;
use os::sync::Arc;
use pages::{Address, PageKind, PageRef, PageSource, PagedFile, Reader, Session, Stop};

/// What a read came to that touches no disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried<T> {
    /// All that it needed was in memory: this is the answer.
    Ready(T),
    /// It would fault: something is not in memory. A read that waits, or a future, brings it.
    WouldFault,
}

impl<T> Tried<T> {
    /// The answer, if there is one.
    pub fn ready(self) -> Option<T> {
        match self {
            Self::Ready(answer) => Some(answer),
            Self::WouldFault => None,
        }
    }

    /// Whether something is not in memory.
    pub fn would_fault(&self) -> bool {
        matches!(self, Self::WouldFault)
    }

    /// What `change` makes of the answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Tried<U> {
        match self {
            Self::Ready(answer) => Tried::Ready(change(answer)),
            Self::WouldFault => Tried::WouldFault,
        }
    }

    /// What a try form came to.
    pub(crate) fn of(outcome: Result<T, Stop>) -> Result<Self> {
        match outcome {
            Ok(answer) => Ok(Self::Ready(answer)),
            Err(Stop::Fault) => Ok(Self::WouldFault),
            Err(Stop::Failed(error)) => Err((*error).into()),
        }
    }
}

/// Whether somebody waits for what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Nobody does.
    Never,
    /// Nobody now, but what is wanted ahead is kept for somebody who will.
    Later,
    /// This reader.
    Now,
}

/// A reader on behalf of somebody who waits or does not: for those who do not, no page is noted as missing, and nothing on
/// the way may begin to read.
pub(crate) struct Asking<'r, R> {
    reader: &'r R,
    waits: Waits,
}

impl<'r, R: Reader> Asking<'r, R> {
    pub fn new(reader: &'r R, waits: Waits) -> Self {
        Self { reader, waits }
    }
}

impl<R: Reader> Reader for Asking<'_, R> {
    fn session(&self) -> &Session {
        self.reader.session()
    }
}

impl<R: Reader> PageSource for Asking<'_, R> {
    #[inline]
    fn page(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Result<PageRef, Stop> {
        match self.waits {
            Waits::Now => self.reader.page(file, at, kind),
            Waits::Later | Waits::Never => self.reader.peek(file, at, kind).ok_or(Stop::Fault),
        }
    }

    #[inline]
    fn child(
        &self,
        parent: (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Result<PageRef, Stop> {
        match self.waits {
            Waits::Now => self.reader.child(parent, file, at, kind),
            Waits::Later | Waits::Never => self.reader.peek_child(parent, file, at, kind).ok_or(Stop::Fault),
        }
    }

    fn peek(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.reader.peek(file, at, kind)
    }

    fn glance(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> Option<PageRef> {
        self.reader.glance(file, at, kind)
    }

    fn peek_child(
        &self,
        parent: (&PageRef, usize),
        file: &Arc<PagedFile>,
        at: &Address,
        kind: PageKind,
    ) -> Option<PageRef> {
        self.reader.peek_child(parent, file, at, kind)
    }

    fn ahead(&self, file: &Arc<PagedFile>, at: &Address, kind: PageKind) -> bool {
        self.waits != Waits::Never && self.reader.ahead(file, at, kind)
    }

    fn ahead_bytes(&self) -> u64 {
        self.reader.ahead_bytes()
    }

    fn fetch(&self) -> pages::Result<()> {
        self.reader.fetch()
    }

    fn take_read(&self, file: &Arc<PagedFile>, at: &Address) -> bool {
        self.reader.take_read(file, at)
    }

    /// Who has not waited has fetched nothing. To release may begin what is wanted ahead.
    #[inline]
    fn release(&self) {
        if self.waits == Waits::Now {
            self.reader.release();
        }
    }
}
