use super::{Line, Lines, is_whole};
use anstream::adapter::strip_str;
use std::ffi::OsString;
use std::path::Path;

fn lines() -> Lines {
    Lines::new("larch".into(), Path::new("db"))
}

/// Checks which command line a line of the shell becomes.
fn check(line: &str, expected: &[&str], rest: Option<&str>) {
    let expected: Vec<OsString> = expected.iter().map(OsString::from).collect();
    let expected =
        Line::Run { program: "larch".into(), words: expected, rest: rest.map(str::to_owned), declares: None };
    assert_eq!(lines().read(line).expect("quotes are closed"), expected, "{line}");
}

#[test]
fn the_directory_is_put_where_a_command_takes_it() {
    check("get people 7", &["get", "db", "people", "7"], None);
    check("scan people --limit 3 --reverse", &["scan", "db", "people", "--limit", "3", "--reverse"], None);
    check("stats --json", &["stats", "db", "--json"], None);
    check("explain people get 7", &["explain", "db", "people", "get", "7"], None);
    check("index create people i --columns a", &["index", "create", "db", "people", "i", "--columns", "a"], None);
    check("index list", &["index", "list", "db"], None);
    check("repair saved", &["repair", "db", "saved"], None);
    check("dump people --rows", &["dump", "db", "people", "--rows"], None);
    check("import people rows.csv", &["import", "db", "people", "rows.csv"], None);
    check("restore kept again", &["restore", "kept", "again"], None);
    check("backups kept", &["backups", "kept"], None);
    check("demo d --rows 5", &["demo", "d", "--rows", "5"], None);
    check("plan --rows 1e9 --row-bytes 100", &["plan", "--rows", "1e9", "--row-bytes", "100"], None);
}

#[test]
fn words_are_quoted_as_in_a_shell_which_gets_the_rest() {
    check(r"get trips $'Bonn\t7'", &["get", "db", "trips", "Bonn\t7"], None);
    check("put notes milk 'two litres'", &["put", "db", "notes", "milk", "two litres"], None);
    check("scan t | head -3 > f", &["scan", "db", "t"], Some("| head -3 > f"));
    check("load t < rows.tsv", &["load", "db", "t"], Some("< rows.tsv"));
    assert!(lines().read("get t 'k").is_err());
}

#[test]
fn what_is_no_command_is_refused_with_a_usage_without_the_directory() {
    for (line, part) in [
        ("nonsense", "unrecognized subcommand 'nonsense'"),
        ("get people", "<KEY>"),
        ("get", "<TABLE>"),
        ("scan people --nonsense", "unexpected argument '--nonsense'"),
        (".nonsense", ".help lists commands"),
    ] {
        let Line::Refused(text) = lines().read(line).expect("quotes are closed") else { panic!("{line}") };
        let text = strip_str(&text).to_string();
        assert!(text.contains(part) && !text.contains("DIR"), "{line}: {text}");
    }
}

#[test]
fn help_shows_commands_as_the_shell_takes_them() {
    let shown = |line: &str| match lines().read(line).expect("quotes are closed") {
        Line::Shown(text) => strip_str(&text).to_string(),
        other => panic!("{line}: {other:?}"),
    };
    let all = shown(".help");
    assert!(all.contains("get ") && all.contains("index ") && all.contains(".quit"), "{all}");
    assert!(!all.lines().any(|line| line.starts_with("shell")), "{all}");
    for line in [".help get", "help get", "get --help"] {
        let help = shown(line);
        assert!(help.contains("<TABLE> <KEY>") && help.contains("\n  get people 7 --json"), "{line}: {help}");
        assert!(!help.contains("DIR") && !help.contains("larch get"), "{line}: {help}");
    }
    let help = shown(".help index create");
    assert!(help.contains("<TABLE> <NAME>") && !help.contains("DIR"), "{help}");
}

#[test]
fn a_statement_goes_on_up_to_its_semicolon_and_knows_the_tables_declared_before() {
    assert!(is_whole("get t k") && is_whole("select 1;") && is_whole("explain t get k") && is_whole(""));
    assert!(!is_whole("select 1") && !is_whole("EXPLAIN SELECT 1\n") && !is_whole("create external table t"));
    assert!(is_whole("create-table t"));
    let mut lines = lines();
    let mut check = |text: &str, expected: &str, succeeds: bool| {
        let line = lines.read(text).expect("SQL has its own quotes");
        let Line::Run { words, .. } = &line else { panic!("{line:?}") };
        assert_eq!(words[2], expected);
        if succeeds {
            lines.succeeded(line);
        }
    };
    check("SELECT 'it''s';", "SELECT 'it''s';", true);
    check("CREATE EXTERNAL TABLE wrong;", "CREATE EXTERNAL TABLE wrong;", false);
    check("CREATE EXTERNAL TABLE t;", "CREATE EXTERNAL TABLE t;", true);
    check("SELECT 1;", "CREATE EXTERNAL TABLE t\n;\nSELECT 1;", true);
}

#[test]
fn nothing_and_the_end_run_nothing() {
    for line in ["", "  ", "# a comment"] {
        assert_eq!(lines().read(line).expect("no quotes"), Line::Nothing);
    }
    for line in [".quit", ".exit", "quit", "exit"] {
        assert_eq!(lines().read(line).expect("no quotes"), Line::End);
    }
}
