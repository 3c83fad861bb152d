//! The files in the directory of a database: their names, who removes them, and what keeps them. It does not know what
//! is in them.

pub mod fresh;
pub mod lease;
pub mod leftovers;
pub mod listing;
pub mod names;
pub mod place;
pub mod position;
