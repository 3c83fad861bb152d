//! A table of YCSB in Redis. A row is a hash, as in YCSB's own binding. A sorted set has the keys of all rows, for
//! scans. All its scores are equal, so it is sorted by the bytes of the keys; in YCSB's binding the scores are hash
//! codes, and a scan returns other rows.
//!
//! ```text
//!   TABLE          the number of fields of a row: the mark of the table
//!   TABLE#keys     a sorted set: the keys of the rows, with the score 0
//!   TABLE:KEY      a hash: the fields of a row
//! ```

use super::address::Address;
use super::connection::{self, Connection, list, unexpected};
use super::flights::{self, Requests};
use super::wire::{Answer, Commands, Texts};
use harness::request::{no_partitions, no_transactions};
use harness::{
    Clock, Counter, Failure, Fields, Opening, Outcome, Reply, Request, Scheme, Session, Setting, Store, StoreUse,
    Strings, Table, Target,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(test)]
mod tests;

/// `redis://…`.
pub const SCHEME: Scheme = Scheme {
    name: "redis",
    form: "redis://user:password@host:port/NUMBER",
    about: "Redis; its server is Debian's package redis-server",
    options: &[("pipeline", "requests under way on the connection of each thread [1]")],
    networked: true,
    open,
};

/// Inserts of a load under way on each connection.
const LOAD_DEPTH: usize = 128;

/// How many rows of a table are removed at once.
pub const REMOVED_ROWS: usize = 1000;

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let server = Server::open(Address::parse(target)?)?;
    let names = Names::new(table);
    let fields = table.fields.len().to_string();
    let mut control = server.control();
    let found = control.call(&[b"GET", &names.table], |answer| match answer {
        Answer::Text(found) => Ok(found.map(|found| String::from_utf8_lossy(found).into_owned())),
        other => Err(unexpected(other)),
    })?;
    if opening == Opening::Recreate {
        names.remove(&mut control)?;
    }
    match (opening, found) {
        (Opening::Existing, None) => {
            let text = format!("there is no table `{}` in Redis at {}: load it first", table.name, server.address);
            return Err(Failure::session("no_store", text));
        }
        (Opening::Existing | Opening::OrCreate, Some(found)) if found != fields => {
            let text = format!(
                "table `{}` in Redis at {} was made with {found} fields: load it anew with --recreate",
                table.name, server.address
            );
            return Err(Failure::session("other_fields", text));
        }
        (Opening::Existing, Some(_)) => {}
        (Opening::OrCreate | Opening::Recreate, _) => {
            control.done(&[b"SET", &names.table, fields.as_bytes()])?;
        }
    }
    drop(control);
    Ok(Box::new(Redis { server, names }))
}

/// A server, with a connection for everything that is not measured.
pub struct Server {
    pub address: Address,
    control: Mutex<Connection>,
    /// The server's process, if it runs on this machine.
    process: Option<u32>,
    before: Vec<Counter>,
}

/// The benchmark's names for what the server counts.
const COUNTERS: [(&str, &str); 6] = [
    ("commands", "total_commands_processed"),
    ("bytes received", "total_net_input_bytes"),
    ("bytes sent", "total_net_output_bytes"),
    ("keys found", "keyspace_hits"),
    ("keys not found", "keyspace_misses"),
    ("keys evicted", "evicted_keys"),
];

impl Server {
    /// Connects to the server.
    pub fn open(address: Address) -> Result<Self, Failure> {
        let mut control = Connection::open(&address)?;
        let server = info(&mut control, "server")?;
        let process = value(&server, "process_id").and_then(|id| id.parse().ok());
        // A loopback address may lead into a container or a tunnel, whose process ids mean nothing on this machine.
        let is_it = |id: &u32| harness::cost::processes::parent_of(*id, "redis-server").is_some();
        let process = process.filter(|id| address.is_here() && is_it(id));
        let before = counted(&mut control)?;
        Ok(Self { address, control: Mutex::new(control), process, before })
    }

    /// The connection for everything that is not measured.
    pub fn control(&self) -> MutexGuard<'_, Connection> {
        // If a thread panicked in the middle of a command, the connection reports an error at its next use.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server says of itself.
    pub fn settings(&self, depth: usize) -> Vec<Setting> {
        let mut control = self.control();
        let server = info(&mut control, "server").unwrap_or_default();
        let mut config = |name: &str| {
            let mut values = Vec::new();
            // Some servers forbid this command.
            let asked = control.call(&[b"CONFIG", b"GET", name.as_bytes()], |answer| {
                values.extend(list(answer)?.flatten().map(|text| String::from_utf8_lossy(text).into_owned()));
                Ok(())
            });
            asked.ok().and_then(|()| values.pop()).unwrap_or_else(|| "unknown".to_owned())
        };
        let (log, sync, save) = (config("appendonly"), config("appendfsync"), config("save"));
        let durability = match (log.as_str(), sync.as_str()) {
            ("yes", "always") => "synced: every command in the log".to_owned(),
            ("yes", "everysec") => "buffered: log written, synced once a second".to_owned(),
            ("yes", _) => "buffered: log written, not synced".to_owned(),
            ("no", _) => "buffered: in memory only, lost with the server up to the last snapshot".to_owned(),
            _ => "unknown: the server does not say".to_owned(),
        };
        let save = if save.is_empty() { "none".to_owned() } else { save };
        vec![
            Setting::new(
                "engine",
                format!("Redis {}", value(&server, "redis_version").unwrap_or("of unknown version")),
            ),
            Setting::new("durability", durability),
            Setting::new("snapshots", save),
            Setting::new("memory", format!("maxmemory {}, {}", config("maxmemory"), config("maxmemory-policy"))),
            Setting::new("threads", format!("1 for commands, io-threads {}", config("io-threads"))),
            Setting::new("client", format!("{}, a thread: 1 connection with {depth} requests", self.address)),
        ]
    }

