//! `cargo x sql`: builds and runs the query engine. For one process, the engine is the workspace
//! `crates/datafusion`. For several processes, it is `crates/ballista`. Cargo writes the output of both workspaces
//! to `sql` in the target folder. The build server does not build these workspaces, because this takes minutes.

use crate::tools::{cargo, ends_as, target_of};
use beside::Beside;
use std::path::Path;
use std::process::ExitCode;

mod beside;
#[cfg(test)]
mod tests;

const MANIFEST: &str = "crates/datafusion/Cargo.toml";

/// The workspace of the query engine in several processes.
const BALLISTA: &str = "crates/ballista/Cargo.toml";

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
    let target = target_of(root, "sql", std::env::var_os("CARGO_TARGET_DIR"));
    let in_workspace = |manifest: &str, words: &[&str]| {
        let mut cargo = cargo();
        cargo.arg(words[0]).arg("--manifest-path").arg(root.join(manifest)).args(&words[1..]);
        cargo.env("CARGO_TARGET_DIR", &target);
        cargo
    };
    let check = |manifest: &str, features: &[&str]| {
        let steps: [(&str, &[&str], &[&str]); 3] = [
            ("format", &["fmt", "--check"], &[]),
            ("clippy", &["clippy", "--locked", "--all-targets"], &["--", "-D", "warnings"]),
            ("test", &["test", "--locked"], &[]),
        ];
        for (name, words, rest) in steps {
            println!("sql: {name}");
            let features = if name == "format" { &[] } else { features };
            let ended = ends_as("sql", in_workspace(manifest, words).args(features).args(rest));
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
        Ok(Plan::Run(arguments)) => {
            ends_as("sql", in_workspace(MANIFEST, &["run", "--release", "--", "sql"]).args(arguments))
        }
        Ok(Plan::Measure(arguments)) => {
            let words = ["run", "--release", "--features", "parquet", "--example", "measure", "--"];
            ends_as("sql", in_workspace(MANIFEST, &words).args(arguments))
        }
        Ok(Plan::BesideTpcc(beside)) => {
            // This build uses the same features as the measuring program, so that the two builds share compiled
            // crates.
            let words = ["build", "--release", "--features", "parquet", "--bin", "larch"];
            let ended = ends_as("sql", &mut in_workspace(MANIFEST, &words));
            if ended != ExitCode::SUCCESS {
                return ended;
            }
            let queries = root.join("crates/datafusion/queries");
            match beside.run(&target.join("release/larch"), &queries, &target) {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => {
                    eprintln!("sql: {why}");
                    ExitCode::FAILURE
                }
            }
        }
        Ok(Plan::RunBallista(arguments)) => {
            ends_as("sql", in_workspace(BALLISTA, &["run", "--release", "--"]).args(arguments))
        }
        Ok(Plan::Check) => check(MANIFEST, &["--features", "parquet"]),
        Ok(Plan::CheckBallista) => check(BALLISTA, &[]),
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
