//! Creates and drops indexes. An index is built in three steps, while writes go on:
//!
//! 1. The index is installed in the state `Building`. From then on, every commit updates its entries.
//! 2. Transactions add the entries of the rows that existed before, some rows at a time. Each depends on the rows
//!    whose entries it adds. If another commit changes one of them, the transaction conflicts, and the next attempt
//!    takes fewer rows. After many conflicts, the keys of the transaction are reserved, so that the build makes
//!    progress. It ends at the key that was the greatest when it began: rows with greater keys were written later,
//!    so their commits have added their entries.
//! 3. All rows in memory are flushed, so that read-only databases, which do not read the log, see all entries. Then
//!    the index is installed in the state `Ready`.
//!
//! If a build ends early, the index is dropped at once. If the drop fails, the index is dropped when another index
//! is created, or by the next open.

use crate::base::error::{Error, Result};
use crate::base::extractors::IndexKeys;
use crate::base::options::{Durability, TableOptions};
use crate::base::table::{IndexInfo, IndexState, TableId, TableInfo};
use crate::base::watch::Watch;
use crate::core::Core;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::core::registry::no_extractor;
use crate::handle::attempts::Attempts;
use crate::handle::transaction::{Isolation, TransactionOptions};
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::{Edit, TableFiles};
use crate::read::Reader;
use crate::view::part_list::PartList;
use crate::view::value::Parts;
use crate::write::change::TableChange;
use crate::write::define::is_new_name;
use crate::write::flush::flush_all;
use os::sync::Arc;
use sst::Version;
use std::ops::Bound;
use std::time::Duration;

/// An index to create.
#[derive(Clone, Copy)]
pub struct NewIndex<'n> {
    /// The name of the index.
    pub name: &'n str,
    /// Says how index keys are made from a row, for the extractors of the program.
    pub declaration: &'n [u8],
    /// The closure that makes the index keys, if the declaration is `BY_CLOSURE`.
    pub closure: Option<&'n Arc<dyn IndexKeys>>,
    /// Whether the index forbids two rows with the same index key.
    pub is_unique: bool,
}

/// The name of this work in [`Error::Cancelled`].
pub const WORK: &str = "building the index";

/// The rows of the first transaction, and the most rows of a later one. They are few because commits become visible
/// in order: a commit after such a transaction waits until all rows of the transaction are in memory.
const FIRST_ROWS: usize = 64;
const MOST_ROWS: usize = 256;

/// While others commit, the build pauses after each transaction for as long as the transaction took, but at most
/// this long. So it takes only half of the time of a processor and of background work, and leaves the rest to other
/// commits.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// The rows and entries of a transaction take about this share of the write buffer at most: one part in this many.
/// Only a transaction for a single row may take more.
const BUFFER_SHARE: u64 = 64;

/// Creates an index of `table`. Returns the table that holds the entries of the index.
///
/// # Errors
///
/// Fails as [`Table::create_index`](crate::Table::create_index) does.
pub fn create(
    handle: &Arc<DatabaseHandle>,
    table: &Arc<TableInfo>,
    new: &NewIndex<'_>,
    watch: &Watch<'_>,
) -> Result<Arc<TableInfo>> {
    let core = handle.core();
    if !is_new_name(new.name) {
        return Err(Error::BadIndexName(new.name.to_owned()));
    }
    if !core.env.options.compat.reads_indexes() {
        let release = core.env.options.compat;
        return Err(Error::BadOptions(format!(
            "compat {release}: Larch {release} does not read databases with indexes; open the database without compat to create one"
        )));
    }
    watch.check()?;
    while let Some(id) = core.indexes.abandoned() {
        drop_by_id(core, id)?;
        core.indexes.forget_abandoned(id);
    }
    let unfinished = Unfinished { core, id: Some(install(core, table, new)?) };
    let id = unfinished.id.expect("it was set above");
    fill(handle, table, (id, new.name), watch)?;
    finish(core, table, id, new.name)?;
    unfinished.keep();
    core.views.table_info(id).ok_or_else(|| no_such_index(table, new.name))
}

/// An index that is being built. Dropping this value drops the index, unless `keep` was called.
struct Unfinished<'c> {
    core: &'c Core,
    id: Option<TableId>,
}

impl Unfinished<'_> {
    fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // If this fails, the index is dropped later. Nobody reads it until then.
            if drop_by_id(self.core, id).is_err() {
                self.core.indexes.note_abandoned(id);
            }
        }
    }
}

fn no_such_index(table: &TableInfo, name: &str) -> Error {
    Error::NoSuchIndex { table: table.name.as_str().into(), index: name.into() }
}

