//! The row access benchmark on Larch. Rows are keyed by generated ids, which scatter them, and a secondary index
//! finds them by `mykey`. Alternatively (`index_as_pk`), rows are keyed by `mykey` itself and the table has no
//! index.
//!
//! ```text
//! key     an id of 16 bytes, or the tuple (mykey)
//! value   the tuple (mykey, scratch, filler)
//! ```
//!
//! The jobs table maps the tuple (job_id) to a JSON object.

use super::{TableForm as LarchForm, broken, open_in};
use ::row_access::batch::{self, Batch, Order};
use ::row_access::database::{JOBS_TABLE, index_of};
use ::row_access::{
    Access, Counted, Job, Loader, Opening, ReadWay, RowAccessScheme, Seen, Session, Statement, TableForm,
};
use harness::{Failure, Setting, Target};
use larch::index::{IndexOptions, RangeBy};
use larch::rows::Direction;
use larch::transaction::Expected;
use larch::{Database, Durability, Index, Readable, Table, Transaction};
use rows::{DecodeTuple, Decoder, Extractor, Tuple};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(test)]
mod tests;

/// `larch:DIR`.
pub const SCHEME: RowAccessScheme = RowAccessScheme { name: "larch", orders_by_sql: false, open };

/// The extractor of the index key: `mykey`, the first element of the value.
const INDEX: &str = "value.tuple(i64, i64, bytes)[0]";

/// An open database.
struct Rows {
    db: Database,
    form: LarchForm,
    durability: Durability,
    /// The number from which the next id is made.
    next_id: AtomicU64,
}

fn open(target: &Target, opening: Opening) -> Result<Box<dyn ::row_access::Database>, Failure> {
    let mut options = target.options()?;
    let cache = super::cache_budget(&mut options)?;
    let write_buffer_bytes = options.bytes("write_buffer", 64 << 20)?;
    let durability =
        options.choice("durability", &[("buffered", Durability::Buffered), ("synced", Durability::Synced)])?;
    let form = LarchForm::take(&mut options, 1)?;
    options.finish()?;
    let place = target.directory()?;
    let builder = || {
        let builder = Database::builder(place)
            .durability(durability)
            .publish_metrics(true)
            .read_only(opening == Opening::ReadOnly);
        builder.cache_bytes(cache).write_buffer_bytes(write_buffer_bytes).extractors(extractors::of)
    };
    let none = || Failure::session("no_store", format!("there is no database in {}: set it up first", place.display()));
    let db = open_in(place, opening == Opening::OrCreate, builder)?.ok_or_else(none)?;
    // Ids start from the current time, so that each process makes different ones.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    Ok(Box::new(Rows { db, form, durability, next_id: AtomicU64::new(nanos) }))
}

impl Rows {
    fn table(&self, name: &str) -> Result<Table, Failure> {
        let none = || Failure::session("no_table", format!("there is no table {name}: set it up first"));
        self.db.existing_table(name).map_err(broken)?.ok_or_else(none)
    }

    /// The table, and its index if it has one.
    fn tables(&self, name: &str) -> Result<(Table, Option<Index>), Failure> {
        let table = self.table(name)?;
        let has_index = table.indexes().map_err(broken)?.contains(&index_of(name));
        let index = has_index.then(|| table.index(&index_of(name))).transpose().map_err(broken)?;
        Ok((table, index))
    }

    fn jobs_table(&self) -> Result<Table, Failure> {
        self.db.table(JOBS_TABLE).map_err(broken)
    }
}

