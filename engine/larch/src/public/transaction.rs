//! The options of a [`Transaction`](crate::Transaction), and the results of conditional writes.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use larch::transaction::{Isolation, TransactionOptions};
//!
//! let db = larch::Database::open(&directory)?;
//! let accounts = db.table("accounts")?;
//! let options = TransactionOptions { isolation: Isolation::Snapshot, ..Default::default() };
//! let mut transaction = db.begin_with(&options)?;
//! transaction.insert(&accounts, "ada", "100")?;
//! let savepoint = transaction.savepoint();
//! transaction.insert(&accounts, "bob", "50")?;
//! transaction.rollback_to(&savepoint)?;
//! transaction.commit()??;
//! assert_eq!(accounts.len()?, 1);
//! # Ok(())
//! # }
//! ```

pub use crate::handle::attempt::Attempt;
pub use crate::handle::expected::{Expected, Unmet};
pub use crate::handle::transaction::{Isolation, Savepoint, TransactionOptions};
