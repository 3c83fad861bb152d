//! `cargo x feed`: follows very many commits on a simulated machine, in release mode.

use crate::testkit;
use std::path::Path;
use std::process::ExitCode;

/// Runs the program with `arguments`, which it interprets itself.
pub fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    testkit::run(root, "feed", "feeds", arguments)
}
