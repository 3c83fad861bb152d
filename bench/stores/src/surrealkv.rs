//! SurrealKV as a store of the benchmarks. Each read request is a read-only transaction, and each write request is a
//! transaction that is made again until it conflicts with no other.
//!
//! Commits are futures of SurrealKV's own pipeline. A session waits for each of its commits; the pipeline puts commits
//! of several sessions together.

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
use surrealkv::{
    CompactRangeOptions, CompressionType, Durability, Error, LSMIterator as _, Mode, Options, ReadOptions, Transaction,
    Tree, TreeBuilder,
};
use tokio::runtime::Runtime;

/// `surrealkv:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "surrealkv",
    form: "surrealkv:DIR",
    about: "SurrealKV, embedded",
    options: &[
        ("cache", "block cache in bytes: 256MiB"),
        ("write_buffer", "bytes of a memtable: 64MiB"),
        ("durability", "buffered: log written, not synced; synced: every commit"),
        ("compression", "none, snappy or zstd: none"),
        ("page", "bytes of a block: 16KiB"),
        ("settle", "levels: as compactions leave them; compact: everything to the deepest level"),
        ("batch", "rows in a transaction of a load: 1000"),
    ],
    networked: false,
    open,
};

/// Rows in each transaction of a bulk load.
const BULK_ROWS: u64 = 10_000;

/// Threads for flushes, compactions and commits.
const WORKERS: usize = 2;

/// An open database.
struct SurrealKv {
    tree: Tree,
    /// What commits and background work run on. Dropped after the tree, which ends them.
    runtime: Runtime,
    fields: usize,
    cache_bytes: u64,
    write_buffer_bytes: u64,
    page_bytes: u64,
    compression: &'static str,
    synced: bool,
    compacts: bool,
    batch_rows: u64,
    directory: Directory,
}

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let cache_bytes = options.bytes("cache", 256 << 20)?;
    let write_buffer_bytes = options.bytes("write_buffer", 64 << 20)?;
    let synced = options.choice("durability", &[("buffered", false), ("synced", true)])?;
    let compression = options.choice("compression", &[("none", "none"), ("snappy", "snappy"), ("zstd", "zstd")])?;
    let page_bytes = options.bytes("page", 16 << 10)?;
    if !(1 << 10..=1 << 20).contains(&page_bytes) {
        return Err(options.bad("page", &bytes_text(page_bytes), "within 1KiB and 1MiB"));
    }
    let compacts = options.choice("settle", &[("levels", false), ("compact", true)])?;
    let batch_rows = options.number("batch", 1000)?.max(1);
    options.finish()?;

    let shape = [("page", bytes_text(page_bytes)), ("compression", compression.to_owned())];
    let directory = Directory::open(target, table, opening, &shape)?;
    let kind = match compression {
        "snappy" => CompressionType::SnappyCompression,
        "zstd" => CompressionType::ZstdCompression,
        _ => CompressionType::None,
    };
    let failed = |error: std::io::Error| Failure::session("io", format!("SurrealKV: no threads for it: {error}"));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(WORKERS).enable_time().build().map_err(failed)?;
    let tree = {
        let _inside = runtime.enter();
        // Zeros ahead of the log's end make its syncs cheaper.
        let options = Options::new().with_wal_preallocation(true).with_compression_per_level(vec![kind]);
        let builder = TreeBuilder::with_options(options).with_path(directory.data().to_owned());
        let builder = builder.with_block_size(page_bytes as usize).with_block_cache_capacity(cache_bytes);
        builder.with_max_memtable_size(write_buffer_bytes as usize).build()
    };
    let tree = tree.map_err(|error| {
        let Failure { kind, text, harm } = broken(error);
        Failure { kind, text: format!("{text}, opening {}", directory.data().display()), harm }
    })?;
    let fields = table.fields.len();
    Ok(Box::new(SurrealKv {
        tree,
        runtime,
        fields,
        cache_bytes,
        write_buffer_bytes,
        page_bytes,
        compression,
        synced,
        compacts,
        batch_rows,
        directory,
    }))
}

impl SurrealKv {
    fn pairs(&self) -> Pairs<'_> {
        let durability = if self.synced { Durability::Immediate } else { Durability::Eventual };
        Pairs { tree: &self.tree, runtime: &self.runtime, durability }
    }
}

