//! LMDB as a store of the benchmarks, through the crate `heed`. As is usual with heed, each read request is a read
//! transaction, and each write request is a write transaction.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

#[cfg(test)]
mod tests;

use harness::directory::{bytes_text, io_kind};
use harness::key_value::encoded;
use harness::{
    Clock, Counter, Directory, Failure, Gather, KeyValue, Opening, Records, Rows, Scheme, Session, Setting, Store,
    StoreUse, Strings, Table, Target, WriteMany,
};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, Error, MdbError, PutFlags};
use std::ops::Bound;

/// `lmdb:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "lmdb",
    form: "lmdb:DIR",
    about: "LMDB, embedded",
    options: &[
        ("cache", "taken, without effect: LMDB's cache is the system's, of any size"),
        ("durability", "buffered: NOSYNC; synced: every commit"),
        ("compression", "none"),
        ("map", "how large it may become: 64GiB"),
        ("readahead", "1: the system reads ahead; 0: it does not, for data much larger than memory"),
        ("writemap", "0; 1: pages are written through the map; a full disk then ends the process"),
        ("batch", "rows in a transaction of a load: 1000"),
    ],
    networked: false,
    open,
};

/// Rows in each transaction of a bulk load: enough that commits cost next to nothing, and few enough that their
/// pages fit into memory.
const BULK_ROWS: u64 = 100_000;

/// An open database.
struct Lmdb {
    // Before the directory, so that the environment is closed before the directory is unlocked.
    env: Env,
    fields: usize,
    synced: bool,
    readahead: bool,
    writemap: bool,
    map_bytes: u64,
    batch_rows: u64,
    _directory: Directory,
}

type Pages<'e> = Database<'e, Bytes, Bytes>;

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    options.bytes("cache", 0)?;
    let synced = options.choice("durability", &[("buffered", false), ("synced", true)])?;
    options.choice("compression", &[("none", ())])?;
    let map_bytes = options.bytes("map", 64 << 30)?;
    let readahead = options.choice("readahead", &[("1", true), ("0", false)])?;
    let writemap = options.choice("writemap", &[("0", false), ("1", true)])?;
    let batch_rows = options.number("batch", 1000)?.max(1);
    options.finish()?;

    let directory = Directory::open(target, table, opening, &[])?;
    let mut flags = EnvFlags::empty();
    flags.set(EnvFlags::NO_SYNC, !synced);
    flags.set(EnvFlags::NO_READ_AHEAD, !readahead);
    flags.set(EnvFlags::WRITE_MAP, writemap);
    let mut environment = EnvOpenOptions::new();
    environment.map_size(map_bytes as usize).max_readers(1024);
    // SAFETY: with NO_SYNC, a system crash may corrupt the file, and LMDB must not open a corrupt file. The
    // benchmark never reopens a file after a crash: it loads the rows again.
    unsafe { environment.flags(flags) };
    // SAFETY: nothing else changes the mapped file, since the directory is locked and only LMDB writes this file.
    let env = unsafe { environment.open(directory.data()) }.map_err(|error| {
        let Failure { kind, text, harm } = broken(error);
        Failure { kind, text: format!("{text}, opening {}", directory.data().display()), harm }
    })?;
    let fields = table.fields.len();
    Ok(Box::new(Lmdb { env, fields, synced, readahead, writemap, map_bytes, batch_rows, _directory: directory }))
}

impl Lmdb {
    fn pairs(&self) -> Result<Pairs<'_>, Failure> {
        let transaction = self.env.read_txn().map_err(broken)?;
        let opened = self.env.open_databases_and_commit(transaction, |opener, transaction| {
            opener.open_database::<Bytes, Bytes>(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        });
        let pages = opened.map_err(broken)?.commit().flatten().expect("the database without a name is always there");
        Ok(Pairs { env: &self.env, pages })
    }
}

