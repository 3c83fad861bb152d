//! Puts an object if its name is free. If the name is taken, finds out whether an earlier attempt of this process
//! took it. This module does not know what the bytes mean.

use crate::again::Again;
use os::Store;
use os::store::{PutDone, is_certain};
use std::io::{self, ErrorKind};
use std::sync::mpsc;

/// The outcome of a put.
#[derive(Debug)]
pub enum Put {
    /// The object has the bytes of this put.
    Own,
    /// Another object has the name. These are its bytes.
    Taken(Vec<u8>),
}

/// Puts an object if its name is free. No other process puts the same bytes under this name. So if the store has
/// them already, an earlier attempt of this process has put them, and the answer was lost.
///
/// # Errors
///
/// An error of the store. It is then unknown whether the store has the object.
pub fn put_once(store: &dyn Store, mut again: Again, name: &str, bytes: &[u8]) -> io::Result<Put> {
    loop {
        let error = match store.put_if_absent(name, bytes) {
            Ok(()) => return Ok(Put::Own),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match store.get(name) {
                Ok(found) if found == bytes => return Ok(Put::Own),
                Ok(found) => return Ok(Put::Taken(found)),
                // The name is taken, but the object was not found: the store may have answered with a state from
                // before the put.
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

/// What is known about one of several puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// This put has made the object.
    Done,
    /// The name is taken, perhaps by an earlier attempt of the same put.
    Taken,
    /// The store gave no answer.
    Unknown,
}

/// Puts each object if its name is free, all at the same time. A store that does one put at a time starts with the
/// last object.
pub fn put_together(store: &dyn Store, objects: &[(String, Vec<u8>)]) -> Vec<Begun> {
    let (sender, receiver) = mpsc::channel::<(usize, io::Result<()>)>();
    for (place, (name, bytes)) in objects.iter().enumerate().rev() {
        let sender = sender.clone();
        // This fails only if the receiver is gone, and then nobody waits for this put.
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
