//! Larch as a store of the benchmarks, called through its public API as any embedding program would.
//!
//! The directory holds an ordinary database, and its table has the name that the workload gives it, so the other
//! commands of `larch` work on it too.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

mod flights;
mod groups;
mod index;
mod partitions;
mod row_access;
#[cfg(test)]
mod tests;
mod tpcc;
mod transactions;

use harness::directory::{bytes_text, failure, io_kind};
use harness::key_value::encoded;
use harness::{
    Checked, Clock, Commits, Counter, Failure, KeyValue, Opening, Options, Records, Rows, Scheme, Session, Setting,
    Store, StoreUse, Strings, Table, Target, Transactions,
};
use larch::options::{FilterKind, Filters, LevelOptions, PageIndexKind, Release};
use larch::stats::{PageKind, Reason};
use larch::{Budget, Builder, Compression, Database, Durability, Error, LogError, TableOptions};
use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

pub use partitions::SCHEME as PARTITIONS;
pub use row_access::SCHEME as ROW_ACCESS;
pub use tpcc::SCHEME as TPCC;

/// `larch:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "larch",
    form: "larch:DIR",
    about: "Larch, embedded",
    options: &[
        ("cache", "page cache in bytes, free: the memory that other programs leave free, at least 256MiB [free]"),
        ("write_buffer", "memory for rows not yet in files: 64MiB"),
        ("durability", "buffered: log written, not synced; synced: every commit"),
        ("compression", "none, lz4, zstd or zstd:LEVEL, of a new table: none"),
        ("page", "bytes of a page, of a new table: 16KiB"),
        ("node", "bytes of an index node, of a new table: 16KiB"),
        (
            "file",
            "bytes of a file of the uppermost level below 0; the deepest and loads have four times as many: 64MiB",
        ),
        ("index", "btree, flat or both, of a new table: btree"),
        ("read_index", "btree or flat: which is read of a table that has both: btree"),
        ("groups", "groups, 16 at most, that fields of a row are kept in, apart, of a new table, 0: none [0]"),
        ("filters", "bits a key in upper and deepest files of a new table, none, 12 or 20 each: 20,12"),
        ("flights", "requests under way on each thread, 0: one, and the thread waits for it [0]"),
        ("read_only", "1: without a lock, beside others that have it open, 0: alone [0]"),
        ("compat", "write nothing that this release of Larch does not read: this one"),
        ("settle", "levels: compactions that are wanted; compact: everything to the deepest level"),
    ],
    networked: false,
    open,
};

