//! The interface of an eviction policy.

/// Decides which pages stay in memory.
pub trait Policy {
    /// Whether the page is in memory.
    fn has(&self, page: u32) -> bool;

    /// Notes that a page in memory is needed.
    fn hit(&mut self, page: u32);

    /// Notes that a page was missing and was read. If not `is_needed`, it was read ahead.
    fn admit(&mut self, page: u32, is_needed: bool);

    /// Notes that a page, in memory or not, no longer exists and will not come back.
    fn remove(&mut self, page: u32);

    /// The bytes of the pages in memory.
    fn bytes(&self) -> u64;

    /// The number of pages looked at for eviction, and of pages evicted.
    fn looks(&self) -> (u64, u64);

    /// Whether pages are read ahead under this policy.
    fn reads_ahead(&self) -> bool {
        true
    }
}
