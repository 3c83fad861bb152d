//! A folder of a store, as a store of its own. This module does not know what the objects hold.
//!
//! Databases in one store have a folder each, which they see as a store with short names. To name an object of another
//! database, they use a name that begins with `/`: in folder `c`, `sst/1` → `c/sst/1`, but `/a/b/sst/1` → `a/b/sst/1`.

use super::{Bill, PutDone, RangeDone, Store, StoredObject, Upload};
use crate::sync::Arc;
use std::io;
use std::ops::Range;

/// A folder of a store.
#[derive(Debug)]
pub struct FolderStore {
    store: Arc<dyn Store>,
    /// The prefix of all names in the folder: empty, or ending with `/`.
    folder: String,
}

impl FolderStore {
    /// The objects of `store` in `folder`. If `folder` begins with `/`, `store` must be a folder of a larger store.
    pub fn new(store: Arc<dyn Store>, folder: &str) -> FolderStore {
        let end = if folder.is_empty() || folder.ends_with('/') { "" } else { "/" };
        FolderStore { store, folder: format!("{folder}{end}") }
    }

    /// The name that an object has in the whole store.
    fn whole(&self, name: &str) -> String {
        match name.strip_prefix('/') {
            Some(_) if self.folder.starts_with('/') => name.to_owned(),
            Some(rest) => rest.to_owned(),
            None => format!("{}{name}", self.folder),
        }
    }
}

impl Store for FolderStore {
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.store.create(&self.whole(name))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.store.put_if_absent(&self.whole(name), bytes)
    }

    fn begin_put_if_absent(&self, name: &str, bytes: Vec<u8>, done: PutDone) {
        self.store.begin_put_if_absent(&self.whole(name), bytes, done);
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.store.get(&self.whole(name))
    }

    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.store.read_at(&self.whole(name), buffer, offset)
    }

    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        self.store.begin_read(&self.whole(name), range, done);
    }

    fn begin_read_anew(&self, name: &str, range: Range<u64>, done: RangeDone) {
        self.store.begin_read_anew(&self.whole(name), range, done);
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.store.len(&self.whole(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.store.remove(&self.whole(name))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        let folder = folder.trim_end_matches('/');
        let whole = self.whole(folder);
        let listed = self.store.list(&whole)?.into_iter();
        let short = |object: StoredObject| {
            let rest = object.name.strip_prefix(&whole)?;
            Some(StoredObject { name: format!("{folder}{rest}"), bytes: object.bytes })
        };
        Ok(listed.filter_map(short).collect())
    }

    fn bill(&self) -> Option<Bill> {
        self.store.bill()
    }

    fn bind(&self, owner: u64) {
        self.store.bind(owner);
    }
}
