//! Measures compactions by a worker in another process. Shows how much processor time the writing process saves, and
//! whether all rows are still there if the worker is killed again and again.
//!
//! `cargo run --release -p larch-db --example workers -- 2000000 20` writes two million rows four times. The first
//! time there are no compactions. The second time the writer compacts, and the third time a worker does this. The
//! fourth time a worker compacts as well, but it is killed 20 times. All this takes two minutes.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures a real machine")]

use larch::machine::Machine;
use larch::options::LevelOptions;
use larch::{Database, Durability};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const VALUE_BYTES: usize = 100;
/// The writer writes so slowly that no write waits for a compaction. A writer that waits for microseconds keeps
/// its processor busy, which would count as processor time.
const ROWS_PER_SECOND: u64 = 100_000;
/// The number of rows that are written without a pause.
const ROWS_AT_ONCE: u64 = 1_000;
/// If no compaction has ended for this time, all compactions are done.
const REST: Duration = Duration::from_secs(3);

/// How the writer compacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compacts {
    Never,
    Itself,
    ByWorker,
}

impl Compacts {
    fn of(text: &str) -> Option<Self> {
        [Self::Never, Self::Itself, Self::ByWorker].into_iter().find(|how| format!("{how:?}") == text)
    }
}

fn builder(directory: &Path, how: Compacts) -> larch::Builder {
    let few = if how == Compacts::Never { usize::MAX / 4 } else { LevelOptions::default().level0_files };
    let (file_bytes, base_bytes) = (4 << 20, 16 << 20);
    let levels = LevelOptions { file_bytes, base_bytes, level0_files: few, slow_files: few, ..LevelOptions::default() };
    let builder = Database::builder(directory).levels(levels).durability(Durability::Buffered);
    builder.write_buffer_bytes(4 << 20).cache_bytes(16 << 20).compaction_workers(how == Compacts::ByWorker)
}

/// Turns a number into one that looks random. Different numbers give different results.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn value(number: u64) -> [u8; VALUE_BYTES] {
    std::array::from_fn(|at| scatter(number).to_le_bytes()[at % 8])
}

/// How much processor time, in user and system mode, the engine's threads in this process have used so far. These
/// threads flush, compact and install. The time of the thread that writes rows is left out: this thread does the
/// same work in each run, and its time varies between runs by more than compactions take.
fn processor_time() -> Outcome<Duration> {
    let mut ticks = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let stat = std::fs::read_to_string(thread?.path().join("stat"))?;
        let (name, fields) = stat.rsplit_once(") ").ok_or("/proc/self/task/…/stat is of another form")?;
        if name.contains("(larch-") {
            let times: Vec<u64> = fields.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
            ticks += times.iter().sum::<u64>();
        }
    }
    // Linux reports processor time in hundredths of a second, on every machine that Rust runs on.
    Ok(Duration::from_millis(10 * ticks))
}