/// An open database.
struct Larch {
    db: Database,
    table: larch::Table,
    fields: usize,
    reads_flat_index: bool,
    write_buffer_bytes: u64,
    /// Size of an SST in the uppermost level below level 0.
    file_bytes: u64,
    durability: Durability,
    compacts: bool,
    /// Requests under way on each thread. `None`: each call waits for its answer.
    flights: Option<usize>,
}

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let cache = cache_budget(&mut options)?;
    let write_buffer_bytes = options.bytes("write_buffer", 64 << 20)?;
    let file_bytes = options.bytes("file", LevelOptions::default().file_bytes)?;
    let durability =
        options.choice("durability", &[("buffered", Durability::Buffered), ("synced", Durability::Synced)])?;
    let reads_flat_index = options.choice("read_index", &[("btree", false), ("flat", true)])?;
    let asked = TableForm::take(&mut options, table.fields.len())?;
    let compacts = options.choice("settle", &[("levels", false), ("compact", true)])?;
    let flights = match options.number("flights", 0)? {
        0 => None,
        depth @ 1..=65536 => Some(depth as usize),
        more => return Err(options.bad("flights", &more.to_string(), "at most 65536")),
    };
    let read_only = options.choice("read_only", &[("0", false), ("1", true)])?;
    let compat = match options.text("compat") {
        None => Release::NEWEST,
        Some(text) => {
            let names = || Release::ALL.iter().map(Release::to_string).collect::<Vec<_>>().join(", ");
            text.parse().map_err(|_| options.bad("compat", &text, &format!("one of {}", names())))?
        }
    };
    if flights.is_some() && asked.groups.is_some_and(|groups| groups > 0) {
        return Err(options.bad("flights", "set", "left out where the fields are in groups"));
    }
    options.finish()?;
    if read_only && opening != Opening::Existing {
        return Err(Failure::session("target", "with read_only nothing is made: load it first, without"));
    }

    let place = target.directory()?;
    let builder = || {
        let builder = Database::builder(place).durability(durability).publish_metrics(true);
        let builder = builder.cache_bytes(cache).write_buffer_bytes(write_buffer_bytes);
        let builder = builder.levels(LevelOptions { file_bytes, ..LevelOptions::default() });
        builder.prefer_flat_index(reads_flat_index).read_only(read_only).compat(compat).extractors(index::extractor)
    };
    let none = || {
        Failure::session("no_store", format!("there is no table {} in {}: load it first", table.name, place.display()))
    };
    let db = open_in(place, opening != Opening::Existing, builder)?.ok_or_else(none)?;
    if opening == Opening::Recreate {
        db.drop_table(&table.name).map_err(broken)?;
    }
    let existing = db.existing_table(&table.name).map_err(broken)?;
    let rows = match existing {
        Some(rows) => {
            asked.check(&rows.options(), place)?;
            rows
        }
        None if opening == Opening::Existing => return Err(none()),
        None => db.table_with(&table.name, asked.options()).map_err(broken)?,
    };
    let fields = table.fields.len();
    if flights.is_some() && !rows.options().groups.is_empty() {
        let text = format!("the table in {} has its fields in groups: leave flights out", place.display());
        return Err(Failure::session("other_options", text));
    }
    Ok(Box::new(Larch {
        db,
        table: rows,
        fields,
        reads_flat_index,
        write_buffer_bytes,
        file_bytes,
        durability,
        compacts,
        flights,
    }))
}

/// Opens the database in `place`. If none exists, creates it if `may_create` is true, and otherwise returns `None`.
fn open_in(place: &Path, may_create: bool, builder: impl Fn() -> Builder) -> Result<Option<Database>, Failure> {
    match builder().create(false).open() {
        Err(Error::NotADatabase(_)) if is_empty(place)? => match may_create {
            true => builder().open().map(Some).map_err(broken),
            false => Ok(None),
        },
        Err(Error::NotADatabase(_)) => {
            let text = format!("{} is not empty, and not a database of Larch: name a new directory", place.display());
            Err(Failure::session("not_a_store", text))
        }
        opened => opened.map(Some).map_err(broken),
    }
}

/// Whether a database may be created in `place`: it must be an empty directory or not exist.
fn is_empty(place: &Path) -> Result<bool, Failure> {
    match fs::read_dir(place) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(failure(&error, "read", place)),
    }
}

/// The engine's limit for the column groups of a table.
const MOST_GROUPS: usize = 16;

/// The target's options for a new table. An existing table keeps the options it was created with.
struct TableForm {
    page_bytes: Option<u32>,
    node_bytes: Option<u32>,
    groups: Option<usize>,
    compression: Option<Compression>,
    index: Option<PageIndexKind>,
    filters: Option<Filters>,
}

