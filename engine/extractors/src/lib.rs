//! Lets the engine call the extractors of the crate `rows`. The engine and `rows` do not know each other; this crate
//! knows both.

use larch::index::IndexKeys;
use larch::options::ExpiryTime;
use rows::{Extractor, RowTime};
use std::time::Duration;

/// An extractor as the engine calls it.
struct RowKeys(Extractor);

impl IndexKeys for RowKeys {
    fn groups(&self) -> &[usize] {
        self.0.groups()
    }

    fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        self.0.index_keys(key, part, emit).map_err(|bad| bad.to_string())
    }
}

/// A time of rows as the engine calls it.
struct TimeOfRow(RowTime);

impl ExpiryTime for TimeOfRow {
    fn until<'r>(&self, key: &'r [u8], part: &dyn Fn(usize) -> Option<&'r [u8]>) -> Result<Option<Duration>, String> {
        self.0.until(key, part).map_err(|bad| bad.to_string())
    }
}

/// Makes what computes the times of a table's rows, for the declaration of the table. Pass this function to
/// [`larch::Builder::expiry_times`].
///
/// # Errors
///
/// Fails if `rows` cannot read the declaration, or if a newer release wrote it.
pub fn time_of(declaration: &[u8]) -> Result<Box<dyn ExpiryTime>, String> {
    Ok(Box::new(TimeOfRow(RowTime::from_bytes(declaration).map_err(|error| error.to_string())?)))
}

/// Makes the extractor for the declaration of an index. Pass this function to [`larch::Builder::extractors`].
///
/// # Errors
///
/// Fails if `rows` cannot read the declaration, or if a newer release wrote it.
pub fn of(declaration: &[u8]) -> Result<Box<dyn IndexKeys>, String> {
    Ok(Box::new(RowKeys(Extractor::from_bytes(declaration).map_err(|error| error.to_string())?)))
}
