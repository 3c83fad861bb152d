//! Tests the guide "add a store, add a workload". The guide's files are built outside the workspace, and its
//! commands are run.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

const GUIDE: &str = include_str!("../../../docs/guide/own-store.md");

/// The files in the guide. In front of each file, the guide has a line that begins with the path of the file
/// between `**` and `` ` ``. The next block of code is the content of the file.
fn files() -> Vec<(&'static str, &'static str)> {
    let parts = GUIDE.split("**`").skip(1);
    let file = |part: &'static str| {
        let (path, rest) = part.split_once("`**").expect("a path ends as it begins");
        let (_, code) = rest.split_once("\n```").expect("a path is followed by code");
        let (_, code) = code.split_once('\n').expect("the language of the code ends the line");
        let (code, _) = code.split_once("\n```").expect("code has an end");
        (path, code)
    };
    parts.map(file).collect()
}

/// The commands in the section "Run it".
fn commands() -> Vec<&'static str> {
    let (_, rest) = GUIDE.split_once("## Run it").expect("the guide has commands");
    let (block, _) = rest.split_once("\n```\n").expect("the commands are a block of code");
    block.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

#[test]
fn the_guide_adds_a_store_and_a_workload_outside_the_workspace() {
    // Every run of this test uses the same directory, so that each build replaces that of the previous run.
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-store");
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{}: {error}", place.display()),
        _ => fs::create_dir_all(place.join("shelf/src")).expect("a test can make a directory"),
    }
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the command line is a folder of the clone");
    for (path, code) in files() {
        let code = code.replace("../larch/", &format!("{}/", clone.display()));
        fs::write(place.join(path), format!("{code}\n")).expect("a test can write a file");
    }
    // The versions of crates with which the workspace was built are on this machine, so the network is not needed.
    fs::copy(clone.join("Cargo.lock"), place.join("shelf/Cargo.lock")).expect("the clone has it");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");

    let commands = commands();
    assert_eq!(commands.len(), 7, "{commands:?}");
    let mut printed = Vec::new();
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let [cargo, subcommand, arguments @ ..] = &words[..] else { panic!("`{command}` is too short") };
        assert_eq!(*cargo, "cargo");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args([subcommand, "--offline"]).args(arguments);
        let ran = command.env("CARGO_TARGET_DIR", target).current_dir(place.join("shelf")).output();
        let ran = ran.expect("cargo can be started");
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{words:?}\n{out}\n{err}");
        printed.push(out.into_owned());
    }
    let [tests, targets, load, run, own, larch, _] = &printed[..] else { panic!("one output for each command") };
    assert!(tests.contains("it_does_what_stores_promise ... ok"), "{tests}");
    assert!(targets.lines().any(|line| line.starts_with("shelf:DIR ") && line.contains(" run ")), "{targets}");
    assert!(load.contains("1,000 operations") && run.contains("10,000 operations"), "{load}{run}");
    for visits in [own, larch] {
        assert!(["READ", "WRITE", "VISIT"].iter().all(|kind| visits.contains(kind)), "{visits}");
    }
    let page = fs::read_to_string(place.join("shelf/visits.html")).expect("the report is there");
    assert!(page.contains("visits-shelf.json") && page.contains("visits-larch.json"), "results are on the page");
    fs::remove_dir_all(&place).expect("a test can remove what it made");
}
