//! Reads of the past: versions that a program keeps under a name.
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

pub use crate::base::kept::{AsOf, Kept};
pub use crate::base::retention::Retention;
