//! Walks over the keys of a table that commits between two versions have written, in key order, or over those that
//! another table may have otherwise. It reads no file that has only other versions, and a file that both tables see
//! only if one of them shows newer rows of it than the other. This module does not know whether a key has another
//! value after these commits, or in the other table.

use super::files_apart::{FilesApart, files_apart};
use super::versions::{self, Wanted};
use crate::base::error::Result;
use crate::base::table::TableId;
use crate::core::Core;
use crate::manifest::{DbFile, Level, TableFiles};
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
    through: Version,
    sources: Vec<Source>,
}

/// Files that are walked one after the other. They are sorted by key and do not overlap.
struct Walked {
    files: Vec<Arc<DbFile>>,
    /// Only versions after this one are wanted.
    after: Version,
    /// Whether range erases of the files are wanted, too.
    has_erases: bool,
}

/// Something that has written keys in order, and the next of them.
struct Source {
    rows: Rows,
    /// Only versions after this one are wanted.
    after: Version,
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
        let walked = |files| Walked { files, after: wanted.after, has_erases: true };
        let files = versions::sorted_files(table, wanted).map(walked).collect();
        Self::walk(core, view, table.info.id, files, wanted)
    }

    /// The keys in `keys` that `table` may have otherwise at the version `at` than `other` has at the version
    /// `other_at`, as far as rows of `table` say so, and the ranges in which range erases of `table` say so, in order,
    /// without overlap. A row that both tables see is not a reason unless only one of the two versions shows it.
    ///
    /// # Errors
    ///
    /// An error if a page cannot be read.
    pub fn apart(
        core: &Core,
        view: Arc<View>,
        (table, at): (&TableFiles, Version),
        (other, other_at): (&TableFiles, Version),
        keys: &KeyRange,
    ) -> Result<(Self, Vec<KeyRange>)> {
        let FilesApart { mut alone, mut alone_rows, shared, edges } = files_apart(table, other, keys);
        // No reader at the version sees anything of a file that has only newer versions.
        for all in [&mut alone, &mut alone_rows] {
            all.iter_mut().for_each(|files| files.retain(|file| file.oldest() <= at.0));
            all.retain(|files| !files.is_empty());
        }
        let walked = |after, has_erases| move |files| Walked { files, after, has_erases };
        let mut files: Vec<Walked> = alone.into_iter().map(walked(Version(0), true)).collect();
        files.extend(alone_rows.into_iter().map(walked(Version(0), false)));
        for mut newer in shared {
            newer.retain(|file| other_at < at && file.age() > other_at.0 && file.oldest() <= at.0);
            if !newer.is_empty() {
                files.push(walked(other_at, true)(newer));
            }
        }
        let wanted = Wanted { keys, after: Version(0), through: at };
        let (changed, mut erased) = Self::walk(core, view, table.info.id, files, wanted)?;
        erased.extend(edges);
        Ok((changed, joined(erased)))
    }

    /// Walks over `files`, each with its own versions, and over the rows in memory that are `wanted`.
    fn walk(
        core: &Core,
        view: Arc<View>,
        table: TableId,
        files: Vec<Walked>,
        wanted: Wanted<'_>,
    ) -> Result<(Self, Vec<KeyRange>)> {
        let (cache, reads) = (&core.env.cache, &*core.env.machine.reads);
        let session = ahead::session(cache, reads, Reason::Scan, Admit::Keep);
        let mut erased = Vec::new();
        let mut sources = Vec::new();
        let sets = view.memory.iter().filter(|set| set.newest() > wanted.after && set.oldest() <= wanted.through);
        for memtable in sets.filter_map(|set| set.table(table)) {
            let is_new = |version: &Version| wanted.has(*version);
            let ranges = memtable.range_erases().filter(|erase| erase.versions.iter().any(is_new));
            erased.extend(ranges.filter_map(|erase| erase.keys.meet(wanted.keys)));
            sources.push(Source { rows: Rows::Memory(memtable.clone()), after: wanted.after, next: None });
        }
        for Walked { files, after, has_erases } in files {
            let is_new = |version: &Version| after < *version && *version <= wanted.through;
            for file in files.iter().filter(|file| has_erases && file.sst.meta.range_erases.is_some()) {
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
                sources.push(Source { rows: Rows::Files { cursor, has_begun: false }, after, next: None });
            }
        }
        let (range, through) = (wanted.keys.clone(), wanted.through);
        let mut keys = Self { _view: view, session, range, through, sources };
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
        let Self { session, range, through, sources, .. } = self;
        let Source { rows, after, next } = &mut sources[at];
        let is_new = |version: Version| *after < version && version <= *through;
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
