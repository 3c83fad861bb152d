//! RocksDB as a store of the benchmarks, through its C interface.
//!
//! RocksDB is measured with two placements of index and filters. With `index=default`, those of every open file are
//! on the heap, outside the cache. With `index=partitioned`, they are cut into partitions, which live in the cache
//! like other blocks; the top level is pinned there.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

mod db;
mod sorted_files;
#[cfg(test)]
mod tests;
mod tpcc;
mod transactions;

pub use tpcc::SCHEME as TPCC;

use db::{Db, on_db};
use harness::directory::{bytes_text, failure};
use harness::key_value::encoded;
use harness::{
    Checked, Clock, Commits, Counter, Directory, Failure, KeyValue, Opening, Records, Rows, Scheme, Session, Setting,
    Store, StoreUse, Strings, Table, Target, Transactions,
};
use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, CompactOptions,
    DBCompressionType, Error, ErrorKind, IngestExternalFileOptions, Options, ReadOptions, WaitForCompactOptions,
    WriteOptions, properties,
};
use sorted_files::SortedFiles;
use std::fs;
use std::path::Path;

/// `rocksdb:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "rocksdb",
    form: "rocksdb:DIR",
    about: "RocksDB, embedded",
    options: &[
        ("cache", "HyperClock cache in bytes: 256MiB"),
        ("row_cache", "memory for the results of gets, beside the cache: 0"),
        ("write_buffer", "memory for rows not yet in files: 64MiB"),
        ("durability", "buffered: log written, not synced; synced: every commit"),
        ("compression", "none, lz4 or zstd: none"),
        ("page", "bytes of a block: 16KiB"),
        ("index", "default: whole, in the heap; partitioned: in the cache, its top pinned"),
        ("filter_bits", "bits a key of the full Bloom filters, 0 for none: 10"),
        ("direct", "0: reads go through the system's page cache; 1: they do not"),
        ("settle", "levels: compactions that are wanted; compact: everything to the deepest level"),
        (
            "transactions",
            "none; optimistic: a database of optimistic transactions, which keeps flushed rows in memory for a while",
        ),
        ("statistics", "0; 1: counters of the cache and of stalls, which cost some time"),
    ],
    networked: false,
    open,
};

/// The only column family.
const FAMILY: &str = "default";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    Default,
    Partitioned,
}

/// The options of a target.
#[derive(Clone)]
struct Choices {
    cache_bytes: u64,
    /// 0 for none.
    row_cache_bytes: u64,
    write_buffer_bytes: u64,
    synced: bool,
    compression: &'static str,
    page_bytes: u64,
    index: Index,
    filter_bits: u64,
    direct: bool,
    compacts: bool,
    optimistic: bool,
    statistics: bool,
}

impl Choices {
    fn take(target: &Target) -> Result<Self, Failure> {
        let mut options = target.options()?;
        let choices = Self {
            cache_bytes: options.bytes("cache", 256 << 20)?,
            row_cache_bytes: options.bytes("row_cache", 0)?,
            write_buffer_bytes: options.bytes("write_buffer", 64 << 20)?,
            synced: options.choice("durability", &[("buffered", false), ("synced", true)])?,
            compression: options.choice("compression", &[("none", "none"), ("lz4", "lz4"), ("zstd", "zstd")])?,
            page_bytes: options.bytes("page", 16 << 10)?,
            index: options.choice("index", &[("default", Index::Default), ("partitioned", Index::Partitioned)])?,
            filter_bits: options.number("filter_bits", 10)?,
            direct: options.choice("direct", &[("0", false), ("1", true)])?,
            compacts: options.choice("settle", &[("levels", false), ("compact", true)])?,
            optimistic: options.choice("transactions", &[("none", false), ("optimistic", true)])?,
            statistics: options.choice("statistics", &[("0", false), ("1", true)])?,
        };
        options.finish()?;
        Ok(choices)
    }

