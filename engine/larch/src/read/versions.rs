//! Walks over all versions of the rows of a table, and not only over those that a reader at one version sees. This
//! module decides nothing about what readers see: range erases are given as they are, and hide nothing. Only a row that
//! has expired is given as an erase, which a compaction makes of it.

use crate::base::error::Result;
use crate::base::ops::Op;
use crate::base::parts;
use crate::base::row_clock::RowClock;
use crate::core::Core;
use crate::manifest::{DbFile, Level, TableFiles};
use crate::memtable::Memtable;
use crate::view::ahead::{self, readahead};
use crate::view::fold::fold;
use crate::view::level::LevelCursor;
use crate::view::{TableView, View};
use os::sync::Arc;
use pages::{Admit, PageLender, Reason, Session, Stop, retry};
use sst::{
    Direction, EraseCursor, Groups, KeyRange, RangeErase, Readahead, Row, RowKind, Seek, SoughtKey, SstCursor, Version,
};

/// What a walk visits.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'w> {
    /// The keys. A range erase is cut to them.
    pub keys: &'w KeyRange,
    /// Only versions after this one.
    pub after: Version,
    /// No versions after this one.
    pub through: Version,
}

/// Gets each version that a walk finds.
pub trait Take {
    /// Whether a value of `key` is to be taken. A walk asks this before it loads a value from other pages.
    fn wants(&self, version: Version, key: &[u8]) -> bool;

    /// Takes a version. What merges have made is given as a put of its value.
    ///
    /// # Errors
    ///
    /// An error ends the walk.
    fn take(&mut self, version: Version, op: Op<'_>) -> Result<()>;

    /// Takes a version whose merges cannot be applied, with the reason.
    ///
    /// # Errors
    ///
    /// As [`Take::take`].
    fn take_failed(&mut self, version: Version, key: &[u8], why: &str) -> Result<()>;
}

impl Wanted<'_> {
    pub(super) fn has(&self, version: Version) -> bool {
        self.after < version && version <= self.through
    }
}

/// Gives `take` each wanted version of the rows and range erases of a table that are in memory. The versions of a
/// memory set come in the order of their keys.
///
/// # Errors
///
/// The errors of [`Take::take`].
pub fn in_memory(core: &Core, view: &View, table: &TableFiles, wanted: Wanted<'_>, take: &mut dyn Take) -> Result<()> {
    let session = ahead::session(&core.env.cache, &*core.env.machine.reads, Reason::Point, Admit::Keep);
    let past = Past { session: &session, view, table };
    let sets = view.memory.iter().filter(|set| set.newest() > wanted.after && set.oldest() <= wanted.through);
    let mut memtables = sets.filter_map(|set| set.table(table.info.id));
    memtables.try_for_each(|memtable| of_memtable(memtable, past, wanted, take))
}

fn of_memtable(memtable: &Memtable, past: Past<'_>, wanted: Wanted<'_>, take: &mut dyn Take) -> Result<()> {
    for row in memtable.versions_from(&wanted.keys.start).take_while(|row| wanted.keys.ends_after(row.key())) {
        let (key, version) = (row.key(), row.version());
        if !wanted.has(version) {
            continue;
        }
        match row.kind() {
            RowKind::Merge if take.wants(version, key) => past.give_merged(version, key, take)?,
            RowKind::Merge => {}
            kind if past.view.rules.clock.shows(kind, || row.until()) => {
                take.take(version, Op::Put { key, value: row.value(), until: row.until() })?;
            }
            _ => take.take(version, Op::Erase { key })?,
        }
    }
    memtable.range_erases().try_for_each(|erase| of_erase(&erase, wanted, take))
}

/// The table as it was.
#[derive(Clone, Copy)]
struct Past<'w> {
    session: &'w Session,
    view: &'w View,
    table: &'w TableFiles,
}

impl Past<'_> {
    /// Gives the value that merges of `version` have made, as if it had been put. The rows of the view from which a
    /// reader at this version would compute it are all there, because what keeps the merge keeps them, too.
    fn give_merged(&self, version: Version, key: &[u8], take: &mut dyn Take) -> Result<()> {
        let Self { session, view, table } = *self;
        let table = TableView { view, files: table, at: version, own: None, shows_expired: false };
        let row = retry(session, || fold(session, table, &SoughtKey::new(key)));
        session.release();
        match row {
            Ok(row) => take.take(version, Op::Put { key, value: row.value(), until: row.until() }),
            Err(pages::Error::Content(why)) => take.take_failed(version, key, &why),
            Err(error) => Err(error.into()),
        }
    }
}

fn of_erase<K: AsRef<[u8]>>(erase: &RangeErase<K>, wanted: Wanted<'_>, take: &mut dyn Take) -> Result<()> {
    let Some(KeyRange { start, end }) = erase.keys.meet(wanted.keys) else { return Ok(()) };
    let op = Op::RangeErase { start: &start, end: end.as_deref().unwrap_or_default() };
    erase.versions.iter().filter(|version| wanted.has(**version)).try_for_each(|version| take.take(*version, op))
}

