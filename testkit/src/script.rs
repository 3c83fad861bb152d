//! Text scripts over the public API. A script runs on several databases with different options, which must all give
//! the same output.
//!
//! ```text
//! open [durability=buffered]     create           write           batch            import table=T
//! close | let-go | crash [keep=nothing|everything]                                 files
//! flush | compact | sync         snapshot name=S  forget name=S   tables           drop-table name=T
//! get                            scan             iterate name=I  next name=I      check
//!
//! create:         TABLE                          one a line, as all below
//! write, batch:   put TABLE KEY VALUE | del TABLE KEY | erase TABLE RANGE      a commit a line, or one for all
//! import:         KEY VALUE
//! get:            TABLE KEY [at S]
//! scan, iterate:  TABLE RANGE [at S] [reverse]
//! next:           forward [N] | back [N]
//!
//! RANGE:          a..c | a..=c | a.. | ..c | .. | (a..c (without a) | a* (keys that begin with a)
//! VALUE, KEY:     text, and text*N is the text N times
//! ```
//!
//! After the rows of a `get`, `scan` or `next`, the output says what the read cost each database. On the simulated
//! machines, background work runs on the script's thread, so the costs are the same in every run.

use crate::options::TinyOptions;
use datadriven::TestCase;
use larch::check::DumpDetail;
use larch::options::{LevelOptions, PageIndexKind};
use larch::stats::{Metrics, PageKind};
use larch::{Compression, Database, Durability, Readable, Result, Snapshot, Table, TableOptions};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Bound;
use std::path::Path;

const DIRECTORY: &str = "db";

/// A script under way.
#[derive(Debug)]
pub struct Script {
    worlds: Vec<World>,
}

/// One of the databases.
#[derive(Debug)]
struct World {
    name: &'static str,
    disk: Arc<SimDisk>,
    options: TinyOptions,
    open: Option<OpenDatabase>,
}

#[derive(Debug)]
struct OpenDatabase {
    iterators: BTreeMap<String, larch::Range>,
    snapshots: BTreeMap<String, Snapshot>,
    db: Database,
}

impl Script {
    /// A script on four databases: one with default options, one with small pages in large files, and two with small
    /// pages in tiny files. One of the last two has only B-trees; the other has both kinds of index and prefers the
    /// flat one.
    pub fn on_all_options() -> Self {
        let usual = TinyOptions {
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 20,
            durability: Durability::Synced,
            open_files: 16,
            prefer_flat_index: false,
            levels: LevelOptions::default(),
            manifest_slack_bytes: 4 << 20,
            reserve_bytes: 0,
            tables: vec![TableOptions::default()],
            indexes: Vec::new(),
        };
        let tiny_table = TableOptions { page_bytes: 256, node_bytes: 256, ..TableOptions::default() };
        let small_pages = TinyOptions { tables: vec![tiny_table.clone()], ..usual.clone() };
        let tiny = TinyOptions {
            cache_bytes: 768,
            write_buffer_bytes: 4 << 10,
            levels: LevelOptions {
                level0_files: 2,
                slow_files: 4,
                base_bytes: 2 << 10,
                growth: 2,
                file_bytes: 1 << 10,
            },
            tables: vec![tiny_table.clone()],
            ..usual.clone()
        };
        let flat = TinyOptions {
            prefer_flat_index: true,
            tables: vec![TableOptions { index: PageIndexKind::Both, compression: Compression::Lz4, ..tiny_table }],
            ..tiny.clone()
        };
        let world = |(name, options)| World { name, disk: SimDisk::new(0), options, open: None };
        Self {
            worlds: [("usual", usual), ("small pages", small_pages), ("tiny", tiny), ("tiny, flat and packed", flat)]
                .map(world)
                .into(),
        }
    }