impl ::row_access::Database for Rows {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.durability {
            Durability::Buffered => "buffered: every write in the log, with the system, not synced",
            Durability::Synced => "synced: a write returns once the log is synced",
        };
        vec![
            Setting::new("engine", concat!("Larch ", env!("CARGO_PKG_VERSION"))),
            Setting::new("durability", durability),
            Setting::new("cache", super::cache_text(&self.db)),
            Setting::new("reads", "direct, where the file system can"),
        ]
    }

    fn create(&self, form: &TableForm, recreate: bool) -> Result<Vec<String>, Failure> {
        if recreate {
            self.db.drop_table(&form.name).map_err(broken)?;
        }
        let table = self.db.table_with(&form.name, self.form.options()).map_err(broken)?;
        let is_new = table.first_key_value().map_err(broken)?.is_none();
        let has_index = table.indexes().map_err(broken)?.contains(&form.index());
        if !is_new && has_index == form.index_as_pk {
            let text =
                format!("table {} has index_as_pk=>{}: recreate it, or set it up as it is", form.name, !has_index);
            return Err(Failure::session("target", text));
        }
        if !form.index_as_pk && !has_index {
            let declaration = INDEX.parse::<Extractor>().expect("it is the text of an extractor").to_bytes();
            let options = IndexOptions::default();
            table.create_index(&form.index(), declaration, &options, |_| {}).map_err(broken)?;
        }
        let tablets = [("tab_tablets", form.tablets), ("ind_tablets", form.index_tablets)];
        let asked = tablets.into_iter().filter(|(_, tablets)| *tablets > 0);
        Ok(asked.map(|(name, _)| format!("{name} has no effect: Larch has no tablets")).collect())
    }

    fn loader(&self, form: &TableForm, order: &Order) -> Result<Box<dyn Loader + '_>, Failure> {
        let table = self.table(&form.name)?;
        let may_meet = form.index_as_pk && table.first_key_value().map_err(broken)?.is_some();
        Ok(Box::new(Inserts { rows: self, table, form: form.clone(), order: order.clone(), may_meet }))
    }

    fn settle(&self, _table: &str) -> Result<(), Failure> {
        self.db.flush().map_err(broken)?;
        self.db.compact_due().map_err(broken)
    }

    fn session(&self, access: &Access) -> Result<Box<dyn Session + '_>, Failure> {
        let (table, index) = self.tables(&access.table)?;
        Ok(Box::new(Accesses { db: &self.db, table, index, index_only: access.index_only }))
    }

    fn session_reading(&self, table: &str, way: ReadWay) -> Result<Option<Box<dyn Session + '_>>, Failure> {
        let (table, index) = self.tables(table)?;
        Ok(match (way, index) {
            (ReadWay::KnownIds, Some(_)) => Some(Box::new(LookUps { rows: ids(&table)?, table })),
            (ReadWay::OneByOne, Some(index)) => Some(Box::new(OneByOne { table, index })),
            // Without an index, the rows are already in the order of `mykey`.
            (_, None) => None,
        })
    }

    fn count(&self, table: &str) -> Result<Counted, Failure> {
        let seen = seen_in_rows(self.table(table)?.iter().map(|row| row.map(|(_, value)| value)))?;
        Ok(Counted { rows: seen.rows, scratch: seen.max })
    }

    fn access_path(&self, access: &Access, statement: Statement, first: i64, last: i64) -> Result<String, Failure> {
        let (table, index) = self.tables(&access.table)?;
        let range = keys(first, last);
        let path = match &index {
            None => table.explain_scan(range, None, Direction::Forward).map_err(broken)?.to_string(),
            Some(index) => {
                let read = index.explain_range_by(range, None, Direction::Forward).map_err(broken)?;
                match access.index_only && statement == Statement::Read {
                    true => format!("entries of the index alone\n{}", read.entries),
                    false => format!("{}\nrounds in all: {}", read.to_string().trim_end(), read.rounds()),
                }
            }
        };
        Ok(format!("{}\n", path.trim_end()))
    }

    fn page_reads(&self) -> Option<u64> {
        Some(self.db.metrics().page_reads)
    }

    fn begin_job(&self, job: &Job) -> Result<i64, Failure> {
        let table = self.jobs_table()?;
        let begun = self.db.transact(|tx| {
            let last = tx.iter(&table).next_back().transpose().map_err(broken)?;
            let last = last.map_or(Ok(0), |(key, _)| <(i64,)>::decode(&key).map(|(id,)| id).map_err(not_ours))?;
            let job = Job { job_id: last + 1, ..job.clone() };
            tx.insert(&table, (job.job_id,).to_key(), json(&job)?).map_err(broken)?;
            Ok(job.job_id)
        });
        let begun = begun.map_err(|failed: Failed| failed.0)?;
        // Another process that opens the database read-only sees only flushed rows.
        self.db.flush().map_err(broken)?;
        Ok(begun)
    }

    fn end_job(&self, job: &Job) -> Result<(), Failure> {
        self.jobs_table()?.insert((job.job_id,).to_key(), json(job).map_err(|failed| failed.0)?).map_err(broken)
    }

    fn jobs(&self, limit: u64) -> Result<Vec<Job>, Failure> {
        let Some(table) = self.db.existing_table(JOBS_TABLE).map_err(broken)? else { return Ok(Vec::new()) };
        let rows = table.iter().rev().take(limit as usize);
        rows.map(|row| serde_json::from_slice(&row.map_err(broken)?.1).map_err(not_ours)).collect()
    }

    fn clean(&self, prefix: &str, with_jobs: bool) -> Result<Vec<String>, Failure> {
        let is_ours = |name: &str| {
            let digits = name.strip_prefix(prefix).unwrap_or_default();
            (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())) || (with_jobs && name == JOBS_TABLE)
        };
        let names: Vec<String> = self.db.tables().into_iter().filter(|name| is_ours(name)).collect();
        for name in &names {
            self.db.drop_table(name).map_err(broken)?;
        }
        Ok(names)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.db.close().map_err(broken)
    }
}

