//! Tests of `larch sql` as a process of its own.

use kit::Scratch;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// A database that the program `larch` has filled.
struct World {
    scratch: Scratch,
}

impl World {
    fn new(name: &str) -> Self {
        let world = Self { scratch: Scratch::new(name) };
        let rows = "id,city,age\n7,Bonn,36\n8,\"Os\tlo\",41\n9,Rome,\n";
        std::fs::write(world.scratch.path().join("people.csv"), rows).expect("a file");
        world.succeeds(&["import", "DIR", "people", "people.csv", "--key", "id:int", "--groups", "hot:age;cold:*"]);
        let rows = "{\"id\": \"a\", \"n\": 1}\n{\"id\": \"b\", \"n\": 300}\n";
        std::fs::write(world.scratch.path().join("events.jsonl"), rows).expect("a file");
        world.succeeds(&["import", "DIR", "events", "events.jsonl", "--key", "id"]);
        world
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(kit::program::larch("bench,parquet"));
        let arguments = arguments.iter().map(|word| if *word == "DIR" { "db" } else { word });
        command.args(arguments).current_dir(self.scratch.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str], code: i32, message: &str) {
        let output = self.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.starts_with("larch: ") && told.contains(message), "{arguments:?}: {told}");
    }
}

#[test]
fn imported_tables_are_asked_by_the_names_of_their_columns() {
    let world = World::new("sql-command");
    let sql = "SELECT id, city, age FROM people WHERE id < 9 ORDER BY id DESC";
    assert_eq!(world.succeeds(&["sql", "DIR", sql, "--format", "csv"]), "id,city,age\n8,Os\tlo,41\n7,Bonn,36\n");
    assert_eq!(
        world.succeeds(&["sql", "DIR", sql, "--format", "jsonl"]),
        "{\"id\":8,\"city\":\"Os\\tlo\",\"age\":\"41\"}\n{\"id\":7,\"city\":\"Bonn\",\"age\":\"36\"}\n"
    );
    let table = "+----------+\n| count(*) |\n+----------+\n| 3        |\n+----------+\n";
    assert_eq!(world.succeeds(&["sql", "DIR", "SELECT count(*) FROM people"]), table);
    let none = "SELECT id FROM people WHERE id = 100";
    assert_eq!(world.succeeds(&["sql", "DIR", none, "--format", "csv"]), "id\n");
    assert_eq!(world.succeeds(&["sql", "DIR", none]), "+----+\n| id |\n+----+\n+----+\n");
    let sql = "SELECT value FROM events WHERE id = 'b'";
    assert_eq!(
        world.succeeds(&["sql", "DIR", sql, "--format", "csv"]),
        "value\n\"{\"\"id\"\": \"\"b\"\", \"\"n\"\": 300}\"\n"
    );
}

#[test]
fn a_version_that_was_kept_is_asked_by_its_name() {
    let world = World::new("sql-past");
    let count = |at: &[&str]| {
        world.succeeds(&[&["sql", "DIR", "SELECT count(*) AS n FROM people", "--format", "csv"], at].concat())
    };
    world.succeeds(&["keep", "DIR", "monday"]);
    world.succeeds(&["delete", "DIR", "people", "7"]);
    assert_eq!((count(&["--at", "monday"]), count(&[])), ("n\n3\n".to_owned(), "n\n2\n".to_owned()));
    world.fails(&["sql", "DIR", "SELECT 1", "--at", "tuesday"], 1, "no version is kept as \"tuesday\"");
}

#[test]
fn a_statement_reads_tables_as_they_were_beside_those_of_now() {
    let world = World::new("sql-as-of");
    world.succeeds(&["keep", "DIR", "monday"]);
    world.succeeds(&["delete", "DIR", "people", "7"]);
    let csv = |sql: &str| world.succeeds(&["sql", "DIR", sql, "--format", "csv"]);
    assert_eq!(csv("SELECT id FROM as_of('people', 'monday') EXCEPT SELECT id FROM people"), "id\n7\n");
    assert_eq!(csv("SELECT then.city FROM as_of('people', 'monday') then WHERE then.id = 7"), "city\nBonn\n");
    let refused = |sql: &str, why: &str| world.fails(&["sql", "DIR", sql], 2, why);
    refused("SELECT * FROM as_of('people', 'tuesday')", "no version is kept as \"tuesday\"");
    refused("SELECT * FROM as_of('nobody', 'monday')", "has no table nobody");
    refused("SELECT * FROM as_of('people')", "as_of takes the name of a table and a name, a version or a time");
}

