//! fjall as a store of the benchmarks.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

#[cfg(test)]
mod tests;

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{CompressionType, Database, Error, Keyspace, KeyspaceCreateOptions, PersistMode};
use harness::directory::{bytes_text, io_kind};
use harness::key_value::encoded;
use harness::version::of_crate;
use harness::{
    Clock, Counter, Directory, Failure, KeyValue, Opening, Records, Rows, Scheme, Session, Setting, Store, StoreUse,
    Strings, Table, Target,
};
use std::time::Duration;

/// `fjall:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "fjall",
    form: "fjall:DIR",
    about: "fjall, embedded",
    options: &[
        ("cache", "block cache in bytes: 256MiB"),
        ("write_buffer", "memory for rows not yet in files: 64MiB"),
        ("durability", "buffered: journal written, not synced; synced: every commit"),
        ("compression", "none or lz4: none"),
        ("page", "bytes of a block: 16KiB"),
        ("settle", "levels: compactions that are wanted; compact: everything to the deepest level"),
    ],
    networked: false,
    open,
};

const KEYSPACE: &str = "rows";

/// The store counts as quiet after this long without background work. Not zero, because a compaction starts a moment
/// after a flush.
const QUIET: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(10);

/// An open database.
struct Fjall {
    // Before the directory, so that the database is closed before the directory is unlocked.
    rows: Keyspace,
    db: Database,
    fields: usize,
    cache_bytes: u64,
    write_buffer_bytes: u64,
    page_bytes: u64,
    compression: &'static str,
    synced: bool,
    compacts: bool,
    _directory: Directory,
}

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let cache_bytes = options.bytes("cache", 256 << 20)?;
    let write_buffer_bytes = options.bytes("write_buffer", 64 << 20)?;
    let synced = options.choice("durability", &[("buffered", false), ("synced", true)])?;
    let compression = options.choice("compression", &[("none", "none"), ("lz4", "lz4")])?;
    let page_bytes = options.bytes("page", 16 << 10)?;
    if !(1 << 10..=1 << 20).contains(&page_bytes) {
        return Err(options.bad("page", &bytes_text(page_bytes), "within 1KiB and 1MiB"));
    }
    let compacts = options.choice("settle", &[("levels", false), ("compact", true)])?;
    options.finish()?;

    let shape = [("page", bytes_text(page_bytes)), ("compression", compression.to_owned())];
    let directory = Directory::open(target, table, opening, &shape)?;
    let kind = if compression == "lz4" { CompressionType::Lz4 } else { CompressionType::None };
    let in_directory = |error: Error| {
        let Failure { kind, text, harm } = broken(error);
        Failure { kind, text: format!("{text}, opening {}", directory.data().display()), harm }
    };
    let builder = Database::builder(directory.data()).cache_size(cache_bytes).journal_compression(kind);
    let db = builder.open().map_err(in_directory)?;
    let made = || {
        KeyspaceCreateOptions::default()
            .data_block_size_policy(BlockSizePolicy::all(page_bytes as u32))
            .data_block_compression_policy(CompressionPolicy::all(kind))
            .index_block_compression_policy(CompressionPolicy::disabled())
            .max_memtable_size(write_buffer_bytes)
    };
    let rows = db.keyspace(KEYSPACE, made).map_err(in_directory)?;
    Ok(Box::new(Fjall {
        rows,
        db,
        fields: table.fields.len(),
        cache_bytes,
        write_buffer_bytes,
        page_bytes,
        compression,
        synced,
        compacts,
        _directory: directory,
    }))
}

impl Fjall {
    /// Waits until no background work is left. fjall only reports such work, so this polls.
    fn wait_until_quiet(&self) -> Result<(), Failure> {
        let mut quiet = Duration::ZERO;
        let mut compactions = self.db.compactions_completed();
        while quiet < QUIET {
            // If a write fails in a worker of fjall, the worker stops and never finishes its work. This call then
            // returns the error.
            self.db.persist(PersistMode::Buffer).map_err(broken)?;
            std::thread::park_timeout(LOOK);
            let now = self.db.compactions_completed();
            let is_quiet = self.rows.sealed_memtable_count() == 0
                && self.db.outstanding_flushes() == 0
                && self.db.active_compactions() == 0
                && now == compactions;
            quiet = if is_quiet { quiet + LOOK } else { Duration::ZERO };
            compactions = now;
        }
        Ok(())
    }
}

