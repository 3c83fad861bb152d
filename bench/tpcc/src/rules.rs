//! Decides how terminals work: as the specification says, or as in other programs.

use crate::input::{Drawing, Transaction};
use crate::random::Stream;

#[cfg(test)]
mod tests;

/// How terminals work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As the specification says.
    Spec,
    /// Terminals work as the specification says, but they do not wait.
    NoWait,
    /// As in BenchBase.
    Benchbase,
    /// As in the driver of HammerDB.
    Hammerdb,
    /// As in YDB's own command.
    Ydb,
}

impl Mode {
    /// All modes, with their names.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Spec, "spec"),
        (Self::NoWait, "nowait"),
        (Self::Benchbase, "compat-benchbase"),
        (Self::Hammerdb, "compat-hammerdb"),
        (Self::Ydb, "compat-ydb"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(mode, _)| *mode == self);
        named.map_or("", |(_, name)| name)
    }

    /// Whether terminals wait between transactions.
    pub fn waits(self) -> bool {
        matches!(self, Self::Spec | Self::Ydb)
    }

    /// Whether transactions are drawn from a deck of cards. Otherwise they are drawn at random with weights.
    pub fn has_deck(self) -> bool {
        matches!(self, Self::Spec | Self::NoWait)
    }

    /// Whether a terminal goes on while its delivery is still being carried out.
    pub fn defers_delivery(self) -> bool {
        self == Self::Spec
    }

    /// Whether customers and items are drawn evenly.
    pub fn is_even(self) -> bool {
        self == Self::Hammerdb
    }

    /// Whether a terminal asks for the stock level of its own district only.
    pub fn has_own_district(self) -> bool {
        self != Self::Ydb
    }

    /// The ways in which a run in this mode differs from the specification, each as a sentence.
    pub fn deviations(self) -> Vec<&'static str> {
        let mut deviations = Vec::new();
        if !self.waits() {
            deviations.push("terminals wait for neither keying nor thinking (clause 5.2.5)");
        }
        if self == Self::Ydb {
            deviations.push("thinking takes the same time always (clause 5.2.5.4 wants an exponential distribution)");
        }
        if !self.has_deck() {
            deviations.push("transactions are drawn by weights, so that their shares are those of the specification only on average");
        }
        if !self.defers_delivery() {
            deviations.push("a terminal waits until its delivery is carried out (clause 2.7.2 defers it)");
        } else {
            deviations.push("a terminal waits for its deferred delivery if that takes longer than it thinks");
        }
        if self.is_even() {
            deviations.push("customers and items are drawn evenly (clause 2.1.6 wants some of them more often)");
        }
        if !self.has_own_district() {
            deviations.push(
                "the district whose stock is looked at is drawn each time (clause 2.8.1.1 fixes it for a terminal)",
            );
        }
        deviations.push("terminals are not emulated: nothing is displayed, and a menu takes no time");
        deviations.push("the interval is shorter than 120 minutes, unless a longer one was asked for (clause 5.5.2.1)");
        deviations
    }
}

/// The number of cards or the weight of each transaction, in the order of [`Transaction::ALL`].
pub type Shares = [u8; 5];

/// The cards in a deck, by clause 5.2.4.2.
const DECK: Shares = [10, 10, 1, 1, 1];

/// The weights that YDB and BenchBase use.
const WEIGHTS: Shares = [45, 43, 4, 4, 4];

/// The rules by which terminals work.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The mode in which the terminals work.
    pub mode: Mode,
    /// What is needed to draw inputs.
    pub drawing: Drawing,
}

/// Three times in milliseconds for each transaction, in the order of [`Transaction::ALL`]: the keying time, the mean
/// thinking time, and the response time that 90 % of the transactions must not exceed (clauses 5.2.5.7 and 2.7.2.3).
pub const TIMES: [(u64, u64, u64); 5] = [
    (18_000, 12_000, 5_000),
    (3_000, 12_000, 5_000),
    (2_000, 10_000, 5_000),
    // For deliveries, the limit of the response time applies to the deferred part.
    (2_000, 5_000, 80_000),
    (2_000, 5_000, 20_000),
];

const NANOS_OF_MILLI: u64 = 1_000_000;

impl Rules {
    /// Draws the next transaction. If transactions are drawn from a deck, `left` contains the cards that are left.
    /// When no card is left, the deck is shuffled again.
    pub fn next(&self, stream: &mut Stream, left: &mut Shares) -> Transaction {
        let shares = match self.mode {
            Mode::Benchbase | Mode::Ydb => &WEIGHTS,
            Mode::Hammerdb => &DECK,
            Mode::Spec | Mode::NoWait => {
                // Drawing cards at random without putting them back is the same as taking them from a shuffled
                // deck.
                if *left == [0; 5] {
                    *left = DECK;
                }
                &*left
            }
        };
        let sum = shares.iter().map(|share| u32::from(*share)).sum();
        let mut drawn = stream.between(1, sum);
        let number = shares.iter().position(|share| {
            let is_it = drawn <= u32::from(*share);
            drawn = drawn.saturating_sub((*share).into());
            is_it
        });
        let number = number.expect("what is drawn is within the sum");
        if self.mode.has_deck() {
            left[number] -= 1;
        }
        Transaction::ALL[number]
    }

    /// How long a terminal takes to key in `next`, in nanoseconds.
    pub fn keying(&self, next: Transaction) -> u64 {
        if self.mode.waits() { TIMES[next as usize].0 * NANOS_OF_MILLI } else { 0 }
    }

    /// How long a terminal thinks after `last`, in nanoseconds.
    pub fn thinking(&self, last: Transaction, stream: &mut Stream) -> u64 {
        let mean = TIMES[last as usize].1 * NANOS_OF_MILLI;
        match self.mode {
            Mode::NoWait | Mode::Benchbase | Mode::Hammerdb => 0,
            Mode::Ydb => mean,
            Mode::Spec => {
                // 0 < u <= 1.
                let u = ((stream.word() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                ((mean as f64 * -u.ln()) as u64).min(10 * mean)
            }
        }
    }
}
