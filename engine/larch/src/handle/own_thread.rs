//! Runs long work on a separate thread while a task awaits it.

use crate::base::error::{Error, Result};
use os::Threads;
use os::sync::{Arc, Mutex};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// What the thread and the task share.
struct Shared<T> {
    done: Option<T>,
    has_ended: bool,
    waker: Option<Waker>,
}

/// Wakes the task when it is dropped: the thread has ended, perhaps with a panic.
struct Ends<T>(Arc<Mutex<Shared<T>>>);

impl<T> Drop for Ends<T> {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.has_ended = true;
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Runs `work` on a thread of its own, and returns its result. If the future is dropped, the thread still finishes
/// the work.
///
/// # Errors
///
/// Fails with [`Error::WritesStopped`] if the work panicked.
pub async fn in_thread<T: Send + 'static>(
    threads: &dyn Threads,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let shared = Arc::new(Mutex::new(Shared { done: None, has_ended: false, waker: None }));
    let ends = Ends(shared.clone());
    threads.in_thread(Box::new(move || {
        let done = work();
        ends.0.lock().done = Some(done);
    }));
    poll_fn(|context| {
        let mut shared = shared.lock();
        if shared.has_ended {
            let panicked = || Error::WritesStopped("a commit panicked; its message is on standard error".to_owned());
            return Poll::Ready(shared.done.take().ok_or_else(panicked));
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await
}
