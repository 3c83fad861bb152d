//! Reads of the past: versions that a program keeps under a name, the history of a row, and what was committed.
//!
//! [`Database::keep`](crate::Database::keep) gives a name to what reads see now, and
//! [`Database::at`](crate::Database::at) shows it again later, also after a restart.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let db = larch::Database::open(&directory)?;
//! # let fruit = db.table("fruit")?;
//! use larch::Readable;
//!
//! fruit.insert("apple", "green")?;
//! db.keep("before the migration")?;
//! fruit.insert("apple", "red")?;
//!
//! for kept in db.kept() {
//!     let then = db.at(&kept)?;
//!     println!("{}: {} apples", kept.name, then.range(&fruit, "apple".."applf").count());
//! }
//! # assert_eq!(db.at("before the migration")?.get(&fruit, "apple")?.as_deref(), Some(&b"green"[..]));
//! db.forget("before the migration")?;
//! # Ok(())
//! # }
//! ```
//!
//! With [`Database::retain`](crate::Database::retain), a whole stretch of the past is kept. Then
//! [`Database::at`](crate::Database::at) shows the database as of each commit in it,
//! [`Table::history`](crate::Table::history) the values that a row had, and
//! [`Database::changes`](crate::Database::changes) what each commit changed. [`Table::diff`](crate::Table::diff) has the
//! rows in which two versions differ, and [`Table::revert`](crate::Table::revert) goes back to one.
//!
//! With [`Database::subscribe`](crate::Database::subscribe), the database stores how far a reader of the changes has
//! come, and keeps the past for it from there on.

pub use crate::base::kept::{AsOf, Kept};
pub use crate::base::retention::Retention;
pub use crate::base::subscription::{Limits, Subscribed};
pub use crate::changes::{Change, ChangeKind, ChangedParts, Changes};
pub use crate::handle::changes::PastValue;
pub use crate::handle::diff::{Diff, Difference};
pub use crate::handle::subscription::Subscription;
