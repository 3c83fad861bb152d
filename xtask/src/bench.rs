//! `cargo x bench`: the benchmarks, in release mode. The benchmarks take the measurements themselves and say whether
//! goals are reached.
//!
//! `index` is a separate program; everything else is `larch bench …`. Other engines are not in the default build. If
//! `--with` names engines, the command is built with their features. What is fetched for them goes to `engines` in the
//! target folder.

#[cfg(test)]
mod tests;

use crate::packages;
use crate::tools::{cargo, ends_as, target_of};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The engines that `--with` can name. Each engine is a feature of `larch-cli` and of `bench/stores`.
const ENGINES: [&str; 8] = ["rocksdb", "fjall", "redb", "lmdb", "sqlite", "surrealkv", "bf-tree", "cassandra"];

/// The words after `larch bench`. An unknown word is refused here, before minutes of compiling.
const MEASURES: [&str; 21] = [
    "targets",
    "ycsb",
    "rows",
    "kv",
    "tpcc",
    "worker",
    "merge",
    "report",
    "picture",
    "compare",
    "regress",
    "compare-trials",
    "peers",
    "cold",
    "writes",
    "transactions",
    "generator",
    "pgbench",
    "kv-client-cost",
    "cache-trace",
    "experiment",
];

/// What `arguments` ask for.
#[derive(Debug, PartialEq, Eq)]
enum Plan<'a> {
    /// The benchmark of the index.
    Index(Vec<&'a str>),
    /// Runs `larch bench` with these arguments, with the stores that the default build has.
    Default(Vec<&'a str>),
    /// Runs `larch bench` with these arguments, with these engines in addition to the default stores.
    With(Vec<&'static str>, Vec<&'a str>),
    /// Checks the lints and the tests of these engines' stores.
    Check(Vec<&'static str>),
}

/// Does what `arguments` ask for. Returns the exit code of the program that this starts.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let plan = match plan(arguments) {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("bench: {why}");
            return ExitCode::from(2);
        }
    };
    match plan {
        Plan::Index(arguments) => {
            let mut cargo = cargo();
            cargo.args(["run", "--profile", "dist", "--package", "larch-bench-experiments"]);
            cargo.args(["--bin", "larch-bench-index", "--manifest-path"]).arg(root.join("Cargo.toml"));
            ends_as("bench", cargo.arg("--").args(arguments))
        }
        Plan::Default(arguments) => {
            let mut cargo = cargo();
            cargo.args([
                "run",
                "--profile",
                "dist",
                "--package",
                "larch-cli",
                "--features",
                "bench",
                "--manifest-path",
            ]);
            ends_as("bench", cargo.arg(root.join("Cargo.toml")).args(["--", "bench"]).args(arguments))
        }
        Plan::With(engines, arguments) => {
            let place = match Place::prepare(root, &engines) {
                Ok(place) => place,
                Err(ended) => return ended,
            };
            let mut cargo = place.cargo("run");
            cargo.args(["--profile", "dist", "--package", "larch-cli", "--features", &features(&engines)]);
            ends_as("bench", cargo.args(["--", "bench"]).args(arguments))
        }
        Plan::Check(engines) => check(root, &engines),
    }
}

/// Takes `--with` and `--check` out of the arguments, wherever they stand. The other arguments are for the benchmark.
fn plan<'a>(arguments: &[&'a str]) -> Result<Plan<'a>, String> {
    let mut engines = Vec::new();
    let mut is_check = false;
    let mut rest = Vec::new();
    let mut arguments = arguments.iter().copied();
    while let Some(argument) = arguments.next() {
        if argument == "--with" {
            let names = arguments.next().ok_or_else(|| format!("--with wants names: {}", known()))?;
            add_engines(&mut engines, names)?;
        } else if let Some(names) = argument.strip_prefix("--with=") {
            add_engines(&mut engines, names)?;
        } else if argument == "--check" {
            is_check = true;
        } else {
            rest.push(argument);
        }
    }
    match (rest.as_slice(), engines.is_empty(), is_check) {
        ([], false, true) => Ok(Plan::Check(engines)),
        (_, true, true) => Err(format!("--check is for the stores of other engines: --with {}", known())),
        ([_, ..], false, true) => Err(format!("--check measures nothing: leave out `{}`", rest.join(" "))),
        ([], ..) => Err(format!("say what to measure: {}", measures())),
        (["index", rest @ ..], true, false) => Ok(Plan::Index(rest.to_vec())),
        (["index", ..], false, false) => Err("`index` has no other engines: leave out --with".to_owned()),
        ([word, ..], ..) if !word.starts_with('-') && *word != "help" && !MEASURES.contains(word) => {
            Err(format!("there is no `{word}` to measure: {}", measures()))
        }
        (_, true, false) => Ok(Plan::Default(rest)),
        (_, false, false) => Ok(Plan::With(engines, rest)),
    }
}

/// Adds the engines that `names` lists, separated by commas. Each engine is added only once.
fn add_engines(engines: &mut Vec<&'static str>, names: &str) -> Result<(), String> {
    for name in names.split(',') {
        let named: &[&'static str] = match ENGINES.iter().position(|known| *known == name) {
            Some(at) => &ENGINES[at..=at],
            None if name == "all" => &ENGINES,
            None => {
                return Err(format!("no engine `{name}` for --with: {}; larch, noop and postgres always are", known()));
            }
        };
        for &engine in named {
            if !engines.contains(&engine) {
                engines.push(engine);
            }
        }
    }
    Ok(())
}