impl TableForm {
    /// Takes the table options out of `options`. Rows have `fields` fields.
    fn take(options: &mut Options, fields: usize) -> Result<Self, Failure> {
        let mut bytes = |name, most| match options.bytes(name, 0)? {
            0 => Ok(None),
            bytes => u32::try_from(bytes).map(Some).map_err(|_| options.bad(name, &bytes.to_string(), most)),
        };
        let (page_bytes, node_bytes) = (bytes("page", "at most 1MiB")?, bytes("node", "at most 256KiB")?);
        let groups = match options.text("groups") {
            None => None,
            Some(text) => match text.parse::<usize>() {
                Ok(groups) if groups <= MOST_GROUPS => Some(groups.min(fields)),
                _ => return Err(options.bad("groups", &text, &format!("0 to {MOST_GROUPS}"))),
            },
        };
        let compression = match options.text("compression") {
            None => None,
            Some(text) => {
                let most = Compression::ZSTD_LEVELS.end();
                let known = format!("none, lz4, zstd, or zstd:LEVEL with a level from 1 to {most}");
                Some(text.parse::<Compression>().map_err(|_| options.bad("compression", &text, &known))?)
            }
        };
        let index = options.choice(
            "index",
            &[
                ("", None),
                ("btree", Some(PageIndexKind::Btree)),
                ("flat", Some(PageIndexKind::Flat)),
                ("both", Some(PageIndexKind::Both)),
            ],
        )?;
        let filters = match options.text("filters") {
            None => None,
            Some(text) => {
                let bits = |bits| match bits {
                    "none" => Some(FilterKind::None),
                    "12" => Some(FilterKind::Bits12),
                    "20" => Some(FilterKind::Bits20),
                    _ => None,
                };
                let (upper, deepest) = text.split_once(',').unwrap_or((&text, &text));
                let filters = bits(upper).zip(bits(deepest)).map(|(upper, deepest)| Filters { upper, deepest });
                Some(
                    filters
                        .ok_or_else(|| options.bad("filters", &text, "none, 12 or 20, or two of them with a comma"))?,
                )
            }
        };
        Ok(Self { page_bytes, node_bytes, groups, compression, index, filters })
    }

    /// The options of a new table.
    fn options(&self) -> TableOptions {
        let usual = TableOptions::default();
        let page_bytes = self.page_bytes.unwrap_or(usual.page_bytes);
        TableOptions {
            page_bytes,
            node_bytes: self.node_bytes.unwrap_or(usual.node_bytes),
            groups: (0..self.groups.unwrap_or(0)).map(|group| format!("g{group}")).collect(),
            compression: self.compression.unwrap_or(usual.compression),
            index: self.index.unwrap_or(usual.index),
            filters: self.filters.unwrap_or(usual.filters),
            ..usual
        }
    }

    /// Refuses a table that was made with other options.
    fn check(&self, found: &TableOptions, place: &Path) -> Result<(), Failure> {
        let fits = self.page_bytes.is_none_or(|asked| asked == found.page_bytes)
            && self.node_bytes.is_none_or(|asked| asked == found.node_bytes)
            && self.groups.is_none_or(|asked| asked == found.groups.len())
            && self.compression.is_none_or(|asked| asked == found.compression)
            && self.index.is_none_or(|asked| asked == found.index)
            && self.filters.is_none_or(|asked| asked == found.filters);
        if fits {
            return Ok(());
        }
        let text = format!(
            "the table in {} was made with other options (page {}, node {}, groups {}, compression {}, index {}, filters \
             {}): give the same options, leave them out, or load it again with --recreate",
            place.display(),
            bytes_text(found.page_bytes.into()),
            bytes_text(found.node_bytes.into()),
            found.groups.len(),
            found.compression,
            index_name(found.index),
            found.filters
        );
        Err(Failure::session("other_options", text))
    }
}

/// The budget that the option `cache` asks for.
fn cache_budget(options: &mut Options) -> Result<Budget, Failure> {
    let free = Budget::free().at_least(256 << 20);
    let Some(text) = options.text("cache").filter(|text| text != "free") else { return Ok(free) };
    let bytes = kit::size::parse(&text);
    bytes
        .map(Budget::fixed)
        .map_err(|_| options.bad("cache", &text, "free or a size, like 4096, 64KiB, 256MiB or 1TiB"))
}

/// The budget as a setting. It is the same in each run with the same option.
fn cache_text(db: &Database) -> String {
    let cache = db.cache();
    if cache.is_elastic() { "free memory".to_owned() } else { bytes_text(cache.budget_bytes()) }
}

fn index_name(index: PageIndexKind) -> &'static str {
    match index {
        PageIndexKind::Btree => "btree",
        PageIndexKind::Flat => "flat",
        PageIndexKind::Both => "both",
    }
}

