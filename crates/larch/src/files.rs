//! Writes new files, installs them in the database, and removes files that nothing needs any more. It does not know what the
//! rows in them mean.

pub mod fresh;
pub mod install;
pub mod leftovers;
pub mod listing;
pub mod origin;
pub mod output;
pub mod place;
pub mod scratch;
pub mod sealed;
