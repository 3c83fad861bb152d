//! The findings of a check: the first ones have a text, and the rest are only counted. So a check needs no more
//! memory if everything in the database is wrong.

use std::fmt;

/// How many findings have a text.
pub const MOST_FINDINGS: usize = 100;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The violated condition of clause 3.3.2, from 1 to 12, or 0 for any other mistake.
    pub condition: u8,
    /// Where the mistake is, what was found there, and what should have been found.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.condition {
            0 => out.write_str(&self.text),
            condition => write!(out, "condition {condition}: {}", self.text),
        }
    }
}

/// The first findings in the order of warehouses, and the number of further findings.
#[derive(Debug, Default)]
pub struct Findings {
    /// The first findings, each with its warehouse; at most [`MOST_FINDINGS`].
    first: Vec<(u32, Finding)>,
    more: u64,
}

impl Findings {
    /// Adds a finding about a warehouse.
    pub fn add(&mut self, warehouse: u32, condition: u8, text: fmt::Arguments<'_>) {
        if self.first.len() < MOST_FINDINGS {
            self.first.push((warehouse, Finding { condition, text: text.to_string() }));
        } else {
            self.more += 1;
        }
    }

    /// Adds findings about other warehouses, or later findings about the same warehouse.
    pub fn extend(&mut self, other: Self) {
        self.first.extend(other.first);
        // The sort is stable, so findings about one warehouse stay in the order in which they were made.
        self.first.sort_by_key(|(warehouse, _)| *warehouse);
        let without_text = self.first.len().saturating_sub(MOST_FINDINGS);
        self.first.truncate(MOST_FINDINGS);
        self.more += other.more + without_text as u64;
    }

    /// The findings that have a text, and the number of further findings.
    pub fn into_parts(self) -> (Vec<Finding>, u64) {
        (self.first.into_iter().map(|(_, finding)| finding).collect(), self.more)
    }
}
