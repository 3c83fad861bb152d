//! What a cache has to know about a file before it takes in a page of the file. The state does not know which file
//! it is for.

use os::sync::atomic::{AtomicBool, Ordering};

/// Whether pages of a file may come into the cache, and how long they stay.
#[derive(Debug)]
pub(crate) struct FileState {
    dead: AtomicBool,
    kept: AtomicBool,
}

impl FileState {
    /// The state of a file that is alive and whose pages stay as long as pages of other files.
    pub fn new() -> Self {
        Self { dead: AtomicBool::new(false), kept: AtomicBool::new(false) }
    }

    /// Whether no page of the file comes into the cache any more.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// From now on no page of the file comes into the cache. Returns whether the file was dead before.
    pub fn kill(&self) -> bool {
        self.dead.swap(true, Ordering::SeqCst)
    }

    /// Whether pages of the file are kept.
    pub fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    /// Sets whether pages of the file are kept. Returns whether they were kept before.
    pub fn keep(&self, kept: bool) -> bool {
        self.kept.swap(kept, Ordering::Relaxed)
    }
}
