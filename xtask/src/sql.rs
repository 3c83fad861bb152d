//! `cargo x sql`: builds and runs the command `larch` with the query engine, and checks the packages of the engine. The
//! build server does not build them, because this takes minutes.

use crate::tools::{cargo, ends_as, target_of};
use beside::Beside;
use std::path::Path;
use std::process::ExitCode;

mod beside;
#[cfg(test)]
mod tests;

/// The command with the query engine for one process.
const ALONE: [&str; 4] = ["--package", "larch-cli", "--features", "bench,parquet"];

/// The command with the query engine for several processes.
const CLUSTER: [&str; 4] = ["--package", "larch-cli", "--features", "cloud,cluster"];

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
enum Plan<'a> {
    /// Runs `larch sql` with these arguments.
    Run(&'a [&'a str]),
    /// Checks the format, the lints and the tests.
    Check,
    /// Runs the program that compares Larch with Parquet, with these arguments.
    Measure(&'a [&'a str]),
    /// Runs TPC-C with and without queries beside it.
    BesideTpcc(Beside<'a>),
    /// Runs `larch` with these arguments, built so that several processes can answer `larch sql`.
    RunBallista(&'a [&'a str]),
    /// Checks the format, the lints and the tests of the code for several processes.
    CheckBallista,
}

/// Runs what the arguments ask for.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let in_root = |words: &[&str], options: &[&str]| {
        let mut cargo = cargo();
        cargo.args(words).args(options).current_dir(root);
        cargo
    };
    // The command runs where the user is, because its arguments are paths.
    let larch = |options: &[&str], words: &[&str]| {
        let mut cargo = cargo();
        cargo.args(["run", "--release", "--manifest-path"]).arg(root.join("Cargo.toml")).args(options);
        cargo.arg("--").args(words);
        cargo
    };
    let check = |packages: &[&str]| {
        let steps: [(&str, &[&str], &[&str]); 2] = [
            ("clippy", &["clippy", "--profile", "query", "--all-targets"], &["--", "-D", "warnings"]),
            ("test", &["test", "--profile", "query"], &[]),
        ];
        for (name, words, rest) in steps {
            println!("sql: {name}");
            let ended = ends_as("sql", in_root(words, packages).args(rest));
            if ended != ExitCode::SUCCESS {
                eprintln!("sql: {name} failed");
                return ended;
            }
        }
        ExitCode::SUCCESS
    };
    match plan(arguments) {
        Err(why) => {
            eprintln!("sql: {why}");
            ExitCode::from(2)
        }
        Ok(Plan::Run(arguments)) => ends_as("sql", larch(&ALONE, &["sql"]).args(arguments)),
        Ok(Plan::Measure(arguments)) => {
            let words = ["run", "--profile", "dist", "--package", "larch-datafusion"];
            let example = ["--features", "parquet", "--example", "measure", "--"];
            ends_as("sql", in_root(&words, &example).args(arguments))
        }
        Ok(Plan::BesideTpcc(beside)) => {
            let ended = ends_as("sql", &mut in_root(&["build", "--profile", "dist", "--bin", "larch"], &ALONE));
            if ended != ExitCode::SUCCESS {
                return ended;
            }
            let target = target_of(root, std::env::var_os("CARGO_TARGET_DIR"));
            let queries = root.join("query/datafusion/queries");
            match beside.run(&target.join("dist/larch"), &queries, &target) {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => {
                    eprintln!("sql: {why}");
                    ExitCode::FAILURE
                }
            }
        }
        Ok(Plan::RunBallista(arguments)) => ends_as("sql", larch(&CLUSTER, &[]).args(arguments)),
        Ok(Plan::Check) => check(&[
            "--package=larch-datafusion",
            "--package=larch-cli",
            "--features=larch-datafusion/parquet,larch-cli/parquet",
        ]),
        Ok(Plan::CheckBallista) => {
            check(&["--package=larch-ballista", "--package=larch-cli", "--features=larch-cli/cloud,larch-cli/cluster"])
        }
    }
}

fn plan<'a>(arguments: &'a [&'a str]) -> Result<Plan<'a>, String> {
    match arguments {
        [] => Err("say which database is asked what: cargo x sql DIR 'SELECT …', or --check, or --measure".to_owned()),
        ["--check"] => Ok(Plan::Check),
        ["--ballista", "--check"] => Ok(Plan::CheckBallista),
        ["--check", rest @ ..] | ["--ballista", "--check", rest @ ..] => {
            Err(format!("--check takes nothing else: leave out `{}`", rest.join(" ")))
        }
        ["--measure", rest @ ..] => Ok(Plan::Measure(rest)),
        ["--beside-tpcc", rest @ ..] => Beside::new(rest).map(Plan::BesideTpcc),
        ["--ballista"] => {
            Err("say what to run: cargo x sql --ballista sql-scheduler, sql-executor or sql, or --check".to_owned())
        }
        ["--ballista", rest @ ..] => Ok(Plan::RunBallista(rest)),
        rest => Ok(Plan::Run(rest)),
    }
}
