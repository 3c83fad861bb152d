//! A bounded number of open files: opening one more closes the coldest. It does not know what is read from them.
//!
//! Locks are taken in the order ring, handle. Files are opened and closed outside both, so that a slow open keeps
//! nobody waiting; the bound holds for handles kept, those in use live on by their reference counts.

use os::File;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Mutex, RwLock};
use std::io;

/// One file's place in the pool.
#[derive(Default)]
pub(crate) struct Handle {
    file: RwLock<Option<Arc<dyn File>>>,
    /// Read since the hand came by.
    touched: AtomicBool,
}

/// The files that are open, in a clock.
pub(crate) struct OpenFiles {
    limit: usize,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    open: Vec<Arc<Handle>>,
    hand: usize,
}

impl OpenFiles {
    /// A pool that keeps at most `limit` files open, and at least one.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), ring: Mutex::default() }
    }

    /// The open file of `handle`, opened by `open` if it is not.
    pub fn get(
        &self,
        handle: &Arc<Handle>,
        open: impl FnOnce() -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        if let Some(file) = &*handle.file.read() {
            handle.touched.store(true, Ordering::Relaxed);
            return Ok(Arc::clone(file));
        }
        let opened = open()?;
        // Declared before the locks are taken, hence closed after they are released.
        let mut _closed = Vec::new();
        let mut ring = self.ring.lock();
        let mut file = handle.file.write();
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        _closed = ring.make_room(self.limit);
        *file = Some(Arc::clone(&opened));
        ring.open.push(Arc::clone(handle));
        Ok(opened)
    }

    /// Closes the file of `handle` once nobody reads it any more.
    pub fn close(&self, handle: &Arc<Handle>) {
        let _closed;
        let mut ring = self.ring.lock();
        ring.open.retain(|open| !Arc::ptr_eq(open, handle));
        _closed = handle.file.write().take();
    }

    /// How many files are open.
    pub fn open(&self) -> usize {
        self.ring.lock().open.len()
    }
}

impl Ring {
    /// Takes out files not read since the hand last passed until there is room for one more. Two turns suffice, for
    /// the first clears every mark that is not set again meanwhile; after that the mark no longer protects.
    fn make_room(&mut self, limit: usize) -> Vec<Arc<dyn File>> {
        let mut closed = Vec::new();
        let mut patience = 2 * self.open.len();
        while self.open.len() >= limit {
            self.hand %= self.open.len();
            let touched = self.open[self.hand].touched.swap(false, Ordering::Relaxed);
            if touched && patience > 0 {
                patience -= 1;
                self.hand += 1;
            } else {
                closed.extend(self.open.swap_remove(self.hand).file.write().take());
            }
        }
        closed
    }
}
