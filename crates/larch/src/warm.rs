//! Loads pages before a reader asks for them: a range that a caller names, tables that are to be in memory, the pages
//! that were in memory at the last close, and the pages of new files that replace pages in memory. It does not know the
//! policy of the cache.

pub mod heat;
pub mod install;
pub mod job;
pub mod loader;
pub mod state;

#[cfg(test)]
mod tests;
