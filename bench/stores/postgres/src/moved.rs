//! How far a send or a receive came that does not wait. This module does not know how bytes are moved.

/// The result of a receive or a send that does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All bytes were received that had come, or all bytes were sent.
    All,
    /// Some bytes are missing: the other side has to take or bring more.
    Part,
}