/// The settings that every store on Larch reports.
fn settings_of(db: &Database, table: &larch::Table, durability: Durability, write_buffer_bytes: u64) -> Vec<Setting> {
    let options = table.options();
    let durability = match durability {
        Durability::Buffered => "buffered: every write in the log, with the system, not synced",
        Durability::Synced => "synced: a write returns once the log is synced",
    };
    vec![
        Setting::new("engine", concat!("Larch ", env!("CARGO_PKG_VERSION"))),
        Setting::new("durability", durability),
        Setting::new("cache", cache_text(db)),
        Setting::new("compression", options.compression.to_string()),
        Setting::new("page", bytes_text(options.page_bytes.into())),
        Setting::new("node", bytes_text(options.node_bytes.into())),
        Setting::new("index", index_name(options.index)),
        Setting::new("filters", format!("{} bits", options.filters)),
        Setting::new("write buffer", bytes_text(write_buffer_bytes)),
        Setting::new("reads", "direct, where the file system can"),
    ]
}

/// The counters that every store on Larch reports.
fn counters_of(db: &Database) -> Vec<Counter> {
    let metrics = db.metrics();
    let written = metrics.flush_bytes + metrics.compaction_bytes + metrics.import_bytes;
    let point = metrics.pages.pages(Reason::Point, PageKind::Data);
    vec![
        Counter::of("page reads", metrics.page_reads),
        Counter::of("index page reads", metrics.index_page_reads),
        Counter::of("cache hits", metrics.page_hits),
        Counter::of("point row pages found", point.hits),
        Counter::of("point row pages read", point.faults),
        Counter::of("bytes read", metrics.page_read_bytes),
        Counter::of("log bytes", metrics.log_bytes),
        Counter::of("flush bytes", metrics.flush_bytes),
        Counter::of("compaction bytes", metrics.compaction_bytes),
        Counter::of("bytes written", written),
        Counter::of("flushes", metrics.flushes),
        Counter::of("compactions", metrics.compactions),
        Counter::of("stalled micros", metrics.slowed_micros),
        Counter::of("yielded micros", metrics.yielded_micros),
        Counter::of("stops at level 0", metrics.level0_stalls),
        Counter::of("stops at the write buffer", metrics.write_buffer_stalls),
        Counter::of("stopped micros", metrics.level0_stall_micros + metrics.write_buffer_stall_micros),
        Counter::now("cache bytes", metrics.cache.used_bytes),
        Counter::now("index bytes in cache", metrics.cached_index_bytes),
        Counter::now("memory bytes", metrics.memory().total_bytes()),
        Counter::now("memtable bytes", metrics.memtable_bytes),
        Counter::now("files", metrics.files),
        Counter::now("file bytes", metrics.file_bytes),
    ]
}

impl Store for Larch {
    fn settings(&self) -> Vec<Setting> {
        let mut settings = settings_of(&self.db, &self.table, self.durability, self.write_buffer_bytes);
        settings.extend([
            Setting::new("groups", self.table.options().groups.len().to_string()),
            Setting::new("read index", if self.reads_flat_index { "flat, where there is one" } else { "btree" }),
            Setting::new("file", bytes_text(self.file_bytes)),
            Setting::new("settle", if self.compacts { "compact" } else { "levels" }),
            Setting::new(
                "a thread",
                self.flights.map_or("waits for each answer".to_owned(), |depth| format!("{depth} requests under way")),
            ),
        ]);
        settings
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        match self.flights {
            Some(depth) => Ok(Session::Flights(flights::session(&self.table, self.fields, depth, clock))),
            None => self.loader(clock),
        }
    }

