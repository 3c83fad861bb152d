//! Tests of what names of files say.

use super::*;

#[test]
fn the_endings_say_the_format_and_the_compression() {
    for (name, format, compression) in [
        ("rows.csv", Some(ScanFormat::Csv), None),
        ("a.b/ROWS.TSV.GZ", Some(ScanFormat::Tsv), Some(Compression::Gzip)),
        ("rows.2024.jsonl.zst", Some(ScanFormat::Jsonl), Some(Compression::Zstd)),
        ("rows.parquet", Some(ScanFormat::Parquet), None),
        ("rows.arrow.zst", Some(ScanFormat::Arrow), Some(Compression::Zstd)),
        ("rows.gz", None, Some(Compression::Gzip)),
        ("csv", None, None),
        (".csv", None, None),
        ("rows.txt", None, None),
        ("-", None, None),
        ("..", None, None),
    ] {
        assert_eq!(FileName::of(Path::new(name)).expect("it can be read"), FileName { format, compression }, "{name}");
    }
}

#[test]
fn other_compressed_files_are_named_with_a_program_that_reads_them() {
    for (name, program) in [("rows.csv.bz2", "bzcat rows.csv.bz2 | larch"), ("rows.XZ", "xzcat rows.XZ | larch")] {
        let refused = FileName::of(Path::new(name)).expect_err("it is not read").to_string();
        assert!(refused.contains(program) && refused.contains("gzip (.gz) or Zstandard (.zst)"), "{refused}");
    }
}
