//! Counts exactly how many rows a reader sees in a range, and finds the row with a given number.
//!
//! Where only one file has keys, this reads its index and two of its data pages. Where several files have keys, or
//! range erases hide some, it merges the keys, without values. Where a file and a few rows in memory have keys, it
//! counts the file in pieces between those rows.

use super::memory::MemoryRows;
use super::stretches::{Sight, Stretch, Stretches};
use crate::base::error::Result;
use crate::manifest::DbFile;
use crate::view::TableView;
use crate::view::merge::{Loads, Merge};
use pages::{PageKind, Session, retry};
use sst::{Direction, Groups, Readahead, RowKind};
use sst::{KeyRange, next_string};

/// The most rows in memory between which a single file is counted in pieces. Each of them ends a piece, and each
/// piece costs up to two data pages. If there are more, the keys from the first to the last of them are merged.
const MEMORY_ROWS: usize = 16;

/// A piece of a range whose keys are all counted in the same way.
#[derive(Debug)]
enum CountPiece<'v> {
    /// The rows in memory decide about every key here.
    Memory(KeyRange),
    /// Only this file has keys here, and a reader sees all its rows, because none has expired.
    File(&'v DbFile, KeyRange),
    /// Several sources have keys here, a range erase may hide some keys, or rows may have expired.
    Merged(KeyRange),
}

/// How many rows a reader sees in `span`.
pub fn count(session: &Session, table: TableView<'_>, span: &KeyRange, readahead: Readahead) -> Result<u64> {
    let mut count = 0_u64;
    for piece in pieces(table, &Stretches::of(session, table, span)?) {
        count += match piece {
            CountPiece::Memory(span) => in_memory(table, &span).count() as u64,
            CountPiece::File(file, span) => in_file(session, file, &span)?,
            CountPiece::Merged(span) => {
                let mut count = 0;
                walk(session, table, &span, readahead, |_| {
                    count += 1;
                    true
                })?;
                count
            }
        };
    }
    Ok(count)
}

/// The key of the `n`-th row, counted from 0, that a reader sees in `span`.
pub fn nth_key(
    session: &Session,
    table: TableView<'_>,
    span: &KeyRange,
    n: u64,
    readahead: Readahead,
) -> Result<Option<Vec<u8>>> {
    let mut left = n;
    for piece in pieces(table, &Stretches::of(session, table, span)?) {
        match piece {
            CountPiece::Memory(span) => {
                for key in in_memory(table, &span) {
                    if left == 0 {
                        return Ok(Some(key));
                    }
                    left -= 1;
                }
            }
            CountPiece::File(file, span) => {
                let count = in_file(session, file, &span)?;
                if left < count {
                    return nth_key_in_file(session, table, file, &span, left).map(Some);
                }
                left -= count;
            }
            CountPiece::Merged(span) => {
                let mut found = None;
                walk(session, table, &span, readahead, |key| {
                    if left == 0 {
                        found = Some(key.to_vec());
                        return false;
                    }
                    left -= 1;
                    true
                })?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
    }
    Ok(None)
}

/// The pieces of the range, in key order. Adjacent `Merged` pieces are joined.
fn pieces<'v>(table: TableView<'v>, stretches: &Stretches<'v>) -> Vec<CountPiece<'v>> {
    // The clock is asked only if a file has rows with times.
    let has_expired =
        |file: &DbFile| file.sst.meta.expiry.is_some() && file.has_expired_by(table.view.rules.clock.now());
    let mut pieces = Vec::new();
    for stretch in &stretches.stretches {
        match stretch.files.as_slice() {
            [] => pieces.push(CountPiece::Memory(stretch.span.clone())),
            &[(file, Sight::Clear)] if !has_expired(stretches.files[file].file) => {
                alone(table, stretches.files[file].file, stretch, &mut pieces);
            }
            _ => merged(stretch.span.clone(), &mut pieces),
        }
    }
    pieces
}

/// Adds a `Merged` piece, or extends the last piece if it is `Merged` and touches `span`.
fn merged(span: KeyRange, pieces: &mut Vec<CountPiece<'_>>) {
    match pieces.last_mut() {
        Some(CountPiece::Merged(last)) if last.touches(&span) => last.join(span),
        _ => pieces.push(CountPiece::Merged(span)),
    }
}

/// Adds the pieces of a stretch with one file and some rows in memory.
fn alone<'v>(table: TableView<'v>, file: &'v DbFile, stretch: &Stretch, pieces: &mut Vec<CountPiece<'v>>) {
    let mut rows = MemoryRows::from(table, stretch.span.low());
    let mut keys: Vec<Vec<u8>> = Vec::new();
    while keys.len() <= MEMORY_ROWS
        && let Some((row, _)) = rows.next_in(&stretch.span)
    {
        keys.push(row.key().to_vec());
    }
    let end = stretch.span.end.clone();
    let mut start = stretch.span.start.clone();
    let mut until = |key: &[u8], pieces: &mut Vec<CountPiece<'v>>| {
        let span = KeyRange::new(std::mem::replace(&mut start, next_string(key)), Some(key.to_vec()));
        pieces.extend(span.map(|span| CountPiece::File(file, span)));
    };
    if keys.len() > MEMORY_ROWS {
        let last = MemoryRows::last_in(table, &stretch.span).expect("some were found in front of it");
        until(&keys[0], pieces);
        merged(KeyRange { start: keys.swap_remove(0), end: Some(next_string(&last)) }, pieces);
        start = next_string(&last);
    } else {
        for key in keys {
            until(&key, pieces);
            pieces.push(CountPiece::Memory(KeyRange::of_key(&key)));
        }
    }
    pieces.extend(KeyRange::new(start, end).map(|span| CountPiece::File(file, span)));
}

