//! `cargo x sql`: the query engine, a workspace of its own in `crates/datafusion`, whose output goes to `sql` in the target
//! folder. It takes minutes to build, so the build server does not.

use crate::tools::{cargo, ends_as, target_of};
use std::path::Path;
use std::process::ExitCode;

#[cfg(test)]
mod tests;

const MANIFEST: &str = "crates/datafusion/Cargo.toml";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
enum Plan<'a> {
    /// `larch sql` with these arguments.
    Run(&'a [&'a str]),
    /// Format, lints and tests.
    Check,
    /// The program that compares with Parquet, with these arguments.
    Measure(&'a [&'a str]),
}

/// Runs what the arguments ask for.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let target = target_of(root, "sql", std::env::var_os("CARGO_TARGET_DIR"));
    let in_workspace = |words: &[&str]| {
        let mut cargo = cargo();
        cargo.arg(words[0]).arg("--manifest-path").arg(root.join(MANIFEST)).args(&words[1..]);
        cargo.env("CARGO_TARGET_DIR", &target);
        cargo
    };
    match plan(arguments) {
        Err(why) => {
            eprintln!("sql: {why}");
            ExitCode::from(2)
        }
        Ok(Plan::Run(arguments)) => ends_as("sql", in_workspace(&["run", "--release", "--", "sql"]).args(arguments)),
        Ok(Plan::Measure(arguments)) => {
            let words = ["run", "--release", "--features", "parquet", "--example", "measure", "--"];
            ends_as("sql", in_workspace(&words).args(arguments))
        }
        Ok(Plan::Check) => {
            let steps: [(&str, &[&str]); 3] = [
                ("format", &["fmt", "--check"]),
                ("clippy", &["clippy", "--all-targets", "--features", "parquet", "--", "-D", "warnings"]),
                ("test", &["test", "--features", "parquet"]),
            ];
            for (name, words) in steps {
                println!("sql: {name}");
                let ended = ends_as("sql", &mut in_workspace(words));
                if ended != ExitCode::SUCCESS {
                    eprintln!("sql: {name} failed");
                    return ended;
                }
            }
            ExitCode::SUCCESS
        }
    }
}

fn plan<'a>(arguments: &'a [&'a str]) -> Result<Plan<'a>, String> {
    match arguments {
        [] => Err("say which database is asked what: cargo x sql DIR 'SELECT …', or --check, or --measure".to_owned()),
        ["--check"] => Ok(Plan::Check),
        ["--check", rest @ ..] => Err(format!("--check takes nothing else: leave out `{}`", rest.join(" "))),
        ["--measure", rest @ ..] => Ok(Plan::Measure(rest)),
        rest => Ok(Plan::Run(rest)),
    }
}