/// This function runs in the process of the writer. It writes the rows, and waits until all compactions are done.
/// Prints four numbers: the processor time in milliseconds, the number of compactions, how many of them workers
/// did, and how many compactions workers failed to do.
fn write(directory: &Path, rows: u64, how: Compacts) -> Outcome<()> {
    let db = builder(directory, how).open()?;
    let table = db.table("t")?;
    let clock = Machine::real().clock;
    let begin = Instant::now();
    for number in 0..rows {
        if number % ROWS_AT_ONCE == 0 {
            let due = Duration::from_secs_f64(number as f64 / ROWS_PER_SECOND as f64);
            clock.sleep(due.saturating_sub(begin.elapsed()));
        }
        table.insert(scatter(number).to_be_bytes(), value(number))?;
    }
    db.flush()?;
    let (mut last, mut since) = (0, Instant::now());
    while since.elapsed() < REST {
        clock.sleep(Duration::from_millis(50));
        let now = db.metrics();
        let seen = now.compactions + now.trivial_moves + now.failed_worker_compactions;
        if seen != last {
            (last, since) = (seen, Instant::now());
        }
    }
    let now = db.metrics();
    let (time, all) = (processor_time()?.as_millis(), now.compactions);
    println!("{time} {all} {} {}", now.worker_compactions, now.failed_worker_compactions);
    Ok(())
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn start(args: &[&str]) -> Outcome<Killed> {
    Ok(Killed(Command::new(std::env::current_exe()?).args(args).stdout(Stdio::piped()).spawn()?))
}

/// What the writer has printed, and how often the worker was killed.
#[derive(Debug)]
struct Run {
    processor: f64,
    compactions: u64,
    by_worker: u64,
    not_done: u64,
    kills: u32,
}

/// Starts another process that writes the rows to a new database. When this process has ended, reads the rows
/// back.
fn run(rows: u64, how: Compacts, kills: u32) -> Outcome<Run> {
    let directory = tempfile::Builder::new().prefix("workers").tempdir_in("target")?;
    let path = directory.path().join("db");
    drop(builder(&path, how).open()?);
    let text = path.to_str().ok_or("the path is not UTF-8")?;
    let mut worker = (how == Compacts::ByWorker).then(|| start(&["work", text])).transpose()?;
    let mut writer = start(&["write", text, &rows.to_string(), &format!("{how:?}")])?;
    let clock = Machine::real().clock;
    let mut done = 0;
    while done < kills && writer.0.try_wait()?.is_none() {
        // The worker lives between a third of a second and one second. So a kill may come while the worker starts,
        // while it merges or writes rows, or while it reports what it has written.
        clock.sleep(Duration::from_millis(300 + scatter(done.into()) % 700));
        // Kills the worker and starts another one.
        drop(worker.take());
        worker = Some(start(&["work", text])?);
        done += 1;
    }
    let mut line = String::new();
    BufReader::new(writer.0.stdout.take().ok_or("it has an output")?).read_line(&mut line)?;
    let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [millis, compactions, by_worker, not_done] = numbers[..] else { return Err("the writer has failed".into()) };
    writer.0.wait()?;
    drop(worker);
    check(&path, rows)?;
    Ok(Run { processor: millis as f64 / 1000.0, compactions, by_worker, not_done, kills: done })
}

/// Reads all rows, and every page.
fn check(directory: &Path, rows: u64) -> Outcome<()> {
    let db = builder(directory, Compacts::Itself).open()?;
    let table = db.table("t")?;
    let mut numbers: Vec<u64> = (0..rows).collect();
    numbers.sort_unstable_by_key(|&number| scatter(number));
    let mut found = table.iter();
    for number in numbers {
        let (key, bytes) = found.next().ok_or_else(|| format!("row {number} is lost"))??;
        assert_eq!(key[..], scatter(number).to_be_bytes(), "the key of row {number}");
        assert_eq!(bytes[..], value(number), "the value of row {number}");
    }
    assert!(found.next().is_none(), "there is a row that nobody wrote");
    drop(found);
    let problems = db.check(|_| {})?.problems;
    assert!(problems.is_empty(), "{problems:?}");
    Ok(())
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", directory] => {
            let mut worker = builder(Path::new(directory), Compacts::Itself).compaction_worker()?;
            return Ok(worker.run(|_| {})?);
        }
        ["write", directory, rows, how] => {
            return write(Path::new(directory), rows.parse()?, Compacts::of(how).ok_or("how it compacts")?);
        }
        _ => {}
    }
    let rows = args.first().map_or(Ok(2_000_000), |rows| rows.parse())?;
    let kills = args.get(1).map_or(Ok(20), |kills| kills.parse())?;
    println!("processor time of the threads of the engine in the writer, {rows} rows:");
    let never = run(rows, Compacts::Never, 0)?;
    println!("  without compactions       {:.2} s", never.processor);
    let own = run(rows, Compacts::Itself, 0)?;
    println!("  with its own              {:.2} s, {} compactions", own.processor, own.compactions);
    let left = run(rows, Compacts::ByWorker, 0)?;
    println!(
        "  with a worker             {:.2} s, {} compactions, {} of them by the worker",
        left.processor, left.compactions, left.by_worker
    );
    let share = (own.processor - left.processor) / (own.processor - never.processor);
    println!("  the worker takes {:.1} % of the time of compactions", share * 100.0);
    let killed = run(rows, Compacts::ByWorker, kills)?;
    println!(
        "a worker killed {} times: all rows are there; {} compactions, {} by workers, {} taken back",
        killed.kills, killed.compactions, killed.by_worker, killed.not_done
    );
    Ok(())
}
