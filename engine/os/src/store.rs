//! Stores of immutable objects, such as S3, as the engine uses them. A store offers less than a
//! [`Disk`](crate::Disk): nothing grows, nothing is renamed, and no name is used twice. This module does not know
//! what the bytes mean.
//!
//! An object exists as a whole under its name, or not at all. [`Store::put_if_absent`] is atomic: if several clients
//! put the same name, only one of them succeeds. All other answers may be stale for a short time: a listing may miss
//! an object that was just put, and a `get` may not find it yet. So a client that has to know whether a name is free
//! puts an object under that name.
//!
//! A request may fail although the store has done it, or the store may do it after the client has given up. So a
//! failed request may still take effect. Only an error for which [`is_certain`] is true proves that the request has
//! done nothing and will do nothing.

mod bill;
mod folder;

pub use bill::{Bill, Cost, Counts, Price, Requests};
pub use folder::FolderStore;

use crate::sync::Arc;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredObject {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The callback of a read of a range, called once, on any thread. It gets the bytes in pieces, as they arrived. They
/// are fewer than the range only if the object ends within the range or before it. The callback must neither block
/// nor take long.
pub type RangeDone = Box<dyn FnOnce(io::Result<&[&[u8]]>) + Send>;

/// The callback of a put, called once, on any thread, or never if the store ends before the put. It must neither block
/// nor take long.
pub type PutDone = Box<dyn FnOnce(io::Result<()>) + Send>;

/// Objects by name. Thread safe. Names consist of letters, digits, `-`, `.` and `_`, in folders separated by `/`. If
/// the store is a folder of a larger store, a name that begins with `/` is relative to the larger store. Errors name
/// the object and the cause, and contain no credentials.
pub trait Store: Send + Sync + Debug {
    /// Begins an object, whose bytes are then written in order. The caller never uses a name twice.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>>;

    /// Puts a small object, unless one with this name exists. It is durable on return.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if an object with this name exists, which may come from an earlier attempt or from a duplicate
    /// of this request. A caller that has to tell puts unique bytes, and then reads the object. Otherwise the store's
    /// error. If it is not [certain](is_certain), the object may exist now or appear later.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Begins to put a small object as [`Store::put_if_absent`] does. If other threads or an event loop make the
    /// requests of the store, this call does not wait, and many puts can be under way.
    fn begin_put_if_absent(&self, name: &str, bytes: Vec<u8>, done: PutDone) {
        done(self.put_if_absent(name, &bytes));
    }

    /// Returns the whole of a small object.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such object exists, and other errors of the store.
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Fills `buffer` from `offset`, and returns the number of bytes read, which is less than `buffer.len()` only at
    /// the end of the object.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::get`].
    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Begins to read a range of an object. If other threads or an event loop make the requests of the store, this
    /// call does not wait, and many reads can be under way. `done` is always called.
    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        let bytes = usize::try_from(range.end.saturating_sub(range.start)).expect("what is read fits in memory");
        let mut buffer = vec![0; bytes];
        match self.read_at(name, &mut buffer, range.start) {
            Ok(read) => done(Ok(&[&buffer[..read]])),
            Err(error) => done(Err(error)),
        }
    }

    /// Reads a range once more, after its bytes were found to be damaged. A store with a cache bypasses the cache,
    /// and replaces the cached bytes.
    fn begin_read_anew(&self, name: &str, range: Range<u64>, done: RangeDone) {
        self.begin_read(name, range, done);
    }

    /// The length of an object in bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::get`].
    fn len(&self, name: &str) -> io::Result<u64>;

    /// Removes an object. Succeeds if no object has the name.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The objects in a folder, sorted by name, without those in subfolders. Empty if no such folder exists. A
    /// listing is slow in a folder with many objects, so it is used only to open and to clean up.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>>;

    /// The requests made to the store so far. `None` if it does not count them.
    fn bill(&self) -> Option<Bill> {
        None
    }

    /// Tells the store who owns its objects: `owner` is a number that no other owner has. A store that caches what it
    /// reads puts this number into its cache keys, because an earlier owner may have used the same names.
    fn bind(&self, _owner: u64) {}
}

/// An object that is being written. The object does not exist before [`Upload::finish`]. If the upload is dropped
/// before, the object never exists.
pub trait Upload: Send + Debug {
    /// Appends bytes. The call may wait for earlier bytes to be sent.
    ///
    /// # Errors
    ///
    /// The store's error. After an error, the upload cannot be used any more.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the object appear, whole and durable. The call may compare what the store has with what was written.
    ///
    /// # Errors
    ///
    /// The store's error. After an error it is unknown whether the object exists.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// An existing object, and the store to read it from.
#[derive(Clone, Debug)]
pub struct StoreObject {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Its name.
    pub name: Arc<str>,
}

/// Whether an error of this kind proves that the request has done nothing and will do nothing, so that another
/// attempt would fail in the same way. `AlreadyExists` does not, because it may be due to an earlier attempt.
pub fn is_certain(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidInput, NotFound, PermissionDenied, Unsupported};
    matches!(kind, NotFound | PermissionDenied | InvalidInput | Unsupported)
}

/// The kind of error for a request that did not reach the store, or that got no proper answer. Another attempt may
/// succeed.
pub const UNAVAILABLE: ErrorKind = ErrorKind::NotConnected;

#[cfg(test)]
pub(crate) mod tests;