/// Step 1: installs the index. Returns the id of the table that holds the entries.
fn install(core: &Core, table: &TableInfo, new: &NewIndex<'_>) -> Result<TableId> {
    let mut change = TableChange::begin(core)?;
    let view = core.views.newest();
    let options = &view.files_of(table)?.info.options;
    let options = TableOptions {
        page_bytes: options.page_bytes,
        node_bytes: options.node_bytes,
        index: options.index,
        compression: options.compression,
        in_memory: options.in_memory,
        ..TableOptions::default()
    };
    if named(core, table, new.name).is_some() {
        return Err(Error::IndexExists { table: table.name.as_str().into(), index: new.name.into() });
    }
    let id = TableId(view.files.next_table);
    let info = IndexInfo {
        id,
        table: table.id,
        name: new.name.to_owned(),
        is_unique: new.is_unique,
        state: IndexState::Building,
        since: Version(0),
        declaration: new.declaration.to_vec(),
    };
    match new.closure {
        Some(keys) => core.indexes.give_closure(id, keys.clone()),
        None => core
            .env
            .options
            .extractors
            .make(new.declaration)
            .map(drop)
            .map_err(|why| no_extractor(table, &info, &why))?,
    }
    drop(view);
    change.sync()?;
    change.commit(vec![Edit::Index { info, options }], FreshFiles::new(&core.env.opener.leftovers))?;
    Ok(id)
}

/// Step 2: adds the entries of existing rows.
fn fill(
    handle: &Arc<DatabaseHandle>,
    table: &Arc<TableInfo>,
    (id, name): (TableId, &str),
    watch: &Watch<'_>,
) -> Result<()> {
    let core = handle.core();
    // With snapshot isolation, the transaction depends only on the rows that it notes one by one.
    let options = TransactionOptions {
        isolation: Isolation::Snapshot,
        durability: Some(Durability::Buffered),
        // No limit: `watch` can end the build, each attempt takes fewer rows than the one before, and after many
        // conflicts the keys of these rows are reserved.
        attempts: u32::MAX,
        ..TransactionOptions::default()
    };
    let reader = TableHandle::new(handle.clone(), table.clone());
    let keys_alone = PartList::nothing(table.options.groups.len().max(1));
    let mut rows = Reader::<Parts>::new(&reader, None, keys_alone).range_within((Bound::Unbounded, Bound::Unbounded));
    let Some(last) = rows.next_back() else { return Ok(()) };
    let (through, _) = last?;
    let most_bytes = (core.env.options.write_buffer_bytes / BUFFER_SHARE) as usize;
    let total_rows = core.views.newest().files_of(table)?.files().map(|(_, file)| file.sst.meta.rows()).sum();
    let (mut rows, mut after, mut most_rows) = (0, None, FIRST_ROWS);
    let clock = &core.env.machine.clock;
    let mut last_version = None;
    loop {
        let begun = clock.now();
        let mut attempts = Attempts::new(handle, &options);
        let (filled, version) = loop {
            watch.check()?;
            let mut tx = attempts.begin()?;
            let index = core.indexes.index(table.id, id).ok_or_else(|| no_such_index(table, name))?;
            let filled = tx.fill(table, &index, (after.as_deref(), &through), (most_rows, most_bytes))?;
            match tx.try_commit()? {
                Ok(version) => break (filled, version),
                Err(conflict) => {
                    most_rows = (most_rows / 2).max(1);
                    attempts.failed(tx, conflict)?;
                }
            }
        };
        rows += filled.rows;
        watch.tell(rows, rows.max(total_rows));
        after = match filled.last {
            Some(last) => Some(last),
            None => return Ok(()),
        };
        most_rows = (most_rows * 2).min(MOST_ROWS);
        let others_commit = last_version.is_some_and(|last: Version| version.0 > last.0 + 1);
        if others_commit {
            clock.pause(clock.now().saturating_sub(begun).min(LONGEST_REST));
        }
        last_version = Some(version);
    }
}

/// Step 3: makes the index ready.
fn finish(core: &Arc<Core>, table: &TableInfo, id: TableId, name: &str) -> Result<()> {
    flush_all(core)?;
    let mut change = TableChange::begin(core)?;
    // The table may have been renamed meanwhile, which gives it another id, so look the id up again.
    let owner = core.views.table_info(id).and_then(|entries| entries.index.as_ref().map(|index| index.table));
    let owner = owner.ok_or_else(|| no_such_index(table, name))?;
    change.sync()?;
    // At this point the index has the entries of all commits.
    let edits =
        [Edit::LastVersion(change.last_version()), Edit::AlterIndex { id, table: owner, state: IndexState::Ready }];
    change.install(&edits, FreshFiles::new(&core.env.opener.leftovers))
}

/// The table that holds the entries of the index `name` of `table`.
pub fn named(core: &Core, table: &TableInfo, name: &str) -> Option<Arc<TableInfo>> {
    let view = core.views.newest();
    let is_named = |files: &&TableFiles| files.info.index.as_ref().is_some_and(|index| index.name == name);
    view.files.tables.indexes_of(table.id).find(is_named).map(|files| files.info.clone())
}

/// Drops the index `name` of `table`. Returns false if no such index exists.
///
/// # Errors
///
/// Fails as [`TableChange::begin`] and [`Core::install`] do.
pub fn drop_index(core: &Core, table: &TableInfo, name: &str) -> Result<bool> {
    core.views.newest().files_of(table)?;
    match named(core, table, name) {
        Some(entries) => drop_by_id(core, entries.id),
        None => Ok(false),
    }
}

fn drop_by_id(core: &Core, id: TableId) -> Result<bool> {
    let mut change = TableChange::begin(core)?;
    if core.views.table_info(id).is_none() {
        return Ok(false);
    }
    change.sync()?;
    change.commit(vec![Edit::DropTable(id)], FreshFiles::new(&core.env.opener.leftovers))?;
    Ok(true)
}
