//! Bulk loads: rows go straight into sorted files, without the log and the write buffer.
//!
//! [`Table::import`](crate::Table::import) takes rows in any order and sorts them.
//! [`Builder::build_files`](crate::Builder::build_files) builds files for a table without a database, on any machine,
//! and [`Table::ingest`](crate::Table::ingest) makes them part of a table without reading a row. Readers of the table
//! see either all rows of a load or none.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let db = larch::Database::open(&directory)?;
//! let squares = db.table("squares")?;
//! let mut import = squares.import()?;
//! for i in 0..1000_u32 {
//!     import.add(&i.to_be_bytes(), (i * i).to_string().as_bytes())?;
//! }
//! let report = import.finish(|_| {})?;
//! assert_eq!((report.rows, squares.get(31_u32.to_be_bytes())?.as_deref()), (1000, Some(&b"961"[..])));
//! # Ok(())
//! # }
//! ```

pub use crate::import::Import;
pub use crate::import::built::builder::FileBuilder;
pub use crate::import::built::directory::BuiltFiles;
pub use crate::import::built::ingest::{IngestOptions, IngestReport};
pub use crate::import::sort::ImportReport;
