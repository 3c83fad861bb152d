//! Tests of how the command line says until when rows are there.

use super::*;
use crate::schema::{Format, KeyColumn, Place};

#[test]
fn lengths_come_back_from_their_text() {
    for (written, shown) in [("10m", "10m"), ("90s", "90s"), ("1.5h", "90m"), ("48h", "2d"), ("250ms", "250ms")] {
        let expiry = after(written).expect("it is a length");
        assert_eq!(text(&expiry), format!("after {shown}"));
        assert_eq!(after(shown), Ok(expiry));
    }
    assert_eq!(after("never"), Ok(Expiry::Never));
    assert_eq!(text(&Expiry::Never), "never");
    after("soon").expect_err("it is no length");
}

#[test]
fn a_column_is_found_in_rows_of_each_format() {
    let csv =
        Schema::with_key(Format::Csv, ["id", "until", "name"].map(str::to_owned).to_vec(), vec![KeyColumn::first()]);
    let key = vec![KeyColumn { column: Place::Name("id".to_owned()), kind: Kind::Text }];
    let jsonl = Schema::with_key(Format::Jsonl, Vec::new(), key);
    let shown = |schema: &Schema, written: &str| {
        let options = TableOptions { metadata: schema.to_metadata(), ..TableOptions::default() };
        written.parse::<ExpireBy>()?.expiry(&options).map(|expiry| text(&expiry))
    };
    assert_eq!(shown(&csv, "until").as_deref(), Ok(r"by value.split('\t' escaped marked)[0] string"));
    assert_eq!(shown(&csv, "2:seconds").as_deref(), Ok(r"by value.split('\t' escaped marked)[0] i64 seconds"));
    assert_eq!(shown(&jsonl, "until:milliseconds").as_deref(), Ok(r#"by value.json("$.until") i64"#));
    assert_eq!(
        shown(&jsonl, "value.json(\"$.a.b\") u64 seconds").as_deref(),
        Ok(r#"by value.json("$.a.b") u64 seconds"#)
    );
    let unknown = shown(&csv, "when").expect_err("there is no such column");
    assert!(unknown.contains("the header has no column when"), "{unknown}");
    let raw = "until".parse::<ExpireBy>().and_then(|by| by.expiry(&TableOptions::default()));
    assert!(raw.expect_err("it has no columns").contains("value[0..8].le u64 seconds"));
    for wrong in ["", ":seconds", "value[", "value.text f64"] {
        wrong.parse::<ExpireBy>().expect_err(wrong);
    }
}
