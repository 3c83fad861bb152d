//! `cargo x crash tpcc`: runs TPC-C on Larch, kills it in the middle of a run again and again, and checks TPC-C's
//! consistency conditions each time.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const USAGE: &str = "cargo x crash tpcc [--rounds N] [--warehouses N] [--seed N]";

/// Runs the command.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let crash = match Crash::new(root, arguments) {
        Ok(crash) => crash,
        Err(why) => {
            eprintln!("crash: {why}; use {USAGE}");
            return ExitCode::from(2);
        }
    };
    let done = crash.all();
    // If a check has failed, the database is kept, so that people can see what went wrong.
    if done.is_ok() {
        fs::remove_dir_all(&crash.place).unwrap_or_default();
    }
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("crash: {why}; the database is left in {}", crash.place.display());
            ExitCode::FAILURE
        }
    }
}

struct Crash {
    larch: PathBuf,
    place: PathBuf,
    rounds: u32,
    warehouses: u32,
    seed: u64,
}

impl Crash {
    fn new(root: &Path, arguments: &[&str]) -> Result<Self, String> {
        let Some((&"tpcc", options)) = arguments.split_first() else {
            return Err("say what is to crash".to_owned());
        };
        let (target, place) = (root.join("target"), root.join("target").join("crash-tpcc"));
        let mut crash = Self {
            larch: target.join("release").join("larch"),
            place,
            rounds: 24,
            warehouses: 2,
            seed: RandomState::new().hash_one(0),
        };
        for option in options.chunks(2) {
            let bad = || format!("`{}` is not understood", option.join(" "));
            let [name, value] = option else { return Err(bad()) };
            let number: u64 = value.parse().map_err(|_| bad())?;
            match *name {
                "--rounds" => crash.rounds = u32::try_from(number).map_err(|_| bad())?,
                "--warehouses" => crash.warehouses = u32::try_from(number).map_err(|_| bad())?,
                "--seed" => crash.seed = number,
                _ => return Err(bad()),
            }
        }
        Ok(crash)
    }

    fn all(&self) -> Result<(), String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--release", "--package", "larch-cli", "--features", "bench"]);
        succeeds(&mut build)?;
        fs::remove_dir_all(&self.place).unwrap_or_default();
        eprintln!("seed {}", self.seed);
        let mut import = self.tpcc("import");
        import.args(["--warehouses", &self.warehouses.to_string(), "--quiet"]);
        succeeds(&mut import)?;
        let mut random = self.seed;
        for round in 1..=self.rounds {
            // The finalizer of SplitMix64 turns consecutive numbers into numbers that are far apart.
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            self.kill_after(Duration::from_millis((mixed ^ (mixed >> 27)) % 2000))?;
            eprint!("round {round} of {}: ", self.rounds);
            let mut check = self.tpcc("check");
            succeeds(check.arg("--quiet"))?;
        }
        Ok(())
    }

    /// `larch bench tpcc` on the database. The database gets so little memory that it writes and merges files all the
    /// time.
    fn tpcc(&self, action: &str) -> Command {
        let target = format!("larch:{}?cache=64MiB&write_buffer=4MiB&file=2MiB", self.place.display());
        let mut command = Command::new(&self.larch);
        command.args(["bench", "tpcc", action, "--target", &target]);
        command
    }

    /// Runs the terminals, and kills them when `time` has passed since the first transactions were reported.
    fn kill_after(&self, time: Duration) -> Result<(), String> {
        let mut run = self.tpcc("run");
        run.args(["--mode", "nowait", "--threads", "2", "--warmup", "0s", "--time", "1h"]);
        let failed = |error: std::io::Error| format!("a run cannot be started or killed: {error}");
        let mut child = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        let said = BufReader::new(child.stderr.take().expect("it was asked for"));
        let (sender, lines) = mpsc::channel();
        let hearing = std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                sender.send(line).unwrap_or_default();
            }
        });
        let mut last = String::new();
        let mut has_begun = false;
        while !has_begun && let Ok(line) = lines.recv() {
            has_begun = line.contains("  measured ");
            last = line;
        }
        // If the run ends by itself, no more lines come, and this loop ends at once.
        let end = Instant::now() + time;
        while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            last = line;
        }
        child.kill().map_err(failed)?;
        let status = child.wait().map_err(failed)?;
        hearing.join().unwrap_or_default();
        if !has_begun || status.code().is_some() {
            return Err(format!("a run ended by itself: {status}: {last}"));
        }
        Ok(())
    }
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?} cannot be started: {error}")),
    }
}
