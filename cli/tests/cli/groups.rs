//! Tests of tables whose columns are split into groups.

use crate::session::Session;
use larch::TableOptions;

const CSV: &str = "id,name,age,letter\n1,ada,36,dear\\tx\n2,alan,41,\n3,emmy,,\n";
/// The rows of [`CSV`] as `scan` prints them.
const ROWS: &str = "1\tada\t36\tdear\\\\tx\n2\talan\t41\t\n3\temmy\t\t\n";
const HOT_COLD: &[&str] = &["--format", "csv", "--groups", "hot:age,name;cold:*"];

/// A table `t` that another program has made. Its rows have two parts, and nothing describes these parts.
fn raw() -> Session {
    let session = Session::new();
    let database = session.database();
    let groups = vec!["hot".to_string(), "cold".to_string()];
    let table = database.table_with("t", TableOptions { groups, ..TableOptions::default() }).expect("two groups");
    let large = "x".repeat(10_000);
    for (key, parts) in [("a", ["1", "one"]), ("b", ["2", ""]), ("c", ["3", large.as_str()])] {
        table.insert_parts(key, &parts).expect("it has two parts");
    }
    drop(table);
    database.close().expect("nothing else uses it");
    session
}

#[test]
fn all_groups_are_the_rows_and_one_is_its_columns() {
    let session = Session::with(HOT_COLD, CSV);
    assert_eq!(session.scan(&[]), ROWS);
    assert_eq!(session.scan(&["--groups", "hot"]), "1\tada\t36\n2\talan\t41\n3\temmy\t\n");
    assert_eq!(session.scan(&["--groups", "cold"]), "1\tdear\\\\tx\n2\t\n3\t\n");
    assert_eq!(session.scan(&["--groups", "cold,hot"]), ROWS);
    assert_eq!(session.scan(&["--keys"]), "1\n2\n3\n");
    assert_eq!(
        session.scan(&["--groups", "hot", "--reverse", "--from", "1", "--limit", "2"]),
        "3\temmy\t\n2\talan\t41\n"
    );
    let objects = "{\"id\":\"1\",\"name\":\"ada\",\"age\":\"36\"}\n{\"id\":\"2\",\"name\":\"alan\",\"age\":\"41\"}\n";
    assert_eq!(session.scan(&["--groups", "hot", "--format", "jsonl", "--limit", "2"]), objects);

    let get = |options: &[&str]| session.run(&[&["get", "db", "t", "1"][..], options].concat()).ok();
    assert_eq!(get(&[]), "ada\t36\tdear\\\\tx\n");
    assert_eq!(get(&["--groups", "cold"]), "dear\\\\tx\n");
    assert_eq!(get(&["--groups", "cold,hot"]), "ada\t36\tdear\\\\tx\n");
    assert_eq!(get(&["--groups", "cold", "--json"]), "{\"id\":\"1\",\"letter\":\"dear\\\\tx\"}\n");
    session.is_sound();
}

#[test]
fn lines_and_numbers_come_back_as_they_went_in() {
    let tsv = "k1\ta\tb\tc\td\te\nk2\t\t\t\t\t\n\t\0\t\tx\t\t\nk5\ta\t\t\t\t\n";
    let session = Session::with(&["--format", "tsv", "--groups", "a:5,3", "--groups", "b:*", "--groups", "c:4"], tsv);
    assert_eq!(session.scan(&[]), "\t\0\t\tx\t\t\nk1\ta\tb\tc\td\te\nk2\t\t\t\t\t\nk5\ta\t\t\t\t\n");
    assert_eq!(session.scan(&["--groups", "c,a"]), "\t\tx\t\nk1\tb\tc\td\nk2\t\t\t\nk5\t\t\t\n");
    session.is_sound();

    // The first group stores the text of a number that is in the key. All other groups have only the numeric
    // value.
    let numbers = ["--format", "tsv", "--key", "2:int", "--groups", "a:3;b:1"];
    let session = Session::with(&numbers, "x\t010\ta\ny\t+9\tb\n");
    assert_eq!(session.scan(&[]), "y\t+9\tb\nx\t010\ta\n");
    assert_eq!(session.scan(&["--groups", "a"]), "+9\tb\n010\ta\n");
    assert_eq!(session.scan(&["--groups", "b"]), "y\t9\nx\t10\n");
    session.is_sound();
}

