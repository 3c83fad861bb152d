//! The key-value driver's partitions on Larch. One table holds all rows, sorted by partition key (`pk`) and then
//! clustering key (`ck`), so the rows of a partition are adjacent.
//!
//! ```text
//! key     pk, ck      i64 each, big endian, the sign bit turned over, so that bytes have the order of numbers
//! value   the value of the row, or its five counters: i64 each, big endian
//! ```
//!
//! Each request is a future. Neither a read that waits for pages nor a synced write that waits for the log blocks
//! the thread, so one log sync covers all writes under way.

use super::flights::{Task, of_futures};
use super::{TableForm, broken, open_in};
use ::kv::database::not_written;
use ::kv::{Content, KvScheme, Setup};
use harness::partitions::{COUNTERS, counters_of, counters_value};
use harness::request::{no_partitions, no_transactions};
use harness::{
    Clock, Counter, Failure, Opening, Order, Outcome, PartitionRequest, PartitionRows, Reply, Request, Session,
    Setting, Store, StoreUse, Strings, Target,
};
use larch::stats::Admit;
use larch::{Database, Durability, Error, Table};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

#[cfg(test)]
mod tests;

/// `larch:DIR`.
pub const SCHEME: KvScheme = KvScheme {
    name: "larch",
    networked: false,
    unused: &[
        ("keyspace", "a database of Larch is a directory"),
        ("consistency-level", "Larch has one copy of the data"),
        ("replication-factor", "Larch has one copy of the data"),
        ("client-compression", "Larch is called in this process"),
        ("host-selection-policy", "Larch is called in this process"),
        ("connection-count", "Larch is called in this process"),
        ("page-size", "a scan of Larch gives row after row"),
        ("timeout", "a request to Larch ends when it is done"),
    ],
    open,
};

/// An open database, with the table that the run uses.
struct Partitions {
    db: Database,
    name: String,
    form: TableForm,
    content: Content,
    durability: Durability,
    write_buffer_bytes: u64,
    compacts: bool,
    admit: Admit,
    /// Requests under way in each session.
    depth: usize,
    table: RwLock<Table>,
    cuts: Arc<Mutex<Cuts>>,
}

/// The partitions at which the parts of a full scan begin. All sessions share them, so that each row is in exactly
/// one part.
#[derive(Default)]
struct Cuts {
    parts: u32,
    at: Vec<i64>,
}

fn open(target: &Target, setup: &Setup) -> Result<Box<dyn ::kv::Database>, Failure> {
    let mut options = target.options()?;
    let cache = super::cache_budget(&mut options)?;
    let write_buffer_bytes = options.bytes("write_buffer", 64 << 20)?;
    let durability =
        options.choice("durability", &[("buffered", Durability::Buffered), ("synced", Durability::Synced)])?;
    let form = TableForm::take(&mut options, 1)?;
    let compacts = options.choice("settle", &[("levels", false), ("compact", true)])?;
    options.finish()?;
    if form.groups.is_some_and(|groups| groups > 0) {
        return Err(Failure::session("target", "option `groups`: a row of a partition has one value, without groups"));
    }
    let place = target.directory()?;
    let builder = || {
        let builder = Database::builder(place).durability(durability).publish_metrics(true);
        builder.cache_bytes(cache).write_buffer_bytes(write_buffer_bytes)
    };
    let none = || not_written(&setup.table, place.display());
    let db = open_in(place, setup.opening != Opening::Existing, builder)?.ok_or_else(none)?;
    let table = match db.existing_table(&setup.table).map_err(broken)? {
        Some(table) => {
            form.check(&table.options(), place)?;
            table
        }
        None if setup.opening == Opening::Existing => return Err(none()),
        None => db.table_with(&setup.table, form.options()).map_err(broken)?,
    };
    // With `bypass_cache`, reads must not bring rows into the cache. Index nodes are still admitted, since all reads
    // need them.
    let admit = if setup.server.bypass_cache == Some(true) { Admit::Nodes } else { Admit::Keep };
    Ok(Box::new(Partitions {
        db,
        name: setup.table.clone(),
        form,
        content: setup.content,
        durability,
        write_buffer_bytes,
        compacts,
        admit,
        depth: setup.requests_a_session(),
        table: RwLock::new(table),
        cuts: Arc::default(),
    }))
}