impl Store for Fjall {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.synced {
            false => "buffered: every write in the journal, with the system, not synced",
            true => "synced: a write returns once the journal is synced",
        };
        let version = of_crate(include_str!("../../../Cargo.lock"), "fjall");
        vec![
            Setting::new("engine", format!("fjall {}", version.unwrap_or("of unknown version"))),
            Setting::new("durability", durability),
            Setting::new("cache", bytes_text(self.cache_bytes)),
            Setting::new("compression", self.compression),
            Setting::new("page", bytes_text(self.page_bytes)),
            Setting::new("index", "as it comes: whole in levels 0 to 2, in pieces below"),
            Setting::new("filters", "as they come: Bloom, 10 bits a key, more in level 0"),
            Setting::new("write buffer", bytes_text(self.write_buffer_bytes)),
            Setting::new("reads", "through the system's page cache"),
            Setting::new("settle", if self.compacts { "compact" } else { "levels" }),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        let pairs = Pairs { rows: &self.rows, db: &self.db, synced: self.synced };
        Ok(Session::Blocking(Box::new(Records::new(pairs, self.fields))))
    }

    /// Uses fjall's ingestion, which writes files in key order and adds them to the database unchanged.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let mut count = 0;
        let mut ingestion = self.rows.start_ingestion().map_err(broken)?;
        while rows.next_row(&mut key, &mut record) {
            ingestion.write(key.as_slice(), encoded(&record, &mut value)).map_err(broken)?;
            count += 1;
        }
        ingestion.finish().map_err(broken)?;
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        self.rows.is_empty().map_err(broken)
    }

    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter::of("compactions", self.db.compactions_completed() as u64),
            Counter::of("compaction micros", self.db.time_compacting().as_micros() as u64),
            Counter::now("cache bytes", self.db.cache_size()),
            Counter::now("memtable bytes", self.db.write_buffer_size()),
            Counter::now("files", self.rows.table_count() as u64),
            Counter::now("file bytes", self.rows.disk_space()),
        ]
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        self.rows.rotate_memtable().map_err(broken)?;
        self.wait_until_quiet()?;
        if self.compacts {
            self.rows.major_compact().map_err(broken)?;
            self.wait_until_quiet()?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.db.persist(PersistMode::SyncAll).map_err(broken)
    }
}

struct Pairs<'s> {
    rows: &'s Keyspace,
    db: &'s Database,
    synced: bool,
}

impl Pairs<'_> {
    #[inline]
    fn written(&self) -> Result<(), Failure> {
        if self.synced { self.db.persist(PersistMode::SyncData).map_err(broken) } else { Ok(()) }
    }
}

impl KeyValue for Pairs<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let value = self.rows.get(key).map_err(broken)?;
        if let Some(value) = &value {
            found(value);
        }
        Ok(value.is_some())
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        let mut left = rows;
        for row in self.rows.range(start..) {
            let (key, value) = row.into_inner().map_err(broken)?;
            left -= 1;
            if !each(&key, &value) || left == 0 {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.rows.insert(key, value).map_err(broken)?;
        self.written()
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        self.rows.remove(key).map_err(broken)?;
        self.written()?;
        Ok(true)
    }
}

#[cold]
fn broken(error: Error) -> Failure {
    let text = format!("fjall: {error}");
    if let Some(error) = of_system(&error) {
        return Failure::session(io_kind(error), text);
    }
    match error {
        Error::Locked => Failure::session("locked", text),
        Error::Poisoned => Failure::session("poisoned", format!("{text}: a write or sync failed before this one")),
        Error::InvalidTrailer | Error::InvalidTag(_) | Error::InvalidVersion(_) | Error::JournalRecovery(_) => {
            Failure::session("corrupt", text)
        }
        _ => Failure::session("fjall", text),
    }
}

/// The I/O error among an error's causes, if any.
fn of_system<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e std::io::Error> {
    error.downcast_ref().or_else(|| of_system(error.source()?))
}