impl Store for SurrealKv {
    fn settings(&self) -> Vec<Setting> {
        let durability = match self.synced {
            false => "buffered: every commit in the log, with the system, not synced",
            true => "synced: a commit returns once the log is synced, by one sync for all that wait",
        };
        let version = of_crate(include_str!("../../../Cargo.lock"), "surrealkv");
        vec![
            Setting::new("engine", format!("SurrealKV {}", version.unwrap_or("of unknown version"))),
            Setting::new("durability", durability),
            Setting::new("isolation", "snapshot: transactions that write the same row are made again"),
            Setting::new("cache", bytes_text(self.cache_bytes)),
            Setting::new("compression", self.compression),
            Setting::new("page", bytes_text(self.page_bytes)),
            Setting::new("filters", "as they come: Bloom, 10 bits a key"),
            Setting::new("write buffer", bytes_text(self.write_buffer_bytes)),
            Setting::new("log", "zeros written ahead of its end"),
            Setting::new("reads", "through the system's page cache"),
            Setting::new("load", format!("{} rows a transaction", self.batch_rows)),
            Setting::new("settle", if self.compacts { "compact" } else { "levels" }),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Records::new(self.pairs(), self.fields))))
    }

    fn loader(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Gather::new(self.pairs(), self.batch_rows))))
    }

    /// SurrealKV takes no sorted files, so the rows are loaded in large transactions.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let mut pairs = self.pairs();
        let (mut keys, mut values, mut count) = (Strings::new(), Strings::new(), 0);
        while rows.next_row(&mut key, &mut record) {
            keys.push(&key);
            values.push(encoded(&record, &mut value));
            count += 1;
            if count % BULK_ROWS == 0 {
                pairs.write(&keys, &values)?;
                keys.clear();
                values.clear();
            }
        }
        pairs.write(&keys, &values)?;
        self.tree.flush_wal(true).map_err(broken)?;
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        self.pairs().is_empty()
    }

    fn counters(&self) -> Vec<Counter> {
        let files = std::fs::read_dir(self.directory.data()).into_iter().flatten().flatten();
        let folders = files.filter_map(|entry| std::fs::read_dir(entry.path()).ok()).flatten().flatten();
        let bytes = folders.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
        vec![Counter::now("file bytes", bytes)]
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    /// Compactions go on in the background; SurrealKV has no way to wait for them.
    fn settle(&self) -> Result<(), Failure> {
        if self.compacts {
            let options = CompactRangeOptions { flush_memtable: true, ..CompactRangeOptions::default() };
            self.tree.compact_range(None, None, &options).map_err(broken)?;
        }
        self.tree.flush_wal(true).map_err(broken)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.runtime.block_on(self.tree.close()).map_err(broken)
    }
}

struct Pairs<'s> {
    tree: &'s Tree,
    runtime: &'s Runtime,
    durability: Durability,
}

impl Pairs<'_> {
    fn read(&self) -> Result<Transaction, Failure> {
        self.tree.begin_with_mode(Mode::ReadOnly).map_err(broken)
    }

    /// Makes a transaction until it conflicts with no other.
    fn change<T>(
        &self,
        mode: Mode,
        mut work: impl FnMut(&mut Transaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            let mut transaction = self.tree.begin_with_mode(mode).map_err(broken)?.with_durability(self.durability);
            let done = work(&mut transaction)?;
            match self.runtime.block_on(transaction.commit()) {
                Ok(()) => return Ok(done),
                Err(Error::TransactionWriteConflict | Error::TransactionRetry) => {}
                Err(error) => return Err(broken(error)),
            }
        }
    }
}

impl KeyValue for Pairs<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let value = self.read()?.get(key).map_err(broken)?;
        if let Some(value) = &value {
            found(value);
        }
        Ok(value.is_some())
    }

    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        let transaction = self.read()?;
        for (number, key) in keys.iter().enumerate() {
            if let Some(value) = transaction.get(key).map_err(broken)? {
                found(number, &value);
            }
        }
        Ok(())
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        let transaction = self.read()?;
        let mut options = ReadOptions::new();
        options.set_iterate_lower_bound(Some(start.to_vec()).filter(|start| !start.is_empty()));
        let mut found = transaction.range_with_options(&options).map_err(broken)?;
        let (mut left, mut is_there) = (rows, found.seek_first().map_err(broken)?);
        while is_there {
            let wants_more = each(found.key().user_key(), &found.value().map_err(broken)?);
            left -= 1;
            if !wants_more || left == 0 {
                break;
            }
            is_there = found.next().map_err(broken)?;
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.change(Mode::WriteOnly, |transaction| transaction.set(key, value).map_err(broken))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        // Whether the row was there, another read would tell.
        self.change(Mode::WriteOnly, |transaction| transaction.delete(key).map(|()| true).map_err(broken))
    }

    fn update(
        &mut self,
        key: &[u8],
        scratch: &mut Vec<u8>,
        mut change: impl FnMut(&[u8], &mut Vec<u8>),
    ) -> Result<bool, Failure> {
        self.change(Mode::ReadWrite, |transaction| {
            let Some(value) = transaction.get(key).map_err(broken)? else { return Ok(false) };
            scratch.clear();
            change(&value, scratch);
            transaction.set(key, scratch.as_slice()).map(|()| true).map_err(broken)
        })
    }
}

impl WriteMany for Pairs<'_> {
    fn write(&mut self, keys: &Strings, values: &Strings) -> Result<(), Failure> {
        self.change(Mode::WriteOnly, |transaction| {
            keys.iter().zip(values.iter()).try_for_each(|(key, value)| transaction.set(key, value)).map_err(broken)
        })
    }
}

#[cold]
fn broken(error: Error) -> Failure {
    let text = format!("SurrealKV: {error}");
    match &error {
        Error::Io(error) => Failure::session(io_kind(error), text),
        Error::DatabaseStopped(_) | Error::DatabasePoisoned(_) => Failure::session("writes_stopped", text),
        Error::Corruption(_)
        | Error::CorruptedBlock(_)
        | Error::ManifestCorruption(_)
        | Error::WalCorruption { .. } => Failure::session("corrupt", text),
        Error::EmptyKey | Error::BatchTooLarge => Failure::request("bad_row", text),
        Error::WriteStall { .. } => Failure::again("stalled", text),
        _ => Failure::session("surrealkv", text),
    }
}
