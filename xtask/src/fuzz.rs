//! `cargo x fuzz`: gives arbitrary bytes to the decoders and to the database. The command finds the targets by their
//! file names.

#[cfg(test)]
mod tests;

use crate::nightly;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// What `arguments` ask for.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    targets: Vec<String>,
    minutes_each: u64,
}

/// Runs the targets that `arguments` name, one after the other. If they name none, it runs all targets.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let plan = match targets(root) {
        Ok(all) => plan(&all, arguments),
        Err(error) => Err(format!("cannot list fuzz/fuzz_targets: {error}")),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("fuzz: {why}");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = nightly::check("fuzz", "cargo install cargo-fuzz") {
        eprintln!("fuzz: {why}");
        return ExitCode::FAILURE;
    }
    let seconds = format!("-max_total_time={}", plan.minutes_each * 60);
    let fails = |target: &&String| {
        println!("fuzz: {target}");
        !nightly::runs(root, &["fuzz", "run", target, "--", &seconds, "-timeout=30"])
    };
    let failed: Vec<&String> = plan.targets.iter().filter(fails).collect();
    for target in &failed {
        eprintln!("fuzz: `{target}` failed; its input is in fuzz/artifacts/{target}: make a test of it");
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The names of all targets, sorted.
fn targets(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("fuzz/fuzz_targets"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn plan(all: &[String], arguments: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan { targets: Vec::new(), minutes_each: 1 };
    let mut arguments = arguments.iter();
    while let Some(&argument) = arguments.next() {
        if argument == "--minutes" {
            let minutes = arguments.next().and_then(|minutes| minutes.parse().ok()).filter(|&minutes| minutes > 0);
            plan.minutes_each = minutes.ok_or("--minutes wants a whole number of at least 1")?;
        } else if all.iter().any(|name| name == argument) {
            plan.targets.push(argument.to_owned());
        } else {
            return Err(format!("no target `{argument}`; there are {}", all.join(", ")));
        }
    }
    if plan.targets.is_empty() {
        plan.targets = all.to_vec();
    }
    Ok(plan)
}