    /// A loader keeps one write under way at a time: an insert never waits for a read, so more of them at once would
    /// not be faster.
    fn loader(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(match self.table.options().groups.len() {
            0 => Box::new(session(&self.table, self.fields)),
            _ => Box::new(groups::Grouped::new(&self.table, self.fields)?),
        }))
    }

    fn transactions(&self, checked: Checked) -> Option<Box<dyn Transactions + '_>> {
        self.table.options().groups.is_empty().then(|| transactions::session(&self.db, &self.table, checked))
    }

    fn commits(&self, in_flight: usize) -> Option<Box<dyn Commits + '_>> {
        let has_them = self.durability == Durability::Synced && self.table.options().groups.is_empty();
        has_them.then(|| transactions::commits(&self.db, &self.table, in_flight))
    }

    fn build_index(&self) -> Result<Option<u64>, Failure> {
        index::build(&self.table).map(Some)
    }

    fn check_and_drop_index(&self) -> Result<u64, Failure> {
        index::check_and_drop(&self.table)
    }

    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let mut import = self.table.import().map_err(broken)?;
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let mut groups = match self.table.options().groups.len() {
            0 => None,
            groups => Some(groups::Parts::new(self.fields, groups)),
        };
        let mut count = 0;
        while rows.next_row(&mut key, &mut record) {
            match &mut groups {
                None => import.add(&key, encoded(&record, &mut value)),
                Some(groups) => import.add_parts(&key, groups.encode(&record)),
            }
            .map_err(broken)?;
            count += 1;
        }
        import.finish(|_| {}).map_err(broken)?;
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        // Selects no column group, only keys, so it works for tables with and without groups.
        let first = self.table.select([""; 0]).and_then(|keys| keys.first_key_value()).map_err(broken)?;
        Ok(first.is_none())
    }

    fn counters(&self) -> Vec<Counter> {
        counters_of(&self.db)
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        if self.compacts {
            self.table.compact().map_err(broken)?;
        }
        self.db.compact_due().map_err(broken)
    }

    fn set_cache_bytes(&self, bytes: u64) -> Result<bool, Failure> {
        self.db.set_cache_bytes(bytes);
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        let Self { db, table, .. } = *self;
        drop(table);
        db.close().map_err(broken)
    }
}

/// A session on a table that is already open. The table's rows have `fields` fields.
pub fn session(table: &larch::Table, fields: usize) -> impl harness::Blocking + '_ {
    Records::new(Pairs { table }, fields)
}

struct Pairs<'s> {
    table: &'s larch::Table,
}

impl KeyValue for Pairs<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let value = self.table.get(key).map_err(broken)?;
        if let Some(value) = &value {
            found(value);
        }
        Ok(value.is_some())
    }

    fn get_many(&mut self, keys: &Strings, mut found: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        let values = self.table.multi_get(keys.iter()).map_err(broken)?;
        for (number, value) in values.iter().enumerate() {
            if let Some(value) = value {
                found(number, value);
            }
        }
        Ok(())
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        let mut range = self.table.range(start..).limit(rows);
        let end = range.for_each_row(|row| {
            let wants_more = match row.inline_value() {
                Some(value) => each(row.key(), value),
                None => match row.value() {
                    Ok(value) => each(row.key(), &value),
                    Err(error) => return ControlFlow::Break(Err(broken(error))),
                },
            };
            if wants_more { ControlFlow::Continue(()) } else { ControlFlow::Break(Ok(())) }
        });
        end.map_err(broken)?.break_value().unwrap_or(Ok(()))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.table.insert(key, value).map_err(broken)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        self.table.remove(key).map_err(broken)?;
        Ok(true)
    }
}

/// Classifies an error of Larch, whose text already names the file and the remedy.
#[cold]
fn broken(error: Error) -> Failure {
    let text = error.to_string();
    match &error {
        Error::Page(pages::Error::Io { source, .. }) | Error::Log(LogError::Io { source, .. }) => {
            Failure::session(io_kind(source), text)
        }
        Error::Page(pages::Error::Corrupt { .. }) | Error::Log(LogError::Corrupt { .. }) => {
            Failure::session("corrupt", text)
        }
        Error::Locked(_) => Failure::session("locked", text),
        Error::WritesStopped(_) => Failure::session("writes_stopped", text),
        Error::BadOptions(_) => Failure::session("target", text),
        Error::KeyTooLong { .. } | Error::ValueTooLong { .. } => Failure::request("too_long", text),
        _ => Failure::session("larch", text),
    }
}
