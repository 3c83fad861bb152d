//! How many pages of a shard, or sessions that wait, are looked at in one go. It does not know what is sought among
//! them.

/// Pages of a shard looked at for one page to evict, over all shards at most 16 x 64; and sessions that wait looked at
/// for each turn that is taken.
pub const LOOK: usize = 64;
