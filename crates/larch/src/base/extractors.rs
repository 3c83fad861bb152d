//! What a program registers so that the engine can keep its indexes: for the declaration of an index, an extractor
//! that makes the keys of a row. This module knows no types and no storage.

use os::sync::Arc;
use std::fmt;

/// Makes the keys of one index from the rows of its table. A program registers a function that makes such an
/// extractor from the declaration of an index, see [`Builder::extractors`](crate::Builder::extractors).
///
/// The keys of a row must follow from its bytes alone, now and in each later release of the program: to remove an
/// entry, its key is made again.
pub trait IndexKeys: Send + Sync {
    /// Numbers of the [column groups](crate::TableOptions::groups) from which the keys are made, counted from 0. In
    /// a table without groups, 0 is the whole value. If the list is empty, the key of a row is enough.
    fn groups(&self) -> &[usize];

    /// Gives each key of a row to `emit`; a row without keys is not in the index. A key that is given twice counts
    /// once. `part` gives the part of the row in one of the [`groups`](Self::groups); `None` if the table does not have
    /// this group.
    ///
    /// # Errors
    ///
    /// Why the row cannot be in the table. A write of such a row is refused with
    /// [`Error::BadRow`](crate::Error::BadRow).
    fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String>;
}

/// The declaration of an index whose keys a closure makes, see [`Table::index_by`](crate::Table::index_by). No
/// extractor is asked for it.
pub const BY_CLOSURE: &[u8] = b"larch: a closure of the program";

/// Makes the keys of an index with a closure, from the key and the value of a row.
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
    /// The extractors that `make` makes from declarations.
    pub fn new(make: impl Fn(&[u8]) -> Result<Box<dyn IndexKeys>, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// The extractor of the index with this `declaration`.
    ///
    /// # Errors
    ///
    /// Why none was made.
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
