#![allow(clippy::disallowed_methods, reason = "reads the tree and the documents, never simulated")]

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The variable with the directory of the documents.
const DOCUMENTS: &str = "LARCH_DOCUMENTS";

/// All quoted figures.
fn all() -> Vec<Quote> {
    let tpcc = YDB_TPCC.into_iter().flat_map(|YdbTpcc { cache, warehouses, flat, tree }| {
        let side = |side: YdbTpccSide| [side.tpmc, side.failed, side.load, side.compaction, side.index];
        [vec![cache, warehouses], side(flat).to_vec(), side(tree).to_vec()].concat()
    });
    let ycsb = YDB_YCSB.into_iter().flat_map(|YdbYcsb { march, may, .. }| [march, may].concat());
    let orient = [
        ORIENTDB_INSERTS,
        ORIENTDB_HALF_READS,
        ORIENTDB_HALF_UPDATES,
        ORIENTDB_FEW_READS,
        ORIENTDB_FEW_UPDATES,
        ORIENTDB_READS,
    ];
    let orient = orient.into_iter().flat_map(|OrientDb { large, small }| [large.all(), small.all()].concat()).flatten();
    let talk = [
        BENCHBASE_WAREHOUSE,
        LEAST_WAREHOUSES,
        BENCHBASE_MEMORY,
        BENCHBASE_THREADS,
        YDB_WAREHOUSE,
        YDB_WAREHOUSES_A_CORE,
        YDB_MEMORY,
        YDB_CORES,
    ];
    let scylla = [SCYLLA_READERS, SCYLLA_PARTITIONS, SCYLLA_READS[0], SCYLLA_READS[1], SCYLLA_GAIN];
    let single = [YDB_YCSB_TIME, YDB_YCSB_OPERATIONS, ORIENTDB_LOAD_GAIN];
    let ybio = YBIO.into_iter().flat_map(|YbioRun { batch, rate, updated }| [batch, rate, updated]);
    tpcc.chain(ycsb.flat_map(|YdbYcsbSide { rate, late }| [rate, late]))
        .chain(orient)
        .chain(ORIENTDB_LOADS.into_iter().flatten())
        .chain(talk)
        .chain(scylla)
        .chain(single)
        .chain(ybio)
        .collect()
}

/// The text with one space between words, without the backslashes that continue a command.
fn in_one_line(text: &str) -> String {
    text.replace('\\', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the figure follows the texts of its place in `document`, which is in one line.
fn is_at_its_place(document: &str, place: &[&str], written: &str) -> bool {
    let mut rest = document;
    for text in place.iter().filter(|text| !text.is_empty()) {
        let Some((_, after)) = rest.split_once(text) else { return false };
        rest = after;
    }
    let Some(after) = rest.trim_start().strip_prefix(written) else { return false };
    let mut next = after.chars();
    match next.next() {
        Some('.') => !next.next().is_some_and(|next| next.is_ascii_digit()),
        next => !next.is_some_and(|next| next.is_ascii_digit()),
    }
}

/// The numbers of a text, without separators of thousands and without zeros behind the point.
fn numbers(text: &str) -> Vec<String> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',' | '_');
    let is_of_word = |letter: char| letter.is_alphanumeric() || is_of_number(letter);
    let words =
        text.split(|letter| !is_of_word(letter)).filter(|word| word.starts_with(|it: char| it.is_ascii_digit()));
    let number = |word: &str| {
        let number = &word[..word.find(|letter| !is_of_number(letter)).unwrap_or(word.len())];
        let number = number.trim_end_matches(['.', ',', '_']).replace([',', '_'], "");
        number.strip_suffix(".0").map_or(number.clone(), str::to_owned)
    };
    words.map(number).collect()
}

#[test]
fn a_figure_is_found_behind_the_texts_of_its_place_only() {
    let document = in_one_line("One run\n  tpmC: 12\nOther run\n  tpmC: 34.5 and\n  more: (0.01%)");
    for (place, written, is_there) in [
        (["One run", "", "", "tpmC:"], "12", true),
        (["Other run", "", "", "tpmC:"], "34.5", true),
        (["Other run", "", "", "tpmC:"], "34", false),
        (["Other run", "", "", "tpmC:"], "12", false),
        (["One run", "", "", "tpmC:"], "1", false),
        (["Other run", "tpmC:", "more:", "("], "0.01", true),
        (["Other run", "One run", "", "tpmC:"], "12", false),
    ] {
        assert_eq!(is_at_its_place(&document, &place, written), is_there, "{place:?} {written}");
    }
}

#[test]
fn every_quote_is_a_number_with_a_unit_and_a_place() {
    for quote in all() {
        assert!(quote.value() >= 0.0 && !quote.unit.is_empty(), "{quote:?}");
        assert!(!quote.place[3].is_empty(), "{quote:?}");
    }
    assert!(SCYLLA_TABLES.iter().chain(&SCYLLA_COMMANDS).all(|lines| !lines.place.is_empty()));
}

