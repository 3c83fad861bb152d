//! Finds changes in files, and in memory where no log was found. Files are sorted by key and not by version, so all rows
//! after a version are looked at, and the changes with the oldest versions are kept.

use super::change::Change;
use super::filter::{Filter, WHAT};
use crate::base::error::{Error, Result};
use crate::base::ops::Op;
use crate::base::table::TableInfo;
use crate::core::Core;
use crate::read::versions::{self, Take, Wanted};
use crate::view::View;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use pages::Admit;
use sst::{KeyRange, Version};

/// How many bytes of changes a feed has in memory at most, besides a single commit that is read from its log.
const WINDOW_BYTES: usize = if cfg!(test) { 4 << 10 } else { 32 << 20 };

/// A place in the order of changes, see [`Change::order`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub version: Version,
    table: u32,
    is_row: bool,
    key: Vec<u8>,
}

impl Position {
    fn of(change: &Change) -> Self {
        let (version, table, is_row, key) = change.order();
        Self { version, table, is_row, key: key.to_vec() }
    }

    fn order(&self) -> (Version, u32, bool, &[u8]) {
        (self.version, self.table, self.is_row, &self.key)
    }
}

/// Changes in their order.
pub enum Found {
    /// All that were asked for.
    All(Vec<Change>),
    /// Those of all commits up to a version.
    Through(Version, Vec<Change>),
    /// The first changes of one commit that has too many: those up to a position.
    Within(Position, Vec<Change>),
}

/// Keeps the first changes after a position, as many as fit in a window.
struct Window<'w> {
    is_dropped: &'w AtomicBool,
    from: Option<Position>,
    /// In any order.
    kept: Vec<Change>,
    bytes: usize,
    /// The first change that did not fit. No change from there on is kept.
    cut: Option<Position>,
}

/// Takes the changes of a table.
struct Into<'w, 'f> {
    window: &'w mut Window<'f>,
    table: &'w Arc<TableInfo>,
}

impl Take for Into<'_, '_> {
    fn wants(&self, version: Version, key: &[u8]) -> bool {
        let order = (version, self.table.id.0, true, key);
        let Window { from, cut, .. } = &self.window;
        from.as_ref().is_none_or(|from| from.order() < order) && cut.as_ref().is_none_or(|cut| order < cut.order())
    }

    fn take(&mut self, version: Version, op: Op<'_>) -> Result<()> {
        self.window.add(version, || Change::new(self.table, version, op).ok_or_else(|| bad_parts(self.table, op)))
    }

    fn take_failed(&mut self, version: Version, key: &[u8], why: &str) -> Result<()> {
        self.window.add(version, || Ok(Change::failed(self.table, version, key, why)))
    }
}

impl Window<'_> {
    fn add(&mut self, version: Version, change: impl FnOnce() -> Result<Change>) -> Result<()> {
        if self.is_dropped.load(Ordering::Relaxed) {
            return Err(Error::Cancelled(WHAT));
        }
        // Most changes of a long feed do not fit, so these are not copied.
        if self.cut.as_ref().is_some_and(|cut| cut.version < version) {
            return Ok(());
        }
        let change = change()?;
        let is_given = self.from.as_ref().is_some_and(|from| change.order() <= from.order());
        if is_given || self.cut.as_ref().is_some_and(|cut| cut.order() <= change.order()) {
            return Ok(());
        }
        self.bytes += change.memory_bytes();
        self.kept.push(change);
        while self.bytes > WINDOW_BYTES && self.kept.len() > 1 {
            self.drop_last();
        }
        Ok(())
    }

    /// Drops the last quarter of the changes, so that this is done for many changes at once.
    fn drop_last(&mut self) {
        let at = (self.kept.len() / 4 * 3).max(1);
        let (_, first, _) = self.kept.select_nth_unstable_by(at, |a, b| a.order().cmp(&b.order()));
        self.cut = Some(Position::of(first));
        self.bytes -= self.kept.drain(at..).map(|change| change.memory_bytes()).sum::<usize>();
    }

    fn finish(self) -> Found {
        let mut changes = self.kept;
        changes.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
        let Some(Position { version: cut, .. }) = self.cut else { return Found::All(whole(changes)) };
        let before = changes.partition_point(|change| change.version() < cut);
        if before == 0 {
            let position = Position::of(changes.last().expect("a window keeps a change"));
            join(&mut changes);
            return Found::Within(position, changes);
        }
        // Of the commit that was cut, some changes are missing.
        changes.truncate(before);
        Found::Through(Version(cut.0 - 1), whole(changes))
    }
}

