//! Measures queries on a table of Larch and on a Parquet file with the same rows in the same order, and counts the
//! pages that Larch reads. `cargo x sql --measure` runs it; see `docs/guide/sql.md`.
//!
//! ```text
//! measure [--rows N] [--repeats N] [--threads N] [--directory DIR] [--only TEXT]
//!
//! row:   id u64 | amount i64, price f64 | text of 76 bytes       100 bytes, in three places: key, first group, second group
//! ```
//!
//! `--only TEXT` runs the queries whose names contain TEXT. Larch and Parquet run in turn, and their medians are
//! compared. *Cached*: the query has run before. *Cold*: the files were evicted from the system's memory, and the
//! database was just opened.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use kit::{Scratch, median};
use larch::stats::{Metrics, PageKind};
use larch::{Database, TableOptions};
use larch_datafusion::LarchTable;
use rows::Tuple;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

const COLUMNS: &str = "key.tuple(id u64), value.tuple(amount i64, price f64), part(1) note string";

/// The number of rows that are made in one step.
const BATCH_ROWS: u64 = 100_000;

/// The queries, each with a goal: the most that Larch's time may be, as a multiple of Parquet's. `{from}` and `{to}`
/// are the ends of a range with a thousandth of all keys.
const QUERIES: [(&str, &str, Option<f64>); 5] = [
    ("aggregate of one column", "SELECT sum(amount) FROM t", Some(8.0)),
    ("aggregate of two columns", "SELECT sum(amount), avg(price) FROM t WHERE price < 0.5", None),
    ("all columns of all rows", "SELECT * FROM t", Some(1.5)),
    ("a range of keys", "SELECT count(note), sum(amount) FROM t WHERE id BETWEEN {from} AND {to}", Some(1.0)),
    ("count, first and last key", "SELECT count(*), min(id), max(id) FROM t", None),
];

struct Options {
    rows: u64,
    repeats: usize,
    threads: usize,
    directory: Option<PathBuf>,
    only: String,
}

fn main() -> ExitCode {
    let measured = options().and_then(|options| measure(&options));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options> {
    let threads = std::thread::available_parallelism()?.get();
    let mut options = Options { rows: 10_000_000, repeats: 5, threads, directory: None, only: String::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--rows" => options.rows = value.parse()?,
            "--repeats" => options.repeats = value.parse()?,
            "--threads" => options.threads = value.parse()?,
            "--directory" => options.directory = Some(value.into()),
            "--only" => options.only = value,
            other => return Err(format!("no option {other}: --rows, --repeats, --threads, --directory, --only").into()),
        }
    }
    if options.rows == 0 || options.repeats == 0 || options.threads == 0 {
        return Err("rows, repeats and threads are at least 1".into());
    }
    Ok(options)
}

/// The two sides of a measurement, which have the same rows.
struct Sides {
    database_directory: PathBuf,
    parquet: PathBuf,
    options: Opening,
}

/// The options of a session.
#[derive(Clone, Copy)]
struct Opening {
    threads: usize,
    cache_bytes: u64,
}

