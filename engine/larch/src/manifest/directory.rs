//! The files in the directory of a database: their names, which code removes files, and what keeps files from
//! being removed. This module does not know what the files contain.

pub mod fresh;
pub mod lease;
pub mod leftovers;
pub mod listing;
pub mod names;
pub mod place;
pub mod position;
