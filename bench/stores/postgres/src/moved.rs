//! How much a send or a receive has moved, if it does not wait. This module does not know how bytes are moved.

/// The result of a receive or a send, if it does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All bytes were sent, or all bytes that had arrived were received.
    All,
    /// Some bytes were not moved yet: the other side has to take them or send them.
    Part,
}
