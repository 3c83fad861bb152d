//! Rows that stay in memory as [excerpts](pages::Excerpt) when their data pages do not. This module does not know which
//! excerpts the cache keeps.
//!
//! An excerpt is named by the key. It is a copy of the newest version of a row in an immutable file, so it never becomes
//! stale. Only puts whose value lies in the row's page are kept.
//!
//! ```text
//! content: row id u64 | version u64 | value      little-endian; the version is as the file has it
//! ```

use super::row::{Row, RowPlace};
use super::sought_key::SoughtKey;
use super::sst::Sst;
use super::stored_value::StoredValue;
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::filter::hash_key;
use crate::row::{RowKind, Version};
use pages::{Cutter, Excerpt, ExcerptName, PageLender, Stop};

/// The length of what comes before the value.
const HEAD_BYTES: usize = 16;

/// The row id and the version of an excerpt.
fn decode(content: &[u8]) -> Option<(u64, Version)> {
    let (row, rest) = content.split_first_chunk()?;
    let version = rest.first_chunk()?;
    Some((u64::from_le_bytes(*row), Version(u64::from_le_bytes(*version))))
}

/// Cuts data pages into their rows.
pub const CUTTER: Cutter = Cutter { parts: |page| Layout::of(page).rows() as u32, cut: cut_row };

/// Cuts a row out of a data page, as [`Cutter::cut`] says.
fn cut_row(page: &[u8], row: u32, out: &mut Vec<u8>) -> Option<(usize, u64)> {
    let layout = Layout::of(page);
    let mut key = Vec::new();
    let record = layout.read_row(page, row as usize, &mut key);
    if record.kind != RowKind::Put || record.outside {
        return None;
    }
    out.extend_from_slice(&key);
    out.extend_from_slice(&(layout.first_row() + u64::from(row)).to_le_bytes());
    out.extend_from_slice(&record.version.0.to_le_bytes());
    out.extend_from_slice(&page[record.value_at..record.value_at + record.value_bytes]);
    Some((key.len(), hash_key(&key)))
}

impl Sst {
    /// Goes on after a look-up of `key` with the outcome `found`: if a page was missing, looks for an excerpt of the
    /// row. Calls `note` with the id of a row that an excerpt has. A part of the same step.
    #[inline]
    pub(super) fn or_excerpt<S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &SoughtKey<'_>,
        at: Version,
        found: Result<Option<Row<S::Page>>, Stop>,
        note: impl FnOnce(u64),
    ) -> Result<Option<Row<S::Page>>, Stop> {
        let Err(Stop::Fault) = found else { return found };
        let (id, row) = self.excerpt(source, key, at).ok_or(Stop::Fault)?;
        note(id);
        Ok(Some(row))
    }

    /// The excerpt of the row of `key`, with the row's id. `None` if there is none in memory, if it is newer than `at`,
    /// or if the file is seen through a slice, which may hide the row.
    #[cold]
    fn excerpt<S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &SoughtKey<'_>,
        at: Version,
    ) -> Option<(u64, Row<S::Page>)> {
        if self.slice.is_some() {
            return None;
        }
        let name = ExcerptName { slot: self.file.slot(), name: key.bytes(), hash: key.hash() };
        let of_file = |version: Version| Version(version.0.saturating_add(self.version_offset));
        let is_visible = |content: &[u8]| decode(content).is_some_and(|(_, version)| of_file(version) <= at);
        let Excerpt { page, content } = source.excerpt(&name, &is_visible)?;
        let (id, version) = decode(&page[content.clone()])?;
        let value = StoredValue::inside(page, content.start + HEAD_BYTES..content.end);
        Some((id, Row { version: of_file(version), kind: RowKind::Put, value, place: RowPlace::Newest(id) }))
    }
}
