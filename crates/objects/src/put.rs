//! Puts objects once. If the name of an object is taken, this module also finds out who has put that object. This
//! module does not know what the bytes mean.

use crate::again::Again;
use os::Store;
use os::store::{PutDone, is_certain};
use std::io::{self, ErrorKind};
use std::sync::mpsc;

/// What became of a put.
#[derive(Debug)]
pub enum Put {
    /// The object is there, with the bytes of this put.
    Own,
    /// Another object has the name; these are its bytes.
    Taken(Vec<u8>),
}

/// Puts an object if no object has its name. No other process puts the same bytes under this name. So if an object
/// with the same bytes is there, an earlier attempt of this process has put it, and its answer was lost.
///
/// # Errors
///
/// An error of the store. After such an error it is unknown whether the object is there.
pub fn put_once(store: &dyn Store, mut again: Again, name: &str, bytes: &[u8]) -> io::Result<Put> {
    loop {
        let error = match store.put_if_absent(name, bytes) {
            Ok(()) => return Ok(Put::Own),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match store.get(name) {
                Ok(found) if found == bytes => return Ok(Put::Own),
                Ok(found) => return Ok(Put::Taken(found)),
                // An answer from an earlier moment may not show the object yet.
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

/// What is known of one put out of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// This put has made the object.
    Done,
    /// An object has this name already. Another attempt of the same put may have made it.
    Taken,
    /// The store gave no answer.
    Unknown,
}

/// Puts each object if no object has its name. All puts are under way at once. If the store makes the puts one
/// after the other, it begins with the last object.
pub fn put_together(store: &dyn Store, objects: &[(String, Vec<u8>)]) -> Vec<Begun> {
    let (sender, receiver) = mpsc::channel::<(usize, io::Result<()>)>();
    for (place, (name, bytes)) in objects.iter().enumerate().rev() {
        let sender = sender.clone();
        // If the receiver is gone, nobody waits for this put any more.
        let done: PutDone = Box::new(move |put| sender.send((place, put)).unwrap_or_default());
        store.begin_put_if_absent(name, bytes.clone(), done);
    }
    drop(sender);
    let mut begun = vec![Begun::Unknown; objects.len()];
    for (place, put) in receiver {
        begun[place] = match put {
            Ok(()) => Begun::Done,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Begun::Taken,
            Err(_) => Begun::Unknown,
        };
    }
    begun
}
