//! A pool of open files with a limit, which counts files that are kept open, being read or being opened. To open
//! one more, the pool closes the coldest file that is not being read, or waits until a reader gives a file back.
//! The pool does not know what is read from the files.
//!
//! * The pool has `limit` places. An open file takes one from before it is opened until after it is closed.
//! * A reader holds a reference to its file. When it has dropped the reference, it calls [`OpenFiles::given_back`].
//!   A file that was taken out of its handle gets no new readers, and is closed once only the pool refers to it.
//! * A thread that finds no place stands in line. If all files are being read, the first in line takes out the
//!   coldest one. New readers of that file then stand in line, too, so a file that always has a reader does not
//!   keep other files out forever.
//! * A waiting thread holds no open file of any pool. So it waits only for threads that are reading from the disk,
//!   and these make progress.
//!
//! If a reader gives a file back while another thread begins to wait, at least one of the two must see what the
//! other did. The reader drops its reference and then looks for watchers: threads in line and files taken out of
//! their handles. The waiting thread adds itself to the watchers and then looks at the references. Both have a
//! fence between their two actions.
//!
//! Lock order: the ring, then a handle. Files are opened and closed under neither lock, so a slow open does not
//! delay readers of open files.

use os::File;
use os::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use os::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::collections::VecDeque;
use std::io;

/// A file's entry in the pool.
#[derive(Default)]
pub(crate) struct FileHandle {
    /// `Some` if and only if the handle is in the ring.
    file: RwLock<Option<Arc<dyn File>>>,
    /// Whether the file was read since the pool last passed it in search of the coldest file.
    touched: AtomicBool,
}

impl FileHandle {
    /// The file if it is open.
    fn open_file(&self) -> Option<Arc<dyn File>> {
        let file = self.file.read();
        let file = file.as_ref()?;
        self.touched.store(true, Ordering::Relaxed);
        Some(Arc::clone(file))
    }

    /// Takes out the file if it is not being read. Under the write lock, no new reader can get it.
    fn take_unused(&self) -> Option<Arc<dyn File>> {
        self.file.write().take_if(|file| is_unused(file))
    }
}

/// Whether only the pool refers to a file.
fn is_unused(file: &Arc<dyn File>) -> bool {
    Arc::strong_count(file) == 1
}

/// The open files, as a CLOCK cache.
pub(crate) struct OpenFiles {
    limit: usize,
    ring: Mutex<FileRing>,
    /// Everything that waits for a file to be given back: threads in line, and files that were taken out of their
    /// handles. Changes only under the lock of the ring.
    watchers: AtomicUsize,
}

#[derive(Default)]
struct FileRing {
    /// Files that are open, being opened or being closed.
    places: usize,
    open: Vec<Arc<FileHandle>>,
    hand: usize,
    /// Files that were taken out of their handles, and are closed when they are no longer read.
    leaving: Vec<Arc<dyn File>>,
    /// Files being closed, whose places will be free soon.
    closing: usize,
    line: VecDeque<Arc<FileWaiter>>,
}

/// A thread that waits for a place, or for another thread to open its file.
struct FileWaiter {
    handle: Arc<FileHandle>,
    changed: Condvar,
}

/// A place for a file that is not open yet. Dropping it frees the place.
struct FilePlace<'p>(&'p OpenFiles);

impl Drop for FilePlace<'_> {
    fn drop(&mut self) {
        let mut ring = self.0.ring.lock();
        ring.places -= 1;
        ring.wake_first();
    }
}

/// What a new reader of a file gets.
enum FoundFile<'p> {
    Open(Arc<dyn File>),
    Place(FilePlace<'p>),
}