#[test]
fn objects_are_split_by_their_members() {
    let options = ["--format", "jsonl", "--key", "id:int", "--groups", "hot:name,age;cold:*"];
    let session = Session::with(&options, "{\"id\":2, \"letter\":[1, 2], \"name\":\"ada\"}\n{\"id\":1,\"age\":3.0}\n");
    let all = "{\"id\":1,\"age\":3.0}\n{\"id\":2,\"name\":\"ada\",\"letter\":[1, 2]}\n";
    assert_eq!(session.scan(&["--format", "jsonl"]), all);
    let hot = "{\"id\":1,\"age\":3.0}\n{\"id\":2,\"name\":\"ada\"}\n";
    assert_eq!(session.scan(&["--format", "jsonl", "--groups", "hot"]), hot);
    assert_eq!(session.scan(&["--groups", "cold"]), "1\t{}\n2\t{\"letter\":[1, 2]}\n");
    session.run(&["put", "db", "t", "3", "{\"letter\":null,\"age\":1}"]).ok();
    assert_eq!(session.run(&["get", "db", "t", "3"]).ok(), "{\"id\":3,\"age\":1,\"letter\":null}\n");
    session.is_sound();
}

#[test]
fn groups_that_are_not_asked_for_are_not_read() {
    let rows = (0..5_000).map(|number| format!("{number:06}\thot of {number}\tcold of {number}\n"));
    let session = Session::with(&["--format", "tsv", "--groups", "hot:2;cold:3"], rows.collect::<String>());
    let file = format!("db/{}", session.files(".sst")[0]);
    session.spoil(&file, session.place_of(&file, "cold of 2500"));

    let damaged = format!("{file} is corrupt: ");
    let fails = |args: &[&str]| {
        let ran = session.run(args);
        assert!(ran.code == Some(3) && ran.err.contains(&damaged), "{args:?}: {ran:?}");
    };
    fails(&["scan", "db", "t"]);
    fails(&["scan", "db", "t", "--groups", "cold"]);
    fails(&["get", "db", "t", "002500"]);
    assert_eq!(session.scan(&["--groups", "hot"]).lines().count(), 5_000);
    assert_eq!(session.scan(&["--keys"]).lines().count(), 5_000);
    assert_eq!(session.run(&["get", "db", "t", "002500", "--groups", "hot"]).ok(), "hot of 2500\n");
    session.run(&["delete", "db", "t", "002500"]).ok();
}

#[test]
fn one_row_is_put_and_deleted() {
    let session = Session::with(HOT_COLD, CSV);
    session.run(&["put", "db", "t", "2", "kurt\t71\tdear"]).ok();
    session.run(&["put", "db", "t", "4", "only one"]).fails(2, &["3 columns beside its key", "nothing was written"]);
    // The first time, the rows are read from memory, and the second time from files.
    for _ in 0..2 {
        assert_eq!(session.run(&["get", "db", "t", "2", "--groups", "cold"]).ok(), "dear\n");
        assert_eq!(session.scan(&["--groups", "hot"]), "1\tada\t36\n2\tkurt\t71\n3\temmy\t\n");
        session.run(&["compact", "db"]).ok();
    }
    session.run(&["delete", "db", "t", "2"]).ok();
    session.run(&["delete", "db", "t", "2"]).fails(1, &["table t has no row with key 2"]);
    session.run(&["get", "db", "t", "2", "--groups", "hot"]).fails(1, &["no row with key 2"]);
    assert_eq!(session.scan(&["--keys"]), "1\n3\n");
    session.is_sound();
}

#[test]
fn rows_are_loaded_in_parts() {
    let session = Session::with(HOT_COLD, CSV);
    assert_eq!(session.run_with(&["load", "db", "t", "--batch", "2"], "5,e,50,x\n4,d,,\n1,a,1,y\n").ok(), "5\n4\n1\n");
    assert_eq!(session.scan(&[]), "1\ta\t1\ty\n2\talan\t41\t\n3\temmy\t\t\n4\td\t\t\n5\te\t50\tx\n");
    assert_eq!(session.scan(&["--groups", "cold"]), "1\ty\n2\t\n3\t\n4\t\n5\tx\n");
    session.is_sound();
}

#[test]
fn a_second_import_goes_into_the_groups_there_are() {
    let session = Session::with(HOT_COLD, CSV);
    session.import(&["--format", "csv"], "id,name,age,letter\n4,max,,z\n1,ada,37,new\n").ok();
    session.import(&["--format", "csv", "--groups", "hot:2,3;cold:*"], "id,name,age,letter\n0,x,y,\n").ok();
    assert_eq!(session.scan(&[]), "0\tx\ty\t\n1\tada\t37\tnew\n2\talan\t41\t\n3\temmy\t\t\n4\tmax\t\tz\n");
    assert_eq!(session.scan(&["--groups", "cold", "--from", "1"]), "1\tnew\n2\t\n3\t\n4\tz\n");

    session.import(&["--format", "csv", "--groups", "all:*"], "id,name,age,letter\n5,x\n").fails(
        3,
        &["table t holds csv rows", "groups hot:name,age;cold:*, but", "groups all:*;", "and --groups; nothing was"],
    );
    let lines = ["--format", "jsonl", "--key", "id"];
    session.import(&lines, "{\"id\":\"5\"}\n").fails(3, &["would give jsonl rows, key id; import into another"]);

    // If a table has no rows, an import may give it other groups.
    for key in ["0", "1", "2", "3", "4"] {
        session.run(&["delete", "db", "t", key]).ok();
    }
    session.import(&["--format", "csv", "--groups", "all:*"], CSV).ok();
    assert_eq!(session.scan(&["--groups", "all"]), ROWS);
    let plain = Session::with(&["--format", "csv"], CSV);
    plain.import(HOT_COLD, CSV).fails(3, &["table t holds csv rows", "groups hot:name,age;cold:*;"]);
}

