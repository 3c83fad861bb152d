//! New files and their way into the database, and the removal of those that nothing needs any more.

pub mod fresh;
pub mod install;
pub mod leftovers;
pub mod origin;
pub mod output;
