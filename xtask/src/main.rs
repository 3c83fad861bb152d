//! The project's own commands, `cargo x …`. These commands know the layout of the repository, and nothing about the
//! engine.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a tool for developers, never simulated")]

mod archive;
mod bank;
mod bench;
mod ci;
mod compat;
mod crash;
mod deny;
mod feed;
mod fuzz;
mod history;
mod instructions;
mod miri;
mod nightly;
mod package;
mod packages;
mod remote;
mod schedules;
mod semver;
mod sim;
mod sql;
mod stress;
mod test;
mod testkit;
mod tidy;
mod tools;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
The project's own commands. The fast inner loop needs none of them: `cargo test -p larch-sst --lib format`, with the
names of the crate and the module that you change.

Every day
  cargo x tidy    facts about the tree: dead files, upward dependencies, circles, leftovers, broken links, lock files
                  that do not fit their manifests; warns of old results of benchmarks and of words that are
                  hard to read. Takes some seconds
  cargo x house   each crate in figures: rooms, floors, circles, lines, public names; cargo x house CRATE…: its
                  imports. docs/floors.md has the order of the engine's folders
  cargo x sim     random histories, crashes, faults, full disks and flipped bits on a simulated machine; a seed takes
                  a third of a second: cargo x sim [seed] [--count N] [--steps N] [--samples N]; random transactions,
                  checked for isolation: cargo x sim [seed] --transactions N [--threads N]
  cargo x test    all tests, after installing PostgreSQL, Redis and Chromium (as root on Debian; elsewhere it says what
                  to install)
  cargo x ci      everything the build server checks, in its order; stops at the first failure and prints how to run
                  that step alone. `.ci/run` is what the build server runs: this, after a look for rustfmt and clippy
  cargo x help    this list

Threads and unsafe code
  cargo x stress  the whole API under threads, executors and a disk with trouble, a minute:
                  cargo x stress [--minutes N] [--seed N]. Ten seconds of it are one of the tests
  cargo x tsan    the same under ThreadSanitizer; needs nightly with rust-src: cargo x tsan [--minutes N]
  cargo x miri    the tests of unsafe code, interpreted by Miri, two minutes; needs nightly
  cargo x shuttle what threads do together, under random schedules; half a minute
  cargo x loom    the same of two threads and a little code, under all schedules; seconds

Crashes and broken bytes
  cargo x bank    transfers by 16 threads and by 1,000 tasks; the process is killed, the disk fills up and syncs fail,
                  twenty times each: cargo x bank [--rounds N] [--seed N]
  cargo x crash   TPC-C killed by `kill -9` in the middle of a run, and its twelve consistency conditions after it, 24
                  times: cargo x crash tpcc [--rounds N] [--warehouses N] [--seed N]; two minutes after a release
                  build
  cargo x feed    ten million commits on a simulated machine, followed by feeds of changes through crashes, flushes and
                  compactions: each commit whole, in order and once: cargo x feed [seed] [--commits N]
  cargo x fuzz    bytes that nobody wrote, for decoders and short histories: cargo x fuzz [name] [--minutes N]; all
                  targets, a minute each; needs nightly and cargo-fuzz

What a release promises
  cargo x instructions  the pages and bytes that operations read and write, and the instructions of hot paths under
                  valgrind, which it installs, beside those that are expected; --disk leaves out the instructions;
                  --write expects those of now, in bench/experiments. A minute after a release
                  build
  cargo x package all packages as they would be published, in target/package; cargo would upload them, and what CI
                  builds is built from them; --all builds the query engine and object storage from theirs, too
  cargo x archive what a release offers for download, in target/archives: an archive with the program, its manual
                  pages and completions, a package for Debian, and the folder for packaging/Containerfile; --check
                  packs the program of the tests, and runs it from its packages. Needs binutils and dpkg
  cargo x deny    licences, sources and known vulnerabilities of dependencies, by the rules in deny.toml. Builds
                  cargo-deny in target/tools the first time, a minute. Without GitHub it says that it did not look for
                  vulnerabilities, and passes
  cargo x semver  fails if the tree breaks programs for the last release and its version may not; --list says what it
                  breaks, also where it may. Builds cargo-semver-checks in target/tools when it is first needed: a
                  quarter of an hour of processor time
  cargo x compat  the program of a release, built from history, and that of this tree open what the other wrote, under
                  `compat`; some minutes: cargo x compat [RELEASE] [--commit COMMIT]; --write-golden RELEASE writes
                  the small database that the tests keep of a release: once, when it is made

