//! Tests of the view of a run on a terminal, and of `larch bench replay`.

use crate::session::Session;
use crate::terminal::OnTerminal;

/// What a program writes to take the screen, and to give it back with its cursor.
const TAKES: &str = "\u{1b}[?1049h";
const GIVES_BACK: &str = "\u{1b}[?1049l";
const CURSOR: &str = "\u{1b}[?25h";

/// Runs that would not end, and a word of each view.
const ENDLESS: [&[&str]; 5] = [
    &["bench", "ycsb", "run", "-P", "a", "--target", "noop:", "--time", "10h"],
    &["bench", "kv", "-target", "noop:", "-mode", "write", "-workload", "uniform", "-duration", "10h"],
    &[
        "bench",
        "tpcc",
        "run",
        "--target",
        "noop:",
        "--warehouses",
        "2",
        "--mode",
        "nowait",
        "--warmup",
        "0s",
        "--time",
        "10h",
    ],
    &[
        "bench",
        "rows",
        "run",
        "--target",
        "larch:db",
        "--tab-rows",
        "1000",
        "--batch-size",
        "10",
        "--run-duration",
        "10h",
    ],
    &[
        "bench",
        "search",
        "--objective",
        "p50<1000s",
        "ycsb",
        "--workload",
        "c",
        "--target",
        "noop:",
        "--time",
        "10h",
        "--rate",
        "1000",
    ],
];

/// A word of the view of each of these runs, and of its lines.
const WORDS: [(&str, &str); 5] = [
    ("operations", "workload a "),
    ("operations", " 1s "),
    ("tpmC:", "measured"),
    ("rows", "NOTICE:"),
    ("run 1 for p50 < 1000 s", "searching the highest rate"),
];

/// A directory with the table that one of these runs needs.
fn with_rows() -> Session {
    let session = Session::new();
    let setup = ["bench", "rows", "setup", "--target", "larch:db", "--tab-rows", "1000", "--batch-size", "100"];
    let ran = session.run(&setup);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    session
}

/// Starts an endless run on a terminal, waits for its view, which has this word, lets `end` end the run, and checks that
/// the terminal is as before and shows the result.
#[track_caller]
fn check(session: &Session, args: &[&str], word: &str, end: impl FnOnce(&mut OnTerminal)) {
    let mut terminal = OnTerminal::start_with_size(session, args);
    terminal.wait_for(TAKES);
    terminal.wait_for(word);
    terminal.wait_for("stalls:");
    // Blanks are not written: the cursor goes over them.
    terminal.wait_for("threads:");
    assert!(!terminal.echoes(), "what is typed is no part of the picture");
    end(&mut terminal);
    terminal.wait_for(GIVES_BACK);
    terminal.wait_for(CURSOR);
    // The message was kept while the screen was taken.
    terminal.wait_for("larch: ending; what was measured so far is printed");
    assert!(terminal.echoes(), "the terminal is as before");
    assert_eq!(terminal.end().0, Some(130));
}

#[test]
fn control_c_gives_the_terminal_back_after_every_workload() {
    let session = with_rows();
    for (args, (word, _)) in ENDLESS.into_iter().zip(WORDS) {
        check(&session, args, word, |terminal| terminal.type_in("\u{3}"));
    }
}

#[test]
fn sigterm_gives_the_terminal_back() {
    check(&Session::new(), ENDLESS[0], WORDS[0].0, |terminal| terminal.terminate());
}

#[test]
fn a_run_that_ends_leaves_its_table_on_the_terminal() {
    let session = Session::new();
    let args = ["bench", "ycsb", "run", "-P", "a", "--target", "noop:", "--time", "300ms"];
    let intervals = ["-p", "measurementtype=timeseries", "-p", "timeseries.granularity=50"];
    let mut terminal = OnTerminal::start_with_size(&session, &[&args[..], &intervals].concat());
    terminal.wait_for(TAKES);
    terminal.wait_for(GIVES_BACK);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("READ") && shown.contains("UPDATE"), "{shown}");
}

