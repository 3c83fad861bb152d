//! How transactions are kept apart. This module does not know which level a target asks for.

/// How transactions are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Transactions see each other's effects as if the transactions ran one after the other.
    Serializable,
    /// Each transaction sees one moment.
    RepeatableRead,
    /// Each statement sees one moment.
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