    /// The choices that are fixed once the files are written.
    fn shape(&self) -> [(&'static str, String); 4] {
        [
            ("compression", self.compression.to_owned()),
            ("page", bytes_text(self.page_bytes)),
            ("index", self.index_text().to_owned()),
            ("filter", self.filter_text()),
        ]
    }

    fn index_text(&self) -> &'static str {
        match self.index {
            Index::Default => "default: whole, in the heap beside the cache",
            Index::Partitioned => "partitioned: index and filter in the cache, their top and level 0 pinned",
        }
    }

    fn filter_text(&self) -> String {
        match self.filter_bits {
            0 => "none".to_owned(),
            bits => format!("full Bloom, {bits} bits a key"),
        }
    }

    fn options(&self, cache: &Cache, create: bool) -> Options {
        let mut tables = BlockBasedOptions::default();
        tables.set_block_cache(cache);
        tables.set_block_size(self.page_bytes as usize);
        if self.filter_bits > 0 {
            tables.set_bloom_filter(self.filter_bits as f64, false);
        }
        if self.index == Index::Partitioned {
            tables.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
            tables.set_partition_filters(self.filter_bits > 0);
            tables.set_cache_index_and_filter_blocks(true);
            tables.set_cache_index_and_filter_blocks_with_high_priority(true);
            tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
            tables.set_pin_top_level_index_and_filter(true);
        }
        let mut options = Options::default();
        options.create_if_missing(create);
        options.set_block_based_table_factory(&tables);
        if self.row_cache_bytes > 0 {
            options.set_row_cache(&Cache::new_lru_cache(self.row_cache_bytes as usize));
        }
        options.set_write_buffer_size(self.write_buffer_bytes as usize);
        options.set_compression_type(match self.compression {
            "lz4" => DBCompressionType::Lz4,
            "zstd" => DBCompressionType::Zstd,
            _ => DBCompressionType::None,
        });
        options.set_use_direct_reads(self.direct);
        options.set_use_direct_io_for_flush_and_compaction(self.direct);
        if self.statistics {
            options.enable_statistics();
            // Counters only: timers and histograms would slow RocksDB down more.
            options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
        }
        options
    }
}

/// An open database.
struct RocksDb {
    // Before the directory, so that the database is closed before the directory is unlocked.
    db: Db,
    options: Options,
    cache: Cache,
    choices: Choices,
    fields: usize,
    version: String,
    directory: Directory,
}

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let choices = Choices::take(target)?;
    let directory = Directory::open(target, table, opening, &choices.shape())?;
    // With 0 as the estimated entry size, the cache adapts to the real size of its entries.
    let cache = Cache::new_hyper_clock_cache(choices.cache_bytes as usize, 0);
    let options = choices.options(&cache, opening != Opening::Existing);
    let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
    let db = Db::open(choices.optimistic, &options, directory.data(), family).map_err(|error| {
        let Failure { kind, text, harm } = broken(error);
        Failure { kind, text: format!("{} in {}", text, directory.data().display()), harm }
    })?;
    let version = version(directory.data())?;
    let fields = table.fields.len();
    Ok(Box::new(RocksDb { db, options, cache, choices, fields, version, directory }))
}

/// The version of the RocksDB library, which it writes into the database's options file.
fn version(data: &Path) -> Result<String, Failure> {
    let read = |error: &std::io::Error| failure(error, "read the options in", data);
    for entry in fs::read_dir(data).map_err(|error| read(&error))? {
        let entry = entry.map_err(|error| read(&error))?;
        if entry.file_name().to_string_lossy().starts_with("OPTIONS-") {
            let text = fs::read_to_string(entry.path()).map_err(|error| read(&error))?;
            let version = text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version="));
            return Ok(version.unwrap_or("of unknown version").to_owned());
        }
    }
    Ok("of unknown version".to_owned())
}

