//! Tests that a row is read back from its printed form as the same row, whatever bytes it has. Random cases print
//! their seed. To run one of them again, set `LARCH_SEED=n`.

use super::*;
use crate::output::Printer;
use crate::rows::printed::Printed;
use crate::schema::groups::GroupSpec;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Runs `case` on 60 seeds, or only on the seed in `LARCH_SEED`.
fn on_seeds(case: impl Fn(&mut StdRng)) {
    let seeds = match std::env::var("LARCH_SEED") {
        Ok(seed) => vec![seed.parse().expect("LARCH_SEED is a number")],
        Err(_) => Vec::from_iter(0..60),
    };
    for seed in seeds {
        println!("LARCH_SEED={seed}");
        case(&mut StdRng::seed_from_u64(seed));
    }
}

/// A few random bytes, mostly bytes that have a special meaning in text.
fn bytes(rng: &mut StdRng, is_right: impl Fn(u8) -> bool) -> Vec<u8> {
    const SPECIAL: &[u8] = b"\t\n\r\\\0\"',{}[]:tnrx?a7\xef\xbb\xbf\xff";
    let count = rng.random_range(0..8);
    let byte = |_| if rng.random() { SPECIAL[rng.random_range(0..SPECIAL.len())] } else { rng.random() };
    (0..count).map(byte).filter(|byte| is_right(*byte)).collect()
}

fn schema(format: Format, columns: &[&str], key: &str, groups: &str) -> Schema {
    let specs: Vec<KeySpec> = key.split(',').map(|spec| spec.parse().expect("a key specification")).collect();
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    let schema = Schema::new(format, columns, &specs).expect("the columns exist");
    let groups: Vec<GroupSpec> = groups.split_terminator(';').map(|group| group.parse().expect("a group")).collect();
    if groups.is_empty() { schema } else { schema.with_groups(&groups).expect("the groups fit") }
}

/// A random row of a table.
fn draw(layout: &Layout, rng: &mut StdRng) -> Row {
    let mut row = Row::default();
    let number = |rng: &mut StdRng| rng.random_range(-20..20_i32).to_string();
    let Some(schema) = layout.schema() else {
        let key = match layout.tuple() {
            Some(fields) => {
                let text = ::rows::quoted(&String::from_utf8_lossy(&bytes(rng, |_| true)), '"');
                fields.parse_key(&format!("({}, {text})", number(rng))).expect("it is a tuple")
            }
            None => bytes(rng, |_| true),
        };
        return Row { key, parts: vec![bytes(rng, |_| true)] };
    };
    if schema.format == Format::Jsonl {
        let text =
            |rng: &mut StdRng| ::serde_json::to_string(&String::from_utf8_lossy(&bytes(rng, |_| true))).expect("text");
        let object = format!("{{\"id\": {},\t\"n\":{} ,\"v\":{}}}", text(rng), number(rng), text(rng));
        layout.encode_object(&object, &mut row).expect("it is an object");
        return row;
    }
    let is_right = |byte| schema.escapes() || !matches!(byte, b'\t' | b'\n');
    let numeric = |at: usize| schema.key.iter().any(|key| key.column.number() == Some(at + 1) && key.kind.is_numeric());
    let field = |at| if numeric(at) { number(rng).into_bytes() } else { bytes(rng, is_right) };
    let record: Vec<Vec<u8>> = (0..3).map(field).collect();
    layout.encode_fields(&record, &mut row).expect("a row");
    row
}

fn layouts() -> Vec<Layout> {
    let mut layouts = vec![Layout::new(None), Layout::of_tuples("i32, string".parse().expect("types"))];
    for (columns, keys) in
        [(&["a", "", "a"][..], &["1", "3,1", "2:int,1", "3:num"][..]), (&[], &["1", "2", "1,2,3", "2:int"])]
    {
        for key in keys {
            for format in [Format::Csv, Format::Tsv] {
                layouts.push(Layout::new(Some(schema(format, columns, key, ""))));
            }
        }
    }
    layouts.push(Layout::new(Some(schema(Format::Csv, &["a", "b", "c"], "a:int", "x:c;y:*"))));
    layouts.push(Layout::new(Some(schema(Format::Tsv, &["a", "b", "c"], "b", "x:a;y:c"))));
    for key in ["id", "v,id", "n:int", "id,n:num"] {
        layouts.push(Layout::new(Some(schema(Format::Jsonl, &[], key, ""))));
    }
    layouts
}

/// The rows that are read back from the printed text of `rows`.
fn read_back(layout: &Layout, format: ScanFormat, rows: &[Row]) -> Vec<Row> {
    let (mut printer, mut text) = (Printer::new(layout), Vec::new());
    for row in rows {
        match format {
            ScanFormat::Tsv => printer.tsv(&row.key, &row.parts, &mut text),
            ScanFormat::Jsonl => printer.json(&row.key, &row.parts, &mut text),
        }
    }
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), rows.len(), "a row is a line");
    let (mut printed, mut found, mut row) = (Printed::new(&text[..], format), Vec::new(), Row::default());
    loop {
        match printed.next(layout, &mut row) {
            Ok(true) => found.push(std::mem::take(&mut row)),
            Ok(false) => return found,
            Err(stop) => panic!("{stop:?} in {}", text.escape_ascii()),
        }
    }
}

