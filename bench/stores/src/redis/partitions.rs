//! The key-value driver's partitions in Redis. The rows of a partition are a hash; a sorted set beside it has their
//! clustering keys in order.
//!
//! ```text
//!   KEYSPACE.TABLE          `values` or `counters`: the mark of the table
//!   KEYSPACE.TABLE#         a sorted set: the partition keys
//!   KEYSPACE.TABLE#PK       a sorted set: the clustering keys of a partition
//!   KEYSPACE.TABLE:PK       a hash: the values by clustering key, or each counter by clustering key and its number
//! ```
//!
//! A key is eight bytes, of which the greater ones sort behind. The scores of the sets are 0.

use super::address::Address;
use super::connection::{Connection, list, number, unexpected};
use super::flights::{self, Requests};
use super::store::{REMOVED_ROWS, Server};
use super::wire::{Answer, Commands, Texts};
use ::kv::database::not_written;
use ::kv::{Content, Database, KvScheme, Setup};
use harness::partitions::{COUNTERS, counters_value};
use harness::request::no_transactions;
use harness::{
    Clock, Counter, Failure, Opening, Order, Outcome, PartitionRequest, PartitionRows, Reply, Request, Session,
    Setting, Store, StoreUse, Target,
};

#[cfg(test)]
mod tests;

/// `redis://…`.
pub const SCHEME: KvScheme = KvScheme {
    name: "redis",
    networked: true,
    unused: &[
        ("consistency-level", "the target names one server"),
        ("replication-factor", "copies are set up in the server"),
        ("client-compression", "messages of Redis are not compressed"),
        ("host-selection-policy", "the target names one server"),
        ("bypass-cache", "Redis keeps all rows in memory"),
        ("connection-count", "a thread has one connection: Redis carries out one command at a time"),
        ("timeout", "Redis has no limit for a command"),
    ],
    open,
};

fn open(target: &Target, setup: &Setup) -> Result<Box<dyn Database>, Failure> {
    let server = Server::open(Address::parse(target)?)?;
    let names = Names::new(setup);
    let content = match setup.content {
        Content::Values => "values",
        Content::Counters => "counters",
    };
    let mut control = server.control();
    let found = control.call(&[b"GET", &names.table], |answer| match answer {
        Answer::Text(found) => Ok(found.map(|found| String::from_utf8_lossy(found).into_owned())),
        other => Err(unexpected(other)),
    })?;
    match found {
        Some(found) if found != content => {
            let text = format!("table `{}` has {found}: name another one with -table", setup.table);
            return Err(Failure::session("other_data", text));
        }
        Some(_) => {}
        None if setup.opening == Opening::Existing => {
            return Err(not_written(&setup.table, format_args!("Redis at {}", server.address)));
        }
        None => control.done(&[b"SET", &names.table, content.as_bytes()])?,
    }
    drop(control);
    let depth = setup.requests_a_session().max(server.address.pipeline.unwrap_or(1));
    Ok(Box::new(Redis { server, names, depth }))
}

/// An open table.
struct Redis {
    server: Server,
    names: Names,
    /// Requests under way on each connection.
    depth: usize,
}

impl Database for Redis {
    fn truncate(&self) -> Result<(), Failure> {
        self.names.empty(&mut self.server.control())
    }

    fn drop_table(&self) -> Result<(), Failure> {
        self.truncate()?;
        self.server.control().done(&[b"UNLINK", &self.names.table])
    }
}

impl Store for Redis {
    fn settings(&self) -> Vec<Setting> {
        self.server.settings(self.depth)
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let connection = Connection::open(&self.server.address)?;
        Ok(Session::Flights(Box::new(flights::Session::new(&self.names, connection, self.depth, clock))))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.server.control().number(&[b"EXISTS", &self.names.partitions])? == 0)
    }

    fn counters(&self) -> Vec<Counter> {
        self.server.counters()
    }

    fn used(&self) -> StoreUse {
        self.server.used()
    }

    /// Nothing is left to do: all rows are in memory.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// Key bytes that sort as the key.
