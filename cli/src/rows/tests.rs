//! Tests of reading rows from text, in each format.

use super::*;
use crate::schema::{KeySpec, Schema};

mod printed;

/// The rows as `key|value`, each on a line, or an error as `line: why`.
fn read(format: Format, header: bool, key: &str, text: &str) -> String {
    let specs: Vec<KeySpec> = key.split(',').map(|spec| spec.parse().expect("a key specification")).collect();
    match rows(format, header, &specs, text.as_bytes()) {
        Ok(rows) => rows.join("\n"),
        Err(Stop::Row(line, why)) => format!("{line}: {why}"),
        Err(Stop::Read(error)) => panic!("memory does not break: {error}"),
    }
}

fn rows(format: Format, header: bool, specs: &[KeySpec], text: &[u8]) -> Result<Vec<String>, Stop> {
    let layout = |columns: &[String]| {
        Layout::new(Some(Schema::new(format, columns.to_vec(), specs).expect("the columns exist")))
    };
    let mut found = Vec::new();
    let mut row = Row::default();
    let show = |row: &Row| format!("{}|{}", row.key.escape_ascii(), row.parts[0].escape_ascii());
    match format {
        Format::Csv => {
            let mut csv = csv::Csv::new(text, header)?;
            let layout = layout(&csv.columns);
            while csv.next(&layout, &mut row)? {
                found.push(format!("{} {}", csv.line, show(&row)));
            }
        }
        Format::Tsv => {
            let mut tsv = tsv::Tsv::new(text, header)?;
            let layout = layout(&tsv.columns);
            while tsv.next(&layout, &mut row)? {
                found.push(format!("{} {}", tsv.line, show(&row)));
            }
        }
        Format::Jsonl => {
            let mut jsonl = jsonl::Jsonl::new(text);
            let layout = layout(&[]);
            while jsonl.next(&layout, &mut row)? {
                found.push(format!("{} {}", jsonl.line, show(&row)));
            }
        }
    }
    Ok(found)
}

fn check(format: Format, header: bool, key: &str, text: &str, expected: &[&str]) {
    assert_eq!(read(format, header, key, text), expected.join("\n"), "{text:?}");
}

#[test]
fn tsv_is_taken_byte_for_byte() {
    let tsv = |key, text, expected: &[&str]| check(Format::Tsv, false, key, text, expected);
    tsv("1", "b\tx\tw\na\ty\tz\n", &["1 b|x\\tw", "2 a|y\\tz"]);
    tsv("1", "b\tx\r\n\"q\t\\n\n", &["1 b|x", "2 \\\"q|\\\\n"]);
    tsv("1", "b\tx\r\r\na\ty\rz", &["1 b|x\\r", "2 a|y\\rz"]);
    tsv("1", "\u{feff}ada\tx\n\u{feff}bob\ty\n", &["1 ada|x", "2 \\xef\\xbb\\xbfbob|y"]);
    tsv("1", "k\nl\n\n", &["1 k|", "2 l|", "3 |"]);
    tsv("1", "k\t\nl\t\n\t", &["1 k|\\x00", "2 l|\\x00", "3 |\\x00"]);
    tsv("1", "k\t\t", &["1 k|\\t"]);
    tsv("2", "a\tb\tc\nd\te\t\n", &["1 b|a\\tc", "2 e|d\\t"]);
    tsv("2,1", "a\tb\n", &["1 b\\x00\\x00a|"]);
    tsv(
        "2",
        "a\n",
        &["1: the row ends before its key, column 2: it has 1 column; add what is missing or choose another --key"],
    );
    check(Format::Tsv, true, "name", "\u{feff}id\tname\n1\tx\n", &["2 x|1"]);
    check(Format::Tsv, true, "name", "\u{feff}id\tname\r\n1\tx\r\n", &["2 x|1"]);
}

#[test]
fn csv_has_quotes_and_any_line_end() {
    let csv = |key, text, expected: &[&str]| check(Format::Csv, true, key, text, expected);
    csv("id", "id,name\n1,x\n2,\"a,\"\"b\"\"\"\n", &["2 1|x", "3 2|a,\\\"b\\\""]);
    csv("id", "id,name\r\n1,x\r\n2,\"a\r\nb\"\r\n3,c\r\n", &["2 1|x", "3 2|a\\\\r\\\\nb", "5 3|c"]);
    csv("name", "\u{feff}id,name\n1,\"t\tb\\\"", &["2 t\\tb\\\\|1"]);
    csv("1", "id\n1\n\"\"\n", &["2 1|", "3 |"]);
    csv("id", "id,name\n", &[]);
    csv("id", "id,name\n\n\n1,x\n\n2,y", &["4 1|x", "6 2|y"]);
}

#[test]
fn csv_says_where_a_row_is_wrong() {
    let error = |key, text| read(Format::Csv, true, key, text);
    assert!(
        error("id:int", "id,name\n1,x\nabc,y\n").starts_with("3: column 1 of the key: \"abc\" is not a whole number")
    );
    for unclosed in ["id,name\n1,x\n2,\"y\n3,z\n", "id,name\n1,x\n2,\"y\n3,z", "id,name\n1,x\n2,\""] {
        assert!(error("id", unclosed).starts_with("3: a quote that opens in this row"), "{}", error("id", unclosed));
    }
    assert!(error("1", "\n\n").starts_with("1: there is no header"));
}