    /// What the server has counted since it was opened.
    pub fn counters(&self) -> Vec<Counter> {
        let mut control = self.control();
        let now = counted(&mut control).unwrap_or_else(|_| self.before.clone());
        let since = now.iter().zip(&self.before).map(|(now, before)| match now.gauge {
            true => *now,
            false => Counter::of(now.name, now.value.saturating_sub(before.value)),
        });
        since.collect()
    }

    /// What the server has used, if it runs on this machine.
    pub fn used(&self) -> StoreUse {
        let used = self.process.and_then(harness::cost::processes::used_below);
        used.map_or(StoreUse::Unknown, StoreUse::Server)
    }
}

/// A section of what the server says of itself: lines of `name:value`.
fn info(control: &mut Connection, section: &str) -> Result<String, Failure> {
    control.call(&[b"INFO", section.as_bytes()], |answer| match answer {
        Answer::Text(Some(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
        other => Err(unexpected(other)),
    })
}

fn value<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    info.lines().find_map(|line| line.split_once(':').filter(|(key, _)| *key == name)).map(|(_, value)| value.trim())
}

fn counted(control: &mut Connection) -> Result<Vec<Counter>, Failure> {
    let (stats, memory) = (info(control, "stats")?, info(control, "memory")?);
    let number = |info: &str, name: &str| value(info, name).and_then(|text| text.parse().ok()).unwrap_or(0);
    let counters = COUNTERS.iter().map(|(name, theirs)| Counter::of(name, number(&stats, theirs)));
    Ok(counters.chain([Counter::now("memory bytes", number(&memory, "used_memory"))]).collect())
}

/// An open table.
struct Redis {
    server: Server,
    names: Names,
}

impl Redis {
    fn flights(&self, depth: usize, clock: Clock) -> Result<Session<'_>, Failure> {
        let connection = Connection::open(&self.server.address)?;
        Ok(Session::Flights(Box::new(flights::Session::new(&self.names, connection, depth, clock))))
    }
}

impl Store for Redis {
    fn settings(&self) -> Vec<Setting> {
        self.server.settings(self.server.address.pipeline.unwrap_or(1))
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        self.flights(self.server.address.pipeline.unwrap_or(1), clock)
    }

    fn loader(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        self.flights(self.server.address.pipeline.unwrap_or(1).max(LOAD_DEPTH), clock)
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.server.control().number(&[b"EXISTS", &self.names.keys])? == 0)
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

/// The names in Redis of a table and what belongs to it.
struct Names {
    table: Vec<u8>,
    keys: Vec<u8>,
    /// What the name of each row begins with.
    row: Vec<u8>,
    fields: Vec<Vec<u8>>,
}

impl Names {
    fn new(table: &Table) -> Self {
        let name = |end: &str| format!("{}{end}", table.name).into_bytes();
        let fields = table.fields.iter().map(|field| field.clone().into_bytes()).collect();
        Self { table: name(""), keys: name("#keys"), row: name(":"), fields }
    }