#[test]
fn statements_come_from_files_and_declare_columns() {
    let world = World::new("sql-file");
    let declared = "CREATE EXTERNAL TABLE e STORED AS LARCH LOCATION 'events'\n\
        OPTIONS ('columns' 'key id string, value.json(n u16)');\n";
    std::fs::write(world.scratch.path().join("tables.sql"), declared).expect("a file");
    let sql = "SELECT sum(n) s FROM e; SELECT max(id) m FROM e";
    let arguments = ["sql", "DIR", sql, "--file", "tables.sql", "--format", "csv", "--threads", "1"];
    assert_eq!(world.succeeds(&arguments), "s\n301\nm\nb\n");
    let mut reader = world.command(&["sql", "DIR", "--file", "-", "--format", "csv"]);
    let mut reader = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut input = reader.stdin.take().expect("it is piped");
    input.write_all(format!("{declared}SELECT min(n) s FROM e").as_bytes()).expect("it reads");
    drop(input);
    assert_eq!(reader.wait_with_output().expect("it ends").stdout, b"s\n1\n");
}

#[test]
fn failures_have_the_codes_and_words_of_other_commands() {
    let world = World::new("sql-failures");
    world.fails(&["sql", "DIR", "SELECT 1 FROM nobody"], 1, "no table nobody in db; it has events, people");
    world.fails(&["sql", "DIR", "SELEC 1"], 2, "correct the statement");
    world.fails(&["sql", "DIR", "SELECT name FROM people"], 2, "name");
    world.fails(&["sql", "nowhere", "SELECT 1"], 3, "nowhere has no database");
    world.fails(&["sql", "DIR", "--file", "none.sql"], 3, "none.sql");
    let damaged = "CREATE EXTERNAL TABLE e STORED AS LARCH LOCATION 'events' \
        OPTIONS ('columns' 'key id string, value.json(n u8)'); SELECT sum(n) FROM e";
    world.fails(&["sql", "DIR", damaged], 3, "table events, row \"b\", column n: \"300\" is not of type u8");
    let columns = "CREATE EXTERNAL TABLE e STORED AS LARCH LOCATION 'events' OPTIONS ('columns' 'key')";
    world.fails(&["sql", "DIR", columns], 2, "the name of a column is expected");
    let sort = "SELECT a.id FROM people a, people b, people c, people d, people e ORDER BY a.id, b.age, e.city";
    world.fails(&["sql", "DIR", sort, "--memory", "1KiB"], 3, "give the query more with --memory");
}

#[test]
fn statements_that_name_no_table_of_the_database_are_those_of_the_query_engine() {
    let world = World::new("sql-names");
    let csv = |sql: &str| world.succeeds(&["sql", "DIR", sql, "--format", "csv"]);
    assert_eq!(csv("CREATE TABLE x AS SELECT id + 1 AS a FROM people; SELECT sum(a) AS s FROM x"), "s\n27\n");
    assert_eq!(csv("CREATE VIEW v AS SELECT id FROM people WHERE id > 7; SELECT count(*) AS n FROM v"), "n\n2\n");
    assert_eq!(csv("SELECT * FROM generate_series(1, 3)"), "value\n1\n2\n3\n");
    assert_eq!(csv("SELECT count(*) AS n FROM people p, generate_series(8, 9) s(i) WHERE p.id = s.i"), "n\n2\n");
    assert_eq!(csv("CREATE TABLE x AS SELECT 1 AS a; DROP TABLE x; DROP TABLE IF EXISTS x; SELECT 1 AS a"), "a\n1\n");
    // `DROP TABLE` does not drop the database's table: the session only forgets the name, until the command ends.
    assert_eq!(csv("DROP TABLE people; SELECT count(*) AS n FROM events"), "n\n2\n");
    assert_eq!(csv("SELECT count(*) AS n FROM people"), "n\n3\n");
    world.fails(&["sql", "DIR", "CREATE TABLE x AS SELECT 1 FROM nobody"], 1, "no table nobody in db");
    world.fails(&["sql", "DIR", "CREATE TABLE x AS SELECT nothing FROM people"], 2, "nothing");
    world.fails(&["sql", "DIR", "DROP TABLE nobody"], 3, "nobody");
    world.fails(&["sql", "DIR", "SELECT * FROM nothing_such(1)"], 2, "nothing_such");
}