impl RocksDb {
    fn family(&self) -> &ColumnFamily {
        on_db!(&self.db, db => db.cf_handle(FAMILY)).expect("the database was opened with it")
    }

    fn writes(&self) -> WriteOptions {
        let mut writes = WriteOptions::default();
        writes.set_sync(self.choices.synced);
        writes
    }
}

impl Store for RocksDb {
    fn settings(&self) -> Vec<Setting> {
        let choices = &self.choices;
        let durability = match choices.synced {
            false => "buffered: every write in the log, with the system, not synced",
            true => "synced: a write returns once the log is synced",
        };
        let row_cache = match choices.row_cache_bytes {
            0 => "none".to_owned(),
            bytes => format!("{}, LRU", bytes_text(bytes)),
        };
        vec![
            Setting::new("engine", format!("RocksDB {}", self.version)),
            Setting::new("durability", durability),
            Setting::new("cache", format!("{}, HyperClock", bytes_text(choices.cache_bytes))),
            Setting::new("row cache", row_cache),
            Setting::new("compression", choices.compression),
            Setting::new("page", bytes_text(choices.page_bytes)),
            Setting::new("index", choices.index_text()),
            Setting::new("filters", choices.filter_text()),
            Setting::new("write buffer", bytes_text(choices.write_buffer_bytes)),
            Setting::new("reads", if choices.direct { "direct" } else { "through the system's page cache" }),
            Setting::new("settle", if choices.compacts { "compact" } else { "levels" }),
            Setting::new("transactions", if choices.optimistic { "optimistic" } else { "none" }),
            Setting::new("statistics", if choices.statistics { "on" } else { "off" }),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        let (reads, writes) = (ReadOptions::default(), self.writes());
        let pairs = Pairs { db: &self.db, family: self.family(), reads, writes };
        Ok(Session::Blocking(Box::new(Records::new(pairs, self.fields))))
    }

    fn transactions(&self, checked: Checked) -> Option<Box<dyn Transactions + '_>> {
        match &self.db {
            Db::Plain(_) => None,
            Db::Optimistic(db) => Some(transactions::session(db, self.writes(), checked)),
        }
    }

    /// RocksDB cannot have commits in flight: no call waits for the sync of an earlier write.
    fn commits(&self, in_flight: usize) -> Option<Box<dyn Commits + '_>> {
        match &self.db {
            Db::Optimistic(db) if self.choices.synced && in_flight == 0 => {
                Some(transactions::commits(db, self.writes()))
            }
            _ => None,
        }
    }

    /// Writes SSTs in key order, which RocksDB ingests unchanged.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let mut files = SortedFiles::new(&self.options, self.directory.data(), "loaded");
        while rows.next_row(&mut key, &mut record) {
            files.add(&key, encoded(&record, &mut value))?;
        }
        let paths = files.finish()?.to_vec();
        if !paths.is_empty() {
            let mut ingestion = IngestExternalFileOptions::default();
            ingestion.set_move_files(true);
            on_db!(&self.db, db => db.ingest_external_file_opts(&ingestion, paths)).map_err(broken)?;
        }
        Ok(Some(files.rows()))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        on_db!(&self.db, db => {
            let mut rows = db.raw_iterator_opt(ReadOptions::default());
            rows.seek_to_first();
            rows.status().map_err(broken)?;
            Ok(!rows.valid())
        })
    }

    fn counters(&self) -> Vec<Counter> {
        let gauge = |property| {
            let value = on_db!(&self.db, db => db.property_int_value(property));
            value.ok().flatten().unwrap_or_default()
        };
        counters_of(&self.choices, &self.options, &self.cache, gauge)
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        on_db!(&self.db, db => db.flush()).map_err(broken)?;
        if self.choices.compacts {
            let options = CompactOptions::default();
            on_db!(&self.db, db => db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options));
        }
        on_db!(&self.db, db => db.wait_for_compact(&WaitForCompactOptions::default())).map_err(broken)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        on_db!(&self.db, db => db.flush()).map_err(broken)?;
        on_db!(&self.db, db => db.cancel_all_background_work(true));
        Ok(())
    }
}