fn measure(options: &Options) -> Result<()> {
    let scratch = Scratch::for_benchmark(options.directory.as_deref(), "sql", || ())?;
    let (database_directory, parquet) = (scratch.path().join("db"), scratch.path().join("t.parquet"));
    // Room for all pages, so that a repeated query finds them in memory.
    let cache_bytes = (options.rows * 150).max(64 << 20);
    let sides = Sides { database_directory, parquet, options: Opening { threads: options.threads, cache_bytes } };
    fill(&sides, options.rows)?;
    if cfg!(debug_assertions) {
        println!("This build is not optimized: the times say nothing, the pages do.");
    }
    println!("{} rows, {} threads, {} repeats; {}", options.rows, options.threads, options.repeats, sizes(&sides)?);
    println!(
        "{:<28} {:<7} {:>10} {:>10} {:>7} {:>6} {:>8} {:>8}",
        "query", "", "larch ms", "parquet ms", "ratio", "goal", "data", "groups"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(options.threads).build()?;
    if !QUERIES.iter().any(|(name, ..)| name.contains(&options.only)) {
        return Err(format!("no query has {} in its name", options.only).into());
    }
    for (name, sql, goal) in QUERIES.into_iter().filter(|(name, ..)| name.contains(&options.only)) {
        let from = options.rows / 2;
        let sql = sql.replace("{from}", &from.to_string()).replace("{to}", &(from + options.rows / 1000).to_string());
        for is_cold in [false, true] {
            let compared = runtime.block_on(compare(&sides, &sql, is_cold, options.repeats))?;
            let ratio = compared.larch / compared.parquet;
            let goal = match goal {
                // The goal holds only for cached data. With cold data, the goal is that of the query of all columns.
                Some(_) if is_cold => "1.5".to_owned(),
                Some(goal) => goal.to_string(),
                None => "-".to_owned(),
            };
            let state = if is_cold { "cold" } else { "cached" };
            println!(
                "{name:<28} {state:<7} {:>10.1} {:>10.1} {ratio:>7.2} {goal:>6} {:>8} {:>8}",
                compared.larch, compared.parquet, compared.data_pages, compared.group_pages
            );
        }
    }
    Ok(())
}

/// Writes the same rows to a database and to a Parquet file.
fn fill(sides: &Sides, rows: u64) -> Result<()> {
    let database = Database::builder(&sides.database_directory).open()?;
    let groups = ["numbers", "note"].map(str::to_owned).to_vec();
    let table = database.table_with("t", TableOptions { groups, ..TableOptions::default() })?;
    let mut import = table.import()?;
    // Neither side is compressed: random rows would compress less well than those of a real table.
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
    let mut writer = ArrowWriter::try_new(File::create(&sides.parquet)?, schema(), Some(properties))?;
    let mut random = 1_u64;
    let mut start = 0;
    while start < rows {
        let ids: Vec<u64> = (start..rows.min(start + BATCH_ROWS)).collect();
        let (mut amounts, mut prices, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for id in &ids {
            // Pseudorandom numbers, the same in each run (xorshift).
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (amount, price) = ((random % 1_000_000) as i64, (random >> 11) as f64 / (1_u64 << 53) as f64);
            let note = format!("{random:016x}{id:044}{random:016x}");
            import.add_parts(&(*id,).to_key(), &[(amount, price).to_key(), note.clone().into_bytes()])?;
            amounts.push(amount);
            prices.push(price);
            notes.push(note);
        }
        let arrays: [ArrayRef; 4] = [
            Arc::new(UInt64Array::from(ids)),
            Arc::new(Int64Array::from(amounts)),
            Arc::new(Float64Array::from(prices)),
            Arc::new(StringViewArray::from_iter_values(notes)),
        ];
        writer.write(&RecordBatch::try_new(schema(), arrays.to_vec())?)?;
        start += BATCH_ROWS;
    }
    writer.close()?;
    import.finish(|_| {})?;
    database.close()?;
    Ok(())
}

fn schema() -> SchemaRef {
    let columns: larch_datafusion::Columns = COLUMNS.parse().expect("the columns are right");
    columns.schema()
}

fn sizes(sides: &Sides) -> Result<String> {
    let mut database = 0;
    for file in std::fs::read_dir(&sides.database_directory)? {
        database += file?.metadata()?.len();
    }
    let parquet = std::fs::metadata(&sides.parquet)?.len();
    Ok(format!("{} MiB of database, {} MiB of Parquet", database >> 20, parquet >> 20))
}

/// The median times of both sides in milliseconds, and the pages that Larch read in one run.
struct Compared {
    larch: f64,
    parquet: f64,
    data_pages: u64,
    group_pages: u64,
}

async fn compare(sides: &Sides, sql: &str, is_cold: bool, repeats: usize) -> Result<Compared> {
    let (mut larch, mut parquet) = (Vec::new(), Vec::new());
    let mut warm = (Side::larch(sides)?, Side::parquet(sides).await?);
    if !is_cold {
        warm.0.ask(sql).await?;
        warm.1.ask(sql).await?;
    }
    let mut pages = (0, 0);
    for _ in 0..repeats {
        if is_cold {
            evict(sides)?;
            warm.0 = Side::larch(sides)?;
        }
        let before = warm.0.metrics();
        let (millis, rows) = warm.0.ask(sql).await?;
        larch.push(millis);
        let after = warm.0.metrics();
        let of_kind = |kind| after.pages.of_kind(kind).faults - before.pages.of_kind(kind).faults;
        pages = (of_kind(PageKind::Data), of_kind(PageKind::Group));
        if is_cold {
            evict(sides)?;
            warm.1 = Side::parquet(sides).await?;
        }
        let (millis, others) = warm.1.ask(sql).await?;
        parquet.push(millis);
        if rows != others {
            return Err(format!("{sql}: {rows} rows from Larch and {others} from Parquet").into());
        }
    }
    let (larch, parquet) = (median(&larch), median(&parquet));
    Ok(Compared { larch, parquet, data_pages: pages.0, group_pages: pages.1 })
}

/// Larch or Parquet, ready to answer queries.
struct Side {
    context: SessionContext,
    database: Option<Database>,
}

impl Side {
    fn larch(sides: &Sides) -> Result<Self> {
        let builder = Database::builder(&sides.database_directory).create(false).read_only(true);
        let database = builder.cache_bytes(sides.options.cache_bytes).open()?;
        let table = database.existing_table("t")?.ok_or("the table is gone")?;
        let context = context(sides.options.threads);
        context.register_table("t", Arc::new(LarchTable::new(&database.snapshot(), &table, COLUMNS.parse()?)?))?;
        Ok(Self { context, database: Some(database) })
    }

    async fn parquet(sides: &Sides) -> Result<Self> {
        let context = context(sides.options.threads);
        let file = sides.parquet.to_str().ok_or("the directory has no name of text")?;
        context.register_parquet("t", file, ParquetReadOptions::default()).await?;
        Ok(Self { context, database: None })
    }

    fn metrics(&self) -> Metrics {
        self.database.as_ref().expect("it is the side of Larch").metrics()
    }

    /// Runs a query. Returns the milliseconds until the last row, and the number of rows.
    async fn ask(&self, sql: &str) -> Result<(f64, usize)> {
        let start = Instant::now();
        let mut rows = self.context.sql(sql).await?.execute_stream().await?;
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            count += batch?.num_rows();
        }
        Ok((start.elapsed().as_secs_f64() * 1000.0, count))
    }
}

fn context(threads: usize) -> SessionContext {
    // The setting makes DataFusion evaluate filters while it reads the Parquet file, which is faster for a range of
    // keys.
    let config = SessionConfig::new().with_target_partitions(threads);
    SessionContext::new_with_config(config.set_bool("datafusion.execution.parquet.pushdown_filters", true))
}

/// Removes all files from the system's memory.
fn evict(sides: &Sides) -> Result<()> {
    let mut files = vec![sides.parquet.clone()];
    for file in std::fs::read_dir(&sides.database_directory)? {
        files.push(file?.path());
    }
    files.iter().try_for_each(|file| evict_file(file))
}

fn evict_file(file: &Path) -> Result<()> {
    // This option of GNU `dd` tells the system that the pages of the file are no longer needed.
    let of = format!("of={}", file.display());
    let status = Command::new("dd")
        .args([&*of, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"])
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("dd cannot evict {}", file.display()).into()) }
}
