//! The requests to a store, the bytes moved, and what both cost at given prices. This module does not know who makes
//! the requests.

use std::fmt;
use std::iter::Sum;

/// Requests by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Puts of objects and of their parts, and the beginnings and ends of multipart uploads.
    pub puts: u64,
    /// Reads of ranges of objects, and queries about objects.
    pub gets: u64,
    /// Pages of listings.
    pub lists: u64,
    /// Objects removed.
    pub deletes: u64,
}

/// The traffic of a store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests. For a store over HTTP, each attempt that was sent counts. For other stores, each call counts.
    pub requests: Requests,
    /// Repeated attempts after an error. Attempts that a store makes for other reasons count in `requests` only.
    pub retries: u64,
    /// Bytes of objects read.
    pub read_bytes: u64,
    /// Bytes of objects written.
    pub written_bytes: u64,
}

/// What requests to a store cost, in any currency, without the cost of storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// The price of a thousand puts or listings.
    pub thousand_puts: f64,
    /// The price of a thousand gets.
    pub thousand_gets: f64,
    /// The price of a gigabyte (10^9 bytes) that is read and leaves the provider.
    pub gigabyte_read: f64,
}

impl Price {
    /// The prices of S3 Standard in the region us-east-1 in 2026, in dollars, for reads from within the region.
    pub const S3_STANDARD: Price = Price { thousand_puts: 0.005, thousand_gets: 0.0004, gigabyte_read: 0.0 };
}

/// What requests have cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The cost of puts and listings.
    pub puts: f64,
    /// The cost of gets.
    pub gets: f64,
    /// The cost of bytes read.
    pub bytes: f64,
}

impl Cost {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.puts + self.gets + self.bytes
    }
}

/// The traffic of a store since it was opened, and its prices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bill {
    /// The traffic.
    pub counts: Counts,
    /// The prices, if they are known.
    pub price: Option<Price>,
}

impl Bill {
    /// The cost in billionths of the currency of the prices. `None` if the prices are not known.
    pub fn billionths(&self) -> Option<u64> {
        Some((self.counts.cost(&self.price?).total() * 1e9).round() as u64)
    }
}

impl Requests {
    /// The number of all requests.
    pub fn total(&self) -> u64 {
        self.puts + self.gets + self.lists + self.deletes
    }
}

impl Counts {
    /// What the traffic costs at a price. Deletes are free with the providers that we know.
    pub fn cost(&self, price: &Price) -> Cost {
        let thousands = |count: u64| count as f64 / 1000.0;
        Cost {
            puts: thousands(self.requests.puts + self.requests.lists) * price.thousand_puts,
            gets: thousands(self.requests.gets) * price.thousand_gets,
            bytes: self.read_bytes as f64 / 1e9 * price.gigabyte_read,
        }
    }

    /// The traffic since `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let (now, then) = (&self.requests, &earlier.requests);
        Counts {
            requests: Requests {
                puts: now.puts - then.puts,
                gets: now.gets - then.gets,
                lists: now.lists - then.lists,
                deletes: now.deletes - then.deletes,
            },
            retries: self.retries - earlier.retries,
            read_bytes: self.read_bytes - earlier.read_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
        }
    }
}

/// The traffic of several stores.
impl Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(all: I) -> Counts {
        all.fold(Counts::default(), |sum, one| Counts {
            requests: Requests {
                puts: sum.requests.puts + one.requests.puts,
                gets: sum.requests.gets + one.requests.gets,
                lists: sum.requests.lists + one.requests.lists,
                deletes: sum.requests.deletes + one.requests.deletes,
            },
            retries: sum.retries + one.retries,
            read_bytes: sum.read_bytes + one.read_bytes,
            written_bytes: sum.written_bytes + one.written_bytes,
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requests { puts, gets, lists, deletes } = self.requests;
        write!(
            f,
            "{puts} puts, {gets} gets, {lists} lists, {deletes} deletes, {} retries; {} bytes read, {} written",
            self.retries, self.read_bytes, self.written_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_requests_and_bytes_at_their_price() {
        let requests = Requests { puts: 2000, gets: 10_000, lists: 1000, deletes: 7 };
        let counts = Counts { requests, retries: 3, read_bytes: 5_000_000_000, written_bytes: 1 };
        let price = Price { thousand_puts: 0.005, thousand_gets: 0.0004, gigabyte_read: 0.09 };
        let cost = counts.cost(&price);
        assert!((cost.puts - 0.015).abs() < 1e-9 && (cost.gets - 0.004).abs() < 1e-9, "{cost:?}");
        assert!((cost.total() - 0.469).abs() < 1e-9, "{cost:?}");
        assert_eq!(counts.since(&counts), Counts::default());
        let two: Counts = [counts, counts].into_iter().sum();
        assert_eq!(two.since(&counts), counts);
        assert_eq!(requests.total(), 13_007);
        assert_eq!(Bill { counts, price: Some(price) }.billionths(), Some(469_000_000));
        assert_eq!(Bill { counts, price: None }.billionths(), None);
    }
}
