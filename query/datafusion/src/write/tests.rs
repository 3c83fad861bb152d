use super::*;
use crate::fill::Filler;
use datafusion::arrow::array::{BooleanArray, Float64Array, Int64Array, StringArray};
use std::sync::Arc;

/// A batch with three rows, as a query may return it.
fn batch() -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("a", Arc::new(Int64Array::from(vec![Some(0), Some(1), Some(300)])) as ArrayRef, true),
        ("b", Arc::new(StringArray::from(vec![Some("x"), Some("y\"z"), None])) as ArrayRef, true),
        ("c", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-2.0)])) as ArrayRef, true),
        ("d", Arc::new(BooleanArray::from(vec![true, false, true])) as ArrayRef, true),
    ])
    .expect("arrays of one length")
}

type Written = Vec<(Vec<u8>, Vec<Vec<u8>>)>;

fn write(columns: &str, batch: &RecordBatch) -> Result<Written, String> {
    let columns: Columns = columns.parse().expect("columns");
    let writer = RowWriter::new(&columns, &batch.schema()).map_err(|bad| bad.to_string())?;
    let mut rows = Vec::new();
    let written = writer.write(batch, |key, parts| {
        rows.push((key.to_vec(), parts.to_vec()));
        Ok::<(), Unwritable>(())
    });
    written.map(|()| rows).map_err(|bad| format!("{}: {}", bad.column, bad.what))
}

#[test]
fn what_is_written_is_read_back() {
    let batch = batch();
    for text in [
        "key.tuple(a u16), value.tuple(b string?, c f64?, d bool)",
        "key.tuple(d bool desc, a i128), value.json(b string, c f64)",
        "key.tuple(a u32, d bool), part(1).json(b string \"$.names.first\", c f64 \"$.names['the last']\")",
        "key.tuple(a u128 desc), part(2).tuple(b string?), value.json(d bool, c f32)",
    ] {
        let columns: Columns = text.parse().expect("columns");
        let rows = write(text, &batch).expect("it fits");
        let all: Vec<usize> = (0..columns.schema().fields().len()).collect();
        let groups = columns.groups_of(&all);
        let mut filler = Filler::new(&columns, &all, &groups, 8);
        for (key, parts) in &rows {
            let read: Vec<&[u8]> = groups.iter().map(|group| &parts[*group][..]).collect();
            filler.push(key, &read).unwrap_or_else(|bad| panic!("{text}: {bad:?}"));
        }
        let read = RecordBatch::try_new(columns.schema(), filler.take()).expect("arrays of these types");
        for field in batch.schema().fields() {
            let ours = read.column_by_name(field.name()).expect("it was read");
            let theirs = batch.column_by_name(field.name()).expect("it is there");
            let theirs = datafusion::arrow::compute::cast(theirs, ours.data_type()).expect("it was cast before");
            assert_eq!(ours, &theirs, "{text}: {}", field.name());
        }
    }
}

#[test]
fn a_query_with_two_columns_of_one_name_is_refused() {
    let batch = batch();
    let twice: Vec<_> = batch.schema().fields().iter().chain([&batch.schema().fields()[1]]).cloned().collect();
    let columns = "key.tuple(a u16), value.tuple(b string?, c f64?, d bool)".parse().expect("columns");
    let error = RowWriter::new(&columns, &Schema::new(twice)).expect_err("b is there twice").to_string();
    assert!(error.contains("one name"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_name_of_the_column() {
    for (columns, expected) in [
        ("key.tuple(a u8), value.tuple(b string?, c f64?, d bool)", "a: "),
        ("key.tuple(a u16), value.tuple(b string, c f64?, d bool)", "b: only a field that is declared"),
        ("key b string, value.tuple(a u16, c f64?, d bool)", "b: NULL is only for a field"),
        ("key.tuple(a u16), value.tuple(b string?, c f64?)", "the query has a column d"),
        ("key.tuple(a u16), value.tuple(b string?, c f64?, d bool, e u8)", "the query has no column e"),
        ("key.tuple(a u16), value.tuple(b string?, c i64?, d bool)", "c: a number of type Float64 has digits"),
        ("value.tuple(a u16, b string?, c f64?, d bool)", "the table has no key"),
        ("key.tuple(a u16), value.split(',')(b string, c f64, d bool)", "not written"),
        ("key.tuple(a u16), value.json(b string \"$[0]\", c f64, d bool)", "b: a member that is written"),
        ("key.tuple(a u16), value.json(b string \"$.x\", c f64 \"$.x.y\", d bool)", "c: a member that is written"),
    ] {
        let error = write(columns, &batch()).expect_err(columns);
        assert!(error.starts_with(expected) || error.contains(expected), "{columns}: {error}");
    }
}
