//! A bounded number of open files. The limit counts files that are kept open, files that are being read and files
//! that are being opened. To open one more file, the pool closes the coldest file that is not being read, or it
//! waits until a reader gives a file back. The pool does not know what is read from the files.
//!
//! * Every open file takes a place of the pool, from before it is opened until after it is closed. The pool has
//!   `limit` places.
//! * A reader of a file holds a reference to the file. When it has dropped this reference, it calls
//!   [`OpenFiles::given_back`]. If a file is taken out of its handle, it gets no new readers. It is closed once
//!   only the pool refers to it.
//! * A thread that gets no place stands in line. If all files are being read, the first thread in line takes out the
//!   coldest file. New readers of that file then stand in line, too. So a file that always has a reader does not keep
//!   the other files out for ever.
//! * A thread that waits holds no open file of any pool. So it waits only for threads that are reading from the
//!   disk, and these go on.
//!
//! When a reader gives a file back while another thread begins to wait, at least one of the two must see what the
//! other did. The reader drops its reference and then looks whether there are watchers, which are threads that
//! wait. The waiting thread counts itself as a watcher and then looks at the references. Each of the two threads
//! has a fence between its two actions.
//!
//! A thread that takes both locks takes the lock of the ring first, and then the lock of a handle. Files are
//! opened and closed while neither lock is held. So a slow open does not delay a reader whose file is open.

use os::File;
use os::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use os::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::collections::VecDeque;
use std::io;

/// One file's place in the pool.
#[derive(Default)]
pub(crate) struct FileHandle {
    /// The file is there if and only if the handle is in the ring.
    file: RwLock<Option<Arc<dyn File>>>,
    /// Whether the file was read since the pool last looked at it in search of the coldest file.
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

    /// Takes out the file if it is not being read. A new reader has to lock the handle first, so no reader comes
    /// meanwhile.
    fn take_unused(&self) -> Option<Arc<dyn File>> {
        self.file.write().take_if(|file| is_unused(file))
    }
}

/// Whether only the pool refers to a file.
fn is_unused(file: &Arc<dyn File>) -> bool {
    Arc::strong_count(file) == 1
}

/// The files that are open, in a clock.
pub(crate) struct OpenFiles {
    limit: usize,
    ring: Mutex<FileRing>,
    /// The number of watchers, which wait until a file is given back: threads in line, and files that were taken
    /// out of their handles. The count changes only under the lock of the ring.
    watchers: AtomicUsize,
}

#[derive(Default)]
struct FileRing {
    /// Files that are open, being opened or being closed.
    places: usize,
    open: Vec<Arc<FileHandle>>,
    hand: usize,
    /// Files that were taken out of their handles. They are closed when they are no longer read.
    leaving: Vec<Arc<dyn File>>,
    /// How many files are being closed. Their places are free soon.
    closing: usize,
    line: VecDeque<Arc<FileWaiter>>,
}

/// A thread that waits for a place, or for another thread to open its file.
struct FileWaiter {
    handle: Arc<FileHandle>,
    changed: Condvar,
}

/// A place for a file that is not open yet. It is given back when dropped.
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

    /// The open file of `handle`. If the file is not open, this call waits until a place is free, and then opens
    /// the file by `open`. The caller must have no other file open. Once the caller has dropped the file, the
    /// caller calls [`OpenFiles::given_back`].
    ///
    /// # Errors
    ///
    /// What `open` answers.
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

    /// Does the same as [`OpenFiles::get`], but returns `None` if it would have to wait for a place.
    ///
    /// # Errors
    ///
    /// What `open` answers.
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
        // The variable for the file is declared after the one for the place. So if this function returns early,
        // the file is closed before the place becomes free.
        let opened = open()?;
        let mut ring = self.ring.lock();
        let mut file = handle.file.write();
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        *file = Some(Arc::clone(&opened));
        drop(file);
        // From now on the place belongs to the file.
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

    /// Takes the place of the file `unused`, which was taken out of its handle, and closes this file.
    fn take(&self, ring: MutexGuard<'_, FileRing>, unused: Option<Arc<dyn File>>) -> FilePlace<'_> {
        self.watch(&ring);
        drop(ring);
        let place = FilePlace(self);
        drop(unused);
        place
    }

    /// Closes the files that were taken out and are not read any more. Then makes the first thread in line look
    /// again.
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

    /// Updates the count of watchers. The fence makes sure that this thread reads the references to files only
    /// after the update.
    fn watch(&self, ring: &FileRing) {
        self.watchers.store(ring.line.len() + ring.leaving.len(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

impl FileRing {
    /// A place, if there is one. The place is free, or it belongs to a file that was taken out of its handle and
    /// has no reader. Then the caller must close this file.
    fn make_place(&mut self, limit: usize) -> Option<Option<Arc<dyn File>>> {
        if self.places < limit {
            self.places += 1;
            return Some(None);
        }
        let left = self.leaving.iter().position(is_unused).map(|at| self.leaving.swap_remove(at));
        left.or_else(|| self.take_coldest()).map(Some)
    }

    /// Takes out a file that is not being read, and preferably one that was not read lately. The *hand* goes round
    /// the ring of open files. It clears the mark of each file that was read since the hand last passed, and
    /// leaves this file open. In the first two laps, marks protect files. In the third lap, they do not.
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

    /// Takes the file at the hand out of its handle. The file keeps its readers and gets no new ones.
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
