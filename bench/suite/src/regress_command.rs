//! `larch bench regress`: makes short runs of YCSB A, C and E and of TPC-C, and compares them with a baseline from
//! the same kind of machine, or with another build.
//!
//! A baseline is a directory named after the kind of machine, with one result file per round.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "baselines are files of the machine")]

use crate::args::RegressArgs;
use crate::compare_command::{Results, check_places, compared, ending, read, show};
use crate::ending::Ending;
use crate::machine_kind::MachineKind;
use crate::rounds::{Rounds, What, merged, this_program};
use crate::stop::Stop;
use crate::{print, results, say};
use harness::report::Report;
use harness::{Failure, Length, Plan};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// A workload of a round.
#[derive(Clone, Copy, Debug)]
enum Workload {
    /// A YCSB workload. `fresh`: empty and reload the table first.
    Ycsb { letter: &'static str, fresh: bool },
    /// TPC-C on a new database.
    Tpcc,
}

/// The workloads of a round, in order. E comes last of YCSB's because it inserts rows.
const WORKLOADS: [Workload; 4] = [
    Workload::Ycsb { letter: "a", fresh: true },
    Workload::Ycsb { letter: "c", fresh: false },
    Workload::Ycsb { letter: "e", fresh: true },
    Workload::Tpcc,
];

impl Workload {
    fn name(self) -> String {
        match self {
            Self::Ycsb { letter, .. } => format!("workload {letter}"),
            Self::Tpcc => "TPC-C".to_owned(),
        }
    }