    /// A script on a single database with small files, for scripts whose output depends on the options.
    pub fn on_small_files() -> Self {
        let mut all = Self::on_all_options();
        all.worlds.truncate(1);
        let levels = &mut all.worlds[0].options.levels;
        *levels =
            LevelOptions { level0_files: 3, slow_files: 9, base_bytes: 64 << 10, growth: 2, file_bytes: 16 << 10 };
        all
    }

    /// Runs a test case on every database. Returns the common output, and then what the reads cost each database.
    pub fn run(&mut self, case: &TestCase) -> String {
        let mut outputs = Vec::new();
        let mut costs = String::new();
        for world in &mut self.worlds {
            let before = world.metrics();
            outputs.push((world.name, world.run(case)));
            if let (true, Some(before), Some(after)) = (is_read(&case.directive), before, world.metrics()) {
                say_cost(&mut costs, world.name, &before, &after);
            }
        }
        let (first, output) = outputs.swap_remove(0);
        for (other, differing) in outputs {
            assert_eq!(output, differing, "{} of databases {first:?} and {other:?}", case.directive);
        }
        output + &costs
    }
}

/// Whether a directive of a script reads rows. The costs of other directives depend on when background work runs.
fn is_read(directive: &str) -> bool {
    matches!(directive, "get" | "scan" | "next")
}

/// Prints what a read cost: how often it waited for the disk, and how many pages of each kind it read or found in
/// memory. Prints nothing if it needed no page.
fn say_cost(output: &mut String, name: &str, before: &Metrics, after: &Metrics) {
    let pages = after.pages.since(&before.pages);
    if pages.total() == Default::default() {
        return;
    }
    let by_kind = |count: &dyn Fn(PageKind) -> u64| {
        let counted = PageKind::ALL.into_iter().map(|kind| (count(kind), kind)).filter(|(count, _)| *count > 0);
        let words: Vec<String> = counted.map(|(count, kind)| format!("{count} {}", kind.name())).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(" + ") }
    };
    let read = by_kind(&|kind| pages.of_kind(kind).faults);
    let found = by_kind(&|kind| pages.of_kind(kind).hits);
    say(output, format_args!("cost, {name}: rounds {}, read {read}, found {found}", pages.all_rounds()));
}

impl World {
    /// The metrics at this moment, if the database is open.
    fn metrics(&self) -> Option<Metrics> {
        Some(self.open.as_ref()?.db.metrics())
    }

    fn run(&mut self, case: &TestCase) -> String {
        let mut output = String::new();
        match self.answer(case, &mut output) {
            Ok(()) if output.is_empty() => "ok\n".to_owned(),
            Ok(()) => output,
            Err(error) => format!("{output}error: {error}\n"),
        }
    }

    fn answer(&mut self, case: &TestCase, output: &mut String) -> Result<()> {
        let argument = |name: &str| case.args.get(name).and_then(|values| values.first()).map(String::as_str);
        let named = || argument("name").expect("name=… says which").to_owned();
        let lines: Vec<Vec<&str>> = case.input.lines().map(|line| line.split_whitespace().collect()).collect();
        match case.directive.as_str() {
            "open" => return self.open(argument("durability"), output),
            "let-go" => self.open = None,
            "crash" => {
                self.open = None;
                match argument("keep") {
                    Some("everything") => self.disk.crash_keeping_everything(),
                    _ => self.disk.crash_keeping_nothing(),
                }
            }
            "close" => self.open.take().expect("it is open").db.close()?,
            "files" => return self.files(output),
            "create" => {
                let options = self.options.tables[0].clone();
                for name in lines {
                    self.opened().db.table_with(name[0], options.clone())?;
                }
            }
            "import" => {
                let mut import = self.opened().table(argument("table").expect("table=… says where"))?.import()?;
                for line in lines {
                    import.add(&bytes(line[0]), &bytes(line[1]))?;
                }
                let report = import.finish(|_| {})?;
                say(output, format_args!("{} rows at version {}", report.rows, self.opened().db.version().0));
            }
            _ => return self.opened().answer(&case.directive, named, &lines, output),
        }
        Ok(())
    }

