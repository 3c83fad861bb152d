//! The policies that are compared, in their simplest form. Pages of a trace have numbers, and a policy keeps what it
//! knows of pages in tables with an entry for each page of the trace, which a real cache could not afford.

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

/// Which policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The cache's own.
    Larch(Tuning),
    /// Least recently used.
    Lru,
    /// A clock with heat, index pages hotter: what the cache had before.
    Clock,
    /// S3-FIFO.
    S3Fifo,
    /// W-TinyLFU.
    TinyLfu,
    /// The policy that knows the future.
    Opt,
}

impl Kind {
    /// All that are compared.
    pub const ALL: [Self; 6] =
        [Self::Larch(Tuning::DEFAULT), Self::Lru, Self::Clock, Self::S3Fifo, Self::TinyLfu, Self::Opt];

    /// The name by which people know it.
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

    /// One for the pages of a trace and `budget` bytes.
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
