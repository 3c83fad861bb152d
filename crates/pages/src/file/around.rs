//! A file of pages, seen as a plain file that is only read. It is for reads of bytes that lie outside pages, and
//! for callers that want the bytes on the disk and not the pages in memory. Each read opens the file, within the
//! bound of its cache, and then closes it.

use super::{NotOpened, PagedFile};
use os::File;
use os::sync::Arc;
use std::io::{self, ErrorKind};

impl PagedFile {
    /// The file on the disk, whatever is in memory. Each read opens the file. This call itself reads nothing.
    pub fn around_cache(self: &Arc<Self>) -> Arc<dyn File> {
        Arc::new(Around(Arc::clone(self)))
    }
}

/// The bytes of a file, around the cache.
#[derive(Debug)]
struct Around(Arc<PagedFile>);

impl File for Around {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.with_open(|file| file.read_at(buffer, offset)).map_err(without_wrapper)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn append(&self, _bytes: &[u8]) -> io::Result<u64> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.with_open(|file| file.len()).map_err(without_wrapper)
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// The file is opened for direct reads, but the file system may read it in another way.
    fn is_direct(&self) -> bool {
        true
    }
}

/// An error of opening a file is wrapped in `NotOpened`. Here the wrapper is removed, because the text of the
/// error already says what was tried.
fn without_wrapper(error: io::Error) -> io::Error {
    error.downcast::<NotOpened>().map_or_else(|error| error, |NotOpened(why)| why)
}
