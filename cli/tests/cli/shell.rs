//! Tests of `larch shell`, from a pipe and on a terminal.

use crate::arguments::with_writer;
use crate::session::Session;
use crate::terminal::OnTerminal;

#[test]
fn a_pipe_runs_lines_up_to_the_first_that_fails() {
    let session = Session::new();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    let lines = "get t a\n\n# a comment\n  put t 'two words' 2\nget t 'two words'\nget t nothing\nput t b 2\n";
    for args in [&["shell", "db"][..], &["db"]] {
        let ran = session.run_with(args, lines);
        assert_eq!((ran.code, &ran.out[..]), (Some(1), &b"1\n2\n"[..]), "{ran:?}");
        assert!(ran.err.contains("table t has no row with key nothing"), "{}", ran.err);
        assert!(ran.err.contains("this was line 6; the lines after it were not run"), "{}", ran.err);
        session.run(&["get", "db", "t", "b"]).fails(1, &["no row"]);
    }
    for (line, code, part) in [
        ("get t", 2, "<KEY>"),
        ("nonsense", 2, "unrecognized subcommand 'nonsense'"),
        ("get t 'a", 2, "a quote is not closed"),
        ("check t; echo", 2, "unexpected argument"),
        ("SELECT 1\n;", 2, "--features sql"),
    ] {
        session.run_with(&["shell", "db"], line).fails(code, &[part, "this was line"]);
    }
    assert_eq!(session.run_with(&["shell", "db"], "get t a\n.quit\nnonsense\n").ok(), "1\n");
    assert_eq!(session.run_with(&["shell", "db"], "").ok(), "");
}

#[test]
fn a_line_may_end_with_pipes_and_files() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\nc\t3\n");
    let lines = "scan t --keys | sed -n 2p\nscan t > rows.tsv\nimport u rows.tsv\nload v < rows.tsv > keys.txt\n";
    let printed = session.run_with(&["shell", "db"], lines).ok();
    assert!(printed.starts_with("b\n"), "{printed}");
    assert_eq!(session.run(&["scan", "db", "u"]).ok(), "a\t1\nb\t2\nc\t3\n");
    assert_eq!(session.run(&["scan", "db", "v"]).ok(), "a\t1\nb\t2\nc\t3\n");
    assert_eq!(session.bytes("keys.txt"), b"a\nb\nc\n");
}

#[test]
fn only_a_directory_stands_for_a_shell_and_only_of_a_database() {
    let session = Session::new();
    session.file("get", "");
    session.file("other/notes.txt", "");
    session.run(&["nothing"]).fails(2, &["unrecognized subcommand 'nothing'"]);
    session.run(&["other"]).fails(3, &["other has no database"]);
    session.run(&["shell", "nothing"]).fails(3, &["nothing has no database"]);
    session.run(&["index", "other"]).fails(2, &["unrecognized subcommand 'other'"]);
    // The name of a command is never a directory.
    std::fs::create_dir(session.path("scan")).expect("a test can make a directory");
    session.run(&["scan"]).fails(2, &["<TABLE>"]);
}

#[test]
fn a_shell_shows_what_a_writer_has_committed_and_leaves_its_lock() {
    let (session, mut child, stdin) = with_writer();
    assert_eq!(session.run_with(&["db"], "scan t\n").ok(), "a\t1\nb\t2\n");
    session.run_with(&["db"], "put t c 3\n").fails(3, &["db is in use by another process"]);
    // A shell that waits for its next line stands in no writer's way.
    let mut shell = OnTerminal::start(&session, &["db"], |_| {});
    shell.wait_for_prompt();
    drop(stdin);
    assert!(child.wait().expect("it was started").success());
    session.run(&["put", "db", "t", "c", "3"]).ok();
    shell.type_in("get t c\r");
    shell.wait_for("\n3\r\n");
    shell.wait_for_prompt();
    shell.type_in("\u{4}");
    assert_eq!(shell.end().0, Some(0));
}

#[test]
fn a_terminal_completes_remembers_and_keeps_the_shell_after_an_interrupt() {
    let session = Session::new();
    session.run(&["put", "db", "people", "ada", "first"]).ok();
    session.run(&["put", "db", "people", "grace", "second"]).ok();
    let mut shell = OnTerminal::start(&session, &["shell", "db"], |_| {});
    shell.wait_for("db with 1 table; .help lists commands, ^D ends");
    shell.wait_for_prompt();
    // Tab completes the command, the table and the key.
    shell.type_in("ge\tpe\tgr\t\r");
    shell.wait_for("\nsecond\r\n");
    // A command that catches ^C, and one that dies of it.
    shell.wait_for_prompt();
    shell.type_in("follow\r");
    shell.wait_for("version ");
    shell.type_in("\u{3}");
    shell.wait_for_prompt();
    shell.type_in("load people\r");
    shell.wait_for_command();
    shell.type_in("alan\tthird\n");
    shell.wait_for("\nalan\r\n");
    shell.type_in("\u{3}");
    // ^C gives up a line that is being written, too.
    shell.wait_for_prompt();
    shell.type_in("nonsense\u{3}");
    shell.wait_for_prompt();
    shell.type_in("get people alan\r");
    shell.wait_for("\nthird\r\n");
    shell.wait_for_prompt();
    shell.type_in(".help get\r");
    shell.wait_for("<TABLE> <KEY>");
    shell.wait_for_prompt();
    shell.type_in("\u{4}");
    assert_eq!(shell.end().0, Some(0));
    // The next shell knows the lines of the first.
    let mut shell = OnTerminal::start(&session, &["db"], |_| {});
    shell.wait_for_prompt();
    shell.type_in("\u{1b}[A\u{1b}[A\r");
    shell.wait_for("\nthird\r\n");
    shell.wait_for_prompt();
    shell.type_in(".quit\r");
    assert_eq!(shell.end().0, Some(0));
}
