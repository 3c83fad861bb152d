//! How a caller waits for a request in an event loop of a store. This module does not know what the request is for.

use std::cell::Cell;
use std::io;
use std::sync::mpsc;

thread_local! {
    /// Whether this thread belongs to the event loop of a store.
    static IN_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as one of an event loop.
pub fn begin_thread() {
    IN_LOOP.set(true);
}

/// Runs a request in an event loop and waits for it. The calling thread may itself belong to an event loop, because
/// the end of a read may drop the last reference to a file that is to be removed. It then hands its other tasks to
/// another thread while it waits.
pub fn wait_in<T: Send + 'static>(
    event_loop: &tokio::runtime::Handle,
    request: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    event_loop.spawn(async move {
        // This fails only if the receiver is gone, and then nobody waits for the answer.
        sender.send(request.await).ok();
    });
    let received = if IN_LOOP.get() { tokio::task::block_in_place(|| receiver.recv()) } else { receiver.recv() };
    received.unwrap_or_else(|_| Err(io::Error::other("the event loop ended before the request did")))
}
