//! The result of a read that may not wait.

use crate::base::error::Result;
use pages::Stop;

/// The result of a read that reads nothing from disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried<T> {
    /// All pages that the read needed were in memory. This is the answer.
    Ready(T),
    /// The read would fault, because a page is not in memory. A read that waits, or a future, loads this page.
    WouldFault,
}

impl<T> Tried<T> {
    /// The answer, if it is known.
    pub fn ready(self) -> Option<T> {
        match self {
            Self::Ready(answer) => Some(answer),
            Self::WouldFault => None,
        }
    }

    /// Whether a page is not in memory.
    pub fn would_fault(&self) -> bool {
        matches!(self, Self::WouldFault)
    }

    /// Changes the answer with `change`, if the answer is known.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Tried<U> {
        match self {
            Self::Ready(answer) => Tried::Ready(change(answer)),
            Self::WouldFault => Tried::WouldFault,
        }
    }

    /// The result of a try form.
    pub(crate) fn of(outcome: Result<T, Stop>) -> Result<Self> {
        match outcome {
            Ok(answer) => Ok(Self::Ready(answer)),
            Err(Stop::Fault) => Ok(Self::WouldFault),
            Err(Stop::Failed(error)) => Err((*error).into()),
        }
    }
}
