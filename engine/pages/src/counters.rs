//! What sessions did: hits, faults, bytes and rounds, by reason and kind of page. The counters do not know why a
//! session did these things.
//!
//! Thread safe. All counters only grow. A session counts its own hits and adds them to these counters at each
//! round, after at most a few dozen hits, and when it is dropped. So a hit touches no cache line that other threads
//! write. The hits of a guard are added to counters that belong to its thread.

use crate::PageKind;
use os::sync::OnceLock;
use os::sync::atomic::{AtomicU64, Ordering};

/// Why pages are read. Chosen where a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// One key.
    Point,
    /// Keys in order.
    Scan,
    /// Walking the index ahead of a read, to load the pages that it will need.
    Precharge,
    /// Merging files.
    Compaction,
    /// Counts, sizes, split points, histograms.
    Statistics,
    /// Checking a file.
    Check,
    /// Filling memory with pages that readers are expected to want.
    Warm,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 7] =
        [Self::Point, Self::Scan, Self::Precharge, Self::Compaction, Self::Statistics, Self::Check, Self::Warm];

    /// Name for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Scan => "scan",
            Self::Precharge => "precharge",
            Self::Compaction => "compaction",
            Self::Statistics => "statistics",
            Self::Check => "check",
            Self::Warm => "warm",
        }
    }
}

const REASONS: usize = Reason::ALL.len();
const KINDS: usize = PageKind::ALL.len();

/// The running totals of a cache.
#[derive(Debug, Default)]
pub struct Counters {
    cells: [[AtomicPages; KINDS]; REASONS],
    rounds: [AtomicU64; REASONS],
    /// Hits of [guards](crate::Guard), which read for [`Reason::Point`]. Made when the first guard ends.
    lent: OnceLock<Box<[OwnHits; OWN]>>,
}

/// How many threads have hits of their own.
const OWN: usize = 32;

/// Hits that one thread counts, by kind. Other threads only read them, so counting one changes no memory that other
/// threads write to. It has two cache lines of its own, because processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnHits([AtomicU64; KINDS]);

#[derive(Debug, Default)]
struct AtomicPages {
    hits: AtomicU64,
    faults: AtomicU64,
    read_bytes: AtomicU64,
}

/// The counts for pages of one kind, for one reason or for all reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Found in memory.
    pub hits: u64,
    /// Read from disk.
    pub faults: u64,
    /// Stored bytes of the pages read from disk.
    pub read_bytes: u64,
}

impl Pages {
    fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.faults += other.faults;
        self.read_bytes += other.read_bytes;
    }
}

/// The hits of one session that are not in the totals yet: [`HIT_BITS`] bits per kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HitTally(u64);

/// Bits per kind in a tally.
const HIT_BITS: usize = 6;
const MAX_HITS: u64 = (1 << HIT_BITS) - 1;

const _: () = assert!(KINDS * HIT_BITS <= 64, "every kind has its bits");

impl HitTally {
    /// Counts a hit. Returns true if the tally must be added to the totals before the next hit.
    #[inline]
    pub fn count(&mut self, kind: PageKind) -> bool {
        let at = kind.index() * HIT_BITS;
        self.0 += 1 << at;
        self.0 >> at & MAX_HITS == MAX_HITS
    }

    /// The numbers of the kinds that were hit, and how often each was.
    #[inline]
    fn hits(self) -> impl Iterator<Item = (usize, u64)> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let kind = (left != 0).then(|| left.trailing_zeros() as usize / HIT_BITS)?;
            let at = kind * HIT_BITS;
            let hits = left >> at & MAX_HITS;
            left &= !(MAX_HITS << at);
            Some((kind, hits))
        })
    }
}

/// The totals at one moment. They are read one by one while other threads may change them, so sums that should
/// agree may differ a little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSnapshot {
    pages: [[Pages; KINDS]; REASONS],
    rounds: [u64; REASONS],
}

impl Counters {
    /// Adds the hits of a session, and resets its tally.
    #[inline]
    pub(crate) fn add_hits(&self, reason: Reason, tally: &mut HitTally) {
        for (kind, hits) in std::mem::take(tally).hits() {
            self.cells[reason as usize][kind].hits.fetch_add(hits, Ordering::Relaxed);
        }
    }

