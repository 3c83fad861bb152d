//! Tests that a row is read back from its printed form as the same row, whatever bytes it has. Random cases print
//! their seed. To run one of them again, set `LARCH_SEED=n`.

use super::*;
use crate::output::{Names, Printer};
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

/// A few random bytes, mostly texts that have a special meaning somewhere.
fn bytes(rng: &mut StdRng, is_right: impl Fn(u8) -> bool) -> Vec<u8> {
    const SPECIAL: &[&[u8]] = &[
        b"\t",
        b"\n",
        b"\r",
        b"\r\n",
        b"\\",
        b"\\N",
        b"\0",
        b"\"",
        b"\"\"",
        b"'",
        b",",
        b";",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"#",
        b"n",
        b"r",
        b"x",
        b"?",
        b"7",
        b"-7",
        b"null",
        b"NULL",
        b" ",
        b".",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xc3",
        "ü".as_bytes(),
        b"\x1f\x8b\x08",
        b"id",
        b"key",
        b"value",
    ];
    let count = rng.random_range(0..6);
    let piece = |_| {
        if rng.random_ratio(3, 4) { SPECIAL[rng.random_range(0..SPECIAL.len())].to_vec() } else { vec![rng.random()] }
    };
    (0..count).flat_map(piece).filter(|byte| is_right(*byte)).collect()
}

/// A random key of a table whose keys are tuples, or random bytes that may be none.
fn tuple(fields: &::rows::Declaration, rng: &mut StdRng) -> Vec<u8> {
    use ::rows::Kind;
    let mut texts = Vec::new();
    for field in fields.fields() {
        let floats = ["-0.0", "0.1", "inf", "-inf", "nan", "1e300", "-2.5e-7", "16777217"];
        let number = |rng: &mut StdRng, most: i128| rng.random_range(0..=most).to_string();
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        texts.push(match field.kind {
            _ if field.is_optional && rng.random() => "none".to_owned(),
            Kind::Bool => rng.random::<bool>().to_string(),
            Kind::U8 => number(rng, 255),
            Kind::U128 => u128::MAX.to_string(),
            Kind::I128 => i128::MIN.to_string(),
            Kind::I64 => rng.random::<i64>().to_string(),
            Kind::F32 | Kind::F64 => {
                floats[rng.random_range(0..if field.kind == Kind::F32 { 5 } else { 8 })].to_owned()
            }
            Kind::String => ::rows::quoted(&String::from_utf8_lossy(&bytes(rng, |_| true)), '"'),
            Kind::Bytes => format!("x'{}'", digits(&bytes(rng, |_| true))),
            Kind::Fixed(count) => format!("x'{}'", digits(&vec![rng.random(); count.into()])),
            other => panic!("{other} is not drawn"),
        });
    }
    let mut key = fields.parse_key(&format!("({})", texts.join(", "))).expect("it is a tuple");
    match rng.random_range(0..8) {
        0 => key.truncate(rng.random_range(0..=key.len())),
        1 => key.extend(bytes(rng, |_| true)),
        2 => key = bytes(rng, |_| true),
        _ => {}
    }
    key
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
            Some(fields) => tuple(fields, rng),
            None => bytes(rng, |_| true),
        };
        return Row { key, parts: vec![bytes(rng, |_| true)] };
    };
    if schema.format == Format::Jsonl {
        let text =
            |rng: &mut StdRng| ::serde_json::to_string(&String::from_utf8_lossy(&bytes(rng, |_| true))).expect("text");
        const VALUES: &[&str] = &[
            "null",
            "true",
            "-0.0",
            "1e400",
            "12345678901234567890123",
            "[1, {\"a\":\tnull}]",
            "\"\\u0000\\ud83d\\ude00\"",
            "{}",
        ];
        let value = VALUES[rng.random_range(0..VALUES.len())];
        let object =
            format!("{{\"id\": {},\t\"n\":{} ,\"v\":{},\r{}:{value}}}", text(rng), number(rng), text(rng), text(rng));
        if layout.encode_object(&object, &mut row).is_err() {
            // The last member has the name of another one.
            return draw(layout, rng);
        }
        return row;
    }
    // Without a header, the rows of a table may have different numbers of columns.
    let columns = if schema.columns.is_empty() { rng.random_range(3..6) } else { 3 };
    let is_right = |byte| schema.escapes() || !matches!(byte, b'\t' | b'\n');
    let numeric = |at: usize| schema.key.iter().any(|key| key.column.number() == Some(at + 1) && key.kind.is_numeric());
    let field = |at| if numeric(at) { number(rng).into_bytes() } else { bytes(rng, is_right) };
    let record: Vec<Vec<u8>> = (0..columns).map(field).collect();
    layout.encode_fields(&record, &mut row).expect("a row");
    row
}

