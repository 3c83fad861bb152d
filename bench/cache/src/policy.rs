//! What decides which pages stay in memory. It does not know what is done with them.

/// Decides which pages stay.
pub trait Policy {
    /// Whether the page is in memory.
    fn has(&self, page: u32) -> bool;

    /// A page in memory is needed.
    fn hit(&mut self, page: u32);

    /// A page that is missing was read, because it is needed or ahead.
    fn admit(&mut self, page: u32, is_needed: bool);

    /// A page is gone, and does not come back. It may be in memory or not.
    fn remove(&mut self, page: u32);

    /// Bytes in memory.
    fn bytes(&self) -> u64;

    /// Pages looked at to find those that went, and how many went.
    fn looks(&self) -> (u64, u64);

    /// Whether it wants pages ahead of their need.
    fn reads_ahead(&self) -> bool {
        true
    }
}
