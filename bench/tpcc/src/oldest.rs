//! Remembers for each district where its oldest undelivered order is. A delivery looks for the first row of a
//! district in `new_order`. A log-structured engine keeps a tombstone for each removed row, and a search from the
//! beginning of the district would read them all. Order numbers only rise, and a delivered order stays delivered, so
//! a search can begin at the order that the previous search in the district found.

use crate::transactions::DistrictId;
use std::collections::HashMap;

/// What one session has seen: for each district, the oldest order.
#[derive(Clone, Debug, Default)]
pub struct Oldest(HashMap<DistrictId, u32>);

impl Oldest {
    /// The least number that an undelivered order of a district can have.
    pub fn least(&self, of: DistrictId) -> u32 {
        self.0.get(&of).copied().unwrap_or(0)
    }

    /// Notes that `order` was the oldest undelivered order in the committed rows.
    pub fn note(&mut self, of: DistrictId, order: u32) {
        self.0.insert(of, order);
    }
}
