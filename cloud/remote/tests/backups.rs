//! Backups in a store, made by the command, of databases on this machine and in a store, also while processes that
//! make them are killed.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "processes and real time, outside of the engine"
)]

mod commands;
mod processes;

use larch::Database;
use processes::Server;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// How many backups are killed.
const ROUNDS: u32 = 20;

fn add(directory: &Path, round: u32) {
    let db = Database::open(directory).expect("there is room");
    let table = db.table("t").expect("a table");
    for row in 0..2000u32 {
        table.insert((row + round * 1000).to_be_bytes(), [round as u8; 500]).expect("there is room");
    }
    db.flush().expect("there is room");
}

/// The SSTs in a directory, with their bytes.
fn ssts(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("it is there").path());
    let ssts = entries.filter(|path| path.extension().is_some_and(|end| end == "sst"));
    ssts.map(|path| (path.display().to_string().split_off(directory.display().to_string().len()), path))
        .map(|(name, path)| (name, std::fs::read(path).expect("it can be read")))
        .collect()
}

/// Backs up a database in a directory and one in a store to places below `url`, and restores both. The restored SSTs
/// must be the original ones, byte by byte.
fn check(url: &str, variables: &[(&str, String)]) {
    let directory = tempfile::tempdir().expect("there is room");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (here, back, again) = (&*path("here"), &*path("back"), &*path("again"));
    let at = |name: &str| format!("{url}/{name}");
    let (kept, far, kept_far, near) = (&*at("kept"), &*at("far"), &*at("kept-far"), &*path("near"));
    add(Path::new(here), 0);
    commands::expect(
        variables,
        &[
            (&["backup", here, kept][..], Ok(" new, in ")),
            (&["backup", here, kept], Ok(" new, in ")),
            (&["verify-backup", kept], Ok("no damage in 2 backups")),
            (&["restore", kept, back], Ok("files of ")),
            (&["restore", kept, back], Err("is not empty")),
            (&["restore", kept, far], Ok("files of ")),
            (&["restore", kept, far], Err("is not empty")),
            (&["check", far], Ok("no damage")),
            (&["backup", here, far], Err("is of no backup")),
            (&["put", far, "fruit", "apple", "red"], Ok("")),
            (&["backup", far, kept], Ok(" new, in ")),
            (&["backup", far, kept_far], Ok("")),
            (&["backup", far, near, "--keep", "1"], Ok("")),
            (&["restore", near, again], Ok("")),
            (&["get", again, "fruit", "apple"], Ok("red")),
            (&["drop-database", kept], Err("has backups")),
            (&["get", kept, "fruit", "apple"], Err("")),
            (&["backup", here, kept, "--keep", "1"], Ok("was removed")),
            (&["verify-backup", kept], Ok("no damage in 1 backup")),
            (&["restore", kept, "--backup", "7", near], Err("no backup 7")),
        ],
    );
    let (before, after) = (ssts(Path::new(here)), ssts(Path::new(back)));
    assert!(!before.is_empty() && before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
}

/// Kills processes while they make a backup. An acknowledged backup must stay, and the next backup must remove the
/// files of unfinished ones.
fn check_kills(url: &str, variables: &[(&str, String)], rounds: u32) {
    let directory = tempfile::tempdir().expect("there is room");
    let (here, back) = (directory.path().join("here"), directory.path().join("back"));
    let (here_text, kept) = (here.display().to_string(), format!("{url}/killed-backups"));
    add(&here, rounds);
    // The program is built when it is first asked for. That takes minutes, and is no part of a backup.
    kit::program::larch("cloud");
    let begin = Instant::now();
    commands::expect(variables, &[(&["backup", &here_text, &kept][..], Ok(" new, in "))]);
    // The time of a whole backup. Each process is killed at a different moment within it.
    let whole = begin.elapsed();
    let mut killed = 0;
    for round in 0..rounds {
        add(&here, round);
        let mut process = commands::larch(variables, &["backup", &here_text, &kept]);
        let mut process = process.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it was built");
        std::thread::park_timeout(whole * round / rounds);
        process.kill().ok();
        killed += u32::from(!process.wait().expect("it is our process").success());
        commands::expect(variables, &[(&["verify-backup", &kept][..], Ok("no damage in "))]);
        if round % 4 == 3 {
            commands::expect(variables, &[(&["backup", &here_text, &kept, "--keep", "2"][..], Ok(" new, in "))]);
        }
    }
    println!("{killed} of {rounds} were killed");
    assert!(killed > rounds / 4, "{killed} of {rounds}");
    commands::expect(
        variables,
        &[
            (&["backup", &here_text, &kept, "--keep", "1"][..], Ok(" new, in ")),
            (&["verify-backup", &kept], Ok("no damage in 1 backup")),
            (&["restore", &kept, &back.display().to_string()], Ok("files of ")),
            (&["check", &back.display().to_string()], Ok("no damage")),
        ],
    );
    let (before, after) = (ssts(&here), ssts(&back));
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
}

#[test]
fn backups_of_both_kinds_are_made_verified_and_restored_by_url() {
    let directory = tempfile::tempdir().expect("there is room");
    check(&format!("file://{}", directory.path().display()), &[]);
}

#[test]
fn backups_stay_whole_when_processes_are_killed() {
    let directory = tempfile::tempdir().expect("there is room");
    check_kills(&format!("file://{}", directory.path().display()), &[], ROUNDS);
}

#[test]
#[ignore = "cargo x remote --check runs it"]
fn moto_keeps_backups() {
    let server = Server::moto();
    check(&format!("s3://{}", server.bucket()), &server.variables());
}

#[test]
#[ignore = "cargo x remote --servers runs it"]
fn minio_keeps_backups_also_if_processes_are_killed() {
    let server = Server::minio();
    check(&format!("s3://{}", server.bucket()), &server.variables());
    check_kills(&format!("s3://{}", server.bucket()), &server.variables(), ROUNDS);
}
