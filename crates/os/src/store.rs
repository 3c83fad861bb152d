//! What the engine asks of a store for files that never change. The store keeps objects, which are found by name. A
//! store offers less than a [`Disk`](crate::Disk): nothing grows, nothing is renamed, and no name is given twice.
//! This module does not know what the bytes mean.
//!
//! An object exists as a whole under its name, or not at all. [`Store::put_if_absent`] decides for all clients of
//! the store: if several clients put the same name, only one of them succeeds. All other answers may be old for a
//! short time. A listing may miss an object that was just put, and a look for the object may not find it yet. So
//! if a client has to know whether a name is free, it puts an object with this name itself.
//!
//! A request may fail although the store has done what was asked. A store may also do what was asked after the
//! client has given up. So after an error, the request may still have an effect. Only an error for which
//! [`is_certain`] is true proves that the request has done nothing and will do nothing.

mod bill;
mod folder;

pub use bill::{Bill, Cost, Counts, Price, Requests};
pub use folder::FolderStore;

use crate::sync::Arc;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// An object by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredObject {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A function that is called once at the end of a read of a range, on any thread. The function gets the bytes in
/// pieces, as they came. The pieces have fewer bytes than the range only if the object ends within the range or
/// before it. The function must neither wait nor take long.
pub type RangeDone = Box<dyn FnOnce(io::Result<&[&[u8]]>) + Send>;

/// A function that is called once at the end of a put, on any thread. It is not called if the store ends before the
/// put. The function must neither wait nor take long.
pub type PutDone = Box<dyn FnOnce(io::Result<()>) + Send>;

/// Objects by name. Thread safe. Names consist of letters, digits, `-`, `.` and `_`, in folders divided by `/`. If
/// the store is a folder within a larger store, a name that begins with `/` names any object of the larger store.
/// An error names the object and the cause, and contains no credentials.
pub trait Store: Send + Sync + Debug {
    /// Begins an object. Its bytes are written in order, from its beginning to its end. The caller never uses a
    /// name twice.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>>;

    /// Makes a small object, unless one with this name exists. It is durable on return.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if an object with this name exists. This object may come from an earlier attempt, or from a
    /// duplicate of this request. To find out who made the object, a caller puts bytes that nobody else puts, and
    /// then reads the object. Other errors are the store's. If an error of the store is not [certain](is_certain),
    /// the object may exist now or appear later.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Begins to put a small object as [`Store::put_if_absent`] does. If other threads or an event loop make the
    /// request, this call does not wait, and many puts can be under way.
    fn begin_put_if_absent(&self, name: &str, bytes: Vec<u8>, done: PutDone) {
        done(self.put_if_absent(name, &bytes));
    }

    /// The whole of a small object.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such object exists; other errors of the store.
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Fills `buffer` from `offset`. The call returns the number of bytes. They are fewer than `buffer` holds only
    /// at the end of the object.
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Begins to read a range of an object. If other threads or an event loop make the read, this call does not wait,
    /// and many reads can be under way. Every read ends.
    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        let bytes = usize::try_from(range.end.saturating_sub(range.start)).expect("what is read fits in memory");
        let mut buffer = vec![0; bytes];
        match self.read_at(name, &mut buffer, range.start) {
            Ok(read) => done(Ok(&[&buffer[..read]])),
            Err(error) => done(Err(error)),
        }
    }

    /// Reads a range once more, after the bytes of the first answer were found damaged. If the store has a cache,
    /// it does not answer from the cache: it asks for the range again, and replaces the cached bytes by the new
    /// ones.
    fn begin_read_anew(&self, name: &str, range: Range<u64>, done: RangeDone) {
        self.begin_read(name, range, done);
    }

    /// The length of an object in bytes.
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    fn len(&self, name: &str) -> io::Result<u64>;

    /// Removes an object. It is no error if no object has the name.
    ///
    /// # Errors
    ///
    /// The store's error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The objects in a folder, sorted by name, without the objects in its subfolders. A listing is slow in a
    /// folder with many objects, so it is used only for opening and for cleaning up.
    ///
    /// # Errors
    ///
    /// The store's error. If the folder has no objects, this is no error.
    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>>;

    /// The requests that were made to the store, if the store counts its requests.
    fn bill(&self) -> Option<Bill> {
        None
    }

    /// Tells the store who owns its objects: `owner` is a number that no other owner has. A store that caches what
    /// it has read needs this number, because the same name may earlier have stood for another object.
    fn bind(&self, _owner: u64) {}
}

/// An object that is being written. The object does not exist before the upload is finished. If the upload is
/// dropped before it is finished, the object never exists.
pub trait Upload: Send + Debug {
    /// Adds bytes at the end. The call may wait until earlier bytes are being sent.
    ///
    /// # Errors
    ///
    /// The store's error. After an error, the upload is of no use.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the object appear, durable and whole. To make sure of this, the call may compare what the store has
    /// with what was written.
    ///
    /// # Errors
    ///
    /// The store's error. After an error it is unknown whether the object exists.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// An object that exists and can be read.
#[derive(Clone, Debug)]
pub struct StoreObject {
    /// Where it is.
    pub store: Arc<dyn Store>,
    /// Its name.
    pub name: Arc<str>,
}

/// Whether an error of the given kind means that the request has done nothing and will do nothing. Then another
/// attempt would fail in the same way. `AlreadyExists` is not such a kind, because an earlier attempt may be the
/// reason.
pub fn is_certain(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidInput, NotFound, PermissionDenied, Unsupported};
    matches!(kind, NotFound | PermissionDenied | InvalidInput | Unsupported)
}

/// The kind of error for a request that did not reach the store, or that the store did not answer as it should.
/// Another attempt may succeed.
pub const UNAVAILABLE: ErrorKind = ErrorKind::NotConnected;

#[cfg(test)]
pub(crate) mod tests;
