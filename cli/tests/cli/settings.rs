//! Tests of variables and of the file that give options.

use crate::session::{Ran, Session};

/// Runs a command with these variables.
fn run(session: &Session, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = session.command(args);
    command.env("XDG_CONFIG_HOME", session.path("home")).envs(variables.iter().copied());
    Ran::new(command.output().expect("larch was built"))
}

/// What `larch options` says about the value of `--cache`.
fn cache(session: &Session, args: &[&str], variables: &[(&str, &str)]) -> String {
    let text = run(session, args, variables).ok();
    let (_, after) = text.split_once("--cache SIZE, LARCH_CACHE\n").expect("it is described");
    after.lines().find_map(|line| line.trim().strip_prefix("now ")).expect("it has a value").to_owned()
}

#[test]
fn the_command_line_counts_before_a_variable_before_the_file_before_the_default() {
    let session = Session::new();
    let (of_file, of_variable) = ("home/larch/config", [("LARCH_CACHE", "5MiB")]);
    assert_eq!(cache(&session, &["options"], &[]), "free, the default");
    assert_eq!(cache(&session, &["options"], &[("LARCH_CACHE", "free")]), "free, from LARCH_CACHE");
    session.file(of_file, "# mine\ncache = 3MiB\nverbose = true\n");
    assert_eq!(cache(&session, &["help", "options"], &[]), format!("3MiB, from {}:2", session.path(of_file).display()));
    assert_eq!(cache(&session, &["options"], &of_variable), "5MiB, from LARCH_CACHE");
    assert_eq!(cache(&session, &["options", "--cache", "7MiB"], &of_variable), "7MiB, from the command line");
    session.file("other", "cache = 4MiB");
    assert_eq!(cache(&session, &["options"], &[("LARCH_CONFIG", "other")]), "4MiB, from other:1");
    assert_eq!(cache(&session, &["options"], &[("LARCH_CONFIG", "")]), "free, the default");
    // The engine prints the options with which it opens a database.
    session.run(&["put", "db", "t", "a", "1"]).ok();
    for (args, variables, opened) in [
        (&["get", "db", "t", "a"][..], &[][..], "a cache of 3.0 MiB"),
        (&["get", "db", "t", "a"], &of_variable, "a cache of 5.0 MiB"),
        (&["--cache", "7MiB", "get", "db", "t", "a"], &of_variable, "a cache of 7.0 MiB"),
        (&["--cache", "free", "get", "db", "t", "a"], &of_variable, "a cache of 64.0 MiB or more while memory is free"),
        (&["put", "db", "t", "a", "1"], &[("LARCH_DURABILITY", "buffered")], "buffered commits"),
    ] {
        let ran = run(&session, args, variables);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.err.contains(opened), "{opened}: {}", ran.err);
    }
    // A shell passes its options on.
    let mut command = session.command(&["shell", "db", "--cache", "9MiB", "-v"]);
    let script = session.path("script");
    std::fs::write(&script, "get t a\n").expect("a test can write a file");
    command.stdin(std::fs::File::open(script).expect("it was written"));
    let ran = Ran::new(command.output().expect("larch was built"));
    assert!(ran.err.contains("a cache of 9.0 MiB") && ran.out == b"1\n", "{ran:?}");
}

#[test]
fn a_setting_is_for_the_commands_that_take_the_option() {
    let session = Session::new();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    let odd = [("LARCH_DURABILITY", "sometimes"), ("LARCH_READ_ONLY", "true")];
    assert_eq!(run(&session, &["get", "db", "t", "a"], &odd[..1]).ok(), "1\n");
    run(&session, &["put", "db", "t", "b", "2"], &odd[1..]).ok();
    run(&session, &["get", "db", "t", "a", "--follow"], &odd[1..]).ok();
    run(&session, &["put", "db", "t", "b", "2"], &odd)
        .fails(2, &["LARCH_DURABILITY: invalid value 'sometimes'", "buffered"]);
}

