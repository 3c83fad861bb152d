//! Reads several memtables of one table as if they were one. The memtables are ordered newest first, and all
//! versions in one are newer than all in the next. This module does not know what the rows are used for.

use crate::memtable::{MemRow, Memtable};
use os::sync::Arc;
use std::iter::Peekable;
use std::ops::Deref;

/// The rows of several memtables, sorted by key and then from the newest to the oldest version.
pub struct Joined<I: Iterator> {
    /// One source for each memtable, the newest memtable first.
    sources: Vec<Peekable<I>>,
}

impl<'m> Joined<Box<dyn Iterator<Item = MemRow> + 'm>> {
    /// The rows of `memtables`. The newest memtable must come first.
    pub fn of(memtables: &'m [Arc<Memtable>]) -> Self {
        let rows = |memtable: &'m Arc<Memtable>| -> Box<dyn Iterator<Item = MemRow> + 'm> {
            Box::new(memtable.all_versions())
        };
        Self { sources: memtables.iter().map(|memtable| rows(memtable).peekable()).collect() }
    }
}

impl<I: Iterator<Item = MemRow>> Iterator for Joined<I> {
    type Item = MemRow;

    fn next(&mut self) -> Option<MemRow> {
        if let [only] = &mut self.sources[..] {
            return only.next();
        }
        let rows = self.sources.iter_mut().enumerate().filter_map(|(i, source)| Some((i, source.peek()?)));
        // Of several sources with the same key, the first has the newest version, and `min_by` returns the first.
        let (first, _) = rows.min_by(|(_, a), (_, b)| a.key().cmp(b.key()))?;
        self.sources[first].next()
    }
}

/// The range erases of one or several memtables, as one memtable.
pub enum Erases<'m> {
    /// The range erases of the only memtable.
    Of(&'m Memtable),
    /// The range erases of several memtables, in a new memtable.
    Joined(Box<Memtable>),
}

impl Deref for Erases<'_> {
    type Target = Memtable;

    fn deref(&self) -> &Memtable {
        match self {
            Erases::Of(memtable) => memtable,
            Erases::Joined(memtable) => memtable,
        }
    }
}

/// A memtable that has the range erases of all `memtables`.
pub fn joined_erases(memtables: &[Arc<Memtable>]) -> Erases<'_> {
    if let [only] = memtables {
        return Erases::Of(only);
    }
    let joined = Box::new(Memtable::new());
    let fragments = memtables.iter().flat_map(|memtable| memtable.range_erases());
    let mut erases: Vec<_> = fragments
        .flat_map(|erase| erase.versions.into_iter().map(move |version| (version, erase.keys.clone())))
        .collect();
    // A memtable takes range erases in version order.
    erases.sort_by_key(|(version, _)| *version);
    for (version, keys) in erases {
        joined.remove_range(&keys.start, keys.end.as_deref().unwrap_or_default(), version);
    }
    Erases::Joined(joined)
}

#[cfg(test)]
mod tests;
