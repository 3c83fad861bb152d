//! Loads pages before a reader asks for them. It loads four kinds of pages: the pages of a range that a caller
//! names, the pages of tables that are to be in memory, pages that were in memory at the last close, and pages of
//! new files that replace pages in memory. This module does not know the eviction policy of the cache.

pub mod heat;
pub mod install;
pub mod job;
pub mod loader;
pub mod state;

#[cfg(test)]
mod tests;