/// The error for a value in memory or in a file that has not one part for each column group.
pub fn bad_parts(table: &TableInfo, op: Op<'_>) -> Error {
    let key = op.key().unwrap_or_default().into();
    Error::BadParts { table: table.name.clone(), key, parts: table.options.groups.len() }
}

/// Joins the pieces of ranges that were erased, and drops what another change of the same commit hides.
fn join(changes: &mut Vec<Change>) {
    let mut kept: Vec<Change> = Vec::with_capacity(changes.len());
    for change in changes.drain(..) {
        if let Some(last) = kept.last_mut() {
            if last.is_hidden_by(&change) {
                *last = change;
                continue;
            }
            if last.join(&change) {
                continue;
            }
        }
        kept.push(change);
    }
    *changes = kept;
}

/// `changes`, which are sorted, as those of whole commits.
pub fn whole(mut changes: Vec<Change>) -> Vec<Change> {
    join(&mut changes);
    for i in 0..changes.len() {
        if changes.get(i + 1).is_none_or(|next| next.version() > changes[i].version()) {
            changes[i].end_commit();
        }
    }
    changes
}

/// Finds the changes after the version `after`, up to `last`, in `view`. If `from` is given, only those after it, which
/// are the rest of the commit `last`.
///
/// # Errors
///
/// [`Error::ChangesGone`] if they were not kept; an error if a page cannot be read.
pub fn find(
    core: &Core,
    view: &View,
    (after, last): (Version, Version),
    from: Option<Position>,
    filter: &Filter<'_>,
) -> Result<Found> {
    let tables = || view.files.tables.values().filter(|table| filter.has(&table.info));
    // If nothing newer went to files, all changes are in memory. A flush may leave no file of what it has dropped.
    if view.files.flushed_version > after || has_newer(view, after, filter) {
        check_kept(view, after, filter)?;
    }
    let begin = from.clone();
    let mut window = Window { is_dropped: filter.is_dropped, from, kept: Vec::new(), bytes: 0, cut: None };
    for table in tables() {
        // The first part of a commit was given: whole tables, and rows of the next one.
        let keys = match &begin {
            Some(from) if table.info.id.0 < from.table => continue,
            Some(from) if table.info.id.0 == from.table && from.is_row => {
                KeyRange { start: from.key.clone(), end: filter.keys.end.clone() }
            }
            _ => filter.keys.clone(),
        };
        let wanted = Wanted { keys: &keys, after, through: last };
        let mut take = Into { window: &mut window, table: &table.info };
        versions::in_memory(core, view, table, wanted, &mut take)?;
        versions::in_files(core, view, table, (wanted, Admit::Pass), &mut take)?;
    }
    Ok(window.finish())
}

/// Whether some file has wanted rows after the version `after`.
pub fn has_newer(view: &View, after: Version, filter: &Filter<'_>) -> bool {
    let mut tables = view.files.tables.values().filter(|table| filter.has(&table.info));
    tables.any(|table| table.files().any(|(_, file)| file.age() > after.0))
}

/// Checks that the files and the memory of `view` have all wanted changes after `after`.
fn check_kept(view: &View, after: Version, filter: &Filter<'_>) -> Result<()> {
    let files = &view.files;
    let mut oldest = files.readable_from();
    // A table with a rule of its own may keep less, or more.
    if !files.table_pasts.is_empty() {
        let tables = files.tables.values().map(|table| &table.info).filter(|table| filter.has(table));
        let begins = tables.map(|table| files.readable_from_of(table.id));
        oldest = begins.max_by_key(|from| from.unwrap_or(Version::MAX)).unwrap_or(oldest);
    }
    if oldest.is_some_and(|oldest| oldest <= after) {
        return Ok(());
    }
    Err(Error::ChangesGone { after, oldest })
}
