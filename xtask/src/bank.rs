//! `cargo x bank`: threads and tasks transfer money, while the process is killed, the disk fills up and syncs fail.

use crate::testkit;
use std::path::Path;
use std::process::ExitCode;

/// Runs the bank test with `arguments`, which the test itself interprets.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    testkit::run(root, "bank", "bank", arguments)
}
