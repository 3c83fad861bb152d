//! redb as a store of the benchmarks. As is usual with redb, each read request is a read transaction, and each write
//! request is a write transaction.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

#[cfg(test)]
mod tests;

use harness::directory::{bytes_text, io_kind};
use harness::key_value::encoded;
use harness::version::of_crate;
use harness::{
    Clock, Counter, Directory, Failure, Gather, KeyValue, Opening, Records, Rows, Scheme, Session, Setting, Store,
    StoreUse, Strings, Table, Target, WriteMany,
};
use redb::{
    Database, Durability, Error, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    TableDefinition, WriteTransaction,
};

/// `redb:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "redb",
    form: "redb:DIR",
    about: "redb, embedded",
    options: &[
        ("cache", "page cache in bytes, of which a part is for writing: 256MiB"),
        ("durability", "buffered: commits without durability; synced: every commit"),
        ("compression", "none"),
        ("batch", "rows in a transaction of a load: 1000"),
    ],
    networked: false,
    open,
};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

/// redb's page size, which is fixed.
const PAGE_BYTES: u64 = 4096;

/// Rows in each transaction of a bulk load: enough that commits cost next to nothing, and few enough that their
/// pages fit into memory.
const BULK_ROWS: u64 = 100_000;

/// An open database.
struct Redb {
    // Before the directory, so that the database is closed before the directory is unlocked.
    db: Database,
    fields: usize,
    cache_bytes: u64,
    synced: bool,
    batch_rows: u64,
    directory: Directory,
}

const FILE: &str = "rows.redb";

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let cache_bytes = options.bytes("cache", 256 << 20)?;
    let synced = options.choice("durability", &[("buffered", false), ("synced", true)])?;
    options.choice("compression", &[("none", ())])?;
    let batch_rows = options.number("batch", 1000)?.max(1);
    options.finish()?;

    let directory = Directory::open(target, table, opening, &[])?;
    let path = directory.data().join(FILE);
    let mut builder = Database::builder();
    builder.set_cache_size(cache_bytes as usize);
    let opened = match opening {
        Opening::Existing => builder.open(&path),
        Opening::OrCreate | Opening::Recreate => builder.create(&path),
    };
    let db = opened.map_err(|error| {
        let Failure { kind, text, harm } = broken(error);
        Failure { kind, text: format!("{text}, opening {}", path.display()), harm }
    })?;
    let store = Redb { db, fields: table.fields.len(), cache_bytes, synced, batch_rows, directory };
    // Creates the table now, so that readers find it even before the first write.
    store
        .pairs()
        .commit(Durability::Immediate, |transaction| transaction.open_table(ROWS).map(drop).map_err(broken))?;
    Ok(Box::new(store))
}

impl Redb {
    fn pairs(&self) -> Pairs<'_> {
        Pairs { db: &self.db, durability: if self.synced { Durability::Immediate } else { Durability::None } }
    }

    /// Makes all earlier commits durable.
    fn sync(&self) -> Result<(), Failure> {
        self.pairs().commit(Durability::Immediate, |_| Ok(()))
    }
}

impl Store for Redb {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.synced {
            false => "buffered: Durability::None, commits in memory only, lost with the process until it settles",
            true => "synced: Durability::Immediate",
        };
        let version = of_crate(include_str!("../../../Cargo.lock"), "redb");
        vec![
            Setting::new("engine", format!("redb {}", version.unwrap_or("of unknown version"))),
            Setting::new("durability", durability),
            Setting::new("cache", bytes_text(self.cache_bytes)),
            Setting::new("compression", "none"),
            Setting::new("page", bytes_text(PAGE_BYTES)),
            Setting::new("reads", "through the system's page cache"),
            Setting::new("load", format!("{} rows a transaction", self.batch_rows)),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Records::new(self.pairs(), self.fields))))
    }

    fn loader(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Gather::new(self.pairs(), self.batch_rows))))
    }

    /// Loads the rows in large transactions, of which only the last is synced: it makes the others durable, too.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let mut count = 0;
        let mut more = rows.next_row(&mut key, &mut record);
        let pairs = Pairs { db: &self.db, durability: Durability::None };
        while more {
            pairs.change(|transaction| {
                let mut table = transaction.open_table(ROWS).map_err(broken)?;
                while more {
                    table.insert(key.as_slice(), encoded(&record, &mut value)).map_err(broken)?;
                    count += 1;
                    more = rows.next_row(&mut key, &mut record);
                    if count % BULK_ROWS == 0 {
                        break;
                    }
                }
                Ok(())
            })?;
        }
        self.sync()?;
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        let table = self.db.begin_read().map_err(broken)?.open_table(ROWS).map_err(broken)?;
        table.is_empty().map_err(broken)
    }

    fn counters(&self) -> Vec<Counter> {
        let bytes = std::fs::metadata(self.directory.data().join(FILE)).map_or(0, |file| file.len());
        vec![Counter::now("file bytes", bytes)]
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        self.sync()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.sync()
    }
}

