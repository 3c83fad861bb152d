//! Clients that fill the table.

#[cfg(test)]
mod tests;

use crate::draw::Values;
use crate::key::KeyNames;
use crate::kinds;
use crate::random::Random;
use crate::settings::Settings;
use crate::value::Text;
use harness::{Client, Extra, Failure, Kind, Next, Outcome, Reply, Request, Rows, Strings, Workload};

/// The load of a workload: the `insertcount` records from `insertstart` on.
pub struct Load {
    values: Values,
    key_names: KeyNames,
    seed: u64,
    start: i64,
    span: i64,
    retries: u32,
    retry_nanos: f64,
}

impl Load {
    /// The load that `settings` describes. Random values are drawn from `seed`.
    pub fn new(settings: &Settings, seed: u64) -> Load {
        let Settings { records, operations, .. } = settings;
        Load {
            values: Values::new(records),
            key_names: records.key_names,
            seed,
            start: records.start,
            span: records.span,
            retries: operations.insert_retries,
            retry_nanos: f64::from(operations.insert_retry_seconds) * 1e9,
        }
    }

    /// The number of records to load.
    pub fn records(&self) -> u64 {
        self.span.unsigned_abs()
    }

    /// All records in key order, for stores that load rows in key order. The function first sorts all keys, which
    /// takes 16 bytes of memory for each key.
    pub fn in_order(&self) -> LoadRows {
        let names = self.key_names;
        let mut order: Vec<(u64, i64)> =
            (self.start..self.start + self.span).map(|number| (names.rank(number).0, number)).collect();
        order.sort_unstable_by_key(|(rank, number)| (*rank, names.rank(*number).1));
        LoadRows { values: self.values.clone(), draws: Draws::new(self.seed, 0), order: order.into_iter() }
    }
}

impl Workload for Load {
    type Client = LoadClient;

    fn kinds(&self) -> &'static [&'static str] {
        kinds::NAMES
    }

    fn client(&self, number: usize, clients: usize) -> LoadClient {
        LoadClient {
            values: self.values.clone(),
            draws: Draws::new(self.seed, number as u64),
            // Each of n clients takes every n-th record, so all clients reach the end of the range at about the
            // same time.
            next: self.start + number as i64,
            step: clients as i64,
            left: share(self.records(), number, clients),
            key: Vec::new(),
            record: Strings::new(),
            attempts: 0,
            retries: self.retries,
            retry_nanos: self.retry_nanos,
        }
    }
}

/// The part of `count` things that client `number` of `clients` does.
fn share(count: u64, number: usize, clients: usize) -> u64 {
    let (number, clients) = (number as u64, clients as u64);
    count / clients + u64::from(number < count % clients)
}

/// The random numbers and texts from which values are drawn.
struct Draws {
    random: Random,
    text: Text,
}

impl Draws {
    fn new(seed: u64, client: u64) -> Draws {
        Draws { random: Random::of_client(seed, client), text: Text::of_client(seed, client) }
    }
}

/// A client of the load, which inserts its part of the records.
pub struct LoadClient {
    values: Values,
    draws: Draws,
    next: i64,
    step: i64,
    left: u64,
    key: Vec<u8>,
    record: Strings,
    /// How many attempts at the current record have failed.
    attempts: u32,
    retries: u32,
    retry_nanos: f64,
}

impl Client for LoadClient {
    #[inline]
    fn begin(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.values.key(self.next, &mut self.key);
        self.values.fill(&self.key, &mut self.draws.random, &mut self.draws.text, &mut self.record);
        self.next += self.step;
        self.attempts = 0;
        true
    }

    #[inline]
    fn request(&mut self) -> (Kind, Request<'_>) {
        (kinds::INSERT, Request::Insert { key: &self.key, record: &self.record })
    }

    #[inline]
    fn served(&mut self, result: Result<Outcome, &Failure>, _: &Reply, extra: &mut Extra<'_>) -> Next {
        match result {
            Ok(_) => Next::Done,
            Err(_) if self.attempts < self.retries => {
                self.attempts += 1;
                extra.retry();
                // The wait is 0.8 to 1.2 times the interval, as in the original.
                Next::Wait((self.retry_nanos * (0.8 + 0.4 * self.draws.random.double())) as u64)
            }
            Err(_) => Next::Failed,
        }
    }
}

/// All records in key order.
pub struct LoadRows {
    values: Values,
    draws: Draws,
    order: std::vec::IntoIter<(u64, i64)>,
}

impl Rows for LoadRows {
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
        let Some((_, number)) = self.order.next() else { return false };
        self.values.key(number, key);
        self.values.fill(key, &mut self.draws.random, &mut self.draws.text, record);
        true
    }
}