#[test]
fn groups_are_told() {
    let session = Session::with(HOT_COLD, CSV);
    let tables = session.run(&["tables", "db"]).ok();
    assert!(tables.contains("key id, groups hot:name,age;cold:*; pages of 16.0 KiB"), "{tables}");
    let tables = session.run(&["tables", "db", "--json"]).ok();
    assert!(tables.contains("\"groups\":[\"hot\",\"cold\"],\"rows\":{"), "{tables}");
    let stats = session.run(&["stats", "db"]).ok();
    for line in ["KiB in 2 groups\n", "    group       hot: ", "    group       cold: "] {
        assert!(stats.contains(line), "{line}: {stats}");
    }
    let tables = raw().run(&["tables", "db"]).ok();
    assert!(tables.starts_with("t: raw keys and values in groups hot, cold; pages of"), "{tables}");
}

#[test]
fn wrong_groups_are_refused() {
    let session = Session::new();
    let csv = |groups| session.import(&["--format", "csv", "--groups", groups], "id,a,b\n1,x,y\n");
    csv("hot:a").fails(3, &["input: column b is in no group", "one group * for the rest", "nothing was imported"]);
    csv("hot:a,c;cold:b").fails(3, &["group hot: the header has no column c"]);
    csv("hot:id;cold:*").fails(3, &["column id is in the key"]);
    csv("hot").fails(2, &["a group is a name and its columns"]);
    csv("hot one:*").fails(2, &["a group cannot be named \"hot one\""]);
    assert!(!session.has("db"));
    session
        .import(&["--format", "csv", "--groups", "hot:a;cold:b"], "id,a,b\n1,x,y\n2,x,y,z\n")
        .fails(3, &["input:3: the row has 4 columns and the header of the table 3", "nothing was imported"]);
    assert!(!session.has("db"));

    let session = Session::with(HOT_COLD, CSV);
    for command in [&["scan", "db", "t"][..], &["scan", "db", "t", "--keys"], &["get", "db", "t", "1"]] {
        let with = |groups| session.run(&[command, &["--groups", groups]].concat());
        with("warm").fails(2, &["no group \"warm\"", "it has hot, cold"]);
        with("hot,hot").fails(2, &["group hot is asked for twice"]);
    }
}

#[test]
fn parts_of_another_program_are_shown_and_not_written() {
    let session = raw();
    assert_eq!(session.scan(&["--to", "c"]), "a\t1\tone\nb\t2\t\n");
    assert_eq!(session.scan(&["--from", "c"]), format!("c\t3\t{}\n", "x".repeat(10_000)));
    assert_eq!(session.scan(&["--groups", "hot"]), "a\t1\nb\t2\nc\t3\n");
    assert_eq!(session.scan(&["--groups", "cold,hot", "--to", "c"]), "a\tone\t1\nb\t\t2\n");
    assert_eq!(session.scan(&["--keys", "--reverse"]), "c\nb\na\n");
    assert_eq!(session.scan(&["--format", "jsonl", "--limit", "1"]), "{\"key\":\"a\",\"values\":[\"1\",\"one\"]}\n");
    assert_eq!(session.run(&["get", "db", "t", "a"]).ok(), "1\tone\n");
    assert_eq!(session.run(&["get", "db", "t", "a", "--groups", "cold"]).ok(), "one\n");
    session.run(&["get", "db", "t", "a", "--groups", "warm"]).fails(2, &["no group \"warm\"; it has hot, cold"]);

    let refused = "the rows of table t are split in groups (hot, cold)";
    session.run(&["put", "db", "t", "d", "4"]).fails(2, &[refused, "with the program that made it"]);
    session.run_with(&["load", "db", "t"], "d\t4\n").fails(2, &[refused]);
    session
        .import(&["--format", "tsv"], "d\t4\n")
        .fails(3, &["table t holds raw keys and values in groups hot, cold,"]);
    for key in ["a", "b", "c"] {
        session.run(&["delete", "db", "t", key]).ok();
    }
    // An import makes an empty table again only if the table has a schema of an import, or neither metadata nor
    // groups. So this table keeps its groups.
    session
        .import(&["--format", "tsv"], "d\t4\n")
        .fails(3, &["table t holds raw keys and values in groups hot, cold,"]);
    session.is_sound();
}
