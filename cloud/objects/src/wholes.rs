//! Reads many small objects at once, each as a whole. This module does not know what their bytes mean.

use os::Store;
use os::store::RangeDone;
use std::io;
use std::sync::mpsc;

/// How many bytes the first request for an object asks for. An object that fills the answer may be longer, and is
/// requested as a whole.
pub const FIRST_BYTES: u64 = 256 << 10;

/// The most reads that one caller has under way, so that even ten thousand small objects need at most this many
/// connections.
pub const READS_UNDER_WAY: usize = 64;

/// Reads objects. A read that the store drops without an answer gives an error for its object.
pub fn read_each(store: &dyn Store, names: &[String]) -> Vec<io::Result<Vec<u8>>> {
    let given_up = || Err(io::Error::other("the read was given up"));
    let mut reads: Vec<io::Result<Vec<u8>>> = names.iter().map(|_| given_up()).collect();
    let (sender, receiver) = mpsc::channel::<(usize, io::Result<Vec<u8>>)>();
    for (place, name) in names.iter().enumerate() {
        if place >= READS_UNDER_WAY {
            let (place, read) = receiver.recv().expect("there is a sender here");
            reads[place] = read;
        }
        let sender = sender.clone();
        let done: RangeDone = Box::new(move |read| {
            // This fails only if the receiver is gone, and then nobody waits for this read.
            sender.send((place, read.map(<[_]>::concat))).ok();
        });
        store.begin_read(name, 0..FIRST_BYTES, done);
    }
    drop(sender);
    for (place, read) in receiver {
        reads[place] = read;
    }
    let is_cut = |read: &io::Result<Vec<u8>>| matches!(read, Ok(bytes) if bytes.len() as u64 >= FIRST_BYTES);
    for (read, name) in reads.iter_mut().zip(names).filter(|(read, _)| is_cut(read)) {
        *read = store.get(name);
    }
    reads
}