/// The keys that a reader sees in a `Memory` piece.
fn in_memory<'v>(table: TableView<'v>, span: &'v KeyRange) -> impl Iterator<Item = Vec<u8>> + 'v {
    let mut rows = MemoryRows::from(table, span.low());
    std::iter::from_fn(move || rows.next_in(span)).filter(|(_, shows)| *shows).map(|(row, _)| row.key().to_vec())
}

/// The number of rows with a value that `file` has in `span`. A reader sees all of them.
fn in_file(session: &Session, file: &DbFile, span: &KeyRange) -> Result<u64> {
    let totals = retry(session, || file.sst.exact_between(session, span.low(), span.high()))?;
    Ok(totals.rows.saturating_sub(totals.erased))
}

/// The key of the `n`-th row with a value that `file` has in `span`, counted from 0. There must be more than `n`.
fn nth_key_in_file(session: &Session, table: TableView<'_>, file: &DbFile, span: &KeyRange, n: u64) -> Result<Vec<u8>> {
    let sst = &file.sst;
    let rows = retry(session, || sst.rows_between(session, span.low(), span.high()))?;
    let row = retry(session, || sst.nth_put(session, rows.start, n))?;
    let mut key = Vec::new();
    if let Some(row) = row {
        retry(session, || {
            key.clear();
            sst.key_of(session, row, &mut key)
        })?;
        let row = retry(session, || sst.get(session, &key, table.at))?;
        // A row may have expired since the pieces were made. It counted then.
        if row.is_some_and(|row| row.kind != RowKind::Erase) {
            return Ok(key);
        }
    }
    let why = format!("row {n} of those not erased from row {} on is not there", rows.start);
    Err(pages::Error::Corrupt { file: file.path().to_owned(), page: PageKind::Index.name(), offset: 0, why }.into())
}

/// Calls `each` with the keys that a reader sees, in order, until `each` returns false.
fn walk(
    session: &Session,
    table: TableView<'_>,
    span: &KeyRange,
    readahead: Readahead,
    mut each: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    let mut merge = Merge::new(session, table, Direction::Forward, (span.low(), span.high()), readahead);
    let mut nothing = Vec::new();
    let between = (span.low(), span.high());
    while retry(session, || merge.find(session, between, (Groups::NONE, Loads::Nothing), &mut nothing))?.is_some() {
        if !each(merge.key()) {
            break;
        }
        merge.leave();
    }
    Ok(())
}