#[test]
fn a_row_with_more_or_fewer_columns_than_the_others_is_named() {
    for (format, separator) in [(Format::Csv, ","), (Format::Tsv, "\t")] {
        // The key is tried as the first column and as another column, because a row whose key is the first column
        // is read without looking at its other columns.
        for key in ["1", "2", "1:int"] {
            let error = |header, text: &str| read(format, header, key, &text.replace(',', separator));
            for (header, of) in [(true, "the header of the table"), (false, "the first row")] {
                for (bad, columns) in [("4", "1 column"), ("4,5,6", "3 columns"), ("4,5,", "3 columns")] {
                    let said = error(header, &format!("1,2\n2,3\n{bad}\n"));
                    assert!(
                        said.starts_with(&format!("3: the row has {columns} and {of} 2; correct the row")),
                        "{said}"
                    );
                }
            }
        }
    }
    assert!(read(Format::Tsv, false, "1", "a\tb\n\n").starts_with("2: the row has 1 column and the first row 2"));
}

#[test]
fn a_csv_row_may_have_any_text_and_does_not_end_the_input() {
    let csv = |text: &str, expected: &[&str]| check(Format::Csv, false, "1", text, expected);
    for row in [".", "\0larch:end\0"] {
        let shown = row.escape_default().to_string().replace("\\u{0}", "\\x00");
        csv(&format!("a\n{row}\nb\n"), &["1 a|", &format!("2 {shown}|"), "3 b|"]);
        csv(&format!("a\n\n{row}\n"), &["1 a|", &format!("3 {shown}|")]);
        csv(&format!("a\r\n{row}"), &["1 a|", &format!("2 {shown}|")]);
        csv(&format!("\"{row}\"\n\n\n"), &[&format!("1 {shown}|")]);
        csv(&format!("\"\n{row}\n\"\nb"), &[&format!("1 \\n{shown}\\n|"), "4 b|"]);
        let unclosed = read(Format::Csv, false, "1", &format!("a\n\"\n{row}\n"));
        assert!(unclosed.starts_with("2: a quote that opens in this row"), "{unclosed}");
    }
    csv("", &[]);
    csv("\n\r\n", &[]);
}

#[test]
fn csv_is_read_alike_in_pieces_of_any_size() {
    /// A reader that returns a given number of bytes at a time.
    struct Pieces<'t>(usize, &'t [u8]);
    impl io::Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.0);
            self.1.read(&mut buffer[..most])
        }
    }
    let text = "a,b\r\n.,.\n\n\"\n.\n\",\"x\"\"\"\r\n\"c\",d";
    let layout =
        Layout::new(Some(Schema::new(Format::Csv, Vec::new(), &["1".parse().expect("a key")]).expect("it is")));
    for size in 1..text.len() {
        let mut csv = csv::Csv::new(Pieces(size, text.as_bytes()), false).expect("there is no header");
        let (mut row, mut found) = (Row::default(), Vec::new());
        while csv.next(&layout, &mut row).expect("it is CSV") {
            found.push((csv.line, String::from_utf8_lossy(&row.key).into_owned()));
        }
        let expected = [(1, "a"), (2, "."), (4, "\n.\n"), (7, "c")].map(|(line, key)| (line, key.to_owned()));
        assert_eq!(found, expected, "pieces of {size}");
    }
}

#[test]
fn json_lines_are_kept_as_written() {
    let jsonl = |key, text, expected: &[&str]| check(Format::Jsonl, false, key, text, expected);
    jsonl(
        "id",
        "{\"a\": 1e5,\"id\":\"x\"}\r\n\n  {\"id\":\"y\"}",
        &["1 x|{\\\"a\\\": 1e5,\\\"id\\\":\\\"x\\\"}", "3 y|{\\\"id\\\":\\\"y\\\"}"],
    );
    jsonl(
        "id",
        "{\"id\":\"x\"}\n{\"id\":",
        &["2: not a JSON object on one line: EOF while parsing a value (at byte 6)"],
    );
    let bad = rows(Format::Jsonl, false, &["id".parse().expect("a name")], b"{\"id\":\"\xff\"}");
    assert!(matches!(bad, Err(Stop::Row(1, why)) if why.starts_with("not UTF-8 after 7 bytes")));
}

#[test]
fn bytes_that_are_not_text_are_rows_too() {
    let key = ["1".parse().expect("a number")];
    assert_eq!(rows(Format::Csv, false, &key, b"a\xff,\xfe\0").expect("rows"), ["1 a\\xff|\\xfe\\x00"]);
    assert_eq!(rows(Format::Tsv, false, &key, b"a\xff\t\0\xfe").expect("rows"), ["1 a\\xff|\\x00\\x00\\xfe"]);
}