#[test]
fn a_search_has_one_view_for_all_its_runs_and_leaves_their_lines() {
    let session = Session::new();
    let search = ["bench", "search", "--objective", "p50<1000s", "--precision", "50%", "--repeats", "1"];
    let run = ["ycsb", "--workload", "c", "--target", "noop:", "--time", "100ms"];
    let intervals = ["-p", "measurementtype=timeseries", "-p", "timeseries.granularity=20"];
    let mut terminal = OnTerminal::start_with_size(&session, &[&search[..], &run, &intervals].concat());
    terminal.wait_for(TAKES);
    let view = terminal.wait_for(GIVES_BACK);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!view.contains(TAKES) && !shown.contains(TAKES), "{view}{shown}");
    for part in ["run 1 without a rate", "run 2 at ", "  met", "The highest rate that meets p50 < 1000 s is "] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
}

#[test]
fn a_batch_has_its_line_where_rows_are_accessed_as_ybio_does() {
    let session = with_rows();
    let mut terminal = OnTerminal::start_with_size(&session, &[ENDLESS[3], &["--compat"]].concat());
    let shown = terminal.wait_for("NOTICE:") + &terminal.wait_for("NOTICE:");
    terminal.type_in("\u{3}");
    assert!(!shown.contains(TAKES) && terminal.end().0 == Some(130), "{shown}");
}

#[test]
fn lines_are_printed_where_a_view_is_not_wanted_or_cannot_be() {
    let session = with_rows();
    for (args, (_, line)) in ENDLESS.into_iter().zip(WORDS) {
        let mut plain = OnTerminal::start_with_size(&session, &[args, &["--plain"]].concat());
        let shown = plain.wait_for(line);
        plain.type_in("\u{3}");
        let (code, more) = plain.end();
        assert_eq!(code, Some(130), "{shown}{more}");
        assert!(!shown.contains('\u{1b}') && !more.contains(TAKES), "{shown}{more}");
    }
    let mut without_size = OnTerminal::start(&session, ENDLESS[0], |_| {});
    let shown = without_size.wait_for("workload a ");
    without_size.type_in("\u{3}");
    assert!(!shown.contains(TAKES) && without_size.end().0 == Some(130), "{shown}");
}

#[test]
fn a_result_is_shown_again() {
    let session = Session::new();
    let run = ["bench", "ycsb", "run", "-q", "-P", "a", "--target", "noop:", "--time", "300ms", "--out", "r.json"];
    let intervals = ["-p", "measurementtype=timeseries", "-p", "timeseries.granularity=100"];
    session.run(&[&run[..], &intervals].concat()).ok();
    let lines = session.run(&["bench", "replay", "r.json"]).ok();
    assert!(lines.lines().count() == 3 && lines.lines().all(|line| line.starts_with("workload a ")), "{lines}");

    let mut terminal = OnTerminal::start_with_size(&session, &["bench", "replay", "r.json", "--speed", "100"]);
    terminal.wait_for(TAKES);
    terminal.wait_for(GIVES_BACK);
    let (code, picture) = terminal.end();
    assert_eq!(code, Some(0), "{picture}");
    for part in ["workload a on noop:", "300 ms of 300 ms", "operations a second", "the client's own share"] {
        assert!(picture.contains(part), "{part:?} is not in {picture}");
    }

    let mut endless = OnTerminal::start_with_size(&session, &["bench", "replay", "r.json", "--speed", "0.01"]);
    endless.wait_for(TAKES);
    endless.type_in("\u{3}");
    assert_eq!(endless.end().0, Some(130));
}

#[test]
fn a_result_of_tpcc_is_shown_again_with_its_rate() {
    let session = Session::new();
    let run = ["bench", "tpcc", "run", "-q", "--target", "noop:", "--warehouses", "1", "--mode", "nowait"];
    let length = ["--warmup", "0s", "--time", "200ms", "--interval", "50ms", "--out", "t.json"];
    session.run(&[&run[..], &length].concat()).ok();
    let mut terminal = OnTerminal::start_with_size(&session, &["bench", "replay", "t.json", "--speed", "100"]);
    terminal.wait_for(GIVES_BACK);
    let (code, picture) = terminal.end();
    assert!(code == Some(0) && picture.contains("tpmC: "), "{picture}");
}

#[test]
fn what_is_no_result_is_not_shown() {
    let session = Session::new();
    session.file("other.json", "{}");
    session.run(&["bench", "replay", "other.json"]).fails(2, &["other.json is not a result of a benchmark"]);
    session.run(&["bench", "replay", "none.json"]).fails(2, &["none.json"]);
    session.run(&["bench", "replay", "other.json", "--speed", "0"]).fails(2, &["a speed is a number from 0.01"]);
}