fn layouts() -> Vec<Layout> {
    let mut layouts = vec![Layout::new(None)];
    for types in
        ["i64, string", "string? desc, u128, f64", "bytes?, bool desc, f32?", "u8, bytes[3], i128", "f64? desc, string"]
    {
        layouts.push(Layout::of_tuples(types.parse().expect("types")));
    }
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
    for (key, groups) in
        [("id", ""), ("v,id", ""), ("n:int", ""), ("id,n:num", ""), ("id", "x:v,id2;y:*"), ("n:num", "x:*")]
    {
        layouts.push(Layout::new(Some(schema(Format::Jsonl, &[], key, groups))));
    }
    layouts
}

const FORMATS: [TextFormat; 3] = [TextFormat::Csv, TextFormat::Tsv, TextFormat::Jsonl];

/// The text of rows as `scan` prints it, or as `export` does if `of_tsv`.
fn printed(layout: &Layout, format: TextFormat, rows: &[Row], of_tsv: bool) -> Vec<u8> {
    let (mut printer, mut text) = (Printer::new(layout), Vec::new());
    printer.header(format, Names { of_tsv, ..Names::default() }, &mut text);
    let before = text.len();
    for row in rows {
        printer.check(&row.key, &row.parts).unwrap_or_else(|why| panic!("{why}: {row:?} of {:?}", layout.schema()));
        printer.row(format, &row.key, &row.parts, &mut text);
    }
    if format != TextFormat::Csv {
        assert_eq!(text[before..].iter().filter(|byte| **byte == b'\n').count(), rows.len(), "a row is a line");
    }
    text
}

/// The rows that `load` reads from a text.
fn loaded(layout: &Layout, format: TextFormat, text: &[u8]) -> Vec<Row> {
    let (mut printed, mut found, mut row) = (Printed::new(text, format), Vec::new(), Row::default());
    loop {
        match printed.next(layout, &mut row) {
            Ok(true) => found.push(std::mem::take(&mut row)),
            Ok(false) => return found,
            Err(stop) => panic!("{stop:?} in {} of {:?}", text.escape_ascii(), layout.schema()),
        }
    }
}

/// The rows that `import` reads from a text with the options of [`Schema::import_options`].
fn imported(layout: &Layout, format: Format, text: &[u8]) -> Vec<Row> {
    let schema = layout.schema().expect("it is no raw table");
    let (mut found, mut row) = (Vec::new(), Row::default());
    let header = !schema.columns.is_empty();
    match format {
        Format::Csv => {
            let mut csv = csv::Csv::new(text, header).expect("it has its header");
            assert_eq!(csv.columns, schema.columns);
            while csv.next(layout, &mut row).expect("it is CSV") {
                found.push(std::mem::take(&mut row));
            }
        }
        Format::Tsv => {
            let mut tsv = tsv::Tsv::new(text, header).expect("it has its header");
            assert_eq!(tsv.columns, schema.columns);
            while tsv.next(layout, &mut row).expect("it is TSV") {
                found.push(std::mem::take(&mut row));
            }
        }
        Format::Jsonl => {
            let mut jsonl = jsonl::Jsonl::new(text);
            while jsonl.next(layout, &mut row).expect("these are objects") {
                found.push(std::mem::take(&mut row));
            }
        }
    }
    found
}

/// The keys that are read back from the printed text of the rows' keys.
fn keys_back(layout: &Layout, format: TextFormat, rows: &[Row]) -> Vec<Vec<u8>> {
    let (mut printer, mut text) = (Printer::new(layout), Vec::new());
    printer.header(format, Names { keys: true, ..Names::default() }, &mut text);
    rows.iter().for_each(|row| printer.row_key(format, &row.key, &mut text));
    let (mut printed, mut found, mut key) = (Printed::new(&text[..], format), Vec::new(), Vec::new());
    loop {
        match printed.next_key(layout, &mut key) {
            Ok(true) => found.push(std::mem::take(&mut key)),
            Ok(false) => return found,
            Err(stop) => panic!("{stop:?} in {} of {:?}", text.escape_ascii(), layout.schema()),
        }
    }
}

