//! `cargo x ci`: the steps that the build server runs. Every step is a command that can be run alone.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// One command of the list.
struct Step {
    name: &'static str,
    /// An environment variable with its value, which is set only for this command.
    variable: Option<(&'static str, &'static str)>,
    /// The arguments of `cargo`.
    arguments: &'static str,
}

/// Cheap steps come first, so that a small mistake is reported within seconds.
const STEPS: [Step; 21] = [
    Step { name: "format", variable: None, arguments: "fmt --all --check" },
    Step { name: "tidy", variable: None, arguments: "x tidy" },
    Step {
        name: "clippy",
        variable: None,
        arguments: "clippy --all-targets --features larch-cli/bench -- -D warnings",
    },
    Step {
        name: "features",
        variable: None,
        arguments: "clippy --package larch-db --all-targets --all-features -- -D warnings",
    },
    Step {
        name: "no features",
        variable: None,
        arguments: "clippy --package larch-db --package larch-sst --package larch-pages --all-targets \
            --no-default-features -- -D warnings",
    },
    Step {
        name: "feature lz4",
        variable: None,
        arguments: "clippy --package larch-db --no-default-features --features lz4 -- -D warnings",
    },
    Step {
        name: "feature zstd",
        variable: None,
        arguments: "clippy --package larch-db --no-default-features --features zstd -- -D warnings",
    },
    Step {
        name: "feature bytes",
        variable: None,
        arguments: "clippy --package larch-db --no-default-features --features bytes -- -D warnings",
    },
    Step {
        name: "feature serde",
        variable: None,
        arguments: "clippy --package larch-db --no-default-features --features serde -- -D warnings",
    },
    Step {
        name: "feature tracing",
        variable: None,
        arguments: "clippy --package larch-db --no-default-features --features tracing -- -D warnings",
    },
    Step {
        name: "tests without codecs",
        variable: None,
        arguments: "test --package larch-db --package larch-pages --no-default-features --lib that_the_build_lacks",
    },
    Step {
        name: "command without features",
        variable: None,
        arguments: "clippy --package larch-cli --all-targets -- -D warnings",
    },
    Step { name: "tests without features", variable: None, arguments: "test --package larch-cli --test package" },
    Step { name: "test", variable: None, arguments: "x test" },
    // Only libraries are documented, because the pages of the binary `larch` would overwrite those of the library
    // `larch`.
    Step { name: "docs", variable: Some(("RUSTDOCFLAGS", "-D warnings")), arguments: "doc --no-deps --lib" },
    Step { name: "benches and examples", variable: None, arguments: "build --benches --examples" },
    Step { name: "instructions", variable: None, arguments: "x instructions" },
    Step { name: "packages", variable: None, arguments: "x package" },
    Step { name: "archives", variable: None, arguments: "x archive --check" },
    Step { name: "dependencies", variable: None, arguments: "x deny" },
    Step { name: "versions", variable: None, arguments: "x semver" },
];

/// The fuzz targets are checked as the fuzzer would build them, but without two things. One is the flags that need a
/// nightly compiler. The other is libFuzzer, a default feature that needs a C++ compiler.
const FUZZ: Step = Step {
    name: "fuzz targets",
    variable: Some(("RUSTFLAGS", "--cfg fuzzing -D warnings")),
    arguments: "check --package larch-fuzz --no-default-features",
};

/// The tests of `cargo x loom` and `cargo x shuttle` are compiled, so that they can be run when they are needed.
const SCHEDULES: [Step; 2] = [
    Step {
        name: "tests under loom",
        variable: Some(("RUSTFLAGS", "--cfg loom")),
        arguments: "check --package larch-os --package larch-pages --package larch-db --lib --profile test",
    },
    Step {
        name: "tests under shuttle",
        variable: Some(("RUSTFLAGS", "--cfg shuttle")),
        arguments: "check --package larch-os --package larch-pages --package larch-db --lib --test shuttle --profile test",
    },
];

/// Runs all steps in `root`, and stops at the first step that fails.
pub fn run(root: &Path) -> ExitCode {
    let steps: Vec<&Step> = STEPS.iter().chain([&FUZZ]).chain(&SCHEDULES).collect();
    let start = Instant::now();
    match first_failure(&steps, |step| passes(step, root)) {
        None => {
            println!("ci: {} steps passed in {:.1} s", steps.len(), start.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Some(step) => {
            eprintln!("ci: step `{}` failed; to run it alone: {step}", step.name);
            ExitCode::FAILURE
        }
    }
}

fn first_failure<'s>(steps: &[&'s Step], mut passes: impl FnMut(&Step) -> bool) -> Option<&'s Step> {
    steps.iter().copied().find(|step| !passes(step))
}

fn passes(step: &Step, root: &Path) -> bool {
    println!("ci: {}: {step}", step.name);
    let start = Instant::now();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(step.arguments.split(' ').collect::<Vec<_>>())
        .envs(step.variable)
        .current_dir(root)
        .status();
    let passed = match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("ci: cannot start cargo: {error}; install Rust or put cargo in PATH");
            false
        }
    };
    let word = if passed { "passed" } else { "failed" };
    println!("ci: {}: {word} in {:.1} s", step.name, start.elapsed().as_secs_f64());
    passed
}

impl fmt::Display for Step {
    /// The command as a person would type it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, value)) = self.variable {
            write!(out, "{name}=\"{value}\" ")?;
        }
        write!(out, "cargo {}", self.arguments)
    }
}
