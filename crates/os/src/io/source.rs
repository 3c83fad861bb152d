//! What a read reads from: something that is opened when the read is made, not when it is asked for. It does not know
//! how the number of open files is bounded.
//!
//! A read that waits in a queue holds no descriptor. The thread that makes a read opens its source, reads, and closes
//! it before it reports the end; a thread that has one source open does not wait for another to be opened.

use crate::File;
use crate::sync::Arc;
use std::fmt::Debug;
use std::io;

/// Something that can be opened for a read. Thread safe. Two reads are of the same source if they point to the same value.
///
/// Every [`File`] is one, and is open already.
pub trait ReadSource: Send + Sync + Debug {
    /// Opens it. May wait until other reads are over, so the caller has no other source open.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses to open the source.
    fn open(self: Arc<Self>) -> io::Result<OpenSource>;

    /// Opens it without waiting for other reads; `None` if it would have to wait.
    ///
    /// # Errors
    ///
    /// As [`ReadSource::open`].
    fn try_open(self: Arc<Self>) -> io::Result<Option<OpenSource>>;

    /// Whether neighbouring reads of it are worth making as one, which takes a [descriptor](File::descriptor). A source that
    /// does not know before it is open says yes.
    fn may_join(&self) -> bool {
        true
    }

    /// Called after what [`ReadSource::open`] gave was dropped.
    fn closed(&self) {}
}

impl<F: File + 'static> ReadSource for F {
    fn open(self: Arc<Self>) -> io::Result<OpenSource> {
        Ok(OpenSource { file: self, closing: CloseNotice(None) })
    }

    fn try_open(self: Arc<Self>) -> io::Result<Option<OpenSource>> {
        self.open().map(Some)
    }

    fn may_join(&self) -> bool {
        self.descriptor().is_some()
    }
}

/// A source that is open until this is dropped.
#[derive(Debug)]
pub struct OpenSource {
    // The fields are dropped in this order: the source is notified once the reference to the file is gone.
    file: Arc<dyn File>,
    #[expect(dead_code, reason = "it is there to be dropped")]
    closing: CloseNotice,
}

impl OpenSource {
    /// `file`, which `source` opened and which it is notified of when this is dropped.
    pub fn new(file: Arc<dyn File>, source: Arc<dyn ReadSource>) -> OpenSource {
        OpenSource { file, closing: CloseNotice(Some(source)) }
    }

    /// The file.
    pub fn file(&self) -> &dyn File {
        &*self.file
    }
}

/// Notifies a source.
#[derive(Debug)]
struct CloseNotice(Option<Arc<dyn ReadSource>>);

impl Drop for CloseNotice {
    fn drop(&mut self) {
        if let Some(source) = &self.0 {
            source.closed();
        }
    }
}