/// The counters of a database. `gauge` reads a current value of RocksDB by its property name.
fn counters_of(
    choices: &Choices,
    options: &Options,
    cache: &Cache,
    gauge: impl Fn(&'static properties::PropName) -> u64,
) -> Vec<Counter> {
    let mut counters = Vec::new();
    if choices.statistics {
        let ticker = |ticker| options.get_ticker_count(ticker);
        let (flushed, compacted) = (ticker(Ticker::FlushWriteBytes), ticker(Ticker::CompactWriteBytes));
        counters.extend([
            Counter::of("page reads", ticker(Ticker::BlockCacheMiss)),
            Counter::of("index page reads", ticker(Ticker::BlockCacheIndexMiss) + ticker(Ticker::BlockCacheFilterMiss)),
            Counter::of("cache hits", ticker(Ticker::BlockCacheHit)),
            Counter::of("log bytes", ticker(Ticker::WalFileBytes)),
            Counter::of("flush bytes", flushed),
            Counter::of("compaction bytes", compacted),
            Counter::of("bytes written", flushed + compacted),
            Counter::of("stalled micros", ticker(Ticker::StallMicros)),
        ]);
    }
    counters.extend([
        Counter::now("cache bytes", cache.get_usage() as u64),
        Counter::now("memtable bytes", gauge(properties::CUR_SIZE_ALL_MEM_TABLES)),
        Counter::now("index and filter bytes in the heap", gauge(properties::ESTIMATE_TABLE_READERS_MEM)),
        Counter::now("file bytes", gauge(properties::TOTAL_SST_FILES_SIZE)),
    ]);
    counters
}

struct Pairs<'s> {
    db: &'s Db,
    family: &'s ColumnFamily,
    reads: ReadOptions,
    writes: WriteOptions,
}

impl KeyValue for Pairs<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let value = on_db!(self.db, db => db.get_pinned_opt(key, &self.reads)).map_err(broken)?;
        if let Some(value) = &value {
            found(value);
        }
        Ok(value.is_some())
    }

    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        let values = on_db!(self.db, db => db.batched_multi_get_cf_opt(self.family, keys.iter(), false, &self.reads));
        for (number, value) in values.into_iter().enumerate() {
            if let Some(value) = value.map_err(broken)? {
                found(number, &value);
            }
        }
        Ok(())
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        on_db!(self.db, db => {
            let mut iterator = db.raw_iterator_opt(ReadOptions::default());
            iterator.seek(start);
            let mut left = rows;
            while let Some((key, value)) = iterator.item() {
                left -= 1;
                if !each(key, value) || left == 0 {
                    break;
                }
                iterator.next();
            }
            iterator.status().map_err(broken)
        })
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        on_db!(self.db, db => db.put_opt(key, value, &self.writes)).map_err(broken)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        on_db!(self.db, db => db.delete_opt(key, &self.writes)).map_err(broken)?;
        Ok(true)
    }
}

/// Classifies an error. RocksDB describes errors of the system only in the message.
#[cold]
fn broken(error: Error) -> Failure {
    let kind = match error.kind() {
        ErrorKind::Corruption => "corrupt",
        ErrorKind::Busy | ErrorKind::TryAgain => return Failure::again("busy", format!("RocksDB: {error}")),
        _ if error.as_ref().contains("No space left on device") => "disk_full",
        _ if error.as_ref().contains("Read-only file system") => "read_only",
        _ if error.as_ref().contains("Permission denied") => "not_allowed",
        _ if error.as_ref().contains("lock hold by current process") => "locked",
        ErrorKind::IOError => "io",
        _ => "rocksdb",
    };
    Failure::session(kind, format!("RocksDB: {error}"))
}