#[test]
fn a_wrong_value_names_the_variable_or_the_file_and_the_line() {
    let session = Session::new();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    let get = ["get", "db", "t", "a"];
    run(&session, &get, &[("LARCH_CACHE", "much")])
        .fails(2, &["LARCH_CACHE: invalid value 'much' for '--cache <SIZE>'"]);
    run(&session, &get, &[("LARCH_VERBOSE", "yes")]).fails(2, &["LARCH_VERBOSE: verbose is true or false"]);
    for (text, part) in [
        ("\n\ncache = much\n", "config:3: invalid value 'much' for '--cache <SIZE>'"),
        ("cash = 1MiB\n", "config:1: cash is no option that a file can set"),
        ("cache\n", "config:1: \"cache\" is no setting; write it as cache = 256MiB"),
    ] {
        session.file("home/larch/config", text);
        run(&session, &get, &[]).fails(2, &[part]);
    }
    run(&session, &get, &[("LARCH_CONFIG", "nothing")]).fails(2, &["nothing: ", "name another with LARCH_CONFIG"]);
}

#[test]
fn options_of_a_new_table_are_for_new_tables_only() {
    let session = Session::new();
    session.file("rows.tsv", "a\t1\nb\t2\n");
    session.file("home/larch/config", "page = 4KiB\ncompression = lz4\n");
    run(&session, &["import", "db", "t", "rows.tsv"], &[]).ok();
    run(&session, &["create-table", "db", "u", "--page", "8KiB"], &[("LARCH_COMPRESSION", "none")]).ok();
    let of = |table: &str| session.run(&["tables", "db", table]).ok();
    assert!(of("t").contains("pages of 4.0 KiB") && of("t").contains("compression lz4"), "{}", of("t"));
    assert!(of("u").contains("pages of 8.0 KiB") && of("u").contains("compression none"), "{}", of("u"));
    // An import into a table with rows and a change of a table leave what is there.
    run(&session, &["import", "db", "t", "rows.tsv"], &[("LARCH_PAGE", "16KiB")]).ok();
    run(&session, &["alter", "db", "u", "--index", "flat"], &[]).ok();
    assert!(of("t").contains("pages of 4.0 KiB"), "{}", of("t"));
    assert!(of("u").contains("pages of 8.0 KiB") && of("u").contains("compression none"), "{}", of("u"));
}

#[test]
fn of_two_settings_that_say_until_when_rows_are_there_the_nearer_one_counts() {
    let session = Session::new();
    session.file("home/larch/config", "expire-by = until\n");
    let of = |table: &str| session.run(&["tables", "db", table]).ok();
    // Rows of raw keys and values have no column, so the setting of the file alone is refused.
    run(&session, &["create-table", "db", "none"], &[]).fails(2, &["--expire-by"]);
    run(&session, &["create-table", "db", "flag", "--expire-after", "10m"], &[]).ok();
    assert!(of("flag").ends_with(", rows expire after 10m\n"), "{}", of("flag"));
    run(&session, &["create-table", "db", "variable"], &[("LARCH_EXPIRE_AFTER", "2h")]).ok();
    assert!(of("variable").ends_with(", rows expire after 2h\n"), "{}", of("variable"));
    let both = [("LARCH_EXPIRE_AFTER", "2h"), ("LARCH_EXPIRE_BY", "until")];
    run(&session, &["create-table", "db", "two"], &both).fails(2, &["--expire-by", "--expire-after"]);
    run(&session, &["create-table", "db", "never", "--expire-after", "never"], &both).ok();
    assert!(!of("never").contains("rows expire"), "{}", of("never"));
    let options = run(&session, &["options"], &[]).ok();
    let (_, after) = options.split_once("LARCH_EXPIRE_AFTER\n").expect("it is described");
    let now = after.lines().find_map(|line| line.trim().strip_prefix("now ")).expect("it has a value");
    assert_eq!(now, "never, the default");
}
