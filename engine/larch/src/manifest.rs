//! Which files exist: an immutable [`FileSet`], the edits that lead from one file set to the next, and the log that
//! stores the edits. Only the modules in this folder make file sets from edits; an open makes an empty file set, and
//! a repair makes one from the files that it finds. These modules do not know what the files contain.

pub mod db_file;
pub mod directory;
pub mod edit;
pub mod file_set;
pub mod level_bounds;
pub mod log;
pub mod new_files;
pub mod origin;
pub mod table_files;
pub mod table_pasts;
pub mod tables;
pub mod tail;
pub mod times;

pub use db_file::DbFile;
pub use edit::{Edit, NewFile};
pub use file_set::FileSet;
pub use log::ManifestLog;
pub use table_files::{Level, TableFiles};
pub use tail::ManifestTail;