/// The keys that are read back from the printed text of the rows' keys.
fn keys_back(layout: &Layout, format: ScanFormat, rows: &[Row]) -> Vec<Vec<u8>> {
    let (mut printer, mut text) = (Printer::new(layout), Vec::new());
    for row in rows {
        match format {
            ScanFormat::Tsv => printer.key(&row.key, &mut text),
            ScanFormat::Jsonl => printer.key_json(&row.key, &mut text),
        }
    }
    let (mut printed, mut found, mut key) = (Printed::new(&text[..], format), Vec::new(), Vec::new());
    loop {
        match printed.next_key(layout, &mut key) {
            Ok(true) => found.push(std::mem::take(&mut key)),
            Ok(false) => return found,
            Err(stop) => panic!("{stop:?} in {}", text.escape_ascii()),
        }
    }
}

#[test]
fn rows_and_keys_of_any_bytes_are_read_as_they_are_printed() {
    on_seeds(|rng| {
        for layout in layouts() {
            let rows: Vec<Row> = (0..rng.random_range(1..6)).map(|_| draw(&layout, rng)).collect();
            let keys: Vec<Vec<u8>> = rows.iter().map(|row| row.key.clone()).collect();
            for format in [ScanFormat::Tsv, ScanFormat::Jsonl] {
                assert_eq!(read_back(&layout, format, &rows), rows, "{format:?} of {:?}", layout.schema());
                assert_eq!(keys_back(&layout, format, &rows), keys, "keys as {format:?} of {:?}", layout.schema());
            }
            // A key can be written on the command line in the form in which it is printed.
            for key in &keys {
                let mut text = Vec::new();
                layout.key_text(key, &mut Vec::new(), &mut text);
                assert_eq!(&layout.key_from_text(&text).expect("it was printed"), key);
                assert_eq!(&layout.bound_from_text(&layout.text_of_bound(key)).expect("it was printed"), key);
            }
        }
    });
}

#[test]
fn bytes_that_are_no_key_of_the_table_are_not_read_as_another_key() {
    for (key, stray) in [("1:int", &b"7"[..]), ("1:num", b"7"), ("1,2", b"a"), ("1:int,2", b"7")] {
        for format in [Format::Csv, Format::Tsv] {
            let layout = Layout::new(Some(schema(format, &[], key, "")));
            let mut texts = [Vec::new(), Vec::new()];
            Printer::new(&layout).key(stray, &mut texts[0]);
            Printer::new(&layout).key_json(stray, &mut texts[1]);
            for (text, form) in texts.iter().zip([ScanFormat::Tsv, ScanFormat::Jsonl]) {
                let refused = Printed::new(&text[..], form).next_key(&layout, &mut Vec::new());
                assert!(refused.is_err(), "{} of {key}", text.escape_ascii());
            }
        }
    }
}

#[test]
fn what_no_table_prints_is_refused() {
    let raw = Layout::new(None);
    let csv = Layout::new(Some(schema(Format::Csv, &["a", "b"], "a", "")));
    let jsonl = Layout::new(Some(schema(Format::Jsonl, &[], "id", "")));
    for (layout, format, text, why) in [
        (&raw, ScanFormat::Tsv, "a\\x\tv", "write \\\\ for a backslash"),
        (&raw, ScanFormat::Tsv, "a\tv\\", "write \\\\ for a backslash"),
        (&raw, ScanFormat::Jsonl, "{\"key\":\"a\"}", "missing field `value`"),
        (&raw, ScanFormat::Jsonl, "{\"key\":\"a\",\"value\":7}", "a string or {\"hex\":"),
        (&raw, ScanFormat::Jsonl, "{\"key\":\"a\",\"value\":{\"hex\":\"0g\"}}", "two digits of base 16"),
        (&raw, ScanFormat::Jsonl, "{\"key\":\"a\",\"value\":{\"hex\":\"+1\"}}", "two digits of base 16"),
        (&csv, ScanFormat::Tsv, "x", "the row has 1 column and the header of the table 2"),
        (&csv, ScanFormat::Jsonl, "{\"a\":\"x\"}", "the row has 1 column and the header of the table 2"),
        (&csv, ScanFormat::Jsonl, "{\"a\":\"x\",\"c\":\"y\"}", "no column \"c\"; it has a, b"),
        (&csv, ScanFormat::Jsonl, "{\"a\":\"x\",\"a\":\"y\"}", "column \"a\" is there twice"),
        (&csv, ScanFormat::Jsonl, "{\"a\":\"x\",\"3\":\"y\"}", "one before it is not"),
        (&jsonl, ScanFormat::Tsv, "x", "no object after the key"),
        (&jsonl, ScanFormat::Tsv, "x\t{\"id\":\"y\"}", "say another key"),
    ] {
        match Printed::new(text.as_bytes(), format).next(layout, &mut Row::default()) {
            Err(Stop::Row(1, said)) => assert!(said.contains(why), "{said}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
