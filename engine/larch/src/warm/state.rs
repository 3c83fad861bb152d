//! The warm state: a file that says which pages were in memory when the database was closed. The close writes it, and
//! the next open reads it and loads as many of these pages as there is room for. It has only addresses, no page
//! bytes; see `docs/format/warm.md`. This module does not know the content of the pages.
//!
//! * Losing the warm state only makes the next reads slower. So it is not synced. If it is incomplete or comes from
//!   another database, it is removed, and a metric counts this. If it is missing, nothing fails.
//! * Each page is read and verified like any other: its checksum and kind must be right. So wrong bytes in the warm
//!   state cannot bring a wrong page into memory.

use super::loader::PageLoader;
use crate::core::background::warmth::{Restored, Warmed};
use crate::core::environment::Environment;
use crate::manifest::DbFile;
use crate::manifest::directory::names::{WARM, WARM_NEW};
use crate::view::View;
use os::Access;
use os::sync::Arc;
use pages::{Address, PACK_BYTES, PageKind, Reason, ResidentPage};
use sst::format::{features, field, varint};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

const MAGIC: &[u8; 8] = b"LARCHWRM";
const FORMAT_VERSION: u32 = 1;
const HEAD_BYTES: usize = 24;
const CRC_BYTES: usize = 4;

/// The most pages in a warm state. A page takes 8 to 12 bytes, so the largest warm state has about 700 KiB. It
/// describes 1 GiB if the pages have 16 KiB.
const MAX_PAGES: usize = 1 << 16;

/// How many pages are loaded in one call. After a damaged page, the rest of its call may not be loaded.
const CHUNK_PAGES: usize = 16;

/// The longest possible warm state: a page takes at most 32 bytes, including its share of the entry for its file.
const MAX_BYTES: u64 = 32 * MAX_PAGES as u64;

/// The pages of one file.
#[derive(Debug, PartialEq, Eq)]
struct FilePages {
    number: u64,
    epoch: u64,
    /// The pages, by offset.
    pages: Vec<Saved>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Saved {
    at: Address,
    kind: PageKind,
    heat: u8,
}

/// ```text
///  0  magic "LARCHWRM"      8
///  8  format version        u32
/// 12  features              u32     see sst::format::features; none yet
/// 16  database              u64
/// 24  files                 varint
///     file: number, epoch, pages   varints, then its pages by their offsets
///     page: offset and length in units of 64, the offset from the end of the one before   varints
///           crc             u32
///           kind            u8
///           heat            u8
///     numbered fields               that later releases may add, see sst::format::field
///     crc32c of all before  u32
/// ```
fn encode(database: u64, files: &[FilePages]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&database.to_le_bytes());
    varint::put(&mut out, files.len() as u64);
    for FilePages { number, epoch, pages } in files {
        for value in [*number, *epoch, pages.len() as u64] {
            varint::put(&mut out, value);
        }
        let mut end = 0;
        for Saved { at, kind, heat } in pages {
            varint::put(&mut out, (at.offset - end) / PACK_BYTES);
            varint::put(&mut out, u64::from(at.bytes) / PACK_BYTES);
            out.extend_from_slice(&at.crc.to_le_bytes());
            out.extend_from_slice(&[*kind as u8, *heat]);
            end = at.end();
        }
    }
    let crc = crc_fast::crc32_iscsi(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// `None` unless [`encode`] has written `bytes` for this `database`.
fn decode(bytes: &[u8], database: u64) -> Option<Vec<FilePages>> {
    let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(CRC_BYTES)?)?;
    let (head, mut left) = body.split_at_checked(HEAD_BYTES)?;
    let (format, of) = head.split_at_checked(16)?;
    let number = |at: usize| u32::from_le_bytes(format[at..at + 4].try_into().expect("four bytes"));
    if crc_fast::crc32_iscsi(body).to_le_bytes() != crc || &format[..8] != MAGIC || of != database.to_le_bytes() {
        return None;
    }
    // A warm state that only a newer release can read is treated as a damaged one.
    features::check_version(number(8), FORMAT_VERSION).ok()?;
    features::check(number(12), 0).ok()?;
    let left = &mut left;
    let mut files = Vec::new();
    let mut pages_left = MAX_PAGES;
    for _ in 0..varint::take(left)? {
        let (number, epoch) = (varint::take(left)?, varint::take(left)?);
        let count = usize::try_from(varint::take(left)?).ok()?;
        pages_left = pages_left.checked_sub(count)?;
        let mut pages = Vec::new();
        let mut end = 0u64;
        for _ in 0..count {
            let offset = end.checked_add(varint::take(left)?.checked_mul(PACK_BYTES)?)?;
            let bytes = u32::try_from(varint::take(left)?.checked_mul(PACK_BYTES)?).ok()?;
            let (crc, rest) = left.split_first_chunk()?;
            let (&[kind, heat], rest) = rest.split_first_chunk()?;
            *left = rest;
            let at = Address { offset, bytes, crc: u32::from_le_bytes(*crc) };
            end = offset.checked_add(u64::from(bytes))?;
            pages.push(Saved { at, kind: PageKind::from_u8(kind)?, heat });
        }
        files.push(FilePages { number, epoch, pages });
    }
    field::pass_over_all(left, "field").ok()?;
    Some(files)
}

/// Writes the warm state: which pages of the database's files are in memory now. Beyond [`MAX_PAGES`], nodes come
/// first, and then the pages that were used most.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn save(env: &Environment, view: &View) -> std::io::Result<()> {
    let files: HashMap<u32, &Arc<DbFile>> = view
        .files
        .tables
        .values()
        .flat_map(|table| table.files())
        .map(|(_, file)| (file.sst.file.slot(), file))
        .collect();
    let resident = env.cache.resident_of(files.values().map(|file| &file.sst.file), MAX_PAGES);
    let mut pages: BTreeMap<(u64, u64), Vec<Saved>> = BTreeMap::new();
    for ResidentPage { slot, at, kind, heat } in resident {
        if let Some(file) = files.get(&slot) {
            pages.entry((file.number, file.epoch)).or_default().push(Saved { at, kind, heat: heat.degrees() });
        }
    }
    let pages = pages.into_iter().map(|((number, epoch), mut pages)| {
        pages.sort_unstable_by_key(|page| page.at);
        FilePages { number, epoch, pages }
    });
    let bytes = encode(view.files.database, &pages.collect::<Vec<_>>());
    let disk = &env.machine.disk;
    let new = env.directory.join(WARM_NEW);
    if disk.exists(&new)? {
        disk.remove(&new)?;
    }
    disk.open(&new, Access::Create)?.append(&bytes)?;
    disk.rename(&new, &path(env))
}

