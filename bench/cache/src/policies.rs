//! The policies that are compared, each in its simplest form. Pages of a trace have numbers. A policy keeps its
//! knowledge about pages in tables that have an entry for each page of the trace. A real cache could not afford
//! this.

mod clock;
mod larch;
mod line;
mod lru;
mod opt;
mod s3_fifo;
mod tiny_lfu;

use crate::policy::Policy;
use crate::recorded::{Page, Recorded};
use ::pages::policy::Tuning;

/// One of the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The policy of Larch's own cache.
    Larch(Tuning),
    /// LRU: least recently used.
    Lru,
    /// CLOCK with a heat for each page. Index pages are hotter than data pages. The cache had this policy earlier.
    Clock,
    /// S3-FIFO.
    S3Fifo,
    /// W-TinyLFU.
    TinyLfu,
    /// The policy that knows the future.
    Opt,
}

impl Kind {
    /// All policies that are compared.
    pub const ALL: [Self; 6] =
        [Self::Larch(Tuning::DEFAULT), Self::Lru, Self::Clock, Self::S3Fifo, Self::TinyLfu, Self::Opt];

    /// The usual name of the policy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Larch(_) => "Larch",
            Self::Lru => "LRU",
            Self::Clock => "clock",
            Self::S3Fifo => "S3-FIFO",
            Self::TinyLfu => "W-TinyLFU",
            Self::Opt => "OPT",
        }
    }

    /// Makes the policy, for the pages of a trace. It may hold `budget` bytes.
    pub fn policy(self, recorded: &Recorded, budget: u64) -> Box<dyn Policy + '_> {
        let pages = &recorded.pages[..];
        match self {
            Self::Larch(tuning) => Box::new(larch::Larch::new(pages, budget, tuning)),
            Self::Lru => Box::new(lru::Lru::new(pages, budget)),
            Self::Clock => Box::new(clock::Clock::new(pages, budget)),
            Self::S3Fifo => Box::new(s3_fifo::S3Fifo::new(pages, budget)),
            Self::TinyLfu => Box::new(tiny_lfu::TinyLfu::new(pages, budget)),
            Self::Opt => Box::new(opt::Opt::new(recorded, budget)),
        }
    }
}

fn bytes_of(pages: &[Page], page: u32) -> u64 {
    pages[page as usize].bytes.into()
}
