//! The policies that are compared, each in its simplest form. The pages of a trace are numbered, and a policy keeps
//! its state in arrays with an entry for every page of the trace, which a real cache could not afford.

mod clock;
mod larch;
mod line;
mod lru;
mod opt;
mod s3_fifo;
mod tiny_lfu;

use crate::cache::policy::Policy;
use crate::cache::recorded::{Page, Recorded};
use ::pages::policy::Tuning;

/// One of the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The policy of Larch's own cache.
    Larch(Tuning),
    /// LRU: least recently used.
    Lru,
    /// CLOCK with a heat for each page, index pages hotter than data pages: an earlier policy of the cache.
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

    /// Creates the policy for the pages of a trace, with a cache of `budget` bytes.
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