fn path(env: &Environment) -> PathBuf {
    env.directory.join(WARM)
}

/// Reads the warm state. Returns `None` if there is none, and `Some(None)` if it cannot be used. Then it is removed,
/// unless the database is read-only.
fn read_state(env: &Environment, database: u64) -> Option<Option<Vec<FilePages>>> {
    let disk = &env.machine.disk;
    let path = path(env);
    if !disk.exists(&path).ok()? {
        return None;
    }
    let read = || {
        let bytes = disk.open(&path, Access::Read)?.len()?;
        if bytes > MAX_BYTES { Ok(Vec::new()) } else { disk.read_all(&path) }
    };
    let decoded = read().ok().and_then(|bytes: Vec<u8>| decode(&bytes, database));
    if decoded.is_none() && !env.options.read_only {
        // If this fails, the next open finds the file again and does not use it either.
        disk.remove(&path).ok();
    }
    Some(decoded)
}

/// Loads the pages that were in memory at the last close, as many as the cache has free room for.
pub fn restore(env: &Environment, view: &View, progress: &mut dyn FnMut(u64) -> bool) -> Restored {
    let Some(state) = read_state(env, view.files.database) else { return Restored::default() };
    let Some(state) = state else { return Restored { is_refused: true, ..Restored::default() } };
    let files: HashMap<(u64, u64), &Arc<DbFile>> = view
        .files
        .tables
        .values()
        .flat_map(|table| table.files())
        .map(|(_, file)| ((file.number, file.epoch), file))
        .collect();
    let mut loader = PageLoader::new(env, Reason::Warm, env.cache.free_bytes(), progress);
    let is_whole = load_pages(&mut loader, &state, &files);
    let warmed = Warmed { bytes: loader.bytes, page_reads: loader.page_reads(), is_whole };
    Restored { warmed, is_refused: false }
}

/// Loads the nodes of all files first, and then the other pages, hottest first. Returns whether all pages were
/// loaded.
fn load_pages(loader: &mut PageLoader<'_>, state: &[FilePages], files: &HashMap<(u64, u64), &Arc<DbFile>>) -> bool {
    let mut is_whole = true;
    let heats: BTreeSet<u8> = state.iter().flat_map(|of| &of.pages).map(|page| page.heat).collect();
    let ranks = std::iter::once(None).chain(heats.into_iter().rev().map(Some));
    for rank in ranks {
        for FilePages { number, epoch, pages } in state {
            // A compaction may have replaced the file since then.
            let Some(file) = files.get(&(*number, *epoch)) else { continue };
            let is_wanted = |page: &&Saved| match rank {
                None => page.kind.serves_many(),
                Some(heat) => !page.kind.serves_many() && page.heat == heat,
            };
            let wanted: Vec<(Address, PageKind)> =
                pages.iter().filter(is_wanted).map(|page| (page.at, page.kind)).collect();
            for some in wanted.chunks(CHUNK_PAGES) {
                match loader.load(&file.sst.file, some.iter().copied()) {
                    Ok(true) => {}
                    Ok(false) => return false,
                    // Goes on after an error, because the next pages may be readable.
                    Err(_) => is_whole = false,
                }
            }
        }
    }
    is_whole && !loader.has_skipped
}

#[cfg(test)]
mod tests;
