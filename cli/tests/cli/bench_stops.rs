//! Tests of `larch bench ycsb` that fails or is stopped: by ^C, by a full disk, or by a result that cannot be
//! written.

use crate::bench::{runs, ycsb};
use crate::session::{Ran, Session};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

/// Reads what a run prints on standard error until the text `part` appears. Returns a function that reads the rest
/// of the output.
pub fn wait_for(child: &mut Child, part: &str) -> impl FnOnce(Child) -> Ran + use<> {
    let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
    let mut err = String::new();
    while !err.contains(part) {
        let bytes = said.read_line(&mut err).expect("messages are UTF-8");
        assert!(bytes > 0, "it ended without saying {part:?}: {err}");
    }
    move |child| {
        said.read_to_string(&mut err).expect("messages are UTF-8");
        let output = child.wait_with_output().expect("it was started");
        Ran { code: output.status.code(), out: output.stdout, err }
    }
}

/// Sends the signal of ^C to the process.
pub fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it runs until then");
}

const ENDLESS: [&str; 8] = ["bench", "ycsb", "run", "-P", "a", "--time", "10h", "--target"];

#[test]
fn control_c_tells_and_writes_what_was_measured() {
    let session = Session::new();
    let files = ["noop:", "--out", "r.json", "--csv", "r.csv", "--hdr", "r.hlog", "--threads", "2"];
    let mut child = session.start(&[&ENDLESS[..], &files].concat());
    let rest = wait_for(&mut child, "workload a ");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(ran.err.contains("larch: ending; what was measured so far is printed"), "{}", ran.err);
    let told = String::from_utf8(ran.out).expect("tables are UTF-8");
    assert!(told.contains("INTERRUPTED") && told.contains("READ"), "{told}");
    let run = &runs(&session, "r.json")[0];
    assert_eq!(run["measured"]["interrupted"], true);
    assert!(run["measured"]["operations"].as_u64().is_some_and(|count| count > 0));
    assert!(run["error"].is_null());
    assert_eq!(session.names(), ["r.csv", "r.hlog", "r.json"]);
}

#[test]
fn control_c_ends_all_of_it_and_what_was_done_before_is_there() {
    let session = Session::new();
    let args =
        ["bench", "ycsb", "all", "-p", "recordcount=300", "--time", "10h", "--target", "larch:db", "--out", "r.json"];
    let mut child = session.start(&args);
    let rest = wait_for(&mut child, "workload a ");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    let runs = runs(&session, "r.json");
    let interrupted: Vec<&serde_json::Value> = runs.iter().map(|run| &run["measured"]["interrupted"]).collect();
    assert_eq!(interrupted, [false, true]);
    session.run(&["check", "db"]).ok();
}

#[test]
fn control_c_removes_the_directory_of_the_bare_command() {
    let session = Session::new();
    let in_tmp = ["-p", "recordcount=2000"];
    for presses in [1, 2] {
        session.file("tmp/.keep", "");
        let mut command = session.command_for_signals(&[&["bench", "ycsb"], &in_tmp[..]].concat());
        command.env("TMPDIR", session.path("tmp")).stdin(Stdio::null());
        let mut child = command.spawn().expect("larch was built");
        let rest = wait_for(&mut child, "workload a ");
        for _ in 0..presses {
            interrupt(&child);
        }
        let ran = rest(child);
        assert_eq!(ran.code, Some(130), "{}", ran.err);
        assert_eq!(std::fs::read_dir(session.path("tmp")).expect("it is there").count(), 1, "{}", ran.err);
    }
    let runs = runs(&session, "larch-ycsb.json");
    assert_eq!(runs.last().expect("what was measured is there")["measured"]["interrupted"], true);
}

/// A service manager ends a process by SIGTERM. The command obeys this signal during a load, during a run over 10^12
/// records, during an import, and while terminals run.
#[test]
fn sigterm_ends_every_phase_in_good_order() {
    let many = "recordcount=1000000000000";
    for (args, said) in [
        (&["bench", "ycsb", "load", "-p", many, "--target", "noop:"][..], "load "),
        (&["bench", "ycsb", "run", "-P", "a", "-p", many, "--time", "10h", "--target", "noop:"], "workload a "),
        (&["bench", "tpcc", "import", "--warehouses", "20", "--target", "larch:tpcc"], "loading: "),
        (&["bench", "tpcc", "run", "--warehouses", "2", "--time", "10h", "--target", "noop:"], "tpmC"),
    ] {
        let session = Session::new();
        let mut child = session.start(args);
        let rest = wait_for(&mut child, said);
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs until then");
        let ran = rest(child);
        assert_eq!(ran.code, Some(130), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_result_that_cannot_be_written_is_told_after_the_table() {
    let session = Session::new();
    session.file("there/.keep", "");
    let mut child = session.start(&[&ENDLESS[..], &["noop:", "--out", "there/r.json", "--csv", "r.csv"]].concat());
    let rest = wait_for(&mut child, "workload a ");
    std::fs::remove_dir_all(session.path("there")).expect("it is ours");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("cannot write the result: there/r.json: No such file"), "{}", ran.err);
    assert!(String::from_utf8(ran.out).expect("tables are UTF-8").contains("READ"));
    assert_eq!(session.names(), ["r.csv"], "the other file is written");
}

/// A limit on the size of files simulates a full disk; see the tests in `full_disk`.
#[test]
fn a_full_disk_is_told_with_what_was_loaded_until_then() {
    let session = Session::new();
    let script = "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\"";
    let load = ["bench", "ycsb", "load", "-q", "-P", "a", "--target", "larch:db", "--out", "r.json"];
    let ran = session.run_under(&["sh", "-c", script], &load, "");
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    for part in [".log", "File too large", "load a: "] {
        assert!(ran.err.contains(part), "{part:?} is not in {}", ran.err);
    }
    let told = String::from_utf8(ran.out).expect("tables are UTF-8");
    assert!(told.contains("FAILED"), "{told}");
    let run = &runs(&session, "r.json")[0];
    assert!(run["error"].as_str().is_some_and(|error| error.contains("File too large")), "{run}");
    assert!(run["measured"]["operations"].as_u64().is_some_and(|count| (1..1000).contains(&count)));
    // After the failed load, the table can be loaded again.
    ycsb(&session, &["load", "-P", "a", "--target", "larch:db", "--recreate"]).ok();
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    let session = Session::new();
    session.file("home/letter.txt", "dear");
    for more in [&[][..], &["--recreate"]] {
        let args = [&["load", "-P", "a", "--target", "larch:home", "--out", "r.json"], more].concat();
        ycsb(&session, &args).fails(3, &["home is not empty", "name a new directory"]);
    }
    assert_eq!(session.bytes("home/letter.txt"), b"dear");
    assert!(!session.has("r.json"), "nothing was measured");
}

#[test]
fn nobody_who_listens_does_not_end_a_run() {
    let session = Session::new();
    let args = [&ENDLESS[..], &["noop:", "--out", "r.json"]].concat();
    let mut child = session.start(&args);
    let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
    said.read_line(&mut String::new()).expect("messages are UTF-8");
    drop(said);
    drop(child.stdout.take());
    interrupt(&child);
    assert_eq!(child.wait().expect("it was started").code(), Some(130));
    assert_eq!(runs(&session, "r.json").len(), 1);
}
