//! Tests of keys with several fields, which are written as tuples.

use crate::session::Session;
use larch::TableOptions;

/// Keys in their order. There is one key for each kind of field that has its own notation.
const KEYS: [&str; 6] = [
    "(-3, \"b\", none, x'')",
    "(-3, \"b\", 0.5, x'00ff')",
    "(-3, \"a\\tb\\n\", none, x'09')",
    "(-3, \"\", nan, x'')",
    "(0, \"é\\\"\\\\\", -inf, x'')",
    "(17, \"Bonn\", 1e300, x'61')",
];

const TYPES: &str = "i64, string desc, f64?, bytes";

/// A table `t` with the keys in [`KEYS`], which were put in another order.
fn tuples() -> Session {
    let session = Session::new();
    session.run(&["create-table", "db", "t", "--key-types", TYPES]).ok();
    for (number, key) in KEYS.iter().enumerate().rev() {
        session.run(&["put", "db", "t", key, &number.to_string()]).ok();
    }
    session
}

#[test]
fn a_key_that_is_shown_is_taken_by_every_command() {
    let session = tuples();
    let lines = |numbers: &[usize]| -> String { numbers.iter().map(|at| format!("{}\t{at}\n", KEYS[*at])).collect() };
    assert_eq!(session.scan(&[]), lines(&[0, 1, 2, 3, 4, 5]), "fields are ordered one after the other");
    assert_eq!(session.scan(&["--keys"]), KEYS.map(|key| format!("{key}\n")).concat());
    for (at, key) in KEYS.iter().enumerate() {
        assert_eq!(session.run(&["get", "db", "t", key]).ok(), format!("{at}\n"));
        assert_eq!(session.scan(&["--from", key, "--limit", "1"]), lines(&[at]));
        assert_eq!(session.scan(&["--prefix", key]), lines(&[at]));
    }
    // In JSON, a key is the list of its fields, and each field has its type.
    let json = [
        r#"[-3,"b",null,{"hex":""}]"#,
        r#"[-3,"b",0.5,{"hex":"00ff"}]"#,
        r#"[-3,"a\tb\n",null,{"hex":"09"}]"#,
        r#"[-3,"","nan",{"hex":""}]"#,
        r#"[0,"é\"\\","-inf",{"hex":""}]"#,
        r#"[17,"Bonn",1e300,{"hex":"61"}]"#,
    ];
    assert_eq!(session.scan(&["--format", "jsonl", "--keys"]), json.map(|key| format!("{key}\n")).concat());
    let row = session.run(&["get", "db", "t", KEYS[2], "--json"]).ok();
    assert_eq!(row, format!("{{\"key\":{},\"value\":\"2\"}}\n", json[2]));

    let all = session.scan(&[]);
    let copied = session.run_with(&["load", "db", "u", "--key-types", TYPES], &all).ok();
    assert_eq!(copied, session.scan(&["--keys"]), "load prints keys as scan does");
    assert_eq!(session.run(&["scan", "db", "u"]).ok(), all);
    session.run_with(&["load", "db", "u", "--delete"], session.scan(&["--keys", "--limit", "5"])).ok();
    assert_eq!(session.run(&["scan", "db", "u"]).ok(), lines(&[5]));
    session.run(&["delete", "db", "u", KEYS[5]]).ok();
    assert_eq!(session.run(&["scan", "db", "u"]).ok(), "");
    session.run(&["split-off", "db", "t", KEYS[4], "upper"]).ok();
    assert_eq!(
        session.run(&["scan", "db", "upper", "--keys", "--reverse"]).ok(),
        format!("{}\n{}\n", KEYS[5], KEYS[4])
    );
    let told = session.run(&["explain", "db", "t", "get", KEYS[0]]).ok();
    assert!(told.starts_with("answer   found"), "{told}");
    session.is_sound();
}

