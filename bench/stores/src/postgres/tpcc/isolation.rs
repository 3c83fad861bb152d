//! The isolation levels of transactions. This module does not know which one a target asks for.

use crate::postgres::dialect::Dialect;

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

impl Dialect {
    /// The statement that serializes the deliveries of a warehouse, or `None` if the isolation level does not need
    /// it. At read committed, a delivery that waited for another one would still see the orders from before the
    /// wait: it would find no order, although a next one exists.
    pub fn delivery_lock(&self, isolation: Isolation) -> Option<&'static str> {
        (isolation == Isolation::ReadCommitted).then_some(self.delivery_lock)
    }
}