impl Partitions {
    fn table(&self) -> Table {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ::kv::Database for Partitions {
    fn truncate(&self) -> Result<(), Failure> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        self.db.drop_table(&self.name).map_err(broken)?;
        *table = self.db.table_with(&self.name, self.form.options()).map_err(broken)?;
        *self.cuts.lock().unwrap_or_else(PoisonError::into_inner) = Cuts::default();
        Ok(())
    }

    fn drop_table(&self) -> Result<(), Failure> {
        self.db.drop_table(&self.name).map(drop).map_err(broken)
    }
}

impl Store for Partitions {
    fn settings(&self) -> Vec<Setting> {
        let mut settings = super::settings_of(&self.db, &self.table(), self.durability, self.write_buffer_bytes);
        settings.push(Setting::new("settle", if self.compacts { "compact" } else { "levels" }));
        settings.push(Setting::new("copies", "1"));
        settings.push(Setting::new("a thread", format!("{} requests under way", self.depth)));
        settings
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let access = Access {
            db: self.db.clone(),
            reads: self.table().admitting(self.admit),
            table: self.table(),
            content: self.content,
            awaits: self.durability == Durability::Synced,
            cuts: self.cuts.clone(),
        };
        let access = Arc::new(access);
        Ok(Session::Flights(of_futures(self.depth, clock, move |job| work(access.clone(), job))))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.table().first_key_value().map_err(broken)?.is_none())
    }

    fn counters(&self) -> Vec<Counter> {
        super::counters_of(&self.db)
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        if self.compacts {
            self.table().compact().map_err(broken)?;
        }
        self.db.compact_due().map_err(broken)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let Self { db, table, .. } = *self;
        drop(table);
        db.close().map_err(broken)
    }
}

/// State shared by the futures of a session.
struct Access {
    db: Database,
    table: Table,
    /// A handle of the same table for reads, with the cache admission of the run.
    reads: Table,
    content: Content,
    /// Whether a write request ends only when its write is durable.
    awaits: bool,
    cuts: Arc<Mutex<Cuts>>,
}

type Key = [u8; 16];

fn key(pk: i64, ck: i64) -> Key {
    let ordered = |number: i64| (number.cast_unsigned() ^ (1 << 63)).to_be_bytes();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&ordered(pk));
    key[8..].copy_from_slice(&ordered(ck));
    key
}

/// The partition key and clustering key in `key`. `None` if [`key`] did not make it.
fn keys_of(key: &[u8]) -> Option<(i64, i64)> {
    let number = |bytes: [u8; 8]| (u64::from_be_bytes(bytes) ^ (1 << 63)).cast_signed();
    let (pk, ck) = key.split_first_chunk::<8>()?;
    Some((number(*pk), number(ck.try_into().ok()?)))
}

#[cold]
fn not_ours(key: &[u8]) -> Failure {
    Failure::request("not_a_row", format!("the key {} is none of a row in a partition", key.escape_ascii()))
}

/// A request and its answer.
#[derive(Default)]
struct Job {
    asked: Asked,
    pk: i64,
    cks: Vec<i64>,
    values: Strings,
    order: Option<Order>,
    by: [i64; COUNTERS],
    reply: Reply,
    result: Option<Result<Outcome, Failure>>,
}

#[derive(Clone, Copy, Default)]
enum Asked {
    #[default]
    Nothing,
    /// A kind of request that this store does not serve. The function makes the failure to return.
    Refused(fn() -> Failure),
    Insert,
    /// Reads rows from a clustering key on, up to a limit.
    From(i64, u64),
    Between(i64, i64),
    Of,
    Scan(u32, u32),
    Add,
}