    /// Removes the table, some rows at a time.
    fn remove(&self, control: &mut Connection) -> Result<(), Failure> {
        let last = (REMOVED_ROWS - 1).to_string();
        loop {
            let mut rows = vec![b"UNLINK".to_vec()];
            control.call(&[b"ZRANGE", &self.keys, b"0", last.as_bytes()], |answer| {
                rows.extend(list(answer)?.flatten().map(|key| [&self.row[..], key].concat()));
                Ok(())
            })?;
            if rows.len() == 1 {
                break;
            }
            control.done(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            control.done(&[b"ZREMRANGEBYRANK", &self.keys, b"0", last.as_bytes()])?;
        }
        control.done(&[b"UNLINK", &self.table, &self.keys])
    }

    /// Puts the read of a row.
    fn put_read(&self, key: &[u8], fields: Fields, out: &mut Commands) {
        let fields = match fields {
            Fields::All => &self.fields[..],
            Fields::One(number) => std::slice::from_ref(&self.fields[number as usize]),
        };
        out.begin(2 + fields.len()).word(b"HMGET").words(&[&self.row, key]);
        fields.iter().for_each(|field| {
            out.word(field);
        });
    }

    fn put_record(&self, key: &[u8], record: &Strings, out: &mut Commands) {
        out.begin(2 + 2 * record.len()).word(b"HSET").words(&[&self.row, key]);
        for (field, value) in self.fields.iter().zip(record.iter()) {
            out.word(field).word(value);
        }
    }
}

/// A request under way.
#[derive(Default)]
struct Task {
    kind: Kind,
    key: Vec<u8>,
    /// The keys of the rows that are read.
    keys: Strings,
    /// How many of these rows were answered.
    answered: usize,
    fields: Option<Fields>,
    field: usize,
}

#[derive(Clone, Copy, Default)]
enum Kind {
    /// A row is read.
    #[default]
    Row,
    /// Rows are read.
    Rows,
    /// The keys of a scan are read.
    Keys,
    /// A row is written.
    Written,
    /// A field is written.
    Updated,
    /// A field of a row that does not exist was written, and is removed again.
    Undone,
    /// A row is removed.
    Removed { found: bool },
}

/// Gives the fields of a row to `reply`. Returns whether the row exists.
fn take_row(key: &[u8], fields: Texts<'_>, reply: &mut Reply) -> Result<bool, Failure> {
    // A row has all its fields or none.
    let mut all = fields;
    if all.all(|field| field.is_none()) {
        return Ok(false);
    }
    reply.row_of_fields(key, |record| -> Result<(), Failure> {
        for field in fields {
            let lacks = || Failure::request("not_a_row", "a row in Redis lacks a field: load the table anew");
            record.push(field.ok_or_else(lacks)?);
        }
        Ok(())
    })?;
    Ok(true)
}

impl Requests for Names {
    type Task = Task;

    fn begin(&self, request: &Request<'_>, task: &mut Task, out: &mut Commands) -> Result<(), Failure> {
        task.kind = match *request {
            Request::Read { key, fields } => {
                task.key.clear();
                task.key.extend_from_slice(key);
                self.put_read(key, fields, out);
                Kind::Row
            }
            Request::ReadMany { keys, fields } => {
                task.keys.clear();
                keys.iter().for_each(|key| task.keys.push(key));
                task.answered = 0;
                keys.iter().for_each(|key| self.put_read(key, fields, out));
                if keys.is_empty() {
                    out.command(&[b"PING"]);
                }
                Kind::Rows
            }
            Request::Scan { start, rows, fields } => {
                task.fields = Some(fields);
                out.begin(8).word(b"ZRANGE").word(&self.keys);
                if start.is_empty() {
                    out.word(b"-")
                } else {
                    out.words(&[b"[", start])
                };
                out.word(b"+").word(b"BYLEX").word(b"LIMIT").number(0).number(rows.min(i64::MAX as u64) as i64);
                Kind::Keys
            }
            Request::Insert { key, record } => {
                self.put_record(key, record, out);
                out.begin(4).word(b"ZADD").word(&self.keys).number(0).word(key);
                Kind::Written
            }
            // Only rows that exist are replaced, so their keys are in the sorted set.
            Request::Replace { key, record } => {
                self.put_record(key, record, out);
                Kind::Written
            }
            Request::Update { key, field, value } => {
                task.key.clear();
                task.key.extend_from_slice(key);
                task.field = field as usize;
                out.begin(4).word(b"HSET").words(&[&self.row, key]).word(&self.fields[task.field]).word(value);
                Kind::Updated
            }
            Request::Delete { key } => {
                out.begin(2).word(b"DEL").words(&[&self.row, key]);
                out.begin(3).word(b"ZREM").word(&self.keys).word(key);
                Kind::Removed { found: false }
            }
            Request::Partition(_) => return Err(no_partitions()),
            Request::Transaction(_) => return Err(no_transactions()),
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
        let found = |found: bool| if found { Outcome::Ok } else { Outcome::NotFound };
        match task.kind {
            Kind::Row => return Ok(found(take_row(&task.key, list(answer)?, reply)?)),
            Kind::Rows => {
                // The answer to a read of no rows is that of PING.
                let Some(key) = task.keys.get(task.answered) else { return Ok(Outcome::Ok) };
                take_row(key, list(answer)?, reply)?;
                task.answered += 1;
            }
            Kind::Keys => {
                task.keys.clear();
                list(answer)?.flatten().for_each(|key| task.keys.push(key));
                (task.kind, task.answered) = (Kind::Rows, 0);
                let fields = task.fields.unwrap_or(Fields::All);
                task.keys.iter().for_each(|key| self.put_read(key, fields, out));
            }
            Kind::Written => {
                connection::number(answer)?;
            }
            // Redis makes a row that does not exist, and tells that the field is new.
            Kind::Updated if connection::number(answer)? != 0 => {
                out.begin(3).word(b"HDEL").words(&[&self.row, &task.key]).word(&self.fields[task.field]);
                task.kind = Kind::Undone;
            }
            Kind::Updated => {}
            Kind::Undone => return Ok(Outcome::NotFound),
            // The second answer is that of the sorted set, which agrees.
            Kind::Removed { found: was_found } => {
                let removed = connection::number(answer)? != 0 || was_found;
                task.kind = Kind::Removed { found: removed };
                return Ok(found(removed));
            }
        }
        Ok(Outcome::Ok)
    }
}
