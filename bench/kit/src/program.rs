//! Builds the command `larch` with cargo features, for tests of packages that the default command does without.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs, process};

/// The program `larch`, built with `features` in the target directory and the profile of the running test. It is
/// built once in a process.
///
/// # Panics
///
/// Panics if cargo cannot build it; cargo has then printed why. Panics if an earlier call asked for other features.
pub fn larch(features: &str) -> &'static Path {
    static PROGRAM: OnceLock<(String, PathBuf)> = OnceLock::new();
    let (built, program) = PROGRAM.get_or_init(|| (features.to_owned(), build(features)));
    assert_eq!(built, features, "a process asks for one set of features");
    program
}

fn build(features: &str) -> PathBuf {
    // A test lies in TARGET/PROFILE/deps.
    let test = env::current_exe().expect("a test is a file");
    let of_profile = test.parent().and_then(Path::parent).expect("cargo puts tests into deps");
    let target = of_profile.parent().expect("the profile has a directory");
    let profile = of_profile.file_name().and_then(|name| name.to_str()).expect("profiles have ASCII names");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "larch-cli", "--bin", "larch", "--features", features]);
    cargo.args(["--profile", if profile == "debug" { "dev" } else { profile }]).arg("--target-dir").arg(target);
    let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo starts");
    assert!(built.success(), "cargo cannot build larch with the features {features}");
    // The next build with other features replaces the program. So the test runs a name of its own.
    let program = of_profile.join(format!("larch-{}", features.replace(',', "-")));
    let fresh = of_profile.join(format!("larch-{}-{}", features.replace(',', "-"), process::id()));
    fs::remove_file(&fresh).ok();
    fs::hard_link(of_profile.join("larch"), &fresh).and_then(|()| fs::rename(&fresh, &program)).expect("a hard link");
    // `rename` keeps both names if they are links of one file.
    fs::remove_file(&fresh).ok();
    program
}
