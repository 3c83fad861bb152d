//! A file of pages as a plain read-only file: for bytes that lie outside pages, and for callers that want what is
//! on the disk, not what is in memory. Each read opens the file, within the cache's limit on open files, and then
//! gives it back.

use super::{NotOpened, PagedFile};
use os::File;
use os::sync::Arc;
use std::io::{self, ErrorKind};

impl PagedFile {
    /// The file on the disk, whatever is in memory. Each read opens the file; this call reads nothing.
    pub fn around_cache(self: &Arc<Self>) -> Arc<dyn File> {
        Arc::new(Around(Arc::clone(self)))
    }
}

/// A file's bytes on the disk, read around the cache.
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

    /// The file is opened for direct reads, although the file system may not make them so.
    fn is_direct(&self) -> bool {
        true
    }
}

/// Unwraps the error of an open. Its text already says what was tried.
fn without_wrapper(error: io::Error) -> io::Error {
    error.downcast::<NotOpened>().map_or_else(|error| error, |NotOpened(why)| why)
}