#[test]
fn bounds_have_as_many_fields_as_wanted() {
    let session = Session::new();
    session.run(&["create-table", "db", "t", "--key-types", "u8, string"]).ok();
    let rows = "(1, \"a\")\n(1, \"ab\")\n(1, \"b\")\n(2, \"a\")\n(255, \"z\")\n";
    session.run_with(&["load", "db", "t"], rows).ok();
    let keys = |options: &[&str]| session.scan(&[&["--keys"][..], options].concat()).replace('\n', " ");
    assert_eq!(keys(&["--prefix", "(1)"]), "(1, \"a\") (1, \"ab\") (1, \"b\") ");
    assert_eq!(keys(&["--prefix", "(1, \"a\"..)"]), "(1, \"a\") (1, \"ab\") ");
    assert_eq!(keys(&["--prefix", "(1, \"a\")"]), "(1, \"a\") ");
    assert_eq!(keys(&["--prefix", "(255)"]), "(255, \"z\") ");
    assert_eq!(keys(&["--from", "(1, \"ab\")", "--to", "(2)"]), "(1, \"ab\") (1, \"b\") ");
    assert_eq!(keys(&["--from", "()", "--to", "(1, \"b\")", "--reverse"]), "(1, \"ab\") (1, \"a\") ");
    assert_eq!(session.run(&["nth", "db", "t", "1", "--prefix", "(1)", "--keys"]).ok(), "(1, \"ab\")\n");
    let counted = session.run(&["stats", "db", "t", "--from", "(1)", "--to", "(2)", "--exact", "--json"]).ok();
    assert!(counted.contains("\"exact_rows\":3"), "{counted}");
    session.run(&["delete-range", "db", "t", "--prefix", "(1)"]).ok();
    assert_eq!(keys(&[]), "(2, \"a\") (255, \"z\") ");
}

#[test]
fn descending_fields_turn_the_order_around_and_none_comes_first_or_last() {
    let check = |types: &str, keys: &[&str]| {
        let session = Session::new();
        let rows: String = keys.iter().rev().map(|key| format!("{key}\n")).collect();
        session.run_with(&["load", "db", "t", "--key-types", types], rows).ok();
        assert_eq!(session.scan(&["--keys"]).lines().collect::<Vec<_>>(), keys, "{types}");
    };
    check("u16 desc", &["(300)", "(299)", "(1)", "(0)"]);
    check("string desc", &["(\"b\")", "(\"ab\")", "(\"a\")", "(\"\")"]);
    check("i8?", &["(none)", "(-128)", "(-1)", "(0)", "(127)"]);
    check("i8? desc", &["(127)", "(0)", "(-1)", "(-128)", "(none)"]);
    check("bool, bytes[2] desc", &["(false, x'0001')", "(true, x'ff00')", "(true, x'00ff')"]);
    check("u128, f32", &["(0, -1.5)", "(0, 0.0)", "(340282366920938463463374607431768211455, 0.25)"]);
}

#[test]
fn a_text_that_is_no_tuple_is_refused_with_its_flag_and_the_fields() {
    let session = tuples();
    let fails = |args: &[&str], parts: &[&str]| session.run(args).fails(2, parts);
    let fields = format!("which has the fields {TYPES}");
    fails(
        &["get", "db", "t", "17"],
        &["17 is no key of the table", &fields, "`(` is expected", "write it as in (17, \"abc\")"],
    );
    fails(&["get", "db", "t", "(\"a\")"], &["a value of type i64 is expected"]);
    fails(&["put", "db", "t", "(17)", "x"], &["(17) is no key", &fields, "nothing was written"]);
    fails(&["put", "db", "t", "(17, \"a\", none, x'') + x'00'", "x"], &["the text should end"]);
    fails(&["put", "db", "t", "(9223372036854775808, \"a\", none, x'')", "x"], &["outside the range of i64"]);
    fails(&["scan", "db", "t", "--from", "(none)"], &["--from: ", "declared with `?`"]);
    fails(&["scan", "db", "t", "--to", "(1, \"a)"], &["--to: ", "the text in quotes has no end"]);
    fails(&["scan", "db", "t", "--prefix", "(1, \"a\", 0.5, x'', 7)"], &["--prefix: ", "there is no further field"]);
    fails(&["stats", "db", "t", "--from", "x"], &["--from: x is no key"]);
    fails(&["split", "db", "t", "--parts", "2", "--to", "x"], &["--to: x is no key"]);
    session.run(&["get", "db", "t", "(17)"]).fails(1, &["no row with key (17)", TYPES, "larch scan --prefix"]);
    session
        .run_with(&["load", "db", "t"], "(1, \"a\", none, x'')\t7\n(1)\t8\n")
        .code
        .map_or_else(|| panic!("it was killed"), |code| assert_eq!(code, 3));
    assert_eq!(session.run(&["get", "db", "t", "(1, \"a\", none, x'')"]).ok(), "7\n", "the rows before a bad one stay");
    fails(&["scan", "db", "t", "--key-types", "u65"], &["--key-types", "a type is expected"]);
}

