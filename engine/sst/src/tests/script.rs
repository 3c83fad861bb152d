//! Runs the scripts in `testdata`. Each script builds a file from rows that are written as text, and then reads the
//! file. Every command runs with each kind of page source and must print the same result with all of them.
//! `REWRITE=1` regenerates the expected output.

use crate::KeyRange;
use crate::dump::{DumpDetail, Escaped, dump};
use crate::fixture::{Built, Content, Reader, tiny};
use crate::format::filter::FilterKind;
use crate::format::meta::PageIndexKind;
use crate::format::validate;
use crate::read::{RangeErase, Row, Seek, SstCursor, StoredValue};
use crate::row::{RowKind, Version};
use crate::write::{BuildOptions, Compression};
use datadriven::TestCase;
use pages::{PageKind, PageSource, Resident, Stop};
use std::fmt::Write;
use std::sync::Arc;

#[test]
fn scripts_print_what_they_expect() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/src/testdata"), |file| {
        let mut built: Option<Built> = None;
        file.run(|case| {
            if case.directive == "build" {
                let new = build(case);
                let meta = &new.meta;
                let height = meta.main.map_or(0, |tree| tree.root(false).height);
                let text = format!("{} rows, height {height}, {} bytes\n", meta.rows(), meta.file_bytes);
                built = Some(new);
                return text;
            }
            run(case, built.as_ref().expect("the script builds a file first"))
        });
    });
}

/// Runs a command that reads.
fn run(case: &TestCase, built: &Built) -> String {
    if case.directive == "dump" {
        let mut text = Vec::new();
        let detail = if case.args.contains_key("rows") { DumpDetail::Rows } else { DumpDetail::Pages };
        dump(&built.sst(), &Resident::new(validate), detail, &mut text).expect("the file is whole");
        return String::from_utf8(text).expect("everything else is escaped");
    }
    let mut outputs: Vec<String> = Vec::new();
    built.on_every_source(|reader| {
        let output = match case.directive.as_str() {
            "get" => case.input.lines().map(|line| get(reader, line)).collect(),
            "seek" => case.input.lines().map(|line| seek(reader, line)).collect(),
            "scan" => scan(reader, case),
            "verify" => verify(reader, built),
            other => panic!("the script has the unknown command {other}"),
        };
        outputs.push(output);
    });
    let (first, others) = outputs.split_first().expect("there are sources");
    for other in others {
        assert_eq!(other, first, "all sources give the same");
    }
    first.clone()
}

fn build(case: &mut TestCase) -> Built {
    let number = |case: &mut TestCase, name: &str| {
        case.try_take_arg::<u64>(name).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let mut options = tiny();
    if let Some(bytes) = number(case, "page-bytes") {
        options.page_bytes = bytes as u32;
    }
    if let Some(bytes) = number(case, "node-bytes") {
        options.node_bytes = bytes as u32;
    }
    if let Some(children) = number(case, "node-children") {
        options.max_node_children = children as usize;
    }
    if let Some(rows) = number(case, "page-rows") {
        options.max_page_rows = rows as usize;
    }
    let groups = number(case, "groups").unwrap_or(0);
    for compression in [Compression::Lz4, Compression::ZSTD] {
        let name = compression.to_string();
        if case.take_flag(name.split(':').next().expect("there is a name")).expect("it takes no argument") {
            options = BuildOptions { compression, ..options };
        }
    }
    options.filter = match number(case, "filter") {
        None => FilterKind::None,
        Some(12) => FilterKind::Bits12,
        Some(20) => FilterKind::Bits20,
        Some(other) => panic!("there is no filter of {other} bits"),
    };
    options.filter_prefix_bytes = number(case, "filter-prefix").unwrap_or(0) as u16;
    options.index = match case.try_take_arg::<String>("index").expect("index takes an argument").as_deref() {
        None | Some("btree") => PageIndexKind::Btree,
        Some("flat") => PageIndexKind::Flat,
        Some("both") => PageIndexKind::Both,
        Some(other) => panic!("there is no {other} index"),
    };
    case.expect_empty().expect("build takes no other argument");
    let mut content = Content { groups: groups as usize, ..Content::default() };
    for line in case.input.lines() {
        add(&mut content, line);
    }
    content.build(options)
}

/// Adds what a line of a script says: `KEY@VERSION = VALUE`, `KEY@VERSION merge VALUE`, `KEY@VERSION erase`, or
/// `range START..[END]@VERSION[,VERSION]`. The value `x*9000` means the letter x nine thousand times.
fn add(content: &mut Content, line: &str) {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(',').map(|number| number.parse().unwrap_or_else(|_| panic!("no version in {line:?}"))).collect()
    };
    if let Some(range) = line.strip_prefix("range ") {
        let (range, versions) = range.rsplit_once('@').expect("a range has versions");
        let (start, end) = range.split_once("..").expect("a range has two dots");
        content.range_erases.push(RangeErase {
            keys: KeyRange { start: unescape(start), end: (!end.is_empty()).then(|| unescape(end)) },
            versions: numbers(versions).into_iter().map(Version).collect(),
        });
        return;
    }
    let (row, what) = line.split_once(' ').expect("a row has a key and a value");
    let (key, version) = row.rsplit_once('@').expect("a row has a version");
    let (kind, value) = match what.split_once(' ') {
        Some(("=", value)) => (RowKind::Put, value),
        Some(("until", value)) => (RowKind::PutUntil, value),
        Some(("merge", value)) => (RowKind::Merge, value),
        None if what == "=" => (RowKind::Put, ""),
        None if what == "erase" => (RowKind::Erase, ""),
        _ => panic!("what is {line:?}?"),
    };
    let value = match value.split_once('*') {
        Some((text, times)) => unescape(text).repeat(times.parse().expect("a number of times")),
        None => unescape(value),
    };
    content.rows.entry(unescape(key)).or_default().push((numbers(version)[0], kind, value));
}

