//! How transactions are kept apart. It does not know which a target asks for.

/// How transactions are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Transactions see each other as if they came one after the other.
    Serializable,
    /// Each sees one moment.
    RepeatableRead,
    /// Each statement sees one moment.
    ReadCommitted,
}

impl Isolation {
    /// Its name in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Serializable => "serializable",
            Self::RepeatableRead => "repeatable read",
            Self::ReadCommitted => "read committed",
        }
    }
}
