//! Lets a program register extractors. An extractor is made from the declaration of an index, and computes the index
//! keys of a row. This module knows no types and no storage.

use os::sync::Arc;
use std::fmt;

/// Computes the index keys of rows for one index. A program registers a function that makes such an extractor from
/// the declaration of an index, see [`Builder::extractors`](crate::Builder::extractors).
///
/// The index keys of a row must depend only on the bytes of the row, and later releases of the program must compute
/// the same keys: the engine computes them again to remove the entries.
pub trait IndexKeys: Send + Sync {
    /// The [column groups](crate::TableOptions::groups) that the extractor needs, counted from 0. In a table without
    /// column groups, 0 is the whole value. Empty if the extractor needs only the key of the row.
    fn groups(&self) -> &[usize];

    /// Passes each index key of a row to `emit`; duplicates count once, and a row without index keys is not in the
    /// index. `part` takes one of the numbers in [`groups`](Self::groups) and returns the row's part in this group,
    /// or `None` if the table does not have the group.
    ///
    /// # Errors
    ///
    /// An error says why the row must not be in the table. The write of the row then fails with
    /// [`Error::BadRow`](crate::Error::BadRow).
    fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String>;
}

/// The declaration of an index whose keys come from a closure, see [`Table::index_by`](crate::Table::index_by).
/// Registered extractors are not asked for such an index.
pub const BY_CLOSURE: &[u8] = b"larch: a closure of the program";

/// An extractor that calls a closure with the key and the value of a row.
pub struct ByClosure<F>(pub F);

impl<F: Fn(&[u8], &[u8], &mut dyn FnMut(&[u8])) + Send + Sync> IndexKeys for ByClosure<F> {
    fn groups(&self) -> &[usize] {
        &[0]
    }

    fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        self.0(key, part(0).ok_or("it has no value")?, emit);
        Ok(())
    }
}

/// Makes the extractor of an index from its declaration.
type Make = dyn Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync;

/// The extractors that a program has registered.
#[derive(Clone, Default)]
pub struct Extractors(Option<Arc<Make>>);

impl Extractors {
    /// Registers `make`, which makes the extractor for each declaration.
    pub fn new(make: impl Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// Makes the extractor of the index with this `declaration`.
    ///
    /// # Errors
    ///
    /// Returns why no extractor can be made.
    pub fn make(&self, declaration: &[u8]) -> Result<Arc<dyn IndexKeys>, String> {
        match &self.0 {
            _ if declaration == BY_CLOSURE => Err("no closure was given since the database was opened".to_owned()),
            Some(make) => make(declaration).map(Arc::from),
            None => Err("this program has registered no extractors".to_owned()),
        }
    }
}

impl fmt::Debug for Extractors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Extractors(given)" } else { "Extractors(none)" })
    }
}
