//! Watches level 0 of each table: when the newest file came, and how often reads have looked into files since level
//! 0 was compacted. This module does not know what is compacted as a result.
//!
//! A *look* is one read that asks one file for one key: it ends at a filter or at a page with rows. A table is *at
//! rest* if no file came to its level 0 for some seconds (decision 61).
//!
//! Looks are counted together for all tables that share the page cache, because a read counts the pages that it
//! finds and does not count by table. So a table that is written may be compacted because another table is read.
//!
//! Not thread safe: the lock of [`Picks`](super::picks::Picks) protects a [`Watch`].

use crate::base::options::LevelOptions;
use crate::base::table::TableId;
use crate::manifest::{DbFile, TableFiles};
use os::sync::Arc;
use pages::PageKind;
use pages::counters::{CounterSnapshot, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// With at least this many files, level 0 of a table is compacted if the table is at rest or is read. It is a third
/// of the number of files that level 0 waits for while the table is only written. It is at least four, unless level
/// 0 waits for fewer than four files.
pub fn few_files(options: &LevelOptions) -> usize {
    options.level0_files.div_ceil(3).max(options.level0_files.min(4))
}

/// A table is at rest if no file has come for this many times the interval between its two newest files.
const REST_INTERVALS: u32 = 4;

/// The shortest and the longest time after which a table is at rest.
const REST_TIMES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// A moment, and how often reads had looked into files by then.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time on the clock of the machine.
    pub time: Duration,
    /// Whether all tables count as at rest, because a caller asked for compactions.
    pub is_asked: bool,
    /// The result of [`looks`].
    pub looks: u64,
}

/// How often point reads and seeks of ranges have looked into a file. Each look into a file ends at a filter or at
/// a page with rows. For the seek of a range, pages of indexes are counted in place of pages with rows.
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

/// The reasons for which level 0 of a table should have few files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level0Use {
    /// No new files come, so there is no reason to wait for more files.
    pub is_at_rest: bool,
    /// How often reads have looked into files since level 0 was compacted last.
    pub looks: u64,
}

/// Level 0 of one table.
#[derive(Clone, Copy, Debug)]
struct Level0 {
    /// The number of the oldest file, and the greatest number that the newest file has had so far.
    oldest: Option<u64>,
    newest: Option<u64>,
    /// When the newest file was first seen, and the time that had passed since the file before it.
    grew_at: Duration,
    interval: Duration,
    looks_before: u64,
    /// When the table will be at rest, if somebody waits for that.
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

/// Level 0 of all tables that have files in it, or that waste space.
#[derive(Debug, Default)]
pub struct Watch {
    tables: BTreeMap<TableId, Level0>,
    /// The tables that will be at rest later, ordered by that time.
    waiting: BTreeSet<(Duration, TableId)>,
}

impl Watch {
    /// Looks at the files that `table` has at the moment `now`. If level 0 has at least `few` files, or if the
    /// table `wastes` space in any level, it begins to wait until the table is at rest.
    pub fn look(&mut self, table: &TableFiles, now: Now, few: usize, wastes: bool) -> Level0Use {
        let files = &table.levels[0];
        let id = table.info.id;
        if files.is_empty() && !wastes {
            self.forget(id);
            return Level0Use::default();
        }
        let number = |file: Option<&Arc<DbFile>>| file.map(|file| file.number);
        let oldest = number(files.last());
        // If the newest file of level 0 has only disappeared, this does not count as a new file.
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
