//! `cargo x remote`: builds and tests databases on object storage. `--check` needs moto (`pip install
//! 'moto[server]'`), and `--servers` also needs MinIO. If a server is missing, its test fails and says how to install
//! it.

use std::path::Path;
use std::process::{Command, ExitCode};

/// A command of cargo that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    /// A word that the names of the tests must contain. With `None`, all tests are run.
    only: Option<&'static str>,
}

const CLIPPY: Step = Step {
    name: "clippy",
    arguments: &[
        "clippy",
        "--package=larch-cli",
        "--features=larch-cli/cloud",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ],
    only: None,
};
const TESTS: Step = Step { name: "tests without servers", arguments: &["test"], only: None };
/// These tests run one after the other, because each starts a server.
const SERVERS: Step = Step {
    name: "tests on moto and MinIO",
    arguments: &[
        "test",
        "--test=servers",
        "--test=killed",
        "--test=branches",
        "--test=backups",
        "--",
        "--ignored",
        "--test-threads=1",
    ],
    only: None,
};
const MOTO: Step = Step { name: "tests on moto", only: Some("moto"), ..SERVERS };

/// Does what `arguments` ask for.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some(steps) = steps(arguments) else {
        eprintln!(
            "remote: say --check, for lints and tests, with those on moto; or --servers, for tests on moto and MinIO"
        );
        return ExitCode::from(2);
    };
    for step in steps {
        println!("remote: {}", step.name);
        if let Err(why) = runs(root, step) {
            eprintln!("remote: {} failed{why}", step.name);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn steps(arguments: &[&str]) -> Option<&'static [Step]> {
    match arguments {
        ["--check"] => Some(&[CLIPPY, TESTS, MOTO]),
        ["--servers"] => Some(&[SERVERS]),
        _ => None,
    }
}

/// Runs a step.
fn runs(root: &Path, step: &Step) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (command, rest) = step.arguments.split_first().expect("a step has a command");
    let status = Command::new(cargo)
        .args([command, "--package=larch-remote"])
        .args(rest)
        .args(step.only)
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(String::new()),
        Err(error) => Err(format!(": cannot start cargo: {error}; install Rust or put cargo in PATH")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_runs_no_server_but_moto() {
        let names = |arguments| -> Vec<&str> {
            steps(arguments)
                .into_iter()
                .flatten()
                .flat_map(|step| step.only.or(step.arguments.last().copied()))
                .collect()
        };
        assert_eq!(names(&["--check"]), ["warnings", "test", "moto"]);
        assert_eq!(names(&["--servers"]), ["--test-threads=1"]);
        assert!(steps(&[]).is_none() && steps(&["--chek"]).is_none());
    }
}