#[test]
fn rows_and_keys_of_any_bytes_are_read_as_they_are_printed() {
    on_seeds(|rng| {
        for layout in layouts() {
            let rows: Vec<Row> = (0..rng.random_range(1..6)).map(|_| draw(&layout, rng)).collect();
            let keys: Vec<Vec<u8>> = rows.iter().map(|row| row.key.clone()).collect();
            for format in FORMATS {
                let text = printed(&layout, format, &rows, false);
                assert_eq!(loaded(&layout, format, &text), rows, "{format:?} of {:?}", layout.schema());
                assert_eq!(keys_back(&layout, format, &rows), keys, "keys as {format:?} of {:?}", layout.schema());
            }
            // What is exported in the format of the table, `import` takes, too. Its rows all have the same number of columns.
            if let Some(schema) = layout.schema() {
                let alike: Vec<Row> = rows.iter().filter(|row| same_width(&layout, row, &rows[0])).cloned().collect();
                let format = match schema.format {
                    Format::Csv => TextFormat::Csv,
                    Format::Tsv => TextFormat::Tsv,
                    Format::Jsonl => TextFormat::Jsonl,
                };
                let text = printed(&layout, format, &alike, true);
                assert_eq!(imported(&layout, schema.format, &text), alike, "{}", text.escape_ascii());
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

/// Whether two rows have the same number of columns.
fn same_width(layout: &Layout, one: &Row, other: &Row) -> bool {
    let columns = |row: &Row| {
        let mut line = Vec::new();
        Printer::new(layout).tsv(&row.key, &row.parts, &mut line);
        line.iter().filter(|byte| **byte == b'\t').count()
    };
    layout.schema().is_some_and(|schema| schema.format == Format::Jsonl) || columns(one) == columns(other)
}

#[test]
fn a_row_that_the_text_of_a_row_cannot_stand_for_is_refused_before_it_is_printed() {
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..400 {
        let rng = &mut StdRng::seed_from_u64(seed);
        for layout in layouts() {
            // A program that does not know the layout may write any bytes, or change a few of a sound row.
            let mut row = draw(&layout, rng);
            match rng.random_range(0..3) {
                0 => row.key = bytes(rng, |_| true),
                1 => row.parts[0] = bytes(rng, |_| true),
                _ => {
                    let at = rng.random_range(0..=row.parts[0].len());
                    row.parts[0].splice(at..at, bytes(rng, |_| true));
                }
            }
            if Printer::new(&layout).check(&row.key, &row.parts).is_err() {
                refused += 1;
                continue;
            }
            taken += 1;
            for format in FORMATS {
                let text = printed(&layout, format, std::slice::from_ref(&row), false);
                assert_eq!(
                    loaded(&layout, format, &text),
                    [row.clone()],
                    "{seed}: {format:?} of {:?}",
                    layout.schema()
                );
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} rows were refused, {taken} taken");
}

#[test]
fn bytes_that_are_no_key_of_the_table_are_not_read_as_another_key() {
    for (key, stray) in [("1:int", &b"7"[..]), ("1:num", b"7"), ("1,2", b"a"), ("1:int,2", b"7")] {
        for format in [Format::Csv, Format::Tsv] {
            let layout = Layout::new(Some(schema(format, &[], key, "")));
            for form in FORMATS {
                let mut text = Vec::new();
                Printer::new(&layout).row_key(form, stray, &mut text);
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
        (&raw, TextFormat::Tsv, "a\\x\tv", "write \\\\ for a backslash"),
        (&raw, TextFormat::Tsv, "a\tv\\", "write \\\\ for a backslash"),
        (&raw, TextFormat::Jsonl, "{\"key\":\"a\"}", "missing field `value`"),
        (&raw, TextFormat::Jsonl, "{\"key\":\"a\",\"value\":7}", "a string or {\"hex\":"),
        (&raw, TextFormat::Jsonl, "{\"key\":\"a\",\"value\":{\"hex\":\"0g\"}}", "two digits of base 16"),
        (&raw, TextFormat::Jsonl, "{\"key\":\"a\",\"value\":{\"hex\":\"+1\"}}", "two digits of base 16"),
        (&csv, TextFormat::Tsv, "x", "the row has 1 column and the header of the table 2"),
        (&csv, TextFormat::Jsonl, "{\"a\":\"x\"}", "the row has 1 column and the header of the table 2"),
        (&csv, TextFormat::Jsonl, "{\"a\":\"x\",\"c\":\"y\"}", "no column \"c\"; it has a, b"),
        (&csv, TextFormat::Jsonl, "{\"a\":\"x\",\"a\":\"y\"}", "column \"a\" is there twice"),
        (&csv, TextFormat::Jsonl, "{\"a\":\"x\",\"3\":\"y\"}", "one before it is not"),
        (&csv, TextFormat::Jsonl, "{\"a\":\"x\",\"b\":7}", "7 is there, and a string or"),
        (&csv, TextFormat::Csv, "x,y\n", "the first row is to be the header, a,b, as scan"),
        (&raw, TextFormat::Csv, "k,v\n", "the first row is to be the header, key,value, as scan"),
        (&jsonl, TextFormat::Tsv, "x", "no object after the key"),
        (&jsonl, TextFormat::Tsv, "x\t{\"id\":\"y\"}", "say another key"),
    ] {
        match Printed::new(text.as_bytes(), format).next(layout, &mut Row::default()) {
            Err(Stop::Row(1, said)) => assert!(said.contains(why), "{said}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
