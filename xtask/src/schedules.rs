//! `cargo x shuttle` and `cargo x loom`: tests of how threads work together. For these tests, `os::sync` uses a
//! library that decides which thread runs when. All code is compiled again for each library, so each library has its
//! own target folder.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A library that decides which thread runs when, and the tests that are written for it. Each test is given as the
/// arguments of `cargo test`.
struct Library {
    name: &'static str,
    tests: &'static [&'static str],
}

const SHUTTLE: Library = Library {
    name: "shuttle",
    tests: &[
        "--package larch-os --lib real::reads::pool::schedules",
        "--package larch-os --lib real::threads::schedules",
        "--package larch-os --lib sync::",
        "--package larch-pages --lib open_files::schedules",
        "--package larch-pages --test shuttle",
        "--package larch-db --lib log::sync::schedules",
        "--package larch-db --lib memtable::skip_list::schedules",
        "--package larch-db --lib visible::schedules",
        "--package larch-db --lib levels_lock::schedules",
    ],
};

const LOOM: Library = Library {
    name: "loom",
    tests: &[
        "--release --package larch-os --lib sync::",
        "--package larch-db --lib log::sync::schedules",
        "--package larch-db --lib memtable::skip_list::schedules",
        "--package larch-db --lib visible::schedules",
        "--release --package larch-pages --lib frame::tests",
    ],
};

/// Runs the tests with random schedules.
pub fn shuttle(root: &Path) -> ExitCode {
    run(root, &SHUTTLE)
}

/// Runs the tests of small models with all possible schedules.
pub fn loom(root: &Path) -> ExitCode {
    run(root, &LOOM)
}

fn run(root: &Path, library: &Library) -> ExitCode {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target));
    let passes = |tests: &&str| {
        let status = Command::new(&cargo)
            .arg("test")
            .args(tests.split(' '))
            .env("RUSTFLAGS", format!("--cfg {}", library.name))
            .env("CARGO_TARGET_DIR", target.join(library.name))
            .current_dir(root)
            .status();
        status.is_ok_and(|status| status.success())
    };
    match library.tests.iter().find(|tests| !passes(tests)) {
        None => ExitCode::SUCCESS,
        Some(tests) => {
            eprintln!("{}: `cargo test {tests}` failed", library.name);
            ExitCode::FAILURE
        }
    }
}