struct Pairs<'s> {
    db: &'s Database,
    durability: Durability,
}

impl Pairs<'_> {
    /// Runs `work` in a write transaction with the durability of the target.
    #[inline]
    fn change<T>(&self, work: impl FnOnce(&WriteTransaction) -> Result<T, Failure>) -> Result<T, Failure> {
        self.commit(self.durability, work)
    }

    #[inline]
    fn commit<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&WriteTransaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut transaction = self.db.begin_write().map_err(broken)?;
        transaction.set_durability(durability).map_err(broken)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(broken)?;
        Ok(done)
    }
}

impl KeyValue for Pairs<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let table = self.db.begin_read().map_err(broken)?.open_table(ROWS).map_err(broken)?;
        let value = table.get(key).map_err(broken)?;
        if let Some(value) = &value {
            found(value.value());
        }
        Ok(value.is_some())
    }

    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        let table = self.db.begin_read().map_err(broken)?.open_table(ROWS).map_err(broken)?;
        for (number, key) in keys.iter().enumerate() {
            if let Some(value) = table.get(key).map_err(broken)? {
                found(number, value.value());
            }
        }
        Ok(())
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        let table = self.db.begin_read().map_err(broken)?.open_table(ROWS).map_err(broken)?;
        let mut left = rows;
        for row in table.range(start..).map_err(broken)? {
            let (key, value) = row.map_err(broken)?;
            left -= 1;
            if !each(key.value(), value.value()) || left == 0 {
                break;
            }
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.change(|transaction| {
            let mut table = transaction.open_table(ROWS).map_err(broken)?;
            table.insert(key, value).map(drop).map_err(broken)
        })
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        self.change(|transaction| {
            let mut table = transaction.open_table(ROWS).map_err(broken)?;
            let removed = table.remove(key).map_err(broken)?;
            Ok(removed.is_some())
        })
    }

    fn update(
        &mut self,
        key: &[u8],
        scratch: &mut Vec<u8>,
        mut change: impl FnMut(&[u8], &mut Vec<u8>),
    ) -> Result<bool, Failure> {
        scratch.clear();
        self.change(|transaction| {
            let mut table = transaction.open_table(ROWS).map_err(broken)?;
            match table.get(key).map_err(broken)? {
                Some(value) => change(value.value(), scratch),
                None => return Ok(false),
            }
            table.insert(key, scratch.as_slice()).map_err(broken)?;
            Ok(true)
        })
    }
}

impl WriteMany for Pairs<'_> {
    fn write(&mut self, keys: &Strings, values: &Strings) -> Result<(), Failure> {
        self.change(|transaction| {
            let mut table = transaction.open_table(ROWS).map_err(broken)?;
            for (key, value) in keys.iter().zip(values.iter()) {
                table.insert(key, value).map_err(broken)?;
            }
            Ok(())
        })
    }
}

#[cold]
fn broken(error: impl Into<Error>) -> Failure {
    let error = error.into();
    let text = format!("redb: {error}");
    match error {
        Error::Io(error) => Failure::session(io_kind(&error), text),
        Error::Corrupted(_) => Failure::session("corrupt", text),
        Error::PreviousIo => Failure::session("writes_stopped", text),
        Error::DatabaseAlreadyOpen => Failure::session("locked", text),
        Error::ValueTooLarge(_) => Failure::request("too_long", text),
        _ => Failure::session("redb", text),
    }
}
