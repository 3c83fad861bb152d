//! The isolation levels of transactions. This module does not know which one a target asks for.

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Transactions behave as if they ran one after the other.
    Serializable,
    /// Each transaction reads from one snapshot.
    RepeatableRead,
    /// Each statement reads from its own snapshot.
    ReadCommitted,
}

impl Isolation {
    /// The name of the level in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Serializable => "serializable",
            Self::RepeatableRead => "repeatable read",
            Self::ReadCommitted => "read committed",
        }
    }
}