    fn opened(&mut self) -> &mut OpenDatabase {
        self.open.as_mut().expect("the script opens the database first")
    }

    fn open(&mut self, durability: Option<&str>, output: &mut String) -> Result<()> {
        let durability = match durability {
            Some("buffered") => Durability::Buffered,
            _ => Durability::Synced,
        };
        let builder = self.options.builder(DIRECTORY).durability(durability);
        let db = builder.machine(Machine::simulated_on(self.disk.clone(), 0)).open()?;
        say(output, format_args!("version {}, {} tables", db.version().0, db.tables().len()));
        self.open = Some(OpenDatabase { iterators: BTreeMap::new(), snapshots: BTreeMap::new(), db });
        Ok(())
    }

    /// Prints the levels from the manifest, with the key bounds and the rows of their files.
    fn files(&mut self, output: &mut String) -> Result<()> {
        let machine = Machine::simulated_on(self.disk.clone(), 0);
        let current = self.disk.read_all(&Path::new(DIRECTORY).join("CURRENT")).expect("the disk works");
        let manifest = Path::new(DIRECTORY).join(String::from_utf8_lossy(&current).trim_end());
        let mut text = Vec::new();
        larch::check::dump_on(&machine, &manifest, DumpDetail::default(), &mut text)?;
        let text = String::from_utf8(text).expect("a dump is text");
        // The rows and the keys of each file, by its table, its level and its number.
        let mut files: BTreeMap<(u32, u8, u64), (String, String)> = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = |word: &str| words.iter().position(|w| *w == word).map_or("", |at| words[at + 1]);
            let number = |word: &str| after(word).split('-').next().unwrap_or_default().parse().unwrap_or_default();
            let place = (number("table") as u32, number("level") as u8, number("file"));
            match words[..] {
                ["add", ..] => drop(files.insert(place, (after("rows").to_owned(), after("keys").to_owned()))),
                ["remove", .., number] => {
                    drop(files.remove(&(place.0, place.1, number.parse().expect("a file number"))));
                }
                ["drop", "table", table] => {
                    let table: u32 = table.parse().expect("a table number");
                    files.retain(|(of, ..), _| *of != table);
                }
                _ => {}
            }
        }
        for ((table, level, _), (rows, keys)) in files {
            say(output, format_args!("table {table} level {level}: {keys}, {rows} rows"));
        }
        Ok(())
    }
}

impl OpenDatabase {
    fn table(&self, name: &str) -> Result<Table> {
        self.db.existing_table(name)?.ok_or_else(|| larch::Error::NoSuchTable(name.to_owned()))
    }

    fn answer(
        &mut self,
        directive: &str,
        named: impl Fn() -> String,
        lines: &[Vec<&str>],
        output: &mut String,
    ) -> Result<()> {
        match directive {
            "write" => {
                for words in lines {
                    let mut batch = self.db.batch();
                    self.add(&mut batch, words)?;
                    batch.commit()?;
                }
                say(output, format_args!("version {}", self.db.version().0));
            }
            "batch" => {
                let mut batch = self.db.batch();
                for words in lines {
                    self.add(&mut batch, words)?;
                }
                say(output, format_args!("version {}", batch.commit()?.0));
            }
            "get" => {
                for words in lines {
                    let (table, key) = (self.table(words[0])?, bytes(words[1]));
                    let value = match self.snapshot(words) {
                        Some(snapshot) => snapshot.get(&table, &key)?,
                        None => table.get(&key)?,
                    };
                    match value {
                        Some(value) => say(output, format_args!("{} = {}", shown(&key), shown(&value))),
                        None => say(output, format_args!("{} is not there", shown(&key))),
                    }
                }
            }
            "scan" => {
                for words in lines {
                    let rows = self.range(words)?;
                    let rows: Vec<_> = if words.contains(&"reverse") { rows.rev().collect() } else { rows.collect() };
                    say_rows(output, rows)?;
                }
            }
            "iterate" => {
                let words = lines.first().expect("a table and a range");
                let rows = self.range(words)?;
                self.iterators.insert(named(), rows);
            }
            "next" => {
                let rows = self.iterators.get_mut(&named()).expect("iterate has made it");
                for words in lines {
                    let count = words.get(1).map_or(1, |count| count.parse().expect("a number of rows"));
                    let rows: Vec<_> =
                        if words[0] == "back" { rows.rev().take(count).collect() } else { rows.take(count).collect() };
                    say_rows(output, rows)?;
                }
            }
            "snapshot" => {
                let snapshot = self.db.snapshot();
                say(output, format_args!("version {}", snapshot.version().0));
                self.snapshots.insert(named(), snapshot);
            }
            "forget" => {
                self.snapshots.remove(&named()).expect("the snapshot was taken");
            }
            "tables" => say(output, format_args!("{}", self.db.tables().join(" "))),
            "drop-table" => {
                let was_there = self.db.drop_table(&named())?;
                say(output, format_args!("{}", if was_there { "dropped" } else { "there is none" }));
            }
            "flush" => self.db.flush()?,
            "compact" => self.db.compact()?,
            "sync" => self.db.sync()?,
            "check" => {
                for problem in self.db.check(|_| {})?.problems {
                    say(output, format_args!("{problem}"));
                }
            }
            other => panic!("a script has no word {other:?}"),
        }
        Ok(())
    }