    /// Runs the workload once. `round` is its seed.
    fn run(self, rounds: &Rounds<'_>, program: &Path, round: u32) -> Result<Report, Failure> {
        match self {
            Self::Ycsb { letter, fresh } => {
                if fresh {
                    rounds.load(program, letter)?;
                }
                rounds.run(program, &What { workload: letter, seed: round, slow_down: Duration::ZERO })
            }
            Self::Tpcc => rounds.tpcc(program, round),
        }
    }
}

/// Runs the command.
pub fn run(args: &RegressArgs) -> Result<Ending, Failure> {
    check_places(args.out.as_deref(), None)?;
    let stop = Stop::catch()?;
    let this = this_program()?;
    if let Some(other) = &args.base_program {
        let other =
            fs::canonicalize(other).map_err(|error| unfit(format!("--base-program: {}: {error}", other.display())))?;
        let mut sides = measure(args, &stop, &[&other, &this])?;
        let (new, base) = (sides.pop().unwrap_or_default(), sides.pop().unwrap_or_default());
        return told(args, &base, &new);
    }
    let kind = MachineKind::here(args.runs.dir.as_deref().unwrap_or(Path::new(".")));
    let place = args.base.join(kind.name());
    let stored = stored(&place);
    if args.store {
        check_parent(&args.base)?;
        let mut sides = measure(args, &stop, &[&this])?;
        let measured = sides.pop().unwrap_or_default();
        return store(&place, &stored, &measured).map(|()| Ending::Good);
    }
    if stored.is_empty() {
        print(&without_baseline(&kind, &args.base))?;
        return Ok(Ending::CannotTell);
    }
    let base = read(&stored)?;
    say(&format!("baseline {}: {}", place.display(), described(&base)));
    let mut sides = measure(args, &stop, &[&this])?;
    let new = sides.pop().unwrap_or_default();
    told(args, &base, &new)
}

/// Says that no figure can be compared, and with which machines one could be.
fn without_baseline(kind: &MachineKind, base: &Path) -> String {
    let mut text = format!(
        "cannot tell: there is no baseline of this kind of machine in {}: {kind}\nTo store one, run the build to compare with \
         here, by `cargo x bench regress --store`; or compare with another build at once, by --base-program PROGRAM\n",
        base.join(kind.name()).display()
    );
    for place in directories(base) {
        let about = read(&stored(&place)).map_or_else(|failure| failure.to_string(), |base| described(&base));
        text.push_str(&format!("baseline of another machine: {}: {about}\n", place.display()));
    }
    text
}

/// Of which build a baseline is, and how it was measured.
fn described(base: &Results) -> String {
    let Some((_, first)) = base.first() else { return "no rounds".to_owned() };
    let commit = first.environment.commit.as_deref().unwrap_or("unknown");
    let mut text = format!("commit {commit}, {} rounds", base.len());
    if let Some(run) = first.runs.first() {
        let Plan { length, warmup, .. } = &run.plan;
        let length = match length {
            Length::Time(time) => format!("{} s", time.as_secs_f64()),
            Length::Operations(operations) => format!("{operations} operations"),
            Length::All => "all operations".to_owned(),
        };
        text.push_str(&format!(", each run {length} after {} s of warm-up", warmup.as_secs_f64()));
    }
    text
}

fn told(args: &RegressArgs, base: &Results, new: &Results) -> Result<Ending, Failure> {
    let comparison = compared(base, new, args.how.options())?;
    show(&comparison, base, new, args.out.as_deref())?;
    Ok(ending(&comparison))
}

fn unfit(why: String) -> Failure {
    Failure::session("target", why)
}

/// Runs the rounds of all programs in turn, and returns each program's results.
fn measure(args: &RegressArgs, stop: &Stop, programs: &[&Path]) -> Result<Vec<Results>, Failure> {
    let rounds = Rounds::new(&args.runs, stop)?;
    let mut sides: Vec<Results> = vec![Vec::new(); programs.len()];
    for round in 1..=args.rounds {
        for at in order(round, programs.len()) {
            let mut reports = Vec::new();
            for workload in WORKLOADS {
                let (rounds_all, programs_all) = (args.rounds, programs.len());
                say(&format!(
                    "round {round} of {rounds_all}, program {} of {programs_all}: {}",
                    at + 1,
                    workload.name()
                ));
                reports.push(workload.run(&rounds, programs[at], round)?);
            }
            sides[at].push((format!("round {round}"), merged(reports)));
        }
    }
    Ok(sides)
}

/// The order of the programs in a round. It alternates, so that no program always runs first.
fn order(round: u32, programs: usize) -> Vec<usize> {
    let order = 0..programs;
    if round.is_multiple_of(2) { order.rev().collect() } else { order.collect() }
}

/// The files of a baseline's results, in sorted order.
fn stored(place: &Path) -> Vec<PathBuf> {
    entries(place, |path| path.extension().is_some_and(|end| end == "json"))
}

/// The directories of all baselines, in sorted order.
fn directories(base: &Path) -> Vec<PathBuf> {
    entries(base, Path::is_dir)
}

fn entries(place: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut wanted: Vec<PathBuf> = entries.filter(|path| is_wanted(path)).collect();
    wanted.sort();
    wanted
}

/// Creates the directory of baselines and checks that it is writable, before an hour of runs and not after it.
fn check_parent(base: &Path) -> Result<(), Failure> {
    fs::create_dir_all(base).map_err(|error| unfit(format!("--base: cannot make {}: {error}", base.display())))?;
    results::check_one("--base", &base.join("run.json"))
}

/// Writes `measured` to `place`, and removes the files of the old baseline, `stored`, that were not overwritten. If there
/// are several rounds, their files leave out the intervals, which are seven eighths of a file: the differences between
/// the rounds say how sure a figure is.
fn store(place: &Path, stored: &[PathBuf], measured: &Results) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::session("output", format!("{}: {error}", place.display()));
    fs::create_dir_all(place).map_err(failed)?;
    let mut written = Vec::new();
    for (number, (_, report)) in (1..).zip(measured) {
        let file = place.join(format!("round-{number:02}.json"));
        let mut report = report.clone();
        if measured.len() > 1 {
            report.runs.iter_mut().for_each(|run| run.measured.intervals.clear());
        }
        results::write(&file, report.json().as_bytes())?;
        written.push(file);
    }
    for old in stored.iter().filter(|old| !written.contains(old)) {
        fs::remove_file(old).map_err(failed)?;
    }
    print(&format!("stored {} rounds in {}\n", measured.len(), place.display()))
}