fn bytes_of(key: i64) -> [u8; 8] {
    (key ^ i64::MIN).to_be_bytes()
}

/// The key of which these are the bytes.
fn key_of(bytes: &[u8]) -> Result<i64, Failure> {
    let bytes = bytes.try_into().map_err(|_| Failure::request("other_data", "a key in Redis has not eight bytes"))?;
    Ok(i64::from_be_bytes(bytes) ^ i64::MIN)
}

/// The names in Redis of a table and what belongs to it.
struct Names {
    table: Vec<u8>,
    partitions: Vec<u8>,
    /// What the name of a partition's rows begins with.
    rows: Vec<u8>,
    content: Content,
    page_rows: i64,
}

impl Names {
    fn new(setup: &Setup) -> Self {
        let name = |end: &str| format!("{}.{}{end}", setup.keyspace, setup.table).into_bytes();
        let page_rows = i64::from(setup.page_rows.max(1));
        Self { table: name(""), partitions: name("#"), rows: name(":"), content: setup.content, page_rows }
    }

    /// Removes all rows, some partitions at a time.
    fn empty(&self, control: &mut Connection) -> Result<(), Failure> {
        let last = (REMOVED_ROWS - 1).to_string();
        loop {
            let mut names = vec![b"UNLINK".to_vec()];
            control.call(&[b"ZRANGE", &self.partitions, b"0", last.as_bytes()], |answer| {
                for pk in list(answer)?.flatten() {
                    names.extend([[&self.partitions[..], pk].concat(), [&self.rows[..], pk].concat()]);
                }
                Ok(())
            })?;
            if names.len() == 1 {
                return Ok(());
            }
            control.done(&names.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            control.done(&[b"ZREMRANGEBYRANK", &self.partitions, b"0", last.as_bytes()])?;
        }
    }

    /// Puts the commands that note the keys of rows that are written.
    fn put_keys(&self, pk: i64, cks: &[i64], out: &mut Commands) {
        let pk = bytes_of(pk);
        out.begin(2 + 2 * cks.len()).word(b"ZADD").words(&[&self.partitions, &pk]);
        cks.iter().for_each(|ck| {
            out.number(0).word(&bytes_of(*ck));
        });
        out.begin(4).word(b"ZADD").word(&self.partitions).number(0).word(&pk);
    }

    /// Puts the read of the clustering keys of these rows, but for [`PartitionRows::Of`].
    fn put_keys_read(&self, pk: i64, rows: PartitionRows<'_>, order: Option<Order>, out: &mut Commands) {
        let pk = bytes_of(pk);
        let falls = order == Some(Order::Descending);
        let count = |limit: u64| limit.min(i64::MAX as u64) as i64;
        let (least, end, limit) = match rows {
            PartitionRows::From { ck, limit } => (Some(ck), None, Some(count(limit))),
            PartitionRows::First { limit } => (None, None, Some(count(limit))),
            PartitionRows::Between { from, to } => (Some(from), Some(to), None),
            PartitionRows::Of(_) => return,
        };
        let words = 5 + usize::from(falls) + if limit.is_some() { 3 } else { 0 };
        out.begin(words).word(b"ZRANGE").words(&[&self.partitions, &pk]);
        for is_first in [true, false] {
            // With REV, the upper bound comes first.
            match if is_first != falls { least.map(|least| (b"[", least)) } else { end.map(|end| (b"(", end)) } {
                Some((kind, bound)) => out.words(&[kind, &bytes_of(bound)]),
                None if is_first != falls => out.word(b"-"),
                None => out.word(b"+"),
            };
        }
        out.word(b"BYLEX");
        if falls {
            out.word(b"REV");
        }
        if let Some(limit) = limit {
            out.word(b"LIMIT").number(0).number(limit);
        }
    }

    /// Puts the read of the rows of these clustering keys. At least one is given.
    fn put_rows_read(&self, pk: i64, cks: &[i64], out: &mut Commands) {
        let pk = bytes_of(pk);
        match self.content {
            Content::Values => {
                out.begin(2 + cks.len()).word(b"HMGET").words(&[&self.rows, &pk]);
                cks.iter().for_each(|ck| {
                    out.word(&bytes_of(*ck));
                });
            }
            Content::Counters => {
                out.begin(2 + COUNTERS * cks.len()).word(b"HMGET").words(&[&self.rows, &pk]);
                for ck in cks {
                    for counter in 0..COUNTERS as u8 {
                        out.words(&[&bytes_of(*ck), &[counter]]);
                    }
                }
            }
        }
    }

    /// Calls `each` with the rows of these clustering keys that exist, in their order.
    fn take_rows(&self, cks: &[i64], mut texts: Texts<'_>, mut each: impl FnMut(i64, Row<'_>)) -> Result<(), Failure> {
        for ck in cks {
            match self.content {
                Content::Values => {
                    if let Some(value) = texts.next().flatten() {
                        each(*ck, Row::Value(value));
                    }
                }
                Content::Counters => {
                    let (mut counters, mut is_there) = ([0; COUNTERS], false);
                    for counter in &mut counters {
                        let Some(text) = texts.next().flatten() else { continue };
                        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                        let bad = || Failure::request("other_data", "a counter in Redis is no number");
                        *counter = number.ok_or_else(bad)?;
                        is_there = true;
                    }
                    if is_there {
                        each(*ck, Row::Counters(counters));
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts the read of the next clustering keys of a scan, or nothing if the scan is over.
    fn put_scan(&self, task: &mut Task, out: &mut Commands) {
        let Some(pk) = task.pks.last() else { return };
        let words = out.begin(8).word(b"ZRANGE").words(&[&self.partitions, &bytes_of(*pk)]);
        match task.after {
            Some(after) => words.words(&[b"(", &bytes_of(after)]),
            None => words.word(b"-"),
        };
        words.word(b"+").word(b"BYLEX").word(b"LIMIT").number(0).number(self.page_rows);
        task.kind = Kind::ScannedKeys;
    }
}

/// A row of a partition.
enum Row<'r> {
    Value(&'r [u8]),
    Counters([i64; COUNTERS]),
}

/// A request under way.
#[derive(Default)]
struct Task {
    kind: Kind,
    pk: i64,
    /// Clustering keys of the rows that are read.
    cks: Vec<i64>,
    /// The partitions that a scan has still to read, the next one at the end.
    pks: Vec<i64>,
    /// The last clustering key of the scanned partition that was read.
    after: Option<i64>,
}

#[derive(Clone, Copy, Default)]
enum Kind {
    /// Rows are written.
    #[default]
    Written,
    /// The clustering keys of rows are read.
    Keys,
    /// Rows are read.
    Rows,
    /// The number of partitions is read, for this part of a scan.
    Count { part: u32, parts: u32 },
    /// The partitions of a part of a scan are read.
    Partitions,
    /// Clustering keys for a scan are read.
    ScannedKeys,
    /// Rows for a scan are read.
    ScannedRows,
}

impl Requests for Names {
    type Task = Task;

    fn begin(&self, request: &Request<'_>, task: &mut Task, out: &mut Commands) -> Result<(), Failure> {
        let request = match *request {
            Request::Partition(request) => request,
            Request::Transaction(_) => return Err(no_transactions()),
            _ => return Err(Failure::request("no_rows", "the store was opened for rows in partitions")),
        };
        task.kind = match request {
            PartitionRequest::Insert { pk, cks, values } => {
                out.begin(2 + 2 * cks.len()).word(b"HSET").words(&[&self.rows, &bytes_of(pk)]);
                for (ck, value) in cks.iter().zip(values.iter()) {
                    out.word(&bytes_of(*ck)).word(value);
                }
                self.put_keys(pk, cks, out);
                Kind::Written
            }
            PartitionRequest::Add { pk, ck, by } => {
                for (counter, by) in (0_u8..).zip(by) {
                    out.begin(4).word(b"HINCRBY").words(&[&self.rows, &bytes_of(pk)]);
                    out.words(&[&bytes_of(ck), &[counter]]).number(by);
                }
                self.put_keys(pk, &[ck], out);
                Kind::Written
            }
            PartitionRequest::Read { pk, rows, order } => {
                task.pk = pk;
                task.cks.clear();
                match rows {
                    PartitionRows::Of(cks) => {
                        task.cks.extend_from_slice(cks);
                        task.cks.sort_unstable();
                        task.cks.dedup();
                        if order == Some(Order::Descending) {
                            task.cks.reverse();
                        }
                        self.put_rows_read(pk, &task.cks, out);
                        Kind::Rows
                    }
                    rows => {
                        self.put_keys_read(pk, rows, order, out);
                        Kind::Keys
                    }
                }
            }
            PartitionRequest::Scan { part, parts } => {
                out.command(&[b"ZCARD", &self.partitions]);
                Kind::Count { part, parts }
            }
        };
        Ok(())
    }

    fn answer(
        &self,
        task: &mut Task,
        answer: Answer<'_>,
        reply: &mut Reply,
        out: &mut Commands,
    ) -> Result<Outcome, Failure> {
        match task.kind {
            Kind::Written => {
                number(answer)?;
            }
            Kind::Keys => {
                for ck in list(answer)?.flatten() {
                    task.cks.push(key_of(ck)?);
                }
                if task.cks.is_empty() {
                    return Ok(Outcome::NotFound);
                }
                self.put_rows_read(task.pk, &task.cks, out);
                task.kind = Kind::Rows;
            }
            Kind::Rows => {
                self.take_rows(&task.cks, list(answer)?, |ck, row| match row {
                    Row::Value(value) => reply.partition_row(ck, value),
                    Row::Counters(counters) => reply.partition_counters(ck, counters),
                })?;
                return Ok(if reply.rows() == 0 { Outcome::NotFound } else { Outcome::Ok });
            }
            Kind::Count { part, parts } => {
                let count = i128::from(number(answer)?);
                let bound = |part: u32| (count * i128::from(part) / i128::from(parts)) as i64;
                let (first, end) = (bound(part), bound(part + 1));
                if first < end {
                    out.begin(4).word(b"ZRANGE").word(&self.partitions).number(first).number(end - 1);
                    task.kind = Kind::Partitions;
                }
            }
            Kind::Partitions => {
                task.pks.clear();
                for pk in list(answer)?.flatten() {
                    task.pks.push(key_of(pk)?);
                }
                task.pks.reverse();
                task.after = None;
                self.put_scan(task, out);
            }
            Kind::ScannedKeys => {
                task.cks.clear();
                for ck in list(answer)?.flatten() {
                    task.cks.push(key_of(ck)?);
                }
                match (task.cks.last(), task.pks.last()) {
                    (Some(last), Some(pk)) => {
                        task.after = Some(*last);
                        self.put_rows_read(*pk, &task.cks, out);
                        task.kind = Kind::ScannedRows;
                    }
                    _ => {
                        task.pks.pop();
                        task.after = None;
                        self.put_scan(task, out);
                    }
                }
            }
            Kind::ScannedRows => {
                let pk = task.pks.last().copied().unwrap_or_default();
                self.take_rows(&task.cks, list(answer)?, |ck, row| match row {
                    Row::Value(value) => reply.scanned_row(pk, ck, value),
                    Row::Counters(counters) => reply.scanned_row(pk, ck, &counters_value(counters)),
                })?;
                if (task.cks.len() as i64) < self.page_rows {
                    task.pks.pop();
                    task.after = None;
                }
                self.put_scan(task, out);
            }
        }
        Ok(Outcome::Ok)
    }
}