/// The error type of the transactions here.
struct Failed(Failure);

impl From<larch::Error> for Failed {
    fn from(error: larch::Error) -> Self {
        Self(broken(error))
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

fn json(job: &Job) -> Result<Vec<u8>, Failed> {
    serde_json::to_vec(job).map_err(|error| Failed(not_ours(error)))
}

#[cold]
fn not_ours(error: impl std::fmt::Display) -> Failure {
    Failure::session("not_ours", format!("a row was not made by this benchmark: {error}"))
}

fn keys(first: i64, last: i64) -> RangeInclusive<Vec<u8>> {
    (first,).to_key()..=(last,).to_key()
}

/// Decodes `mykey` and `scratch` from a value, and returns the offset of the filler.
fn decoded(value: &[u8]) -> Result<(i64, i64, usize), Failure> {
    let mut from = Decoder::new(value);
    let (mykey, scratch) = <(i64, i64)>::decode_from(&mut from).map_err(not_ours)?;
    Ok((mykey, scratch, from.offset()))
}

/// Adds a row to `seen`.
#[inline]
fn see(seen: &mut Seen, value: &[u8]) -> Result<(), Failure> {
    let (_, scratch, _) = decoded(value)?;
    seen.rows += 1;
    seen.max = seen.max.max(Some(scratch));
    Ok(())
}

fn seen_in_rows<V: AsRef<[u8]>>(values: impl Iterator<Item = larch::Result<V>>) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    for value in values {
        see(&mut seen, value.map_err(broken)?.as_ref())?;
    }
    Ok(seen)
}

/// Counts the rows of an index range, without copying them.
fn seen_in_index(rows: &mut RangeBy) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    let end = rows.for_each_row(|row| match see(&mut seen, row.value()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => ControlFlow::Break(failure),
    });
    match end.map_err(broken)? {
        ControlFlow::Continue(()) => Ok(seen),
        ControlFlow::Break(failure) => Err(failure),
    }
}

/// Inserts batches of rows.
struct Inserts<'r> {
    rows: &'r Rows,
    table: Table,
    form: TableForm,
    order: Order,
    /// Whether the table may already contain rows with the keys of the load.
    may_meet: bool,
}

impl Loader for Inserts<'_> {
    fn insert(&mut self, batch: &Batch) -> Result<(), Failure> {
        let mut writes = self.rows.db.batch();
        for row in batch.rows(&self.order)? {
            let mut value = (row.mykey, row.scratch).to_key();
            let filler = self.form.filler as usize;
            let mut text = Vec::with_capacity(filler);
            batch::push_filler(row.mykey, filler, &mut text);
            (text.as_slice(),).encode(&mut value);
            match self.form.index_as_pk {
                true => {
                    let key = (row.mykey,).to_key();
                    if self.may_meet {
                        writes.expect(&self.table, &key, Expected::Absent);
                    }
                    writes.insert(&self.table, key, value);
                }
                false => {
                    let id = self.rows.next_id.fetch_add(1, Ordering::Relaxed);
                    let id = (u128::from(batch::mixed(id)) << 64) | u128::from(batch::mixed(!id));
                    writes.insert(&self.table, id.to_be_bytes(), value);
                }
            }
        }
        writes.commit().map(drop).map_err(broken)
    }
}

/// Looks rows up by ids that are known in advance, without the index.
struct LookUps {
    table: Table,
    /// `mykey` and id of each row, in the order of `mykey`.
    rows: Vec<(i64, [u8; 16])>,
}