#[test]
fn a_minus_before_an_unsigned_number_gives_a_negative_one() {
    let world = World::new("sql-minus");
    let declared = "CREATE EXTERNAL TABLE e STORED AS LARCH LOCATION 'events' \
        OPTIONS ('columns' 'key id string, value.json(n u32, o u64 \"$.n\", p u8 \"$.m\", q i32 \"$.n\")'); ";
    let csv = |sql: &str| world.succeeds(&["sql", "DIR", &format!("{declared}{sql}"), "--format", "csv"]);
    assert_eq!(csv("SELECT -n AS n, -o AS o, -q AS q FROM e WHERE -n < -1"), "n,o,q\n-300,-300,-300\n");
    assert_eq!(
        csv("SELECT -(n + 1) AS a, 5 - -n AS b, -sum(n) OVER () AS s FROM e WHERE id = 'a'"),
        "a,b,s\n-2,6,-1\n"
    );
    assert_eq!(csv("SELECT id FROM e ORDER BY -o LIMIT 1"), "id\nb\n");
    assert_eq!(csv("SELECT -max(n) AS n, count(-p) AS p FROM e GROUP BY -n HAVING -max(n) > -2"), "n,p\n-1,0\n");
    assert_eq!(
        csv("SELECT -9223372036854775807 AS a, -cast('1.5' AS double) AS b, - interval '1 day' < interval '0' AS c"),
        "a,b,c\n-9223372036854775807,-1.5,true\n"
    );
    world.fails(&["sql", "DIR", "SELECT -id FROM events"], 2, "- cannot be used with Utf8View");
}

#[test]
fn a_reader_that_has_enough_ends_the_query_quietly() {
    let world = World::new("sql-pipe");
    let sql =
        "SELECT a.id FROM people a, people b, people c, people d, people e, people f, people g, people h, people i";
    let mut printer = world.command(&["sql", "DIR", sql, "--format", "csv"]);
    let mut printer = printer.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(printer.stdout.take());
    let output = printer.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn a_query_reads_beside_a_process_that_has_the_database_open() {
    let world = World::new("sql-beside");
    let database = larch::Database::open(world.scratch.path().join("db")).expect("it opens");
    let count = ["sql", "DIR", "SELECT count(*) n FROM events", "--format", "csv"];
    let events = database.existing_table("events").expect("it can be asked").expect("it is there");
    events.insert("c", "{}").expect("it is written");
    // The row in the log is counted, too, except with `--read-only`.
    assert_eq!(world.succeeds(&count), "n\n3\n");
    assert_eq!(world.succeeds(&[&count[..], &["--follow"]].concat()), "n\n3\n");
    assert_eq!(world.succeeds(&[&count[..], &["--read-only"]].concat()), "n\n2\n");
    drop(database);
}

#[test]
fn a_query_is_copied_into_a_table_by_two_commands() {
    let world = World::new("sql-copy-command");
    let copy = "COPY (SELECT city, id, age FROM people) TO 'by_city' STORED AS LARCH \
        OPTIONS ('columns' 'key.tuple(city string, id i64), value.tuple(age string?)')";
    assert_eq!(world.succeeds(&["sql", "DIR", copy, "--format", "csv"]), "count\n3\n");
    world.succeeds(&["ingest", "DIR", "by_city", "by_city/00000"]);
    let declared = "CREATE OR REPLACE EXTERNAL TABLE by_city STORED AS LARCH LOCATION 'by_city' \
        OPTIONS ('columns' 'key.tuple(city string, id i64), value.tuple(age string?)'); SELECT * FROM by_city";
    assert_eq!(
        world.succeeds(&["sql", "DIR", declared, "--format", "csv"]),
        "city,id,age\nBonn,7,36\nOs\tlo,8,41\nRome,9,\n"
    );
    // The metadata of the table says which fields its keys have.
    assert!(world.succeeds(&["tables", "DIR"]).contains("string, i64"));
    world.fails(&["sql", "DIR", copy], 2, "by_city is not empty");
}

#[test]
fn parquet_and_arrow_files_have_the_types_of_the_columns_and_are_read_by_statements() {
    let world = World::new("sql-files");
    let expected = "SELECT id, city, age FROM people ORDER BY id";
    let expected = world.succeeds(&["sql", "DIR", expected, "--format", "csv"]);
    for format in ["parquet", "arrow"] {
        let file = format!("people.{format}");
        world.succeeds(&["export", "DIR", "people", &file]);
        let declared = format!("CREATE EXTERNAL TABLE file STORED AS {format} LOCATION '{file}'; ");
        let types = "SELECT arrow_typeof(id) i, arrow_typeof(city) c FROM file LIMIT 1";
        let ask = |sql: &str| world.succeeds(&["sql", "DIR", &format!("{declared}{sql}"), "--format", "csv"]);
        assert_eq!(ask(types), "i,c\nInt64,Utf8View\n", "{format}");
        assert_eq!(ask("SELECT id, city, age FROM file ORDER BY id"), expected, "{format}");
        for command in ["import", "load"] {
            world.fails(&[command, "DIR", "people", &file], 2, "larch sql reads Parquet and Arrow files");
        }
    }
}

#[test]
fn a_statement_that_would_write_says_which_commands_do() {
    let world = World::new("sql-writes");
    let statements = [
        "INSERT INTO people VALUES (10, 'Oslo', '5')",
        "INSERT INTO events SELECT id, value FROM events",
        "UPDATE people SET city = 'Oslo' WHERE id = 7",
        "DELETE FROM people WHERE id = 7",
    ];
    for statement in statements {
        world.fails(&["sql", "DIR", statement], 2, "no statement writes to a database: write rows with larch put,");
    }
    let of_session = "CREATE TABLE x AS SELECT 1 AS a; INSERT INTO x VALUES (2); SELECT sum(a) AS s FROM x";
    assert_eq!(world.succeeds(&["sql", "DIR", of_session, "--format", "csv"]), "count\n1\ns\n3\n");
}

/// The commands in a guide that this program can run without other processes, each with what the guide says that it
/// prints.
fn commands_of(page: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().expect("a block ends");
        for command in block.split("$ ").filter(|command| !command.is_empty()) {
            // A command goes on after the end of a line while a quote is open.
            let ends = command.match_indices('\n').map(|(at, _)| at);
            let is_whole = |at: &usize| command[..*at].matches('"').count() % 2 == 0;
            let end = ends.into_iter().find(is_whole).expect("a command ends");
            commands.push((command[..end].to_owned(), command[end + 1..].trim_end_matches('\n').to_owned()));
        }
    }
    let needs_more = ["cargo ", "larch sql-scheduler", "larch sql-executor", "larch sql --scheduler"];
    commands.retain(|(command, _)| !needs_more.iter().any(|start| command.starts_with(start)));
    commands
}

