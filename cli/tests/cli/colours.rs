//! Tests that output has colours on a terminal and nowhere else, unless that is asked for.

use crate::session::{Ran, Session};
use crate::terminal::OnTerminal;

const ESCAPE: &str = "\u{1b}[";

/// What a command shows on a terminal.
fn shown(session: &Session, args: &[&str], no_color: Option<&str>) -> String {
    let terminal = OnTerminal::start(session, args, |command| {
        command.env_remove("NO_COLOR").envs(no_color.map(|value| ("NO_COLOR", value)));
    });
    terminal.end().1
}

#[test]
fn colours_are_for_terminals_and_for_who_asks() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    for args in
        [&["check", "db"][..], &["tables", "db"], &["stats", "db"], &["get", "db", "t", "no"], &["get", "--help"]]
    {
        let with = |more: &'static str| [args, &[more]].concat();
        assert!(shown(&session, args, None).contains(ESCAPE), "{args:?}");
        assert!(shown(&session, args, Some("")).contains(ESCAPE), "{args:?}: an empty NO_COLOR is none");
        assert!(!shown(&session, args, Some("1")).contains(ESCAPE), "{args:?}");
        assert!(!shown(&session, &with("--color=never"), None).contains(ESCAPE), "{args:?}");
        let in_pipe = |ran: Ran| String::from_utf8(ran.out).expect("it is text") + &ran.err;
        assert!(!in_pipe(session.run(args)).contains(ESCAPE), "{args:?}");
        assert!(in_pipe(session.run(&with("--color=always"))).contains(ESCAPE), "{args:?}");
        let mut command = session.command(args);
        let ran = Ran::new(command.env("LARCH_COLOR", "always").output().expect("larch was built"));
        assert!(in_pipe(ran).contains(ESCAPE), "{args:?}");
    }
    // What other programs read never has colours.
    for args in [&["scan", "db", "t"][..], &["tables", "db", "--json"], &["metrics", "db"]] {
        assert!(!shown(&session, args, None).contains(ESCAPE), "{args:?}");
    }
}
