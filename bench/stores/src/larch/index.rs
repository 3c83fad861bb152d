//! A secondary index over the last bytes of each value. Every overwrite of a row changes these bytes, and so the
//! index.

use super::broken;
use harness::Failure;
use larch::Table;
use larch::index::{IndexKeys, IndexOptions};

/// The name of the index, which is also its declaration.
const NAME: &str = "by_end_of_value";

/// Length of an index key.
const KEY_BYTES: usize = 8;

/// Emits the last [`KEY_BYTES`] bytes of a value as its index key.
struct EndOfValue;

impl IndexKeys for EndOfValue {
    fn groups(&self) -> &[usize] {
        &[0]
    }

    fn index_keys<'r>(
        &self,
        _key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        let end = part(0).and_then(|value| value.last_chunk::<KEY_BYTES>());
        emit(end.ok_or("the value is too short")?);
        Ok(())
    }
}

/// The extractor for the index that [`build`] declares.
pub fn extractor(declaration: &[u8]) -> Result<Box<dyn IndexKeys>, String> {
    if declaration == NAME.as_bytes() {
        return Ok(Box::new(EndOfValue));
    }
    Err(format!("a benchmark knows only `{NAME}`"))
}

/// Builds the index while other threads write. Returns the number of rows it visited.
pub fn build(table: &Table) -> Result<u64, Failure> {
    let mut rows = 0;
    table.create_index(NAME, NAME, &IndexOptions::default(), |progress| rows = progress.done).map_err(broken)?;
    Ok(rows)
}

/// Checks the index against the rows, then drops it. Returns the number of its entries.
pub fn check_and_drop(table: &Table) -> Result<u64, Failure> {
    let check = table.index(NAME).map_err(broken)?.check(|_| {}).map_err(broken)?;
    if !check.problems.is_empty() {
        let text = format!("the index differs from the rows: {:?}", check.problems);
        return Err(Failure::session("index", text));
    }
    table.drop_index(NAME).map_err(broken)?;
    Ok(check.entries)
}
