//! Explains how a read came to its answer: which files it looked into, which pages it visited, and why it skipped the
//! other files.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use larch::explain::Explained;
//!
//! let db = larch::Database::open(&directory)?;
//! let fruit = db.table("fruit")?;
//! fruit.insert("apple", "red")?;
//! db.flush()?;
//! let explanation = fruit.explain_get("apple")?;
//! assert_eq!(explanation.answer, Explained::Found { value_bytes: 3 });
//! println!("{explanation}"); // each file that was looked into or passed by, and why
//! # Ok(())
//! # }
//! ```

pub use crate::handle::explain::{
    Explained, ExplainedByIndex, ExplainedFile, ExplainedLevel, ExplainedPages, ExplainedStore, Explanation, PageFound,
    PageVisit, Verdict,
};