What the build server does not build: the query engine, object storage, other engines
  cargo x sql     `larch sql …` with the query engine, after a release build of half an hour: cargo x sql DIR 'SELECT
                  …'; --check has its lints and tests; --measure [--rows N] compares it with a Parquet file
                  and counts pages; --beside-tpcc [--warehouses N] [--mode spec|nowait] [--warmup TIME] [--time TIME]
                  [--rounds N] [--directory DIR] runs TPC-C with and without queries of CH-benCHmark, which a follower
                  answers in another process, and prints tpmC and efficiency of both;
                  --ballista sql-scheduler|sql-executor|sql …: several processes answer; --ballista --check tests that
                  with a scheduler and two executors
  cargo x remote  databases on object storage: --check has lints and tests, with moto as a store (pip install
                  'moto[server]==5.2.5'); --servers tests on moto and MinIO, in PATH or named by LARCH_MINIO (go
                  install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c)
  cargo x bench --with … --check  lints and tests of the stores of other engines

Benchmarks, `larch bench …` built with the profile `dist`. docs/guide/benchmarks.md leads to a page for each. A command that has
goals ends with exit status 1 if it misses one
  cargo x bench [--with rocksdb,fjall,redb,lmdb,sqlite,surrealkv,bf-tree,cassandra|all] …  with other engines beside
                  Larch. It builds them in two minutes; RocksDB (maven, unzip, libclang-dev) and Cassandra (maven,
                  openjdk-17-jre-headless) are fetched; root gets these packages by apt-get
  … ycsb, tpcc, kv, rows, writes, transactions  workloads of others: tpcc init|import|run|check|clean --target …, rows
                  setup|run|results|clean --target …, kv --target … -mode … -workload …
  … worker        a client process that does shares of runs, for --workers of the others: worker --listen PORT
                  --secret-file FILE
  … index         what the parts of the index cost, and its goals: index [--quick] [--parts|--goals|--only NAME]
                  [--directory DIR]; minutes, 3 GB of disk, and valgrind where the processor cannot count instructions
  … peers, cold   10 M rows in memory, 32 M rows in 256 MiB (a control group, and fio); [--quick] is minutes. peers
                  --with all: an hour, 20 GB; --require-peers fails on what was not measured. cold: a quarter of an
                  hour, 24 GB; --with all: half an hour, 60 GB
  … pgbench, kv-client-cost  our clients beside pgbench (apt-get install postgresql; 90 seconds) and, --with
                  cassandra, beside cassandra-stress (a quarter of an hour); the processor time of each; [--quick]
  … cache-trace   eviction policies on traces of YCSB beside the best possible one, for pages and for rows:
                  [--records N]; a few minutes, 1 GB of memory
  … generator     operations that the client of YCSB makes in a second of processor time, without a store; [--quick]
  … regress       YCSB A, C, E and TPC-C beside a stored baseline of this kind of machine, or another build; five
                  minutes: regress [--store] [--base-program PROGRAM]
  … compare-trials  how often a comparison shows a difference between runs of one build, and a slow-down of 5 %; an
                  hour
  … experiment    experiments of others, repeated; each leaves a page: experiment NAME [--scale
                  tiny|small|medium|full] [--time TIME] [--out DIR] [--check]; docs/benchmarks/experiments.md has
                  their names
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::run(&root()),
        ["ci"] => ci::run(&root()),
        ["house", places @ ..] => tidy::house(&root(), places),
        ["tidy"] => tidy::run(&root()),
        ["package"] => package::run(&root(), package::Built::Default),
        ["package", "--all"] => package::run(&root(), package::Built::All),
        ["archive"] => archive::run(&root(), false),
        ["archive", "--check"] => archive::run(&root(), true),
        ["deny"] => deny::run(&root()),
        ["semver"] => semver::check(&root()),
        ["semver", "--list"] => semver::list(&root()),
        ["sim", arguments @ ..] => sim::run(&root(), arguments),
        ["feed", arguments @ ..] => feed::run(&root(), arguments),
        ["bank", arguments @ ..] => bank::run(&root(), arguments),
        ["crash", arguments @ ..] => crash::run(&root(), arguments),
        ["stress", arguments @ ..] => stress::run(&root(), arguments),
        ["tsan", arguments @ ..] => stress::tsan(&root(), arguments),
        ["fuzz", arguments @ ..] => fuzz::run(&root(), arguments),
        ["compat", arguments @ ..] => compat::run(&root(), arguments),
        ["instructions", arguments @ ..] => instructions::run(&root(), arguments),
        ["sql", arguments @ ..] => sql::run(&root(), arguments),
        ["bench", arguments @ ..] => bench::run(&root(), arguments),
        ["remote", arguments @ ..] => remote::run(&root(), arguments),
        ["miri"] => miri::run(&root()),
        ["shuttle"] => schedules::shuttle(&root()),
        ["loom"] => schedules::loom(&root()),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("no command `cargo x {}`\n\n{HELP}", words.join(" "));
            ExitCode::from(2)
        }
    }
}

/// The root of the repository: the folder above this package if cargo has started this program, else the current
/// folder.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.and_then(|package| package.parent().map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("."))
}