/// `\xNN` is a byte.
fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two hexadecimal digits"));
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

const MANY: u64 = 40;

/// Runs a step without counting its rounds.
fn step<T>(reader: &Reader<'_>, step: impl FnMut(&crate::fixture::Rounds<'_>) -> Result<T, Stop>) -> T {
    reader.step(MANY, step)
}

fn row_text(reader: &Reader<'_>, row: &Row) -> String {
    let kind = match row.kind {
        RowKind::Put => "=",
        RowKind::Erase => return format!("@{} erase", row.version.0),
        RowKind::Merge => "merge",
        RowKind::PutUntil => "until",
    };
    let text = |stored: &StoredValue| {
        let value = step(reader, |source| stored.load(source, &reader.sst.file));
        let outside = if stored.inline().is_some() { "" } else { " from outside" };
        format!("{}{outside}", Escaped(value.as_bytes()))
    };
    let mut line = format!("@{} {kind} {}", row.version.0, text(&row.value));
    for group in 1..=reader.sst.meta.groups.len() {
        let part = step(reader, |source| reader.sst.part(source, group, row.place));
        write!(line, " | {}", text(&part)).expect("a string takes everything");
    }
    line
}

/// `KEY` or `KEY@AT`.
fn get(reader: &Reader<'_>, line: &str) -> String {
    let (key, at) = match line.rsplit_once('@') {
        Some((key, at)) => (key, Version(at.parse().expect("a version"))),
        None => (line, Version::MAX),
    };
    let key = unescape(key);
    let mut text = match step(reader, |source| reader.sst.get(source, &key, at)) {
        Some(row) => format!("{line}: {}", row_text(reader, &row)),
        None => format!("{line}: nothing"),
    };
    if let Some(version) = step(reader, |source| reader.sst.cover(source, &key, at)) {
        write!(text, ", range erase @{}", version.0).expect("a string takes everything");
    }
    text + "\n"
}

/// `[back] exact|lower|upper KEY`.
fn seek(reader: &Reader<'_>, line: &str) -> String {
    let (back, rest) = line.strip_prefix("back ").map_or((false, line), |rest| (true, rest));
    let (seek, key) = rest.split_once(' ').unwrap_or((rest, ""));
    let seek = match seek {
        "exact" => Seek::Exact,
        "lower" => Seek::Lower,
        "upper" => Seek::Upper,
        _ => panic!("how is {line:?} sought?"),
    };
    let key = unescape(key);
    let mut cursor = SstCursor::new(Arc::clone(&reader.sst));
    let there = step(reader, |source| match back {
        true => cursor.seek_back(source, &key, seek),
        false => cursor.seek(source, &key, seek),
    });
    let place = if there { Escaped(cursor.key()).to_string() } else { "nowhere".to_owned() };
    format!("{line}: {place}\n")
}

/// Prints all rows. With `reverse`, the scan goes from the last row to the first. With `at`, it reads the rows at
/// an old version.
fn scan(reader: &Reader<'_>, case: &TestCase) -> String {
    let reverse = case.args.contains_key("reverse");
    let at = case.args.get("at").map(|at| Version(at[0].parse().expect("a version")));
    let mut cursor = SstCursor::new(Arc::clone(&reader.sst));
    let mut text = String::new();
    let go = |cursor: &mut SstCursor, source: &dyn PageSource, first: bool| match (first, reverse) {
        (true, false) => cursor.seek_first(source),
        (true, true) => cursor.seek_last(source),
        (false, false) => cursor.next(source),
        (false, true) => cursor.prev(source),
    };
    let mut there = step(reader, |source| go(&mut cursor, source, true));
    while there {
        let key = Escaped(cursor.key()).to_string();
        if let Some(at) = at {
            if let Some(row) = step(reader, |source| cursor.visible(source, at)) {
                writeln!(text, "{key} {}", row_text(reader, &row)).expect("a string takes everything");
            }
        } else {
            write!(text, "{key} {}", row_text(reader, &cursor.newest().expect("it is at a row")))
                .expect("a string takes everything");
            let mut older = step(reader, |source| cursor.first_older(source));
            while older {
                let row = cursor.older().expect("it is at a version");
                write!(text, " {}", row_text(reader, &row)).expect("a string takes everything");
                older = step(reader, |source| cursor.next_older(source));
            }
            text.push('\n');
        }
        there = step(reader, |source| go(&mut cursor, source, false));
    }
    text
}

fn verify(reader: &Reader<'_>, built: &Built) -> String {
    let report = crate::verify(&reader.sst, &reader.source, &*built.raw(), &mut |_| {}).expect("the file is whole");
    let mut text = format!(
        "{} rows, {} erased, {} older versions, {} range erases\n",
        report.rows, report.erased, report.older_versions, report.range_erases
    );
    for kind in PageKind::ALL {
        let pages = report.pages_of(kind);
        if pages.pages > 0 {
            writeln!(text, "{} pages: {}, {} bytes", kind.name(), pages.pages, pages.bytes)
                .expect("a string takes everything");
        }
    }
    writeln!(text, "padding: {} bytes of {}", report.padding_bytes, report.file_bytes)
        .expect("a string takes everything");
    text
}