/// Gives `take` each wanted version of the rows and range erases of a table that are in files, file by file. Files
/// that have only older versions are not read. The cache admits of the pages what `admit` says.
///
/// # Errors
///
/// The errors of [`Take::take`]; an error if a page cannot be read.
pub fn in_files(
    core: &Core,
    view: &View,
    table: &TableFiles,
    (wanted, admit): (Wanted<'_>, Admit),
    take: &mut dyn Take,
) -> Result<()> {
    let (cache, reads) = (&core.env.cache, &*core.env.machine.reads);
    let session = ahead::session(cache, reads, Reason::Scan, admit);
    let readahead = readahead(cache, reads);
    let groups = table.info.options.groups.len().max(1);
    let past = Past { session: &ahead::session(cache, reads, Reason::Point, admit), view, table };
    let mut walk = Walk { session: &session, past, clock: &core.env.row_clock, wanted, groups, value: Vec::new() };
    for files in sorted_files(table, wanted) {
        for file in files.iter().filter(|file| file.sst.meta.range_erases.is_some()) {
            walk.erases_of(file, take)?;
        }
        walk.rows_of(Arc::new(files), readahead, take)?;
    }
    Ok(())
}

/// The files that may have wanted versions, judged by their newest versions and their bounds. The files of each item are
/// sorted by key and do not overlap.
pub(super) fn sorted_files<'t>(table: &'t TableFiles, wanted: Wanted<'t>) -> impl Iterator<Item = Vec<Arc<DbFile>>> {
    let (newest, deeper) = table.levels.split_first().expect("a table has levels");
    let has_some = move |file: &&Arc<DbFile>| file.age() > wanted.after.0 && file.sst.bounds().meets(wanted.keys);
    let newest = newest.iter().filter(has_some).map(|file| vec![file.clone()]);
    let deeper = deeper.iter().map(move |level| level.iter().filter(has_some).cloned().collect::<Vec<_>>());
    newest.chain(deeper).filter(|files| !files.is_empty())
}

/// Goes from the newest version of the row to the next older one, or from an older one to the next. Blocks for pages.
pub(super) fn older(cursor: &mut SstCursor, session: &Session, is_newest: bool) -> Result<Option<Row>> {
    let is_there = retry(session, || if is_newest { cursor.first_older(session) } else { cursor.next_older(session) })?;
    Ok(if is_there { cursor.older() } else { None })
}

struct Walk<'w> {
    session: &'w Session,
    past: Past<'w>,
    clock: &'w RowClock,
    wanted: Wanted<'w>,
    /// How many parts a row has.
    groups: usize,
    /// The parts of the value of the current version, joined.
    value: Vec<u8>,
}

impl Walk<'_> {
    fn erases_of(&self, file: &DbFile, take: &mut dyn Take) -> Result<()> {
        let Self { session, wanted, .. } = *self;
        let mut cursor = EraseCursor::new(file.sst.clone());
        let mut next = retry(session, || cursor.seek(session, &wanted.keys.start))?;
        while let Some(erase) = next.filter(|erase| wanted.keys.ends_after(&erase.keys.start)) {
            of_erase(&erase, wanted, take)?;
            next = retry(session, || cursor.next(session))?;
        }
        Ok(())
    }

    fn rows_of(&mut self, files: Level, readahead: Readahead, take: &mut dyn Take) -> Result<()> {
        let Self { session, wanted, .. } = *self;
        let bounds = (wanted.keys.low(), wanted.keys.high());
        let Some(mut cursor) = LevelCursor::within(session, files, bounds, Direction::Forward, readahead) else {
            return Ok(());
        };
        let mut there = retry(session, || cursor.seek(session, &wanted.keys.start, Seek::Lower))?;
        let mut key = Vec::new();
        while there && wanted.keys.ends_after(cursor.key()) {
            key.clear();
            key.extend_from_slice(cursor.key());
            let versions = cursor.versions();
            let mut row = versions.newest();
            let mut is_newest = true;
            // The older versions of a row lie apart from it, and are read only if one of them may be wanted.
            while let Some(version) = row.filter(|row| row.version > wanted.after) {
                if wanted.has(version.version) {
                    self.give(versions, &key, &version, take)?;
                }
                row = older(versions, session, std::mem::take(&mut is_newest))?;
            }
            there = retry(session, || cursor.next(session))?;
        }
        Ok(())
    }

    fn give(&mut self, cursor: &mut SstCursor, key: &[u8], row: &Row, take: &mut dyn Take) -> Result<()> {
        if !self.clock.shows(row.kind, || row.until()) {
            return take.take(row.version, Op::Erase { key });
        }
        if row.kind == RowKind::Merge {
            return if take.wants(row.version, key) { self.past.give_merged(row.version, key, take) } else { Ok(()) };
        }
        let until = row.until();
        if let Some(value) = row.value.inline().filter(|_| self.groups < 2) {
            return take.take(row.version, Op::Put { key, value, until });
        }
        if !take.wants(row.version, key) {
            return Ok(());
        }
        retry(self.session, || self.load(cursor, row))?;
        take.take(row.version, Op::Put { key, value: &self.value, until })
    }

    /// Loads the whole value of `row`. A step.
    fn load(&mut self, cursor: &mut SstCursor, row: &Row) -> Result<(), Stop> {
        let file = cursor.sst().file.clone();
        let mut others = Vec::new();
        cursor.parts(self.session, Groups::first(self.groups), row.place, &mut others)?;
        let stored = std::iter::once(&row.value).chain(&others);
        let parts = stored.map(|part| part.load(self.session, &file)).collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        self.value.clear();
        parts::encode(&parts, &mut self.value);
        Ok(())
    }
}