impl Store for Lmdb {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.synced {
            false => "buffered: NOSYNC, commits in the file, with the system, not synced; LMDB has no log",
            true => "synced: a write returns once its pages are synced, then the page that leads to them",
        };
        let version = heed::lmdb_version();
        let on = |is_on| if is_on { "on" } else { "off" };
        vec![
            Setting::new("engine", format!("LMDB {}.{}.{}", version.major, version.minor, version.patch)),
            Setting::new("durability", durability),
            Setting::new("cache", "the system's page cache, without a limit of its own"),
            Setting::new("compression", "none"),
            Setting::new("page", bytes_text(u64::from(self.env.unnamed_database_stat().page_size))),
            Setting::new("reads", "a map of the system's page cache"),
            Setting::new("map", bytes_text(self.map_bytes)),
            Setting::new("readahead", on(self.readahead)),
            Setting::new("writemap", on(self.writemap)),
            Setting::new("load", format!("{} rows a transaction", self.batch_rows)),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Records::new(self.pairs()?, self.fields))))
    }

    fn loader(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Gather::new(self.pairs()?, self.batch_rows))))
    }

    /// Appends the rows, which come in key order, at the end of the tree.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let Pairs { env, pages } = self.pairs()?;
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let mut count = 0;
        let mut more = rows.next_row(&mut key, &mut record);
        while more {
            let mut transaction = env.write_txn().map_err(broken)?;
            while more {
                let value = encoded(&record, &mut value);
                pages.put_with_flags(&mut transaction, PutFlags::APPEND, &key, value).map_err(broken)?;
                count += 1;
                more = rows.next_row(&mut key, &mut record);
                if count % BULK_ROWS == 0 {
                    break;
                }
            }
            transaction.commit().map_err(broken)?;
        }
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        let Pairs { env, pages } = self.pairs()?;
        let transaction = env.read_txn().map_err(broken)?;
        pages.is_empty(&transaction).map_err(broken)
    }

    fn counters(&self) -> Vec<Counter> {
        let stat = self.env.unnamed_database_stat();
        let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        vec![
            Counter::now("pages", pages as u64),
            Counter::now("depth", u64::from(stat.depth)),
            Counter::now("file bytes", self.env.real_disk_size().unwrap_or_default()),
        ]
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        self.env.force_sync().map_err(broken)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.env.force_sync().map_err(broken)?;
        let Self { env, _directory, .. } = *self;
        env.prepare_for_closing().wait();
        Ok(())
    }
}

struct Pairs<'s> {
    env: &'s Env,
    pages: Pages<'s>,
}

impl KeyValue for Pairs<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let transaction = self.env.read_txn().map_err(broken)?;
        let value = self.pages.get(&transaction, key).map_err(broken)?;
        if let Some(value) = value {
            found(value);
        }
        Ok(value.is_some())
    }

    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        let transaction = self.env.read_txn().map_err(broken)?;
        for (number, key) in keys.iter().enumerate() {
            if let Some(value) = self.pages.get(&transaction, key).map_err(broken)? {
                found(number, value);
            }
        }
        Ok(())
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        let transaction = self.env.read_txn().map_err(broken)?;
        // LMDB accepts no empty key, not even as a bound.
        let start = if start.is_empty() { Bound::Unbounded } else { Bound::Included(start) };
        let range = (start, Bound::Unbounded);
        let mut left = rows;
        for row in self.pages.range(&transaction, &range).map_err(broken)? {
            let (key, value) = row.map_err(broken)?;
            left -= 1;
            if !each(key, value) || left == 0 {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn().map_err(broken)?;
        self.pages.put(&mut transaction, key, value).map_err(broken)?;
        transaction.commit().map_err(broken)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        let mut transaction = self.env.write_txn().map_err(broken)?;
        let found = self.pages.delete(&mut transaction, key).map_err(broken)?;
        transaction.commit().map_err(broken)?;
        Ok(found)
    }

    fn update(
        &mut self,
        key: &[u8],
        scratch: &mut Vec<u8>,
        mut change: impl FnMut(&[u8], &mut Vec<u8>),
    ) -> Result<bool, Failure> {
        scratch.clear();
        let mut transaction = self.env.write_txn().map_err(broken)?;
        match self.pages.get(&transaction, key).map_err(broken)? {
            Some(value) => change(value, scratch),
            None => return Ok(false),
        }
        self.pages.put(&mut transaction, key, scratch).map_err(broken)?;
        transaction.commit().map_err(broken)?;
        Ok(true)
    }
}

impl WriteMany for Pairs<'_> {
    fn write(&mut self, keys: &Strings, values: &Strings) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn().map_err(broken)?;
        for (key, value) in keys.iter().zip(values.iter()) {
            self.pages.put(&mut transaction, key, value).map_err(broken)?;
        }
        transaction.commit().map_err(broken)
    }
}

#[cold]
fn broken(error: Error) -> Failure {
    let text = format!("LMDB: {error}");
    match error {
        Error::Io(error) => Failure::session(io_kind(&error), text),
        Error::Mdb(MdbError::MapFull) => {
            Failure::session("map_full", format!("{text}; give it a larger map: `map=256GiB`"))
        }
        Error::Mdb(MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid) => {
            Failure::session("corrupt", text)
        }
        Error::Mdb(MdbError::BadValSize) => Failure::request("too_long", format!("{text}: a key has 1 to 511 bytes")),
        _ => Failure::session("lmdb", text),
    }
}
