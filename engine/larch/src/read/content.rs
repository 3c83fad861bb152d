//! The two forms in which a read returns rows: with whole values, or with parts of them. This module does not know
//! how rows are found.

use super::row::RowRef;
use crate::base::error::Result;
use crate::core::handle::TableHandle;
use crate::manifest::DbFile;
use crate::view::found::FoundRow;
use crate::view::part_list::PartList;
use crate::view::value::{Key, Parts, Value};
use pages::{Page, PageCache, PageRef, PageSource, Stop};
use sst::{Groups, Row};
use std::ops::Range;

/// The form in which a read returns rows: with their whole [`Value`], or with some [`Parts`] of it. This trait is
/// sealed.
pub trait Content: GivesRows {}

impl Content for Value {}
impl Content for Parts {}

/// The methods behind [`Content`].
pub trait GivesRows: Sized + Send + 'static {
    /// Refuses a table whose rows cannot be given in this form.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`](crate::Error::Grouped) for whole values of a table with several column groups.
    fn check(table: &TableHandle) -> Result<()>;

    /// The column groups that this form reads if `wanted` was selected.
    fn groups(table: &TableHandle, wanted: &PartList) -> Groups;

    /// Whether the content of a row in a file may lie in pages other than the row's.
    fn needs_more(row: &Row) -> bool;

    /// The wanted content of a row that a look-up has found. A step.
    fn load_found<S: PageSource + ?Sized>(
        found: &FoundRow<&DbFile>,
        source: &S,
        cache: &PageCache,
        wanted: &PartList,
    ) -> Result<Self, Stop>;

    /// The wanted content of a found row, or `None` if some of it lies outside the row's page.
    fn of_row<P: Page>(row: &FoundRow<&DbFile, P>, cache: &PageCache, wanted: &PartList) -> Option<Self>;

    /// The wanted content of a row whose value is at `place` of `page` and has all of it.
    fn of_value_in(page: PageRef, place: Range<usize>, cache: &PageCache, wanted: &PartList) -> Self;

    /// Builds the content of a row from its wanted parts.
    fn of_parts(parts: Parts) -> Self;

    /// Loads the wanted content of a row. A step.
    fn load(row: &RowRef<'_>) -> Result<Self, Stop>;

    /// Part `i`. A whole value has one part, which is the value.
    fn part(&self, i: usize) -> &[u8];

    /// The total bytes of all parts.
    fn bytes(&self) -> u64;
}

impl GivesRows for Value {
    #[inline]
    fn check(table: &TableHandle) -> Result<()> {
        table.check_whole()
    }

    fn groups(table: &TableHandle, _: &PartList) -> Groups {
        Groups::first(table.identity.options.groups.len().max(1))
    }

    #[inline]
    fn needs_more(row: &Row) -> bool {
        row.value.inline().is_none()
    }

    #[inline]
    fn load_found<S: PageSource + ?Sized>(
        found: &FoundRow<&DbFile>,
        source: &S,
        cache: &PageCache,
        _: &PartList,
    ) -> Result<Self, Stop> {
        match found {
            FoundRow::Memory(row) => Ok(Value::from_memory_whole(row)),
            FoundRow::File(row, file) => match row.value.in_page() {
                Some((page, place)) => Ok(Value::from_page(cache, page, place)),
                None => Ok(Value::from_file(cache, row.value.load(source, &file.sst.file)?)),
            },
        }
    }

    #[inline]
    fn of_row<P: Page>(row: &FoundRow<&DbFile, P>, cache: &PageCache, _: &PartList) -> Option<Self> {
        match row {
            FoundRow::Memory(row) => Some(Value::from_memory_whole(row)),
            FoundRow::File(row, _) => row.value.in_page().map(|(page, place)| Value::from_page(cache, page, place)),
        }
    }

    #[inline]
    fn of_value_in(page: PageRef, place: Range<usize>, cache: &PageCache, _: &PartList) -> Self {
        Value::from_page(cache, &page, place)
    }

    fn of_parts(parts: Parts) -> Self {
        parts.into_only()
    }

    fn load(row: &RowRef<'_>) -> Result<Self, Stop> {
        row.load_part(0)
    }

    fn part(&self, _: usize) -> &[u8] {
        self
    }

    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl GivesRows for Parts {
    fn check(_: &TableHandle) -> Result<()> {
        Ok(())
    }

    fn groups(_: &TableHandle, wanted: &PartList) -> Groups {
        wanted.set()
    }

    fn needs_more(_: &Row) -> bool {
        true
    }

    fn load_found<S: PageSource + ?Sized>(
        found: &FoundRow<&DbFile>,
        source: &S,
        cache: &PageCache,
        wanted: &PartList,
    ) -> Result<Self, Stop> {
        match found {
            FoundRow::Memory(row) => Ok(wanted.of_memory(row)),
            FoundRow::File(row, DbFile { sst, .. }) => wanted.load(cache, |i| match wanted.group(i) {
                0 => row.value.load(source, &sst.file),
                group => sst.part(source, group, row.place)?.load(source, &sst.file),
            }),
        }
    }

    fn of_row<P: Page>(row: &FoundRow<&DbFile, P>, cache: &PageCache, wanted: &PartList) -> Option<Self> {
        match row {
            FoundRow::Memory(row) => Some(wanted.of_memory(row)),
            FoundRow::File(..) if wanted.set().any_beside_main() => None,
            FoundRow::File(row, _) => {
                let (page, place) = row.value.in_page()?;
                Some(Self::in_main(page, place, cache, wanted))
            }
        }
    }

    fn of_value_in(page: PageRef, place: Range<usize>, cache: &PageCache, wanted: &PartList) -> Self {
        Self::in_main(&page, place, cache, wanted)
    }

    fn of_parts(parts: Parts) -> Self {
        parts
    }

    fn load(row: &RowRef<'_>) -> Result<Self, Stop> {
        row.load_all()
    }

    fn part(&self, i: usize) -> &[u8] {
        &self[i]
    }

    fn bytes(&self) -> u64 {
        self.iter().map(|part| part.len() as u64).sum()
    }
}

impl Parts {
    /// The wanted parts of a row whose value is at `place` of `page`. At most one part was selected: the one in the
    /// main group.
    fn in_main(page: &impl Page, place: Range<usize>, cache: &PageCache, wanted: &PartList) -> Self {
        Self::of((0..wanted.len()).map(|_| Value::from_page(cache, page, place.clone())))
    }
}

/// The key of `row`, copied, with the wanted content of the row. A step.
#[inline]
pub(crate) fn owned<V: Content>(row: RowRef<'_>) -> Result<(Key, V), Stop> {
    let content = V::load(&row)?;
    Ok((row.key().into(), content))
}
