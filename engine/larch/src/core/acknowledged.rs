//! The positions of subscriptions that the manifest does not have yet. This module writes nothing.

use crate::base::subscription::SubscriptionId;
use sst::Version;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was acknowledged since the manifest was last told.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// The positions.
    pub positions: BTreeMap<SubscriptionId, Version>,
    /// Since when there are some, by the clock of the machine.
    pub since: Duration,
    /// Files with smaller numbers were written before a subscription let go because of its bytes, and may still have
    /// what only it held. They are not counted for others.
    pub counted_from: u64,
}

impl Acknowledged {
    /// Notes that `id` is at `position`, `now`. Returns whether nothing was noted before.
    pub fn note(&mut self, id: SubscriptionId, position: Version, now: Duration) -> bool {
        let is_first = self.positions.is_empty();
        if is_first {
            self.since = now;
        }
        let noted = self.positions.entry(id).or_insert(position);
        *noted = position.max(*noted);
        is_first
    }
}
