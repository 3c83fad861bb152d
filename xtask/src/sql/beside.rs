//! `cargo x sql --beside-tpcc`: runs TPC-C in one process, once alone and once with a second process beside it. The
//! second process is a follower that asks queries of CH-benCHmark about the same tables. The command compares the
//! work of the terminals in both runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// The options of the comparison.
#[derive(Debug, PartialEq, Eq)]
pub struct Beside<'a> {
    warehouses: u32,
    /// The mode and the two times are given as for `larch bench tpcc run`.
    mode: &'a str,
    warmup: &'a str,
    time: &'a str,
    /// How many times each of the two runs is made. The two runs take turns.
    rounds: u32,
    /// The folder in which the database is made.
    directory: Option<&'a str>,
}

/// The work that the terminals have done.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Done {
    tpmc: f64,
    /// `None` if terminals do not wait.
    efficiency: Option<f64>,
}

/// The queries that the follower asked during a run.
#[derive(Default)]
struct Asked {
    /// The seconds that each round of all queries took.
    rounds: Vec<f64>,
}

impl<'a> Beside<'a> {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Fails if an option is not understood.
    pub fn new(options: &'a [&'a str]) -> Result<Self, String> {
        let mut beside = Self { warehouses: 100, mode: "spec", warmup: "1m", time: "5m", rounds: 1, directory: None };
        for option in options.chunks(2) {
            let bad = || {
                format!(
                    "`{}` is not understood; there are --warehouses N, --mode spec|nowait, --warmup TIME, --time TIME, --rounds N, \
                     --directory DIR",
                    option.join(" ")
                )
            };
            let [name, value] = *option else { return Err(bad()) };
            match name {
                "--warehouses" => beside.warehouses = value.parse().map_err(|_| bad())?,
                "--rounds" => beside.rounds = value.parse().map_err(|_| bad())?,
                "--mode" => beside.mode = value,
                "--warmup" => beside.warmup = value,
                "--time" => beside.time = value,
                "--directory" => beside.directory = Some(value),
                _ => return Err(bad()),
            }
        }
        Ok(beside)
    }

    /// Makes both runs with the program `larch`, which must have a query engine, and prints the work of the
    /// terminals. `queries` is the folder with the SQL statements.
    ///
    /// # Errors
    ///
    /// Fails if a process or the disk fails, or if no round of queries ends in time.
    pub fn run(&self, larch: &Path, queries: &Path, scratch: &Path) -> Result<(), String> {
        let place = self.directory.map_or_else(|| scratch.to_owned(), PathBuf::from).join("beside-tpcc");
        fs::remove_dir_all(&place).unwrap_or_default();
        fs::create_dir_all(&place)
            .map_err(|error| format!("{}: {error}; choose another --directory", place.display()))?;
        let statements = place.join("queries.sql");
        let texts = ["tpcc.sql", "ch.sql"].map(|name| fs::read_to_string(queries.join(name)));
        let texts: Result<Vec<String>, _> = texts.into_iter().collect();
        let text = texts.map_err(|error| format!("{}: {error}", queries.display()))?.concat();
        fs::write(&statements, text).map_err(|error| format!("{}: {error}", statements.display()))?;
        let compared = self.compare(larch, &statements, &place.join("db"));
        fs::remove_dir_all(&place).unwrap_or_default();
        compared
    }

    fn compare(&self, larch: &Path, statements: &Path, database: &Path) -> Result<(), String> {
        // Two elastic caches would take memory from each other, and that is not measured here.
        let target = format!("larch:{}?cache=256MiB", database.display());
        let mut import = Command::new(larch);
        import.args(["bench", "tpcc", "import", "--quiet", "--target", &target]);
        import.args(["--warehouses", &self.warehouses.to_string()]);
        succeeds(&mut import)?;
        let (mut alone, mut beside, mut asked) = (Vec::new(), Vec::new(), Asked::default());
        for round in 1..=self.rounds {
            let done = done(self.terminals(larch, &target)?)?;
            println!("round {round}, alone: {done}");
            alone.push(done);
            let mut terminals = self.terminals(larch, &target)?;
            let queries = asked.ask_while(&mut terminals, larch, statements, database);
            if queries.is_err() {
                terminals.kill().unwrap_or_default();
            }
            let done = self::done(terminals);
            queries?;
            let done = done?;
            println!("round {round}, beside queries: {done}");
            beside.push(done);
        }
        let mean = |of: fn(&Done) -> f64, all: &[Done]| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64;
        println!("{} warehouses, --mode {}, --time {}, {} rounds", self.warehouses, self.mode, self.time, self.rounds);
        let tpmc = |all: &[Done]| mean(|done| done.tpmc, all);
        let (one, two) = (tpmc(&alone), tpmc(&beside));
        println!("tpmC alone {one:.0}, beside queries {two:.0}: {:+.2} %", 100.0 * (two - one) / one);
        if alone.iter().all(|done| done.efficiency.is_some()) {
            let efficiency = |all: &[Done]| mean(|done| done.efficiency.unwrap_or_default(), all);
            let (one, two) = (efficiency(&alone), efficiency(&beside));
            println!(
                "efficiency alone {one:.2} %, beside queries {two:.2} %: {:+.2}; the goal is at most 0.5 less",
                two - one
            );
        }
        let rounds = asked.rounds.len();
        let seconds = asked.rounds.iter().sum::<f64>() / rounds.max(1) as f64;
        println!("queries: {rounds} times all five of queries/ch.sql, {seconds:.2} s each time on average");
        if rounds == 0 {
            return Err("no round of queries came to its end; give it more --time".to_owned());
        }
        Ok(())
    }

    /// Starts the process that runs the terminals.
    fn terminals(&self, larch: &Path, target: &str) -> Result<Child, String> {
        let mut run = Command::new(larch);
        run.args(["bench", "tpcc", "run", "--quiet", "--target", target, "--mode", self.mode]);
        run.args(["--warmup", self.warmup, "--time", self.time, "--seed", "1"]);
        let run = run.stdin(Stdio::null()).stdout(Stdio::piped());
        run.spawn().map_err(|error| format!("{}: {error}", larch.display()))
    }
}

