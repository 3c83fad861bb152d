//! `cargo x sim`: runs the whole database on a simulated machine, with one seed after the other, in release mode.

use crate::testkit;
use std::path::Path;
use std::process::ExitCode;

/// Runs the simulator with `arguments`, which the simulator itself interprets.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    testkit::run(root, "sim", "simulate", arguments)
}
