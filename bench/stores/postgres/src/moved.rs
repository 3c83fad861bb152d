//! How far bytes came that are sent or received without waiting. It does not know how they go.

/// What a receive or a send that does not wait came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All that was there, or was to go.
    All,
    /// Not all: the other side has to take or bring more.
    Part,
}