#[test]
fn bytes_that_are_no_tuple_are_shown_and_taken_as_what_follows_its_fields() {
    let session = Session::new();
    for key in ["\u{1}", "ab", "", "\u{0}\u{1}x", "\u{0}\u{1}x\u{1}"] {
        session.run_with(&["load", "db", "t"], format!("{key}\t{key}\n")).ok();
    }
    let scan = |options: &[&str]| session.scan(&[&["--key-types", "u16, string"], options].concat());
    let shown = "() + x''\n(1) + x'78'\n(1) + x'7801'\n() + x'01'\n(24930) + x''\n";
    assert_eq!(scan(&["--keys"]), shown);
    for (key, value) in shown.lines().zip(["", "\u{0}\u{1}x", "\u{0}\u{1}x\u{1}", "\u{1}", "ab"]) {
        let got = session.run(&["get", "db", "t", "--key-types", "u16, string", key]).ok();
        assert_eq!(got, format!("{value}\n"), "{key}");
        assert!(scan(&["--from", key, "--limit", "1"]).starts_with(&format!("{key}\t")));
    }
    let left = session.run_with(&["load", "db", "t", "--delete", "--key-types", "u16, string"], shown).ok();
    assert_eq!((left.as_str(), scan(&[]).as_str()), (shown, ""));
}

#[test]
fn the_types_of_keys_are_declared_once_by_the_table_or_said_to_a_command() {
    let session = tuples();
    let listed = session.run(&["tables", "db"]).ok();
    assert!(listed.starts_with(&format!("t: keys of {TYPES}, raw values; ")), "{listed}");
    assert!(session.run(&["tables", "db", "--json"]).ok().contains(&format!("\"key_types\":\"{TYPES}\"")));
    assert_eq!(session.scan(&["--key-types", TYPES]), session.scan(&[]));
    session
        .run(&["scan", "db", "t", "--key-types", "u8"])
        .fails(2, &["--key-types: the keys of table t are of i64,", "larch alter"]);

    session.run(&["rename-table", "db", "t", "u"]).ok();
    let database = session.database();
    let fields = rows::Declaration::of::<(u32, String)>();
    let own = |metadata: Vec<u8>| TableOptions { metadata, ..TableOptions::default() };
    let key = rows::Tuple::to_key(&(7_u32, "x"));
    for (name, metadata) in [("t", fields.to_bytes()), ("plain", Vec::new()), ("other", b"of a program".to_vec())] {
        database.table_with(name, own(metadata)).expect("it is new").insert(&key[..], "row").expect("the disk works");
    }
    database.close().expect("the disk works");
    assert_eq!(session.scan(&[]), "(7, \"x\")\trow\n", "a program declares it, too");
    for table in ["plain", "other"] {
        assert_eq!(session.run(&["get", "db", table, "--key-types", "u32, string", "(7, \"x\")"]).ok(), "row\n");
    }
    session
        .run(&["alter", "db", "other", "--key-types", "u32"])
        .fails(2, &["--key-types: ", "to each command instead"]);
    let told = session.run(&["alter", "db", "plain", "--key-types", "u32,string"]).ok();
    assert!(told.ends_with("plain: keys are of u32, string\n"), "{told}");
    assert_eq!(session.run(&["scan", "db", "plain"]).ok(), "(7, \"x\")\trow\n");
    session.run(&["alter", "db", "plain", "--key-types", "u32, bytes"]).ok();
    assert_eq!(session.run(&["scan", "db", "plain"]).ok(), "(7, x'78')\trow\n", "the bytes stay");

    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    session
        .run(&["get", "db", "t", "a", "--key-types", "u32"])
        .fails(2, &["--key-types: table t has columns (tsv rows, key column 1)"]);
    session.run(&["alter", "db", "t", "--key-types", "u32"]).fails(2, &["the table has columns"]);
}

#[test]
fn parts_end_at_keys_that_bounds_take() {
    let session = Session::new();
    let rows: String = (0..5000).map(|row| format!("({}, \"name {row}\")\tvalue of {row}\n", row / 7)).collect();
    session.run(&["create-table", "db", "t", "--key-types", "u16, string", "--page", "4KiB"]).ok();
    session.run_with(&["load", "db", "t", "--batch", "5000"], rows).ok();
    session.run(&["compact", "db"]).ok();
    let report: serde_json::Value =
        serde_json::from_str(&session.run(&["split", "db", "t", "--parts", "3", "--json"]).ok()).expect("JSON");
    let parts = report["parts"].as_array().expect("a list");
    assert_eq!(parts.len(), 3);
    let mut counted = 0;
    for part in parts {
        let mut options = vec!["--keys"];
        for (flag, key) in [("--from", &part["from"]), ("--to", &part["to"])] {
            options.extend(key.as_str().map(|key| [flag, key]).into_iter().flatten());
        }
        counted += session.scan(&options).lines().count();
    }
    assert_eq!(counted, 5000);
}