    fn add(&self, batch: &mut larch::Batch, words: &[&str]) -> Result<()> {
        let table = self.table(words[1])?;
        match words {
            ["put", _, key, value] => batch.insert(&table, bytes(key), bytes(value)),
            ["del", _, key] => batch.remove(&table, bytes(key)),
            ["erase", _, range] => batch.remove_range(&table, bounds(range)),
            _ => panic!("{words:?} is no write"),
        }
        Ok(())
    }

    fn snapshot(&self, words: &[&str]) -> Option<&Snapshot> {
        let at = words.iter().position(|word| *word == "at")?;
        Some(self.snapshots.get(words[at + 1]).expect("the snapshot was taken"))
    }

    fn range(&self, words: &[&str]) -> Result<larch::Range> {
        let table = self.table(words[0])?;
        Ok(match (self.snapshot(words), words[1].strip_suffix('*')) {
            (None, Some(prefix)) => table.prefix(prefix),
            (None, None) => table.range(bounds(words[1])),
            (Some(snapshot), _) => snapshot.range(&table, bounds(words[1])),
        })
    }
}

fn bounds(text: &str) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let (low, high) = text.split_once("..").expect("a range has two dots");
    let low = match (low, low.strip_prefix('(')) {
        ("", _) => Bound::Unbounded,
        (_, Some(low)) => Bound::Excluded(bytes(low)),
        (low, None) => Bound::Included(bytes(low)),
    };
    let high = match (high, high.strip_prefix('=')) {
        ("", _) => Bound::Unbounded,
        (_, Some(high)) => Bound::Included(bytes(high)),
        (high, None) => Bound::Excluded(bytes(high)),
    };
    (low, high)
}

/// `ab*3` is `ababab`.
fn bytes(text: &str) -> Vec<u8> {
    match text.split_once('*') {
        Some((text, count)) => text.repeat(count.parse().expect("a count follows the star")).into_bytes(),
        None => text.as_bytes().to_vec(),
    }
}

fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 24;
    if bytes.len() <= MOST {
        return bytes.escape_ascii().to_string();
    }
    format!("{}… ({} bytes)", bytes[..MOST].escape_ascii(), bytes.len())
}

fn say(output: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(output, "{line}").expect("a string takes all");
}

fn say_rows(output: &mut String, rows: Vec<Result<(larch::Key, larch::Value)>>) -> Result<()> {
    if rows.is_empty() {
        say(output, format_args!("no rows"));
    }
    for row in rows {
        let (key, value) = row?;
        say(output, format_args!("{} = {}", shown(&key), shown(&value)));
    }
    Ok(())
}
