//! What the engine asks of storage for files that never change: objects by name. It is less than a
//! [`Disk`](crate::Disk): nothing grows, nothing is renamed, and no name is given twice. It does not know what the
//! bytes mean.
//!
//! An object is there whole under its name, or not at all. What [`Store::put_if_absent`] says is true for all clients
//! of the store at once: if several put one name, one succeeds. All other answers may be old for a short time: a
//! listing may miss what was just put, and a look for an object may not find it yet. So a client that has to know takes
//! the name itself.
//!
//! A request may fail although the store has done what was asked, and a store may do what was asked after the client
//! has given up. Only errors of the kinds that [`is_certain`] knows say that nothing has happened and nothing will.

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

/// Called at the end of a ranged read, once, on any thread, with the bytes in pieces, as they came. They are fewer than
/// asked for only if the object ends before. It must neither wait nor take long.
pub type RangeDone = Box<dyn FnOnce(io::Result<&[&[u8]]>) + Send>;

/// Called at the end of a put, once, on any thread; not at all if the store ends before the put does. It must neither
/// wait nor take long.
pub type PutDone = Box<dyn FnOnce(io::Result<()>) + Send>;

/// Objects by name. Thread safe. Names are of letters, digits, `-`, `.` and `_`, in folders divided by `/`. Where the
/// objects are those of a folder within a larger store, a name that begins with `/` names any object of that. An error
/// names the object and the cause, and shows no credentials.
pub trait Store: Send + Sync + Debug {
    /// Begins an object, which is written from front to back. The caller gives no name twice.
    ///
    /// # Errors
    ///
    /// The store's.
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>>;

    /// Makes a small object, unless one with this name exists. It is durable on return.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if one exists. That may be the work of an earlier attempt, or of a duplicate of this one: a
    /// caller that has to know puts bytes that nobody else puts, and reads the object. Other errors are the store's;
    /// after one of them that is not [certain](is_certain) the object may be there now or later.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Begins to put a small object as [`Store::put_if_absent`] does. It does not wait, where other threads or an event
    /// loop make the request: many can be under way.
    fn begin_put_if_absent(&self, name: &str, bytes: Vec<u8>, done: PutDone) {
        done(self.put_if_absent(name, &bytes));
    }

    /// The whole of a small object.
    ///
    /// # Errors
    ///
    /// `NotFound` if none exists, and others of the store.
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Fills `buffer` from `offset`; returns fewer bytes only at the end of the object.
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Begins to read a range of an object. It does not wait, where other threads or an event loop make the read: many
    /// can be under way. Every read ends.
    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        let bytes = usize::try_from(range.end.saturating_sub(range.start)).expect("what is read fits in memory");
        let mut buffer = vec![0; bytes];
        match self.read_at(name, &mut buffer, range.start) {
            Ok(read) => done(Ok(&[&buffer[..read]])),
            Err(error) => done(Err(error)),
        }
    }

    /// As [`Store::begin_read`], after an answer that was damaged. A store that keeps what was read near asks for it
    /// again, and keeps the new answer in place of the old one.
    fn begin_read_anew(&self, name: &str, range: Range<u64>, done: RangeDone) {
        self.begin_read(name, range, done);
    }

    /// The length of an object in bytes.
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    fn len(&self, name: &str) -> io::Result<u64>;

    /// Removes an object. It is no error if none exists.
    ///
    /// # Errors
    ///
    /// The store's.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The objects in a folder, without those in folders within it, sorted by name. It is slow in a folder with many,
    /// so it is for opening and for cleaning up.
    ///
    /// # Errors
    ///
    /// The store's. A folder without objects is no error.
    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>>;

    /// What it was asked, if it counts that.
    fn bill(&self) -> Option<Bill> {
        None
    }

    /// Says what the objects belong to, by a number that nothing else has. A store that keeps what was read near needs
    /// it: a name may have stood for another object once.
    fn bind(&self, _owner: u64) {}
}

/// An object that is being written. It is not there before it is finished, and never if it is dropped before that.
pub trait Upload: Send + Debug {
    /// Adds bytes at the end. It may wait until bytes before them are on their way.
    ///
    /// # Errors
    ///
    /// The store's. The upload is of no use after an error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the object appear, durable and whole: what the store has was compared with what was written.
    ///
    /// # Errors
    ///
    /// The store's. Then it is unknown whether the object exists.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// An object that is there, to be read.
#[derive(Clone, Debug)]
pub struct StoreObject {
    /// Where it is.
    pub store: Arc<dyn Store>,
    /// Its name.
    pub name: Arc<str>,
}

/// Whether a request that failed with this kind of error did nothing and will do nothing, so that another attempt
/// cannot help either. `AlreadyExists` is not among them: an earlier attempt may be the reason.
pub fn is_certain(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidInput, NotFound, PermissionDenied, Unsupported};
    matches!(kind, NotFound | PermissionDenied | InvalidInput | Unsupported)
}

/// The kind of error of a request that did not reach the store, or that the store did not answer as it should. Another
/// attempt may succeed.
pub const UNAVAILABLE: ErrorKind = ErrorKind::NotConnected;

#[cfg(test)]
pub(crate) mod tests;
