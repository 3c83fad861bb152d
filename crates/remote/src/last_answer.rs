//! The status of the last answer that a task got from a store. It does not know what was asked.

use std::cell::Cell;

tokio::task_local! {
    /// The status of the last answer to a request of this task.
    static LAST_ANSWER: Cell<Option<u16>>;
}

/// The status of the last answer that a task got. The errors of `object_store` have it only where they have a kind of
/// its own for it.
pub struct LastAnswer;

impl LastAnswer {
    /// What a request brings, with the status of the last answer to it; none if it is not sent by HTTP, or was not
    /// answered.
    pub async fn of<T>(request: impl Future<Output = T>) -> (T, Option<u16>) {
        let both = async { (request.await, LAST_ANSWER.with(Cell::get)) };
        LAST_ANSWER.scope(Cell::new(None), both).await
    }

    /// Takes note of an answer to this task; `None`: a request of it was sent and is not answered yet.
    pub fn note(status: Option<u16>) {
        // A task without a scope is one of an upload in parts, which learns the status from its policy.
        LAST_ANSWER.try_with(|last| last.set(status)).ok();
    }
}
