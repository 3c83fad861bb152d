//! Formats the results of consistency checks, and checks snapshots of the database while a run goes on.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

use harness::Failure;
use harness::report::text::grouped;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tpcc::check::{self, After, Checked, INTERRUPTED};
use tpcc::{Database, Form};

/// The findings of a check, each on a line.
fn findings(checked: &Checked) -> String {
    let mut text = String::new();
    for finding in &checked.findings {
        writeln!(text, "{finding}").expect("a string takes all");
    }
    if checked.more > 0 {
        writeln!(text, "and {} more", grouped(checked.more)).expect("a string takes all");
    }
    text
}

/// The verdict of a check, and how long the check took.
fn verdict(checked: &Checked, took: Duration) -> String {
    let verdict = match checked.findings.len() as u64 + checked.more {
        0 => "all twelve conditions hold".to_owned(),
        1 => "1 finding".to_owned(),
        findings => format!("{} findings", grouped(findings)),
    };
    let (warehouses, rows, seconds) = (checked.warehouses, grouped(checked.rows), took.as_secs_f64());
    format!("{verdict}: {warehouses} warehouses, {rows} rows, {seconds:.1} seconds")
}

/// The findings of a check, its verdict, and how long the check took.
pub fn shown(checked: &Checked, took: Duration) -> String {
    format!("{}{}\n", findings(checked), verdict(checked, took))
}

/// The results of the checks during a run.
#[derive(Debug, Default)]
pub struct Checks {
    /// Snapshots that were consistent.
    pub passed: u64,
    /// Why the checks ended before the run did: a check failed to run, or a snapshot was not consistent.
    pub wrong: Option<String>,
}

/// Calls `run`, and checks the database on another thread at the same time. `run` gets a function to call when it
/// begins: this calls `begin` and starts the checks. A check that is under way when the run ends is still finished,
/// so at least one is made, unless `stop` is set or the run ends before it begins.
pub fn beside<T>(
    database: &dyn Database,
    form: &Form,
    stop: &AtomicBool,
    begin: &mut dyn FnMut(),
    run: impl FnOnce(&mut dyn FnMut()) -> T,
) -> (T, Checks) {
    let is_over = &AtomicBool::new(false);
    let (send, begun) = channel();
    std::thread::scope(|scope| {
        let checking = scope.spawn(move || {
            let mut checks = Checks::default();
            // An error means that the run ended before it began.
            if begun.recv().is_err() {
                return checks;
            }
            match check_until(database, form, stop, is_over, &mut checks.passed) {
                Err(failure) if failure.kind == INTERRUPTED => {}
                Err(failure) => checks.wrong = Some(format!("a snapshot during the run cannot be checked: {failure}")),
                Ok(wrong) => checks.wrong = wrong,
            }
            checks
        });
        let over = Over(is_over, send);
        let ran = run(&mut || {
            begin();
            over.1.send(()).unwrap_or_default();
        });
        drop(over);
        let checks = checking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (ran, checks)
    })
}

/// Ends the checks on drop, so also if the run panics: no further check begins, and a thread that still waits to
/// start them returns.
struct Over<'o>(&'o AtomicBool, Sender<()>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks one snapshot after the other until the run is over or a snapshot is inconsistent. Returns what is wrong
/// with it.
fn check_until(
    database: &dyn Database,
    form: &Form,
    stop: &AtomicBool,
    is_over: &AtomicBool,
    passed: &mut u64,
) -> Result<Option<String>, Failure> {
    loop {
        let begin = Instant::now();
        let view = database.view()?;
        let checked = check::check(&*view, form, 1, After::Run, stop, &|_| {})?;
        if !checked.is_consistent() {
            let (verdict, findings) = (verdict(&checked, begin.elapsed()), findings(&checked));
            let text = format!("a snapshot during the run is not consistent: {verdict}\n{findings}");
            return Ok(Some(text.trim_end().to_owned()));
        }
        *passed += 1;
        if is_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
}
