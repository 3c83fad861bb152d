//! A secondary index of Larch over the last bytes of values. Every overwrite of a row changes these bytes.

use super::broken;
use harness::Failure;
use larch::Table;
use larch::index::{IndexKeys, IndexOptions};

/// The name of the index, which is also its declaration.
const NAME: &str = "by_end_of_value";

/// Bytes of a key of the index.
const KEY_BYTES: usize = 8;

/// Makes one key from the last bytes of a value.
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

/// Makes the extractor for the declaration of [`build`].
pub fn extractor(declaration: &[u8]) -> Result<Box<dyn IndexKeys>, String> {
    if declaration == NAME.as_bytes() {
        return Ok(Box::new(EndOfValue));
    }
    Err(format!("a benchmark knows only `{NAME}`"))
}

/// Builds the index while other threads write. Returns how many rows it has visited.
pub fn build(table: &Table) -> Result<u64, Failure> {
    let mut rows = 0;
    table.create_index(NAME, NAME, &IndexOptions::default(), |progress| rows = progress.done).map_err(broken)?;
    Ok(rows)
}

/// Compares the index with the rows, and drops the index. Returns the number of entries in the index.
pub fn check_and_drop(table: &Table) -> Result<u64, Failure> {
    let check = table.index(NAME).map_err(broken)?.check(|_| {}).map_err(broken)?;
    if !check.problems.is_empty() {
        let text = format!("the index differs from the rows: {:?}", check.problems);
        return Err(Failure::session("index", text));
    }
    table.drop_index(NAME).map_err(broken)?;
    Ok(check.entries)
}
