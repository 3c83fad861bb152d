//! The limit for one search: how many pages of a stripe, or how many waiting sessions, it may look at. This module
//! does not know what is sought.

/// How many pages of a stripe are looked at to find one page to evict; a search in all stripes looks at no more
/// than 16 x 64 pages. Whenever a turn is taken, this many waiting sessions are looked at.
pub const LOOK: usize = 64;
