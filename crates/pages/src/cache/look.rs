//! How many pages of a shard, or waiting sessions, are looked at in one go. This module does not know what is
//! sought among these.

/// How many pages of a shard are looked at to find one page to evict. Over all shards, these are at most 16 x 64
/// pages. It is also how many waiting sessions are looked at whenever a turn is taken.
pub const LOOK: usize = 64;