#[test]
fn the_guide_shows_commands_that_work() {
    let world = World::new("sql-guide-commands");
    let contents =
        "usr/bin/greflector\tlibs/gensio-bin\nusr/bin/gregorio\ttex/texlive-binaries\nusr/bin/grep\tutils/grep\n";
    std::fs::write(world.scratch.path().join("contents.tsv"), contents).expect("a file");
    world.succeeds(&["import", "packages", "files", "contents.tsv", "--key", "1,2"]);
    let orders = "city,day,number,amount\nBonn,20240,1,70\nBonn,20240,2,30\nOslo,20241,1,5\n";
    std::fs::write(world.scratch.path().join("orders.csv"), orders).expect("a file");
    let key = "city,day:int,number:int,amount:int";
    world.succeeds(&["import", "shop", "orders", "orders.csv", "--key", key]);
    let programs = world.scratch.path().join("programs");
    std::fs::create_dir(&programs).expect("a directory");
    std::os::unix::fs::symlink(kit::program::larch("bench,parquet"), programs.join("larch")).expect("a link");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let commands = commands_of(include_str!("../../../../docs/guide/sql.md"));
    assert!(commands.len() > 4, "{commands:?}");
    for (command, expected) in commands {
        let mut shell = Command::new("bash");
        shell.args(["-c", &command]).env("PATH", &path).current_dir(world.scratch.path()).stdin(Stdio::null());
        let output = shell.output().expect("there is a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).expect("text");
        assert!(expected.is_empty() || printed.trim_end() == expected, "{command} prints {printed}");
    }
    let rows = world.succeeds(&["scan", "shop", "by_city", "--keys"]);
    assert_eq!(rows, "(\"Bonn\", 20240)\n(\"Oslo\", 20241)\n");
    assert_eq!(world.succeeds(&["count", "shop", "orders_again", "--exact"]), "3\n");
}
