//! How many pages of a shard, or waiting sessions, are looked at in one go. This module does not know what is sought
//! among them.

/// How many pages of a shard are looked at to find one page to evict: over all shards, at most 16 x 64. It is also
/// how many waiting sessions are looked at for each turn that is taken.
pub const LOOK: usize = 64;
