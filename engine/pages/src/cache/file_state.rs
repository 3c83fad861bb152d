//! What a cache must know about a file before it admits one of its pages. The state does not know which file it is
//! for.

use os::sync::atomic::{AtomicBool, Ordering};

/// Whether the cache admits pages of a file, and how long they stay.
#[derive(Debug)]
pub(crate) struct FileState {
    dead: AtomicBool,
    kept: AtomicBool,
}

impl FileState {
    /// A live file that is not kept.
    pub fn new() -> Self {
        Self { dead: AtomicBool::new(false), kept: AtomicBool::new(false) }
    }

    /// Whether the file is dead: the cache admits none of its pages any more.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Marks the file dead, so that none of its pages is admitted any more. Returns whether it was dead before.
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