impl Task for Job {
    fn take(&mut self, request: &Request<'_>) {
        self.reply.clear();
        self.cks.clear();
        self.values.clear();
        let Request::Partition(request) = request else {
            self.asked = Asked::Refused(match request {
                Request::Transaction(_) => no_transactions,
                _ => no_partitions,
            });
            return;
        };
        self.asked = match *request {
            PartitionRequest::Insert { pk, cks, values } => {
                self.pk = pk;
                self.cks.extend_from_slice(cks);
                values.iter().for_each(|value| self.values.push(value));
                Asked::Insert
            }
            PartitionRequest::Read { pk, rows, order } => {
                (self.pk, self.order) = (pk, order);
                match rows {
                    PartitionRows::From { ck, limit } => Asked::From(ck, limit),
                    PartitionRows::First { limit } => Asked::From(i64::MIN, limit),
                    PartitionRows::Between { from, to } => Asked::Between(from, to),
                    PartitionRows::Of(cks) => {
                        self.cks.extend_from_slice(cks);
                        Asked::Of
                    }
                }
            }
            PartitionRequest::Scan { part, parts } => Asked::Scan(part, parts),
            PartitionRequest::Add { pk, ck, by } => {
                (self.pk, self.by) = (pk, by);
                self.cks.push(ck);
                Asked::Add
            }
        };
    }

    fn answer(&mut self) -> (Result<Outcome, Failure>, &Reply) {
        (self.result.take().expect("a job that is done says what came of it"), &self.reply)
    }
}

async fn work(access: Arc<Access>, mut job: Box<Job>) -> Box<Job> {
    job.result = Some(do_job(&access, &mut job).await);
    job
}

async fn do_job(access: &Access, job: &mut Job) -> Result<Outcome, Failure> {
    let pk = job.pk;
    match job.asked {
        Asked::Nothing => unreachable!("a job is taken before it is done"),
        Asked::Refused(failure) => return Err(failure()),
        Asked::Insert => {
            insert(access, job).await?;
            return Ok(Outcome::Ok);
        }
        Asked::Add => {
            add(access, job).await?;
            return Ok(Outcome::Ok);
        }
        Asked::Scan(part, parts) => {
            scan(access, part, parts, &mut job.reply).await?;
            return Ok(Outcome::Ok);
        }
        Asked::From(ck, limit) => {
            let range = (Bound::Included(key(pk, ck)), Bound::Included(key(pk, i64::MAX)));
            read(access, range, Some(limit), job.order, &mut job.reply).await?;
        }
        Asked::Between(from, to) if from < to => {
            let range = (Bound::Included(key(pk, from)), Bound::Excluded(key(pk, to)));
            read(access, range, None, job.order, &mut job.reply).await?;
        }
        Asked::Between(..) => {}
        Asked::Of => {
            job.cks.sort_unstable();
            job.cks.dedup();
            if job.order == Some(Order::Descending) {
                job.cks.reverse();
            }
            let keys = job.cks.iter().map(|ck| key(pk, *ck));
            let values = access.reads.multi_get_async(keys).await.map_err(broken)?;
            for (ck, value) in job.cks.iter().zip(&values) {
                if let Some(value) = value {
                    job.reply.partition_row(*ck, value);
                }
            }
        }
    }
    Ok(if job.reply.rows() > 0 { Outcome::Ok } else { Outcome::NotFound })
}

async fn read(
    access: &Access,
    range: (Bound<Key>, Bound<Key>),
    limit: Option<u64>,
    order: Option<Order>,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let mut rows = access.reads.scan_async(range);
    if let Some(limit) = limit {
        rows = rows.limit(limit);
    }
    let is_backward = order == Some(Order::Descending);
    while let Some(row) = if is_backward { rows.next_back().await } else { rows.next().await } {
        let (key, value) = row.map_err(broken)?;
        let (_, ck) = keys_of(&key).ok_or_else(|| not_ours(&key))?;
        reply.partition_row(ck, &value);
    }
    Ok(())
}

