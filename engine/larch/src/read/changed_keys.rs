//! Walks over the keys of a table that commits between two versions have written, in key order. It reads no file that has
//! only older versions. This module does not know whether a key has another value after these commits.

use super::versions::{self, Wanted};
use crate::base::error::Result;
use crate::core::Core;
use crate::manifest::{Level, TableFiles};
use crate::memtable::Memtable;
use crate::view::View;
use crate::view::ahead::{self, readahead};
use crate::view::level::LevelCursor;
use os::sync::Arc;
use pages::{Admit, Reason, Session, retry};
use sst::{Direction, EraseCursor, KeyRange, Seek, Version, next_string};

/// The keys that were written one by one. Keys that were erased as a range are not among them.
pub struct ChangedKeys {
    /// Keeps the memtables of the walk.
    _view: Arc<View>,
    session: Session,
    range: KeyRange,
    after: Version,
    through: Version,
    sources: Vec<Source>,
}

/// Something that has written keys in order, and the next of them.
struct Source {
    rows: Rows,
    next: Option<Vec<u8>>,
}

enum Rows {
    Memory(Arc<Memtable>),
    Files {
        cursor: Box<LevelCursor>,
        /// Whether the cursor was moved to its first row.
        has_begun: bool,
    },
}

impl ChangedKeys {
    /// The keys in `wanted.keys` that `wanted` commits have written, and the ranges in which they have erased all keys, in
    /// order, without overlap.
    ///
    /// # Errors
    ///
    /// An error if a page cannot be read.
    pub fn new(core: &Core, view: Arc<View>, table: &TableFiles, wanted: Wanted<'_>) -> Result<(Self, Vec<KeyRange>)> {
        let (cache, reads) = (&core.env.cache, &*core.env.machine.reads);
        let session = ahead::session(cache, reads, Reason::Scan, Admit::Keep);
        let mut erased = Vec::new();
        let mut sources = Vec::new();
        let is_new = |version: &Version| wanted.has(*version);
        let sets = view.memory.iter().filter(|set| set.newest() > wanted.after && set.oldest() <= wanted.through);
        for memtable in sets.filter_map(|set| set.table(table.info.id)) {
            let ranges = memtable.range_erases().filter(|erase| erase.versions.iter().any(is_new));
            erased.extend(ranges.filter_map(|erase| erase.keys.meet(wanted.keys)));
            sources.push(Source { rows: Rows::Memory(memtable.clone()), next: None });
        }
        for files in versions::sorted_files(table, wanted) {
            for file in files.iter().filter(|file| file.sst.meta.range_erases.is_some()) {
                let mut cursor = EraseCursor::new(file.sst.clone());
                let mut next = retry(&session, || cursor.seek(&session, &wanted.keys.start))?;
                while let Some(erase) = next.filter(|erase| wanted.keys.ends_after(&erase.keys.start)) {
                    if erase.versions.iter().any(is_new) {
                        erased.extend(erase.keys.meet(wanted.keys));
                    }
                    next = retry(&session, || cursor.next(&session))?;
                }
            }
            let bounds = (wanted.keys.low(), wanted.keys.high());
            let (files, ahead): (Level, _) = (Arc::new(files), readahead(cache, reads));
            if let Some(cursor) = LevelCursor::within(&session, files, bounds, Direction::Forward, ahead) {
                sources.push(Source { rows: Rows::Files { cursor, has_begun: false }, next: None });
            }
        }
        let (range, after, through) = (wanted.keys.clone(), wanted.after, wanted.through);
        let mut keys = Self { _view: view, session, range, after, through, sources };
        for at in 0..keys.sources.len() {
            keys.advance(at)?;
        }
        Ok((keys, joined(erased)))
    }

    /// The next key.
    ///
    /// # Errors
    ///
    /// An error if a page cannot be read.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(least) = self.sources.iter().filter_map(|source| source.next.as_ref()).min().cloned() else {
            return Ok(None);
        };
        for at in 0..self.sources.len() {
            if self.sources[at].next.as_ref() == Some(&least) {
                self.advance(at)?;
            }
        }
        Ok(Some(least))
    }

    /// Moves a source to its next key that was written.
    fn advance(&mut self, at: usize) -> Result<()> {
        let Self { session, range, after, through, sources, .. } = self;
        let is_new = |version: Version| *after < version && version <= *through;
        let Source { rows, next } = &mut sources[at];
        let last = next.take();
        match rows {
            Rows::Memory(memtable) => {
                let start = last.map_or_else(|| range.start.clone(), |last| next_string(&last));
                let mut rows = memtable.versions_from(&start).take_while(|row| range.ends_after(row.key()));
                *next = rows.find(|row| is_new(row.version())).map(|row| row.key().to_vec());
            }
            Rows::Files { cursor, has_begun } => loop {
                let there = match std::mem::replace(has_begun, true) {
                    true => retry(session, || cursor.next(session))?,
                    false => retry(session, || cursor.seek(session, &range.start, Seek::Lower))?,
                };
                if !there || !range.ends_after(cursor.key()) {
                    break;
                }
                let place = cursor.versions();
                let mut row = place.newest();
                let mut is_newest = true;
                while row.as_ref().is_some_and(|row| row.version > *through) {
                    row = versions::older(place, session, std::mem::take(&mut is_newest))?;
                }
                if row.is_some_and(|row| is_new(row.version)) {
                    *next = Some(cursor.key().to_vec());
                    break;
                }
            },
        }
        Ok(())
    }
}

/// Joins ranges that overlap or touch, and puts them in order.
fn joined(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut joined: Vec<KeyRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.touches(&range) => last.join(range),
            _ => joined.push(range),
        }
    }
    joined
}
