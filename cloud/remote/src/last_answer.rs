//! The status of the last answer that a task got from a store. This module does not know what was asked.

use std::cell::Cell;

tokio::task_local! {
    /// The status of the last answer to a request of this task.
    static LAST_ANSWER: Cell<Option<u16>>;
}

/// Notes the status of a task's last answer. An error of `object_store` has the status only if `object_store` has a
/// kind of error for that status alone.
pub struct LastAnswer;

impl LastAnswer {
    /// The result of a request, with the status of its last answer; `None` if the request is not sent by HTTP, or
    /// was not answered.
    pub async fn of<T>(request: impl Future<Output = T>) -> (T, Option<u16>) {
        let both = async { (request.await, LAST_ANSWER.with(Cell::get)) };
        LAST_ANSWER.scope(Cell::new(None), both).await
    }

    /// Notes the status of an answer to this task, or `None` for a request that is not answered yet.
    pub fn note(status: Option<u16>) {
        // A task without a scope sends a part of an upload. The upload learns the status from its retry policy.
        LAST_ANSWER.try_with(|last| last.set(status)).ok();
    }
}