/// Inserts rows of one partition atomically.
async fn insert(access: &Access, job: &Job) -> Result<(), Failure> {
    if let ([ck], false) = (job.cks.as_slice(), access.awaits) {
        let value = job.values.get(0).expect("each row has a value");
        return access.table.insert(key(job.pk, *ck), value).map_err(broken);
    }
    let mut batch = access.db.batch();
    for (ck, value) in job.cks.iter().zip(job.values.iter()) {
        batch.insert(&access.table, key(job.pk, *ck), value);
    }
    match access.awaits {
        true => batch.submit().map_err(broken)?.await.map(drop).map_err(broken),
        false => batch.commit().map(drop).map_err(broken),
    }
}

/// Adds to a row's counters in a transaction, which is retried when it conflicts.
async fn add(access: &Access, job: &Job) -> Result<(), Failure> {
    if access.content != Content::Counters {
        return Err(Failure::request("no_counters", "the rows of this table are no counters"));
    }
    let key = key(job.pk, job.cks[0]);
    let (table, by) = (&access.table, job.by);
    let done = access.db.transact_async(async |mut tx| {
        let before = match tx.get_for_update_async(table, key).await? {
            None => Some([0; COUNTERS]),
            Some(value) => counters_of(&value),
        };
        let Some(before) = before else { return Ok::<bool, Error>(false) };
        let after: [i64; COUNTERS] = std::array::from_fn(|number| before[number].wrapping_add(by[number]));
        tx.insert(table, key, counters_value(after))?;
        Ok(true)
    });
    match done.await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::request("not_a_row", "the row has a value that is no counters")),
        Err(error @ Error::TooManyConflicts { .. }) => Err(Failure::again("conflict", error.to_string())),
        Err(error) => Err(broken(error)),
    }
}

async fn scan(access: &Access, part: u32, parts: u32, reply: &mut Reply) -> Result<(), Failure> {
    let (from, to) = access.part(part, parts)?;
    let from = from.map_or(Bound::Unbounded, |pk| Bound::Included(key(pk, i64::MIN)));
    let to = to.map_or(Bound::Unbounded, |pk| Bound::Excluded(key(pk, i64::MIN)));
    if let (Bound::Included(from), Bound::Excluded(to)) = (from, to)
        && from >= to
    {
        return Ok(());
    }
    let mut rows = access.reads.scan_async((from, to));
    while let Some(row) = rows.next().await {
        let (key, value) = row.map_err(broken)?;
        let (pk, ck) = keys_of(&key).ok_or_else(|| not_ours(&key))?;
        reply.scanned_row(pk, ck, &value);
    }
    Ok(())
}

impl Access {
    /// The first partition of a part, and the first partition after it. `None`: no bound on that side.
    fn part(&self, part: u32, parts: u32) -> Result<(Option<i64>, Option<i64>), Failure> {
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        if cuts.parts != parts {
            let points = self.reads.split_points(.., u64::from(parts)).map_err(broken)?;
            // A part must not begin inside a partition, so its cut moves back to the partition's start.
            let mut at: Vec<i64> = points.iter().map(|point| partition_at(&point.at)).collect();
            at.dedup();
            // If the cuts are too few, the last parts begin at the greatest partition key.
            at.resize((parts - 1) as usize, i64::MAX);
            *cuts = Cuts { parts, at };
        }
        let at = |index: u32| cuts.at.get(index as usize).copied();
        Ok((part.checked_sub(1).and_then(at), at(part)))
    }
}

/// The partition at which a part begins if the engine proposes the split point `cut`. `cut` may be a shortened key;
/// its missing bytes count as zeros.
fn partition_at(cut: &[u8]) -> i64 {
    let mut whole = [0; 8];
    let given = cut.len().min(8);
    whole[..given].copy_from_slice(&cut[..given]);
    (u64::from_be_bytes(whole) ^ (1 << 63)).cast_signed()
}
