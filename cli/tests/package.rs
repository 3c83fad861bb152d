//! Tests of a `larch` as its package builds it by default: a command that needs a cargo feature names the feature, and
//! what is installed beside the program can be made.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests start the real program")]

use std::process::Command;

#[track_caller]
fn is_refused(arguments: &[&str], what: &str, feature: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_larch")).args(arguments).output().expect("it was built");
    let told = String::from_utf8(output.stderr).expect("it prints text");
    let expected = format!(
        "larch: {what} is not in this build of larch; to get it: cargo install --locked --path cli --features {feature}\n"
    );
    assert_eq!((output.status.code(), told), (Some(2), expected), "{arguments:?}");
}

#[cfg(not(feature = "bench"))]
#[test]
fn bench_names_its_feature_whatever_follows_it() {
    for arguments in [&["bench"][..], &["bench", "ycsb"], &["bench", "--help"], &["bench", "kv", "-mode", "mixed"]] {
        is_refused(arguments, "larch bench", "bench");
    }
}

#[cfg(not(feature = "sql"))]
#[test]
fn sql_names_its_feature() {
    is_refused(&["sql", "db", "SELECT 1"], "larch sql", "sql");
}

#[cfg(not(feature = "cluster"))]
#[test]
fn processes_that_answer_together_name_their_feature() {
    is_refused(&["sql-scheduler"], "larch sql-scheduler", "cluster");
    is_refused(&["sql-executor", "--scheduler", "localhost:1"], "larch sql-executor", "cluster");
}

#[test]
fn a_package_gets_completions_and_a_manual_page_for_each_command() {
    let larch = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_larch")).args(arguments).output();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = larch(&["completions", shell]).expect("it was built");
        let script = String::from_utf8(script.stdout).expect("scripts are text");
        assert!(script.contains("verify-backup"), "{shell}");
    }
    let scratch = kit::Scratch::new("man");
    let written = larch(&["man", &scratch.path().display().to_string()]).expect("it was built");
    assert!(written.status.success());
    let page = std::fs::read_to_string(scratch.join("larch-index-create.1")).expect("each command has a page");
    assert!(page.contains("\\-\\-columns"), "{page}");
    let refused = larch(&["man", "no/such"]).expect("it was built");
    assert_eq!(refused.status.code(), Some(3));
}

#[cfg(not(feature = "cloud"))]
#[test]
fn a_url_names_the_feature_of_stores() {
    for arguments in [&["get", "s3://bucket/db", "t", "k"][..], &["branches", "s3://bucket/db"]] {
        is_refused(arguments, "a database in a store", "cloud");
    }
}
