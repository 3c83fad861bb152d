//! Bringing pages to memory before they are asked for: a range that a caller names, tables that are to be in memory, what
//! was in memory when the database was closed, and for new files what was in memory of the files that they replace.

pub mod heat;
pub mod install;
pub mod job;
pub mod loader;
pub mod requests;
pub mod state;

#[cfg(test)]
mod tests;
