//! What comes of a read that may not wait.

use crate::error::Result;
use pages::Stop;

/// What a read came to that touches no disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried<T> {
    /// All that it needed was in memory: this is the answer.
    Ready(T),
    /// It would fault: something is not in memory. A read that waits, or a future, brings it.
    WouldFault,
}

impl<T> Tried<T> {
    /// The answer, if there is one.
    pub fn ready(self) -> Option<T> {
        match self {
            Self::Ready(answer) => Some(answer),
            Self::WouldFault => None,
        }
    }

    /// Whether something is not in memory.
    pub fn would_fault(&self) -> bool {
        matches!(self, Self::WouldFault)
    }

    /// What `change` makes of the answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Tried<U> {
        match self {
            Self::Ready(answer) => Tried::Ready(change(answer)),
            Self::WouldFault => Tried::WouldFault,
        }
    }

    /// What a try form came to.
    pub(crate) fn of(outcome: Result<T, Stop>) -> Result<Self> {
        match outcome {
            Ok(answer) => Ok(Self::Ready(answer)),
            Err(Stop::Fault) => Ok(Self::WouldFault),
            Err(Stop::Failed(error)) => Err((*error).into()),
        }
    }
}
