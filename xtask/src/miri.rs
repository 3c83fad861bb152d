//! `cargo x miri`: runs the tests of the modules with unsafe code in Miri, which detects undefined behaviour.

use crate::nightly;
use std::path::Path;
use std::process::ExitCode;

/// For each module with unsafe code, the package and a part of the names of its tests. Unsafe code in tests (counting
/// allocators) is not shipped, so it is not listed.
const MODULES: [(&str, &str); 6] = [
    ("larch-os", "memory::"),
    ("larch-os", "sync::hazard::"),
    ("larch-os", "sync::lendable::"),
    ("larch-pages", "frame::"),
    ("larch-db", "memtable::arena::"),
    ("larch-db", "memtable::skip_list::"),
];

/// A part of the names of tests whose names look like those of `memory`, and which ask the system for what Miri lacks.
const OTHERS: &str = "free_memory::";

/// Runs all these tests, and stops at the first that fails.
pub fn run(root: &Path) -> ExitCode {
    if let Err(why) = nightly::check("miri", "rustup component add miri rust-src --toolchain nightly") {
        eprintln!("miri: {why}");
        return ExitCode::FAILURE;
    }
    let passes = |(package, tests)| {
        let only = [tests, "--", "--skip", OTHERS];
        nightly::runs(root, &[&["miri", "test", "--package", package, "--lib"], &only[..]].concat())
    };
    if MODULES.into_iter().all(passes) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
