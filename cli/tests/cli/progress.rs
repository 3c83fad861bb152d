//! Tests of the progress bar, on a terminal whose other end the test holds.

use crate::session::Session;
use crate::terminal::terminal;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bar appears after a second of work. These are more rows than can be read in a second.
const MOST_ROWS: u64 = 100_000_000;

#[test]
fn long_work_shows_how_far_it_is_on_a_terminal_and_takes_it_away_again() {
    let session = Session::new();
    let (mut ours, theirs) = terminal();
    let mut command = session.command(&["import", "db", "t", "-", "--format", "tsv"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(theirs).env("TERM", "xterm");
    let mut child = command.spawn().expect("larch was built");
    // The command has the last copy of the program's end that this process still has.
    drop(command);

    let seen = Arc::new(AtomicBool::new(false));
    let mut stdin = child.stdin.take().expect("it was asked for");
    let feeder = std::thread::spawn({
        let seen = Arc::clone(&seen);
        move || {
            let mut rows = 0;
            while rows < MOST_ROWS && !seen.load(Ordering::Relaxed) {
                let chunk: String = (rows..rows + 1000).map(|row| format!("{row:09}\tvalue\n")).collect();
                stdin.write_all(chunk.as_bytes()).expect("larch reads");
                rows += 1000;
            }
            rows
        }
    });
    let mut shown = Vec::new();
    let mut chunk = [0; 4096];
    // If the program's end of a terminal is closed, a read returns an error.
    while let Ok(count @ 1..) = ours.read(&mut chunk) {
        shown.extend_from_slice(&chunk[..count]);
        if String::from_utf8_lossy(&shown).contains("rows read: ") {
            seen.store(true, Ordering::Relaxed);
        }
    }
    let rows = feeder.join().expect("it only writes");
    let ended = child.wait_with_output().expect("it was started");
    let shown = String::from_utf8_lossy(&shown);
    assert!(ended.status.success(), "{shown}");
    assert!(rows < MOST_ROWS, "no bar was shown: {shown:?}");
    assert!(shown.contains("rows read: "), "{shown:?}");
    // The line was cleared, and nothing is left in it.
    assert!(shown.trim_end_matches("\r").ends_with("\u{1b}[2K"), "{shown:?}");
    let out = String::from_utf8(ended.stdout).expect("reports are UTF-8");
    assert!(out.contains(" rows ("), "{out}");
}
