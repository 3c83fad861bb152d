//! The project's own commands, `cargo x …`. They know the shape of the repository and nothing of the engine.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a tool for developers, never simulated")]

mod bank;
mod bench;
mod ci;
mod compat;
mod crash;
mod deny;
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
mod tidy;
mod tools;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
The project's own commands.

  cargo x test    all tests, after installing what they need of the machine
  cargo x ci      everything the build server checks, in its order
  cargo x tidy    facts about the tree: dead files, upward dependencies, leftovers, broken links
  cargo x house   each crate in figures: rooms, floors, circles, lines, public names; cargo x house CRATE…: its imports
  cargo x package the libraries as they would be published, each built from its package
  cargo x deny    licences, sources and known vulnerabilities of dependencies, by the rules in deny.toml
  cargo x semver  fails if the tree breaks programs for the last release and its version may not; --list says what it
                  breaks, also where it may
  cargo x sim     random histories, crashes and faults: cargo x sim [seed] [--count N] [--steps N] [--samples N]; random
                  transactions, checked for isolation: cargo x sim [seed] --transactions N [--threads N]
  cargo x stress  the whole API under threads, executors and a disk with trouble: cargo x stress [--minutes N] [--seed N]
  cargo x tsan    the same under ThreadSanitizer
  cargo x bank    transfers by 16 threads and by 1,000 tasks; the process is killed, the disk fills up and syncs fail,
                  twenty times each: cargo x bank [--rounds N] [--seed N]
  cargo x crash   TPC-C killed in the middle of a run, and its consistency conditions after it, 24 times:
                  cargo x crash tpcc [--rounds N] [--warehouses N] [--seed N]
  cargo x fuzz    bytes that nobody wrote: cargo x fuzz [name] [--minutes N]; all targets, a minute each
  cargo x miri    the tests of unsafe code, interpreted by Miri
  cargo x shuttle what threads do together, under random schedules
  cargo x loom    the same of two threads and a little code, under all schedules
  cargo x instructions  the instructions of hot paths beside those that are expected; --write expects those of now
  cargo x bench   what things cost, beside the goals: cargo x bench index [--quick] [--json FILE], and `larch bench …` as
                  cargo x bench [--with rocksdb,fjall,redb,lmdb,sqlite|all] …; --with … --check tests those stores;
                  cargo x bench regress compares this build with a stored baseline or another build
  cargo x sql     `larch sql …` with the query engine, which takes minutes to build: cargo x sql DIR 'SELECT …'; --check tests
                  it, --measure [--rows N] compares it with Parquet files; --ballista has several processes answer;
                  --beside-tpcc [--warehouses N] [--time TIME] runs TPC-C with and without queries beside it
  cargo x remote  databases on object storage, a workspace of its own: cargo x remote --check builds and tests it, on moto
                  too; --servers tests it on moto and MinIO
  cargo x compat  the program of a release and that of this tree open what the other wrote: cargo x compat [RELEASE]
                  [--commit COMMIT]; --write-golden RELEASE writes the database that is kept of a release
  cargo x help    this list
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::run(&root()),
        ["ci"] => ci::run(&root()),
        ["house", places @ ..] => tidy::house(&root(), places),
        ["tidy"] => tidy::run(&root()),
        ["package"] => package::run(&root()),
        ["deny"] => deny::run(&root()),
        ["semver"] => semver::check(&root()),
        ["semver", "--list"] => semver::list(&root()),
        ["sim", arguments @ ..] => sim::run(&root(), arguments),
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

/// The repository: the folder above this package when started by cargo, else the current folder.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.and_then(|package| package.parent().map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("."))
}