/// The features of the command that bring the engines.
fn features(engines: &[&str]) -> String {
    engines.iter().map(|engine| format!("engines-{engine}")).collect::<Vec<_>>().join(",")
}

fn measures() -> String {
    format!("index, {}", MEASURES.join(", "))
}

fn known() -> String {
    format!("there are {} and all", ENGINES.join(", "))
}

/// A check that takes too long for CI: it builds the stores as for measurements, and runs their tests.
fn check(root: &Path, engines: &[&'static str]) -> ExitCode {
    let place = match Place::prepare(root, engines) {
        Ok(place) => place,
        Err(ended) => return ended,
    };
    let stores = ["--package=larch-bench-stores", "--features"];
    // Both commands use release mode, so that the engines are compiled only once.
    let mut clippy = place.cargo("clippy");
    clippy.args(["--release", "--all-targets", "--package=larch-cli", "--features", &features(engines)]);
    clippy.args(stores).arg(engines.join(",")).args(["--", "-D", "warnings"]);
    let mut test = place.cargo("test");
    test.arg("--release").args(stores).arg(engines.join(","));
    for (name, command) in [("clippy", &mut clippy), ("test", &mut test)] {
        println!("bench: {name} of {}", engines.join(", "));
        let ended = ends_as("bench", command);
        if ended != ExitCode::SUCCESS {
            eprintln!("bench: {name} failed");
            return ended;
        }
    }
    ExitCode::SUCCESS
}

/// Where the other engines are built.
struct Place {
    manifest: PathBuf,
    target: PathBuf,
    /// The folder of RocksDB's library, if RocksDB is asked for.
    rocksdb: Option<PathBuf>,
    /// The folder of Cassandra's jars, if Cassandra is asked for.
    cassandra: Option<PathBuf>,
}

impl Place {
    /// Gets what `engines` need and cargo does not download. When this returns an error, it has already printed what
    /// is missing.
    fn prepare(root: &Path, engines: &[&str]) -> Result<Self, ExitCode> {
        let target = target_of(root, std::env::var_os("CARGO_TARGET_DIR"));
        let mut place = Self { manifest: root.join("Cargo.toml"), target, rocksdb: None, cassandra: None };
        if engines.contains(&"rocksdb") {
            place.rocksdb = Some(place.fetch(root, "rocksdb", "ROCKSDB_LIB_DIR", bring_packages_of_rocksdb)?);
        }
        if engines.contains(&"cassandra") {
            place.cassandra = Some(place.fetch(root, "cassandra", "CASSANDRA_LIB_DIR", bring_packages_of_cassandra)?);
        }
        Ok(place)
    }

    /// Installs the packages that `engine` needs and runs its script `fetch`. Returns the folder with the fetched
    /// files. If the environment sets `variable`, its value is this folder, and nothing is fetched.
    fn fetch(
        &self,
        root: &Path,
        engine: &str,
        variable: &str,
        bring_packages: fn() -> Result<(), String>,
    ) -> Result<PathBuf, ExitCode> {
        if let Err(why) = bring_packages() {
            eprintln!("bench: {why}");
            return Err(ExitCode::FAILURE);
        }
        if let Some(folder) = std::env::var_os(variable) {
            // The path is absolute, because tests and build scripts run in other folders.
            return Ok(std::path::absolute(&folder).unwrap_or_else(|_| PathBuf::from(folder)));
        }
        let folder = self.target.join("engines").join(engine);
        match ends_as("bench", Command::new(root.join("bench/stores").join(engine).join("fetch")).arg(&folder)) {
            ExitCode::SUCCESS => Ok(folder),
            ended => Err(ended),
        }
    }

    /// A command of cargo that finds the fetched libraries.
    fn cargo(&self, command: &str) -> Command {
        let mut cargo = cargo();
        cargo.arg(command).arg("--manifest-path").arg(&self.manifest);
        for (variable, folder) in [("ROCKSDB_LIB_DIR", &self.rocksdb), ("CASSANDRA_LIB_DIR", &self.cassandra)] {
            if let Some(folder) = folder {
                cargo.env(variable, folder);
            }
        }
        cargo
    }
}

/// Maven fetches RocksDB, unzip unpacks it, and libclang reads its header.
fn bring_packages_of_rocksdb() -> Result<(), String> {
    packages::bring("maven", "Maven", || packages::is_in_path("mvn"))?;
    packages::bring("unzip", "unzip", || packages::is_in_path("unzip"))?;
    packages::bring("libclang-dev", "libclang", has_libclang)
}

/// Maven fetches Cassandra and cassandra-stress, and they run on Java 17.
fn bring_packages_of_cassandra() -> Result<(), String> {
    packages::bring("openjdk-17-jre-headless", "Java 17", has_java_17)?;
    packages::bring("maven", "Maven", || packages::is_in_path("mvn"))
}

/// Whether the program `java` has version 17, or Debian has installed Java 17 beside it.
fn has_java_17() -> bool {
    let of_debian = |home: std::fs::DirEntry| home.file_name().as_encoded_bytes().starts_with(b"java-17-");
    let usual = Command::new("java").arg("-version").output();
    usual.is_ok_and(|output| String::from_utf8_lossy(&output.stderr).contains("version \"17"))
        || std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().any(of_debian)
}

/// Debian puts libclang in a separate folder for each version of LLVM.
fn has_libclang() -> bool {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut libraries = entries("/usr/lib".into()).flat_map(|version| entries(version.path().join("lib")));
    std::env::var_os("LIBCLANG_PATH").is_some()
        || libraries.any(|library| library.file_name().as_encoded_bytes().starts_with(b"libclang.so"))
}
