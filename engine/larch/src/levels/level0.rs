//! Watches level 0 of each table: when its newest file was added, and how often reads have looked into files since
//! level 0 was last compacted. This module does not decide what is compacted.
//!
//! A *look* is one read that asks one file for one key, and ends at a filter or at a data page. A table is *at
//! rest* if no file was added to its level 0 for some seconds (decision 61).
//!
//! Looks are counted for all tables that share the page cache together, because the cache does not count by table.
//! So reads of one table may cause a compaction of another that is being written.
//!
//! Not thread safe: a [`Watch`] is protected by the lock of [`Picks`](super::picks::Picks).

use crate::base::options::LevelOptions;
use crate::base::table::TableId;
use crate::manifest::{DbFile, TableFiles};
use os::sync::Arc;
use pages::PageKind;
use pages::counters::{CounterSnapshot, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// From this many files on, level 0 is compacted when the table is at rest or reads have looked into files often
/// enough. While a table is only written, its level 0 waits for `level0_files` files. This is a third of
/// `level0_files`, but at least four, or `level0_files` if that is fewer.
pub fn few_files(options: &LevelOptions) -> usize {
    options.level0_files.div_ceil(3).max(options.level0_files.min(4))
}

/// A table is at rest after this many intervals without a new file, where an interval is the time between its two
/// newest files.
const REST_INTERVALS: u32 = 4;

/// The least and the greatest time without new files after which a table is at rest.
const REST_TIMES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// A moment, and the count of looks at that moment.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time on the clock of the machine.
    pub time: Duration,
    /// Whether all tables count as at rest, because a caller asked for compactions.
    pub is_asked: bool,
    /// The result of [`looks`].
    pub looks: u64,
}

/// How often point reads and seeks of ranges have looked into a file, by the pages that they asked for: filters and
/// data pages for point reads, filters and index pages for seeks of ranges.
pub fn looks(counters: &CounterSnapshot) -> u64 {
    let ends = [
        (Reason::Point, PageKind::Filter),
        (Reason::Point, PageKind::Data),
        (Reason::Scan, PageKind::Filter),
        (Reason::Scan, PageKind::Index),
        (Reason::Scan, PageKind::Flat),
    ];
    let pages = ends.map(|(reason, kind)| counters.pages(reason, kind));
    pages.iter().map(|pages| pages.hits + pages.faults).sum()
}

/// Reasons to compact level 0 of a table early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level0Use {
    /// Whether the table is at rest, so that waiting for more files is no use.
    pub is_at_rest: bool,
    /// How often reads have looked into files since level 0 was compacted last.
    pub looks: u64,
}

/// Level 0 of one table.
#[derive(Clone, Copy, Debug)]
struct Level0 {
    /// The number of the oldest file in level 0, and the greatest number that its newest file has had so far.
    oldest: Option<u64>,
    newest: Option<u64>,
    /// When the newest file was first seen, and how long after its predecessor.
    grew_at: Duration,
    interval: Duration,
    looks_before: u64,
    /// When the table will be at rest; `None` if it does not wait for that.
    waits_until: Option<Duration>,
}

impl Level0 {
    fn rests_at(&self) -> Duration {
        self.grew_at + self.interval.saturating_mul(REST_INTERVALS).clamp(REST_TIMES.0, REST_TIMES.1)
    }

    fn is_at_rest(&self, now: Now) -> bool {
        now.is_asked || now.time >= self.rests_at()
    }
}

/// The tables that have files in level 0 or waste space.
#[derive(Debug, Default)]
pub struct Watch {
    tables: BTreeMap<TableId, Level0>,
    /// The tables that wait until they are at rest, ordered by the time when they will be at rest.
    waiting: BTreeSet<(Duration, TableId)>,
}

impl Watch {
    /// Takes note of the files of `table` at the moment `now`. If level 0 has at least `few` files, or the table
    /// `wastes` space in any level, it joins the waiting tables until it is at rest.
    pub fn look(&mut self, table: &TableFiles, now: Now, few: usize, wastes: bool) -> Level0Use {
        let files = &table.levels[0];
        let id = table.info.id;
        if files.is_empty() && !wastes {
            self.forget(id);
            return Level0Use::default();
        }
        let number = |file: Option<&Arc<DbFile>>| file.map(|file| file.number);
        let oldest = number(files.last());
        // When the newest file leaves level 0, the next older one becomes the newest, but is no new file.
        let known = self.tables.get(&id).and_then(|level0| level0.newest);
        let newest = number(files.first()).max(known);
        let new = Level0 {
            oldest,
            newest,
            grew_at: now.time,
            interval: Duration::ZERO,
            looks_before: now.looks,
            waits_until: None,
        };
        let level0 = self.tables.entry(id).or_insert(new);
        if level0.oldest != oldest {
            (level0.oldest, level0.looks_before) = (oldest, now.looks);
        }
        if level0.newest != newest {
            level0.interval = now.time.saturating_sub(level0.grew_at);
            (level0.newest, level0.grew_at) = (newest, now.time);
        }
        let is_at_rest = level0.is_at_rest(now);
        let waits_until = (!is_at_rest && (files.len() >= few || wastes)).then(|| level0.rests_at());
        if let Some(time) = std::mem::replace(&mut level0.waits_until, waits_until) {
            self.waiting.remove(&(time, id));
        }
        self.waiting.extend(waits_until.map(|time| (time, id)));
        Level0Use { is_at_rest, looks: now.looks.saturating_sub(level0.looks_before) }
    }

    /// Removes and returns the tables that wait and are at rest now.
    pub fn take_resting(&mut self, now: Now) -> Vec<TableId> {
        let mut resting = Vec::new();
        while let Some((_, id)) = self.waiting.first().filter(|(time, _)| now.is_asked || *time <= now.time) {
            resting.push(*id);
            self.tables.get_mut(id).expect("a table that waits is known").waits_until = None;
            self.waiting.pop_first();
        }
        resting
    }

    /// How long it takes until the next table is at rest; `None` if no table waits for that.
    pub fn next_rest(&self, now: Duration) -> Option<Duration> {
        self.waiting.first().map(|(time, _)| time.saturating_sub(now))
    }

    /// Forgets a table that no longer exists.
    pub fn forget(&mut self, table: TableId) {
        if let Some(time) = self.tables.remove(&table).and_then(|level0| level0.waits_until) {
            self.waiting.remove(&(time, table));
        }
    }
}

#[cfg(test)]
mod tests;
