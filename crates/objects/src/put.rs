//! Puts an object once, and finds out whose the object with its name is. It does not know what the bytes mean.

use crate::again::Again;
use os::Store;
use os::store::is_certain;
use std::io::{self, ErrorKind};

/// What became of a put.
pub enum Put {
    /// The object is there, with these bytes.
    Own,
    /// Another object has the name.
    Taken(Vec<u8>),
}

/// Puts an object if there is none of its name. Nobody else puts the same bytes under this name, so an object that has them is one's own,
/// put by an attempt whose answer was lost.
///
/// # Errors
///
/// The store's. Then it is unknown whether the object is there.
pub fn put_once(store: &dyn Store, mut again: Again, name: &str, bytes: &[u8]) -> io::Result<Put> {
    loop {
        let error = match store.put_if_absent(name, bytes) {
            Ok(()) => return Ok(Put::Own),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match store.get(name) {
                Ok(found) if found == bytes => return Ok(Put::Own),
                Ok(found) => return Ok(Put::Taken(found)),
                // An old answer may not have it yet.
                Err(error) => error,
            },
            Err(error) if is_certain(error.kind()) => return Err(error),
            Err(error) => error,
        };
        if !again.pause() {
            return Err(error);
        }
    }
}