    /// Adds the hits of a guard. `thread` is a number that no other thread has at the same time.
    #[inline]
    pub(crate) fn add_lent(&self, thread: usize, tally: HitTally) {
        let lent = self.lent.get_or_init(Box::default);
        let Some(OwnHits(own)) = lent.get(thread) else {
            return self.add_hits(Reason::Point, &mut { tally });
        };
        for (kind, hits) in tally.hits() {
            // Only this thread writes here.
            own[kind].store(own[kind].load(Ordering::Relaxed) + hits, Ordering::Relaxed);
        }
    }

    /// The hits of all guards, for pages of one kind.
    fn lent_hits(&self, kind: usize) -> u64 {
        let own = self.lent.get().into_iter().flat_map(|lent| lent.iter());
        own.map(|OwnHits(own)| own[kind].load(Ordering::Relaxed)).sum()
    }

    /// Counts a page that is read from disk, and its stored bytes.
    pub(crate) fn add_read(&self, reason: Reason, kind: PageKind, bytes: u32) {
        let cell = &self.cells[reason as usize][kind.index()];
        cell.faults.fetch_add(1, Ordering::Relaxed);
        cell.read_bytes.fetch_add(bytes.into(), Ordering::Relaxed);
    }

    /// Counts a round that waits for the disk.
    pub(crate) fn add_round(&self, reason: Reason) {
        self.rounds[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The totals now.
    pub fn snapshot(&self) -> CounterSnapshot {
        let mut snapshot = CounterSnapshot {
            pages: self.cells.each_ref().map(|cells| {
                cells.each_ref().map(|cell| Pages {
                    hits: cell.hits.load(Ordering::Relaxed),
                    faults: cell.faults.load(Ordering::Relaxed),
                    read_bytes: cell.read_bytes.load(Ordering::Relaxed),
                })
            }),
            rounds: self.rounds.each_ref().map(|rounds| rounds.load(Ordering::Relaxed)),
        };
        for (kind, pages) in snapshot.pages[Reason::Point as usize].iter_mut().enumerate() {
            pages.hits += self.lent_hits(kind);
        }
        snapshot
    }
}

impl CounterSnapshot {
    /// Pages of one kind read for one reason.
    pub fn pages(&self, reason: Reason, kind: PageKind) -> Pages {
        self.pages[reason as usize][kind.index()]
    }

    /// Rounds of waiting for the disk, for one reason.
    pub fn rounds(&self, reason: Reason) -> u64 {
        self.rounds[reason as usize]
    }

    /// Rounds of waiting for the disk, for all reasons.
    pub fn all_rounds(&self) -> u64 {
        self.rounds.iter().sum()
    }

    /// Pages of one kind, for all reasons.
    pub fn of_kind(&self, kind: PageKind) -> Pages {
        self.sum(|_, pages_of| pages_of == kind)
    }

    /// Pages of all kinds, for one reason.
    pub fn of_reason(&self, reason: Reason) -> Pages {
        self.sum(|read_for, _| read_for == reason)
    }

    /// All pages.
    pub fn total(&self) -> Pages {
        self.sum(|_, _| true)
    }

    /// Index nodes read from disk: tree nodes and flat indexes.
    pub fn index_reads(&self) -> u64 {
        self.of_kind(PageKind::Index).faults + self.of_kind(PageKind::Flat).faults
    }

    /// Data pages read from disk: pages of the main tree, of the history, of column groups, of the groups' histories,
    /// and of values.
    pub fn data_reads(&self) -> u64 {
        [PageKind::Data, PageKind::History, PageKind::Group, PageKind::GroupHistory, PageKind::Value]
            .into_iter()
            .map(|kind| self.of_kind(kind).faults)
            .sum()
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (cell, before) in difference.pages.iter_mut().flatten().zip(earlier.pages.iter().flatten()) {
            cell.hits -= before.hits;
            cell.faults -= before.faults;
            cell.read_bytes -= before.read_bytes;
        }
        for (rounds, before) in difference.rounds.iter_mut().zip(&earlier.rounds) {
            *rounds -= before;
        }
        difference
    }

    fn sum(&self, wanted: impl Fn(Reason, PageKind) -> bool) -> Pages {
        let mut sum = Pages::default();
        for reason in Reason::ALL {
            for kind in PageKind::ALL {
                if wanted(reason, kind) {
                    sum.add(&self.pages(reason, kind));
                }
            }
        }
        sum
    }
}
