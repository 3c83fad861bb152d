//! Loads pages before a reader asks for them: the pages of a range that a caller names, of tables that are kept in
//! memory, of the last close's warm state, and of new files that replace pages in memory. This module does not know
//! the eviction policy of the cache.

pub mod heat;
pub mod install;
pub mod job;
pub mod loader;
pub mod state;

#[cfg(test)]
mod tests;
