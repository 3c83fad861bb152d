//! How far a send or receive that does not wait got. This module does not know how bytes are moved.

/// The result of a send or receive that does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All bytes were sent, or all bytes that had arrived were received.
    All,
    /// Some bytes may be left, until the other side takes or sends them.
    Part,
}
