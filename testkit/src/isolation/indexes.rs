//! The two indexes that table 0 has while its isolation is tested. Transactions sometimes read rows through the
//! first one instead of the table. In the second one, every write of a row moves an entry.

use larch::index::{IndexKeys, IndexOptions};
use larch::{Database, Error, Index, Result, Table};

/// The index whose keys are the rows' own keys, so that a read through it sees the same as a read of the table.
const BY_KEY: &[u8] = b"key";

/// The index whose keys are the numbers of the marks. Every put moves an entry, and no two rows have the same
/// entry.
const BY_MARK: &[u8] = b"mark";

/// The length of a mark's number. Each value begins with such a number.
const MARK_BYTES: usize = 8;

/// Makes the keys of both indexes.
struct Keys {
    groups: &'static [usize],
}

impl IndexKeys for Keys {
    fn groups(&self) -> &[usize] {
        self.groups
    }

    fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        match self.groups {
            [] => emit(key),
            _ => emit(part(0).and_then(|value| value.get(..MARK_BYTES)).ok_or("it is not a value of ours")?),
        }
        Ok(())
    }
}

/// The closure that makes the keys of the index that `declaration` names.
///
/// # Errors
///
/// The declaration is neither of the two.
pub fn extractor(declaration: &[u8]) -> Result<Box<dyn IndexKeys>, String> {
    match declaration {
        BY_KEY => Ok(Box::new(Keys { groups: &[] })),
        BY_MARK => Ok(Box::new(Keys { groups: &[0] })),
        other => Err(format!("{} is unknown", other.escape_ascii())),
    }
}

fn name(declaration: &[u8]) -> &str {
    std::str::from_utf8(declaration).expect("it is a word")
}

/// The index of `table` through which transactions read, if it exists.
pub fn by_key(table: &Table) -> Option<Index> {
    table.index(name(BY_KEY)).ok()
}

/// Creates those indexes of `table` that do not exist yet.
///
/// # Errors
///
/// One of them cannot be built.
pub fn create(table: &Table) -> Result<()> {
    for (declaration, unique) in [(BY_KEY, false), (BY_MARK, true)] {
        match table.create_index(name(declaration), declaration, &IndexOptions { unique }, |_| {}) {
            Ok(_) | Err(Error::IndexExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Drops the index of `table` through which transactions read.
///
/// # Errors
///
/// It cannot be dropped.
pub fn drop_one(table: &Table) -> Result<()> {
    table.drop_index(name(BY_KEY)).map(drop)
}

/// Compares the rows of `table` with what each of its indexes shows.
///
/// # Panics
///
/// If they differ.
pub fn expect_clean(db: &Database, table: &Table) {
    for name in table.indexes().expect("the table is there") {
        let found = table.index(&name).and_then(|index| index.check(|_| {})).expect("the disk works");
        let problems = found.problems;
        assert!(problems.is_empty(), "index {name} at {:?} differs: {problems:?}", db.version());
    }
}