#[test]
fn texts_of_pages_have_quoted_figures_only() {
    // A quote in thousands stands in a text as the whole number.
    let value = |quote: &Quote| quote.value() * if quote.unit.starts_with("K ") { 1000.0 } else { 1.0 };
    for Prose { text, quotes } in [TALK, YDB_INDEX, ORIENTDB, SCYLLA] {
        // The year is the document's.
        let numbers: Vec<String> = numbers(text).into_iter().filter(|number| number != "2021").collect();
        assert_eq!(numbers, quotes.iter().map(|quote| value(quote).to_string()).collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn medians_are_those_of_the_lines() {
    let medians = |column| SCYLLA_TABLES.map(|lines| lines.median_of(column));
    assert_eq!([medians("rows/s"), medians("median"), medians("max")], [[4524.0, 7913.0], [21.0, 12.0], [40.0, 25.0]]);
}

/// The Rust files below `directory`, without those of this module.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(directory).expect("it is a directory of the tree") {
        let path = entry.expect("the tree can be read").path();
        if path.is_dir() {
            sources.extend(sources_of(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    sources
}

fn sources_of(directory: &Path) -> Vec<PathBuf> {
    if directory.ends_with("quoted") { Vec::new() } else { sources(directory) }
}

#[test]
fn no_other_file_has_a_quoted_figure() {
    let figures = all().into_iter().flat_map(|quote| numbers(&quote.written.replace(' ', "")));
    let cells = SCYLLA_TABLES.iter().flat_map(|lines| numbers(lines.text));
    // Short and round numbers stand in many places by chance.
    let is_known_by_its_digits =
        |number: &String| number.chars().filter(char::is_ascii_digit).count() >= 4 && !number.ends_with("00");
    let figures: BTreeSet<String> = figures.chain(cells).filter(is_known_by_its_digits).collect();
    assert!(figures.contains("151485") && figures.contains("72032") && figures.contains("1088"), "{figures:?}");
    let mut typed = BTreeMap::new();
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        if path.ends_with("src/quoted.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the tree can be read");
        let found: Vec<String> = numbers(&text).into_iter().filter(|number| figures.contains(number)).collect();
        if !found.is_empty() {
            typed.insert(path, found);
        }
    }
    assert!(typed.is_empty(), "take these figures from `quoted`: {typed:#?}");
}

/// A file of the tree.
fn of_tree(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).expect("the tree can be read")
}

#[test]
fn documentation_says_what_is_quoted() {
    let gib = YDB_TPCC.map(|run| run.cache.written).to_vec();
    let ratios = YDB_TPCC.map(|run| format!("{:.2}", run.tree.tpmc.value() / run.flat.tpmc.value()));
    let rates = [ORIENTDB_READS.small, ORIENTDB_READS.large].map(|side| side.rate.expect("reads have a rate").value());
    let [[hours, _], [fewer_hours, _]] = ORIENTDB_LOADS;
    let reads = SCYLLA_READS.map(|reads| reads.written);
    for (page, said) in [
        ("experiments.md", format!("on a cluster with caches of {}, {} and {} GB", gib[0], gib[1], gib[2])),
        ("experiments.md", format!("three caches are {}, {} and {}", ratios[0], ratios[1], ratios[2])),
        ("experiments.md", format!("KiB gain {:.2} times over pages of 64 KiB", rates[0] / rates[1])),
        ("experiments.md", format!("OrientDB loaded for {} and {} hours", fewer_hours.written, hours.written)),
        ("sharing.md", format!("{} readers read {} partitions", SCYLLA_READERS.written, SCYLLA_PARTITIONS.written)),
        ("sharing.md", format!("| reads a row | {} to {} |", reads[0], reads[1])),
        ("sharing.md", format!("throughput, at least {} times", 1.0 + SCYLLA_GAIN.value() / 100.0)),
    ] {
        assert!(in_one_line(&of_tree(&format!("docs/benchmarks/{page}"))).contains(&said), "{page}: {said}");
    }
}

/// The documents by their titles, each in one line.
fn documents() -> BTreeMap<&'static str, String> {
    let directory =
        std::env::var_os(DOCUMENTS).unwrap_or_else(|| panic!("set {DOCUMENTS} to the documents' directory"));
    let files = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{DOCUMENTS}: {error}"));
    let texts = files.map(|file| std::fs::read_to_string(file.expect("it is listed").path()).unwrap_or_default());
    let texts: Vec<String> = texts.map(|text| in_one_line(&text)).collect();
    let with = |title: &'static str| {
        let text = texts.iter().find(|text| text.contains(title));
        (title, text.unwrap_or_else(|| panic!("{DOCUMENTS}: no document has `{title}`")).clone())
    };
    Document::ALL.map(Document::title).map(with).into()
}

#[test]
#[ignore = "needs the quoted documents, which are not in the tree: LARCH_DOCUMENTS=DIRECTORY"]
fn every_quote_is_in_its_document() {
    let documents = documents();
    let mut missing = Vec::new();
    for Quote { written, unit, document, place } in all() {
        if !is_at_its_place(&documents[document.title()], &place, written) {
            missing.push(format!("{written} {unit}: {document:?}, {place:?}"));
        }
    }
    for Passage { text, document, place } in SCYLLA_TABLES.into_iter().chain(SCYLLA_COMMANDS) {
        let here = documents[document.title()].split_once(place).is_some_and(|(_, after)| {
            let after = after.trim_start().trim_start_matches("./");
            after.starts_with(&in_one_line(text))
        });
        if !here {
            missing.push(format!("{document:?}, {place}: {text}"));
        }
    }
    // Passage that other crates show as examples of a format.
    for (path, from, document) in [
        ("bench/ycsb/src/report/seed_line.rs", "2024-03-26", Document::YdbIndex),
        ("bench/harness/src/report/live.rs", "time   ops/s", Document::Scylla),
        ("bench/harness/src/report/live.rs", "1s ", Document::Scylla),
    ] {
        let source = of_tree(path);
        let lines = source.lines().filter_map(|line| line.strip_prefix("//!")).map(str::trim_start);
        let line = in_one_line(lines.into_iter().find(|line| line.starts_with(from)).expect("it has an example"));
        if !documents[document.title()].contains(&line) {
            missing.push(format!("{path}: {line}"));
        }
    }
    assert!(missing.is_empty(), "not as in the documents: {missing:#?}");
    println!("{} figures are as in the documents", all().len());
}
