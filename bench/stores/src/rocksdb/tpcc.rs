//! TPC-C on RocksDB, through its optimistic transactions. Each of the nine tables and of two indexes has a column
//! family; the transactions themselves maintain the indexes. The default column family records how the database was
//! made and which parts are loaded.

mod families;
mod load;
mod session;
#[cfg(test)]
mod tests;
mod view;

use super::{Choices, Index, broken, counters_of, version};
use ::tpcc::database::{no_index, not_made};
use ::tpcc::ordered;
use ::tpcc::{Form, Loader, Part, Setup, TpccScheme, View, about};
use families::{Family, names};
use harness::directory::bytes_text;
use harness::{Clock, Counter, Directory, Failure, Opening, Session, Setting, Store, StoreUse, Table, Target};
use rocksdb::{
    Cache, ColumnFamilyDescriptor, MultiThreaded, OptimisticTransactionDB, Options, WaitForCompactOptions, WriteOptions,
};

/// `rocksdb:DIR`.
pub const SCHEME: TpccScheme = TpccScheme { name: "rocksdb", open, simulate: None };

/// Multi-threaded mode, so that column families can be created and dropped through a shared reference.
type Db = OptimisticTransactionDB<MultiThreaded>;

/// The column family that every database has.
const DEFAULT: &str = "default";

/// Each table keeps flushed rows of 1/`HISTORY_PART` of the write buffer in memory. A commit looks there for keys
/// that were written since its snapshot, and a transaction that is older than the kept rows must be retried. With a
/// write buffer of 256 MiB, these are 8 MiB, or thousands of transactions.
const HISTORY_PART: u64 = 32;

/// A memtable's filter may have 1/`FILTER_PART` of the memtable's size. Every column family has such a filter, even
/// without rows.
const FILTER_PART: u64 = 50;

/// Limit for the length of the WAL, in write buffers. Without it, one rarely written table would keep old log files
/// alive.
const LOG_BUFFERS: u64 = 4;

/// An open database.
struct RocksDb {
    // Before the directory, so that the database is closed before the directory is unlocked.
    db: Db,
    options: Options,
    cache: Cache,
    choices: Choices,
    version: String,
    directory: Directory,
}

fn choices_of(target: &Target) -> Result<Choices, Failure> {
    let mut options = target.options()?;
    let choices = Choices {
        cache_bytes: options.bytes("cache", 256 << 20)?,
        row_cache_bytes: 0,
        write_buffer_bytes: options.bytes("write_buffer", 256 << 20)?,
        synced: options.choice("durability", &[("synced", true), ("buffered", false)])?,
        compression: options.choice("compression", &[("none", "none"), ("lz4", "lz4"), ("zstd", "zstd")])?,
        page_bytes: options.bytes("page", 16 << 10)?,
        index: Index::Default,
        filter_bits: options.number("filter_bits", 10)?,
        direct: options.choice("direct", &[("0", false), ("1", true)])?,
        compacts: false,
        optimistic: true,
        statistics: options.choice("statistics", &[("0", false), ("1", true)])?,
    };
    options.finish()?;
    Ok(choices)
}

/// The options of the database and of every column family.
fn options_of(choices: &Choices, cache: &Cache, create: bool) -> Options {
    let mut options = choices.options(cache, create);
    // All tables share the write buffer, of which a single table may fill at most a quarter.
    let all_bytes = choices.write_buffer_bytes;
    // RocksDB allocates a memtable's filter up front and counts it against the history that stays in memory, so it
    // is added.
    let filter_bytes = all_bytes / 4 / FILTER_PART;
    options.set_db_write_buffer_size(all_bytes as usize);
    options.set_write_buffer_size((all_bytes / 4) as usize);
    options.set_max_total_wal_size(LOG_BUFFERS * all_bytes);
    options.set_max_write_buffer_size_to_maintain((all_bytes / HISTORY_PART + filter_bytes) as i64);
    // A commit looks up its keys in the memtables. Most are not there, which the filter tells faster.
    options.set_memtable_prefix_bloom_ratio(1.0 / FILTER_PART as f64);
    options.set_memtable_whole_key_filtering(true);
    options
}

fn open(target: &Target, setup: &Setup) -> Result<Box<dyn ::tpcc::Database>, Failure> {
    let choices = choices_of(target)?;
    let table = Table { name: "tpcc".to_owned(), fields: vec!["row".to_owned()] };
    let directory = Directory::open(target, &table, setup.opening, &choices.shape())?;
    let data = directory.data();
    let cache = Cache::new_hyper_clock_cache(choices.cache_bytes as usize, 0);
    let options = options_of(&choices, &cache, setup.opening != Opening::Existing);
    let in_directory = |error| {
        let Failure { kind, text, harm } = broken(error);
        Failure { kind, text: format!("{text} in {}", data.display()), harm }
    };
    // RocksDB creates the file `CURRENT` together with the default column family.
    let is_new = !data.join("CURRENT").exists();
    let known = if is_new { vec![DEFAULT.to_owned()] } else { Db::list_cf(&options, data).map_err(in_directory)? };
    let families = known.into_iter().map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
    let db = Db::open_cf_descriptors(&options, data, families).map_err(in_directory)?;
    let version = version(data)?;
    Ok(Box::new(RocksDb { db, options, cache, choices, version, directory }))
}

