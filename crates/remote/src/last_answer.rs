//! The status of the last answer that a task got from a store. It does not know what was asked.

use std::cell::Cell;

tokio::task_local! {
    /// The status of the last answer to a request of this task.
    static LAST_ANSWER: Cell<Option<u16>>;
}

/// The status of the last answer that a task got. The errors of `object_store` contain the status only if they have a
/// kind of their own for it.
pub struct LastAnswer;

impl LastAnswer {
    /// The result of a request, with the status of the last answer to it. There is no status if the request is not
    /// sent by HTTP, or was not answered.
    pub async fn of<T>(request: impl Future<Output = T>) -> (T, Option<u16>) {
        let both = async { (request.await, LAST_ANSWER.with(Cell::get)) };
        LAST_ANSWER.scope(Cell::new(None), both).await
    }

    /// Notes an answer to this task; `None`: the task has sent a request that is not answered yet.
    pub fn note(status: Option<u16>) {
        // A task without a scope belongs to an upload in parts, which learns the status from its policy.
        LAST_ANSWER.try_with(|last| last.set(status)).ok();
    }
}
