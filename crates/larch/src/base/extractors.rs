//! Lets a program register extractors, with which the engine keeps its indexes. An extractor is made from the
//! declaration of an index, and makes the index keys of a row. This module knows no types and no storage.

use os::sync::Arc;
use std::fmt;

/// Makes the keys of one index from the rows of its table. A program registers a function that makes such an
/// extractor from the declaration of an index. See [`Builder::extractors`](crate::Builder::extractors).
///
/// The index keys of a row must depend only on the bytes of the row, and later releases of the program must make
/// the same keys. The reason is that the engine makes a key again when it removes the entry.
pub trait IndexKeys: Send + Sync {
    /// Numbers of the [column groups](crate::TableOptions::groups) that the extractor needs, counted from 0. In a
    /// table without column groups, the number 0 stands for the whole value. An extractor that returns an empty
    /// list needs only the key of the row.
    fn groups(&self) -> &[usize];

    /// Passes each index key of a row to `emit`. A row without index keys is not in the index. A key that is
    /// passed twice counts once. `part` gets one of the numbers in [`groups`](Self::groups), and returns the row's
    /// part in this group. It returns `None` if the table does not have this group.
    ///
    /// # Errors
    ///
    /// If the row must not be in the table, returns an error that says why. Then the write of the row fails with
    /// [`Error::BadRow`](crate::Error::BadRow).
    fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String>;
}

/// The declaration of an index whose keys come from a closure, see [`Table::index_by`](crate::Table::index_by).
/// The engine does not ask the registered extractors for the keys of such an index.
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

/// A function that makes the extractor of an index from its declaration.
type Make = dyn Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync;

/// The extractors that a program has registered.
#[derive(Clone, Default)]
pub struct Extractors(Option<Arc<Make>>);

impl Extractors {
    /// Registers `make`, which makes an extractor from each declaration.
    pub fn new(make: impl Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// Makes the extractor of the index with this `declaration`.
    ///
    /// # Errors
    ///
    /// If no extractor can be made, the error says why.
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
