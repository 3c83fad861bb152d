//! Loads a part: writes its rows to SSTs, has RocksDB ingest them, and then notes that the part is loaded. After a
//! crash before that note, the part is loaded again with the same rows. Indexes are built in the same way from the
//! rows of a table.

use super::RocksDb;
use super::families::{family, parts_of, value_of};
use crate::rocksdb::broken;
use crate::rocksdb::sorted_files::SortedFiles;
use ::tpcc::about;
use ::tpcc::encoding::{Decode, Encoded, customer_entry, name_entry};
use ::tpcc::ordered::Index;
use ::tpcc::schema::{Customer, Order};
use ::tpcc::{Loader, Part, Row};
use harness::Failure;
use rocksdb::{IngestExternalFileOptions, ReadOptions};

/// Loads the rows of one part.
pub struct PartLoader<'l> {
    rocksdb: &'l RocksDb,
    part: Part,
    files: SortedFiles<'l>,
    encoded: Encoded,
    joined: Vec<u8>,
}

impl<'l> PartLoader<'l> {
    /// A loader of `part`.
    pub fn new(rocksdb: &'l RocksDb, part: &Part) -> Result<Self, Failure> {
        let name = format!("{}-{}", part.table.name(), part.warehouses.start());
        let files = SortedFiles::new(&rocksdb.options, rocksdb.directory.data(), name);
        family(&rocksdb.db, part.table.name())?;
        Ok(Self { rocksdb, part: part.clone(), files, encoded: Encoded::default(), joined: Vec::new() })
    }
}

impl Loader for PartLoader<'_> {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.encoded.set(row, 0);
        self.files.add(self.encoded.key(), value_of(&self.encoded, &mut self.joined))
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let Self { rocksdb, part, mut files, .. } = *self;
        take_in(rocksdb, part.table.name(), &mut files)?;
        rocksdb.note(&about::part_key(&part), b"")
    }
}

fn take_in(rocksdb: &RocksDb, name: &str, files: &mut SortedFiles<'_>) -> Result<(), Failure> {
    let family = family(&rocksdb.db, name)?;
    let paths = files.finish()?.to_vec();
    if paths.is_empty() {
        return Ok(());
    }
    let mut ingestion = IngestExternalFileOptions::default();
    ingestion.set_move_files(true);
    rocksdb.db.ingest_external_file_cf_opts(&family, &ingestion, paths).map_err(broken)
}

/// Builds both indexes.
pub fn make_indexes(rocksdb: &RocksDb) -> Result<(), Failure> {
    make_index::<Customer>(rocksdb, Index::CustomersByName, |row| row.warehouse, name_entry)?;
    make_index::<Order>(rocksdb, Index::OrdersByCustomer, |row| row.warehouse, customer_entry)
}

/// Builds an index of a table unless it is complete already. Sorts the entries of one warehouse at a time in memory.
fn make_index<R: Decode + Default>(
    rocksdb: &RocksDb,
    index: Index,
    warehouse_of: impl Fn(&R) -> u32,
    entry_of: impl Fn(&R, &mut Vec<u8>),
) -> Result<(), Failure> {
    let (table, name) = (index.table(), index.name());
    if rocksdb.has_index(name)? {
        return Ok(());
    }
    let mut files = SortedFiles::new(&rocksdb.options, rocksdb.directory.data(), name);
    let mut entries: Vec<Vec<u8>> = Vec::new();
    let (mut row, mut warehouse) = (R::default(), 0);
    let mut found = rocksdb.db.raw_iterator_cf_opt(&family(&rocksdb.db, table.name())?, ReadOptions::default());
    found.seek_to_first();
    while let Some((key, value)) = found.item() {
        row.decode(key, parts_of(table, value)?)?;
        if warehouse_of(&row) != warehouse {
            add_sorted(&mut files, &mut entries)?;
            warehouse = warehouse_of(&row);
        }
        let mut entry = Vec::new();
        entry_of(&row, &mut entry);
        entries.push(entry);
        found.next();
    }
    found.status().map_err(broken)?;
    add_sorted(&mut files, &mut entries)?;
    take_in(rocksdb, name, &mut files)?;
    rocksdb.note(name.as_bytes(), b"")
}

fn add_sorted(files: &mut SortedFiles<'_>, entries: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
    entries.sort_unstable();
    entries.drain(..).try_for_each(|entry| files.add(&entry, b""))
}