impl Asked {
    /// Asks all queries again and again until the terminals have ended.
    fn ask_while(
        &mut self,
        terminals: &mut Child,
        larch: &Path,
        statements: &Path,
        database: &Path,
    ) -> Result<(), String> {
        loop {
            let start = Instant::now();
            let mut ask = Command::new(larch);
            ask.arg("sql")
                .arg(database)
                .args(["--follow", "--cache", "64MiB", "--format", "csv", "--file"])
                .arg(statements);
            let mut ask = ask.stdout(Stdio::null()).spawn().map_err(|error| format!("{}: {error}", larch.display()))?;
            let ended = loop {
                if has_ended(terminals)? {
                    ask.kill().unwrap_or_default();
                    ask.wait().map_err(|error| error.to_string())?;
                    return Ok(());
                }
                if let Some(ended) = ask.try_wait().map_err(|error| error.to_string())? {
                    break ended;
                }
                pause();
            };
            if !ended.success() {
                return Err(format!("the queries ended with {ended}"));
            }
            self.rounds.push(start.elapsed().as_secs_f64());
        }
    }
}

fn has_ended(child: &mut Child) -> Result<bool, String> {
    child.try_wait().map(|ended| ended.is_some()).map_err(|error| error.to_string())
}

/// Waits between two checks of the processes.
fn pause() {
    std::thread::park_timeout(Duration::from_millis(20));
}

/// Waits until the terminals end, and reads what they print.
fn done(terminals: Child) -> Result<Done, String> {
    let output = terminals.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("the terminals ended with {}: {text}", output.status));
    }
    Done::of_text(&text).ok_or_else(|| format!("no tpmC in what the terminals printed: {text}"))
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

impl Done {
    fn of_text(text: &str) -> Option<Self> {
        let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Some(Self { tpmc: of("tpmC:")?, efficiency: of("Efficiency:") })
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "tpmC {:.0}", self.tpmc)?;
        self.efficiency.map_or(Ok(()), |efficiency| write!(out, ", efficiency {efficiency:.2} %"))
    }
}