impl OpenFiles {
    /// A pool with at most `limit` files open (one, if `limit` is 0).
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), ring: Mutex::default(), watchers: AtomicUsize::new(0) }
    }

    /// The open file of `handle`. If it is not open, the call waits for a place and opens it with `open`. The
    /// caller must have no other file open. It calls [`OpenFiles::given_back`] after it has dropped the file.
    ///
    /// # Errors
    ///
    /// The error of `open`.
    pub fn get(
        &self,
        handle: &Arc<FileHandle>,
        open: impl FnOnce() -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        match handle.open_file() {
            Some(file) => Ok(file),
            None => self.open(handle, self.wait(handle), open),
        }
    }

    /// Like [`OpenFiles::get`], but returns `None` instead of waiting for a place.
    ///
    /// # Errors
    ///
    /// The error of `open`.
    pub fn try_get(
        &self,
        handle: &Arc<FileHandle>,
        open: impl FnOnce() -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Option<Arc<dyn File>>> {
        if let Some(file) = handle.open_file() {
            return Ok(Some(file));
        }
        let mut ring = self.ring.lock();
        if !ring.line.is_empty() {
            return Ok(None);
        }
        let Some(unused) = ring.make_place(self.limit) else {
            return Ok(None);
        };
        let place = self.take(ring, unused);
        self.open(handle, FoundFile::Place(place), open).map(Some)
    }

    /// Notes that a reader has dropped its reference to a file.
    pub fn given_back(&self) {
        fence(Ordering::SeqCst);
        if self.watchers.load(Ordering::Relaxed) > 0 {
            self.close_unused();
        }
    }

    /// Closes the file of `handle` once it is no longer being read.
    pub fn close(&self, handle: &Arc<FileHandle>) {
        let mut ring = self.ring.lock();
        let Some(file) = handle.file.write().take() else {
            return;
        };
        ring.open.retain(|open| !Arc::ptr_eq(open, handle));
        ring.leaving.push(file);
        self.watch(&ring);
        drop(ring);
        self.close_unused();
    }

    /// How many files are open.
    pub fn count(&self) -> usize {
        self.ring.lock().places
    }

    fn open(
        &self,
        handle: &Arc<FileHandle>,
        found: FoundFile<'_>,
        open: impl FnOnce() -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let place = match found {
            FoundFile::Open(file) => return Ok(file),
            FoundFile::Place(place) => place,
        };
        // `opened` is declared after `place`, so on an early return the file is closed before its place becomes
        // free.
        let opened = open()?;
        let mut ring = self.ring.lock();
        let mut file = handle.file.write();
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        *file = Some(Arc::clone(&opened));
        drop(file);
        // The place is the file's now.
        std::mem::forget(place);
        ring.open.push(Arc::clone(handle));
        for waiter in ring.line.iter().filter(|waiter| Arc::ptr_eq(&waiter.handle, handle)) {
            waiter.changed.notify_one();
        }
        Ok(opened)
    }

    /// Waits for a place, or for another thread to open the file.
    fn wait(&self, handle: &Arc<FileHandle>) -> FoundFile<'_> {
        let mut ring = self.ring.lock();
        if ring.line.is_empty()
            && let Some(unused) = ring.make_place(self.limit)
        {
            return FoundFile::Place(self.take(ring, unused));
        }
        let waiter = Arc::new(FileWaiter { handle: Arc::clone(handle), changed: Condvar::new() });
        ring.line.push_back(Arc::clone(&waiter));
        self.watch(&ring);
        loop {
            if let Some(file) = handle.open_file() {
                self.leave_line(&mut ring, &waiter);
                return FoundFile::Open(file);
            }
            if ring.line.front().is_some_and(|first| Arc::ptr_eq(first, &waiter)) {
                let mut made = ring.make_place(self.limit);
                if made.is_none() && ring.leaving.is_empty() && ring.closing == 0 {
                    ring.retire_coldest();
                    self.watch(&ring);
                    made = ring.make_place(self.limit);
                }
                if let Some(unused) = made {
                    self.leave_line(&mut ring, &waiter);
                    return FoundFile::Place(self.take(ring, unused));
                }
            }
            ring = waiter.changed.wait(ring);
        }
    }

    fn leave_line(&self, ring: &mut FileRing, waiter: &Arc<FileWaiter>) {
        ring.line.retain(|other| !Arc::ptr_eq(other, waiter));
        self.watch(ring);
        ring.wake_first();
    }

    /// Takes a place from [`FileRing::make_place`], and closes the file `unused` that had it before.
    fn take(&self, ring: MutexGuard<'_, FileRing>, unused: Option<Arc<dyn File>>) -> FilePlace<'_> {
        self.watch(&ring);
        drop(ring);
        let place = FilePlace(self);
        drop(unused);
        place
    }

    /// Closes the files that were taken out and are no longer read, and makes the first thread in line look again.
    #[cold]
    fn close_unused(&self) {
        let mut ring = self.ring.lock();
        let unused: Vec<_> = ring.leaving.extract_if(.., |file| is_unused(file)).collect();
        if unused.is_empty() {
            ring.wake_first();
            return;
        }
        ring.closing += unused.len();
        self.watch(&ring);
        drop(ring);
        let places = unused.len();
        drop(unused);
        let mut ring = self.ring.lock();
        ring.closing -= places;
        ring.places -= places;
        ring.wake_first();
    }

    /// Updates the count of watchers. With the fence, this thread looks at the references to files only after the
    /// update.
    fn watch(&self, ring: &FileRing) {
        self.watchers.store(ring.line.len() + ring.leaving.len(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

impl FileRing {
    /// A place, if one can be had: a free one, or that of an open file without readers, which the caller must
    /// close.
    fn make_place(&mut self, limit: usize) -> Option<Option<Arc<dyn File>>> {
        if self.places < limit {
            self.places += 1;
            return Some(None);
        }
        let left = self.leaving.iter().position(is_unused).map(|at| self.leaving.swap_remove(at));
        left.or_else(|| self.take_coldest()).map(Some)
    }

    /// Takes out a file that is not being read, preferably one that was not read lately. The *hand* goes round the
    /// ring. It passes over files that were read since its last visit, and clears their marks. In the third lap,
    /// marks protect no longer.
    fn take_coldest(&mut self) -> Option<Arc<dyn File>> {
        let lap = self.open.len();
        for step in 0..3 * lap {
            self.hand %= lap;
            let handle = &self.open[self.hand];
            let touched = handle.touched.swap(false, Ordering::Relaxed);
            if (!touched || step >= 2 * lap)
                && let Some(file) = handle.take_unused()
            {
                self.open.swap_remove(self.hand);
                return Some(file);
            }
            self.hand += 1;
        }
        None
    }

    /// Takes the file at the hand out of its handle. It keeps its readers and gets no new ones.
    fn retire_coldest(&mut self) {
        if !self.open.is_empty() {
            self.hand %= self.open.len();
            let handle = self.open.swap_remove(self.hand);
            self.leaving.extend(handle.file.write().take());
        }
    }

    fn wake_first(&self) {
        if let Some(first) = self.line.front() {
            first.changed.notify_one();
        }
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