/// `mykey` and id of each row, in the order of `mykey`.
fn ids(table: &Table) -> Result<Vec<(i64, [u8; 16])>, Failure> {
    let mut rows = Vec::new();
    for row in table.iter() {
        let (id, value) = row.map_err(broken)?;
        let id = <[u8; 16]>::try_from(&*id).map_err(|_| not_ours("its key is no id of 16 bytes"))?;
        rows.push((decoded(&value)?.0, id));
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Rows that are looked up by one call.
const TOGETHER: usize = 1000;

impl Session for LookUps {
    fn access(&mut self, statement: Statement, first: i64, last: i64) -> Result<Seen, Failure> {
        assert_eq!(statement, Statement::Read, "it reads only");
        let from = self.rows.partition_point(|(mykey, _)| *mykey < first);
        let to = self.rows.partition_point(|(mykey, _)| *mykey <= last);
        let mut seen = Seen::default();
        for some in self.rows[from..to].chunks(TOGETHER) {
            let values = self.table.multi_get(some.iter().map(|(_, id)| id)).map_err(broken)?;
            let found = seen_in_rows(values.into_iter().flatten().map(Ok))?;
            seen = Seen { rows: seen.rows + found.rows, max: seen.max.max(found.max) };
        }
        Ok(seen)
    }
}

/// Looks rows up one after the other, in the order in which the index names them.
struct OneByOne {
    table: Table,
    index: Index,
}

impl Session for OneByOne {
    fn access(&mut self, statement: Statement, first: i64, last: i64) -> Result<Seen, Failure> {
        assert_eq!(statement, Statement::Read, "it reads only");
        let of_entry = |entry: larch::Result<larch::index::IndexEntry>| self.table.get(entry?.row_key());
        seen_in_rows(self.index.entries(keys(first, last)).filter_map(|entry| of_entry(entry).transpose()))
    }
}

/// Accesses rows.
struct Accesses<'r> {
    db: &'r Database,
    table: Table,
    index: Option<Index>,
    index_only: bool,
}

impl Accesses<'_> {
    fn read(&self, first: i64, last: i64) -> Result<Seen, Failure> {
        let range = keys(first, last);
        let seen_key = |seen: &mut Seen, key: &[u8]| -> Result<(), Failure> {
            let (mykey,) = <(i64,)>::decode(key).map_err(not_ours)?;
            seen.rows += 1;
            seen.max = seen.max.max(Some(mykey));
            Ok(())
        };
        let mut seen = Seen::default();
        match (&self.index, self.index_only) {
            (Some(index), false) => return seen_in_index(&mut index.range_by(range)),
            (None, false) => return seen_in_rows(self.table.range(range).map(|row| row.map(|(_, value)| value))),
            (Some(index), true) => {
                for entry in index.entries(range) {
                    seen_key(&mut seen, entry.map_err(broken)?.index_key())?;
                }
            }
            (None, true) => {
                for row in self.table.range(range) {
                    seen_key(&mut seen, &row.map_err(broken)?.0)?;
                }
            }
        }
        Ok(seen)
    }

    /// Updates rows in a transaction. With `index_only`, they are rewritten with the values that they already have,
    /// as in ybio.
    fn update(&self, first: i64, last: i64) -> Result<Seen, Failure> {
        let updated = self.db.transact(|tx| {
            let rows = self.rows_in(tx, keys(first, last))?;
            let mut seen = Seen::default();
            for (key, value) in rows {
                let (mykey, scratch, filler) = decoded(&value)?;
                seen.rows += 1;
                if self.index_only {
                    seen.max = seen.max.max(Some(mykey));
                    tx.insert(&self.table, key, value)?;
                } else {
                    seen.max = seen.max.max(Some(scratch + 1));
                    let mut new = (mykey, scratch + 1).to_key();
                    new.extend_from_slice(&value[filler..]);
                    tx.insert(&self.table, key, new)?;
                }
            }
            Ok(seen)
        });
        updated.map_err(|failed: Failed| failed.0)
    }

    fn rows_in(
        &self,
        tx: &Transaction,
        range: RangeInclusive<Vec<u8>>,
    ) -> larch::Result<Vec<(larch::Key, larch::Value)>> {
        match &self.index {
            Some(index) => {
                let rows = tx.range_by(index, range);
                rows.map(|row| row.map(|(entry, value)| (entry.row_key().into(), value))).collect()
            }
            None => tx.range(&self.table, range).collect(),
        }
    }
}

impl Session for Accesses<'_> {
    fn access(&mut self, statement: Statement, first: i64, last: i64) -> Result<Seen, Failure> {
        match statement {
            Statement::Read => self.read(first, last),
            Statement::Update => self.update(first, last),
        }
    }
}