impl RocksDb {
    fn writes(&self) -> WriteOptions {
        let mut writes = WriteOptions::default();
        writes.set_sync(self.choices.synced);
        writes
    }

    /// Stores a note about the database and syncs it.
    fn note(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let mut writes = WriteOptions::default();
        writes.set_sync(true);
        self.db.put_opt(key, value, &writes).map_err(broken)
    }

    fn noted(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.db.get(key).map_err(broken)
    }

    /// Whether the index called `name` was built completely.
    fn has_index(&self, name: &str) -> Result<bool, Failure> {
        self.noted(name.as_bytes()).map(|note| note.is_some())
    }

    /// All column families.
    fn families(&self) -> impl Iterator<Item = Family<'_>> {
        names().chain([DEFAULT]).filter_map(|name| self.db.cf_handle(name))
    }
}

impl Store for RocksDb {
    fn settings(&self) -> Vec<Setting> {
        let choices = &self.choices;
        let durability = match choices.synced {
            false => "buffered: every commit in the log, with the system, not synced",
            true => "synced: a commit returns once the log is synced, by one sync for all threads that wait",
        };
        vec![
            Setting::new("engine", format!("RocksDB {}", self.version)),
            Setting::new("isolation", "serializable: optimistic transactions at a snapshot, their writes compared"),
            Setting::new("durability", durability),
            Setting::new("cache", format!("{}, HyperClock", bytes_text(choices.cache_bytes))),
            Setting::new("compression", choices.compression),
            Setting::new("page", bytes_text(choices.page_bytes)),
            Setting::new("index", choices.index_text()),
            Setting::new("filters", choices.filter_text()),
            Setting::new("write buffer", format!("{} for all tables", bytes_text(choices.write_buffer_bytes))),
            Setting::new("reads", if choices.direct { "direct" } else { "through the system's page cache" }),
            Setting::new("statistics", if choices.statistics { "on" } else { "off" }),
        ]
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        let form = ::tpcc::Database::form(self)?.ok_or_else(not_made)?;
        for name in ordered::Index::ALL.map(ordered::Index::name) {
            if !self.has_index(name)? {
                return Err(no_index(name));
            }
        }
        Ok(Session::Flights(session::session(self, &form, clock)?))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(::tpcc::Database::form(self)?.is_none())
    }

    fn counters(&self) -> Vec<Counter> {
        let sum = |property| {
            let values = self.families().map(|family| self.db.property_int_value_cf(&family, property));
            values.map(|value| value.ok().flatten().unwrap_or_default()).sum()
        };
        counters_of(&self.choices, &self.options, &self.cache, sum)
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        self.families().try_for_each(|family| self.db.flush_cf(&family)).map_err(broken)?;
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(broken)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.families().try_for_each(|family| self.db.flush_cf(&family)).map_err(broken)?;
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}

impl ::tpcc::Database for RocksDb {
    fn create(&self, form: &Form) -> Result<(), Failure> {
        if let Some(name) = names().find(|name| self.db.cf_handle(name).is_some()) {
            let text = format!("there is a column family {name} that is not of TPC-C: name a new directory");
            return Err(Failure::session("other_tables", text));
        }
        // The form is stored first. If a crash leaves only some of the families, the form shows that they are ours,
        // and `clean` drops them.
        self.note(&about::form_key(), &about::encode_form(form))?;
        names().try_for_each(|name| self.db.create_cf(name, &self.options)).map_err(broken)
    }

    fn form(&self) -> Result<Option<Form>, Failure> {
        self.noted(&about::form_key())?.map(|value| about::decode_form(&value).map(|(form, _)| form)).transpose()
    }

    fn part_loader(&self, part: &Part) -> Result<Box<dyn Loader + '_>, Failure> {
        Ok(Box::new(load::PartLoader::new(self, part)?))
    }

    fn is_loaded(&self, part: &Part) -> Result<bool, Failure> {
        self.noted(&about::part_key(part)).map(|note| note.is_some())
    }

    fn make_indexes(&self) -> Result<(), Failure> {
        load::make_indexes(self)
    }

    fn view(&self) -> Result<Box<dyn View + '_>, Failure> {
        Ok(Box::new(view::Snapshot::new(&self.db)?))
    }

    fn clean(&self) -> Result<(), Failure> {
        // `create` stores the form first, so without a form any families with these names are not ours.
        ::tpcc::Database::form(self)?.ok_or_else(not_made)?;
        for name in names() {
            if self.db.cf_handle(name).is_some() {
                self.db.drop_cf(name).map_err(broken)?;
            }
        }
        // The form marks the families as ours, so it goes last: after a crash, `clean` can still drop the rest.
        let mut noted = self.db.raw_iterator();
        noted.seek_to_last();
        while let Some(key) = noted.key() {
            self.db.delete(key).map_err(broken)?;
            noted.prev();
        }
        noted.status().map_err(broken)
    }
}
