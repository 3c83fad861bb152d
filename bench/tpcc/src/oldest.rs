//! Where the oldest orders are that are not delivered. A delivery looks for the first row of a district in `new_order`.
//! A log-structured engine keeps a mark for each row that was removed, and a search from the beginning reads all these
//! marks. Numbers of orders only rise, and what was delivered stays delivered, so a search may begin at the order that
//! the last one has found.

use crate::transactions::DistrictId;
use std::collections::HashMap;

/// What one session has seen.
#[derive(Clone, Debug, Default)]
pub struct Oldest(HashMap<DistrictId, u32>);

impl Oldest {
    /// The least number that an order of a district can have which is not delivered.
    pub fn least(&self, of: DistrictId) -> u32 {
        self.0.get(&of).copied().unwrap_or(0)
    }

    /// Notes that `order` was the oldest one in what is committed.
    pub fn note(&mut self, of: DistrictId, order: u32) {
        self.0.insert(of, order);
    }
}
