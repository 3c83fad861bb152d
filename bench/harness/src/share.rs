//! Divides a run among several processes. A process's share decides which clients, operations and other things it
//! does. Together, the shares do what one process would do. This module knows no workload.

#[cfg(test)]
mod tests;

use crate::client::Workload;
use crate::plan::{Length, Pace, Plan};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The most processes that can do a run together.
pub const MOST_SHARES: usize = 1000;

/// One share of several, written `1/3`, `2/3`, `3/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Share {
    number: usize,
    of: usize,
}

impl Share {
    /// The share that is the whole run.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Share `number` of `of` shares. `number` counts from 0.
    pub fn new(number: usize, of: usize) -> Self {
        assert!(number < of && of <= MOST_SHARES, "a share is one of some");
        Self { number, of }
    }

    /// Its number, counted from 0.
    pub fn number(self) -> usize {
        self.number
    }

    /// The number of shares.
    pub fn of(self) -> usize {
        self.of
    }

    /// Whether the share is the first one. The first share does what has to be done only once.
    pub fn is_first(self) -> bool {
        self.number == 0
    }

    /// Whether it is the only share.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// The share's part of `count` things, as a range of their numbers.
    pub fn stretch(self, count: usize) -> Range<usize> {
        let begin = |number: usize| number * (count / self.of) + number.min(count % self.of);
        begin(self.number)..begin(self.number + 1)
    }

    /// The plan for this share of a run. Each client of the share does the same operations as its counterpart in the
    /// whole run.
    ///
    /// # Errors
    ///
    /// Returns an error if the whole run has fewer clients or operations than shares.
    pub fn plan(self, whole: &Plan) -> Result<Plan, String> {
        let clients = self.stretch(whole.clients);
        if clients.is_empty() {
            return Err(format!("{} clients cannot be shared among {} processes", whole.clients, self.of));
        }
        let length = match whole.length {
            Length::Operations(all) => Length::Operations(dealt(all, whole.clients, &clients)),
            length => length,
        };
        if length == Length::Operations(0) {
            return Err(format!("no operation is left for share {self}: use fewer processes"));
        }
        let pace = match whole.pace {
            Pace::Closed => Pace::Closed,
            Pace::Open { per_second } => {
                Pace::Open { per_second: per_second * clients.len() as f64 / whole.clients as f64 }
            }
        };
        Ok(Plan { clients: clients.len(), length, pace, ..whole.clone() })
    }

    /// This share's part of `workload`. `clients` clients do the whole workload.
    pub fn part<W>(self, workload: &W, clients: usize) -> Part<'_, W> {
        Part { workload, first: self.stretch(clients).start, clients }
    }
}

/// Deals `count` things to `among` receivers in turn. Returns how many things the receivers in `range` get.
pub fn dealt(count: u64, among: usize, range: &Range<usize>) -> u64 {
    let rest = usize::try_from(count % among as u64).expect("it is less than `among`");
    let more = rest.clamp(range.start, range.end) - range.start;
    count / among as u64 * range.len() as u64 + more as u64
}

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.number + 1, self.of)
    }
}

impl From<Share> for String {
    fn from(share: Share) -> Self {
        share.to_string()
    }
}

impl TryFrom<String> for Share {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            let (number, of): (usize, usize) = (number.parse().ok()?, of.parse().ok()?);
            (1..=of).contains(&number).then_some((number, of))
        });
        match numbers {
            Some((number, of)) if of <= MOST_SHARES => Ok(Self::new(number - 1, of)),
            Some(_) => Err(format!("a run has at most {MOST_SHARES} shares")),
            None => Err("a share is its number and how many there are: 1/3, 2/3, 3/3".to_owned()),
        }
    }
}

/// The clients of one share. Each client is the same as in the whole run.
#[derive(Clone, Copy, Debug)]
pub struct Part<'w, W> {
    workload: &'w W,
    first: usize,
    clients: usize,
}

impl<W: Workload> Workload for Part<'_, W> {
    type Client = W::Client;

    fn kinds(&self) -> &'static [&'static str] {
        self.workload.kinds()
    }

    fn counts(&self) -> &'static [&'static str] {
        self.workload.counts()
    }

    fn client(&self, number: usize, _: usize) -> W::Client {
        self.workload.client(self.first + number, self.clients)
    }
}
