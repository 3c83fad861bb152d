//! Decides which pages stay in memory. This module does not know what is done with the pages.

/// Decides which pages stay in memory.
pub trait Policy {
    /// Whether the page is in memory.
    fn has(&self, page: u32) -> bool;

    /// Notes that a page in memory is needed.
    fn hit(&mut self, page: u32);

    /// Notes that a page was missing and was read. The page is needed now, or was read ahead.
    fn admit(&mut self, page: u32, is_needed: bool);

    /// Notes that a page no longer exists and does not come back. It may be in memory or not.
    fn remove(&mut self, page: u32);

    /// The bytes of the pages in memory.
    fn bytes(&self) -> u64;

    /// How many pages were looked at for eviction, and how many pages were evicted.
    fn looks(&self) -> (u64, u64);

    /// Whether the policy wants pages to be read before they are needed.
    fn reads_ahead(&self) -> bool {
        true
    }
}
