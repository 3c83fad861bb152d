//! What a check has found: the first findings in words, and the number of the others. A database of which everything is
//! wrong takes no more memory than another.

use std::fmt;

/// How many findings have a text.
pub const MOST_FINDINGS: usize = 100;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The condition of clause 3.3.2 that does not hold, from 1 to 12; 0 for all else.
    pub condition: u8,
    /// Where it is, what it is, and what it should be.
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

/// The first findings in the order of warehouses, and the number of the others.
#[derive(Debug, Default)]
pub struct Findings {
    /// Each with its warehouse; at most [`MOST_FINDINGS`].
    first: Vec<(u32, Finding)>,
    more: u64,
}

impl Findings {
    /// Adds one about a warehouse.
    pub fn add(&mut self, warehouse: u32, condition: u8, text: fmt::Arguments<'_>) {
        if self.first.len() < MOST_FINDINGS {
            self.first.push((warehouse, Finding { condition, text: text.to_string() }));
        } else {
            self.more += 1;
        }
    }

    /// Adds those of other warehouses, or later ones of the same.
    pub fn extend(&mut self, other: Self) {
        self.first.extend(other.first);
        // Stable: findings about one warehouse stay in the order in which they were made.
        self.first.sort_by_key(|(warehouse, _)| *warehouse);
        let without_text = self.first.len().saturating_sub(MOST_FINDINGS);
        self.first.truncate(MOST_FINDINGS);
        self.more += other.more + without_text as u64;
    }

    /// The findings, and the number of those left out.
    pub fn into_parts(self) -> (Vec<Finding>, u64) {
        (self.first.into_iter().map(|(_, finding)| finding).collect(), self.more)
    }
}
