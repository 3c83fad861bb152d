//! Tests that memtables are counted as one source.

use super::*;
use crate::base::operand::MergeFunctions;
use crate::base::options::TableOptions;
use crate::base::table::{TableId, TableInfo};
use crate::manifest::{FileSet, TableFiles};
use crate::memtable::set::MemSet;
use crate::view::{ReadRules, View};
use sst::RowKind;

const TABLE: TableId = TableId(1);

/// A view with these memtables, newest first. A text lists puts (`+k@5`), erases (`-k@5`) and range erases
/// (`a..c@5`).
fn view(memtables: &[&str]) -> View {
    let memory = memtables.iter().map(|script| {
        let memory = MemSet::new(1, Arc::default());
        let memtable = memory.table_or_new(TABLE);
        for word in script.split_whitespace() {
            let (what, version) = word.split_once('@').expect("every word has a version");
            let version = Version(version.parse().expect("it is a number"));
            match (what.strip_prefix('+'), what.strip_prefix('-'), what.split_once("..")) {
                (Some(key), ..) => memtable.apply(key.as_bytes(), version, RowKind::Put, b"value"),
                (_, Some(key), _) => memtable.apply(key.as_bytes(), version, RowKind::Erase, b""),
                (.., Some((start, end))) => drop(memtable.remove_range(start.as_bytes(), end.as_bytes(), version)),
                _ => panic!("{word} is no write"),
            }
        }
        Arc::new(memory)
    });
    let mut files = FileSet::default();
    let info = Arc::new(TableInfo {
        id: TABLE,
        name: "t".to_owned(),
        options: TableOptions::default(),
        since: 0,
        index: None,
    });
    files.tables.insert(TableFiles::new(info));
    View {
        generation: 0,
        memory: memory.collect(),
        files: Arc::new(files),
        rules: Arc::new(ReadRules {
            clock: RowClock::new(Arc::new(os::sim::SimClock::new())),
            functions: MergeFunctions::default(),
            memory: Arc::default(),
        }),
    }
}

/// The table of `view`, for a reader at version `at`.
fn table(view: &View, at: u64) -> TableView<'_> {
    TableView { view, files: &view.files.tables[&TABLE], at: Version(at), own: None, shows_expired: false }
}

fn all() -> KeyRange {
    KeyRange { start: Vec::new(), end: None }
}

/// The rows of `span` at version `at` as text: `k` for a row that a reader sees, `-k` for a row that only hides older
/// ones.
fn shown(view: &View, at: u64, span: &KeyRange) -> String {
    let table = table(view, at);
    let mut rows = MemoryRows::from(table, span.low());
    let mut shown = Vec::new();
    while let Some((row, shows)) = rows.next_in(span) {
        shown.push(format!("{}{}", if shows { "" } else { "-" }, row.key().escape_ascii()));
    }
    shown.join(" ")
}

#[test]
fn the_newest_memtable_with_a_key_decides() {
    let view = view(&["-b@8 +c@9 +e@8", "+a@5 +b@6 -c@5 +d@5 -e@4"]);
    assert_eq!(shown(&view, 9, &all()), "a -b c d e");
    assert_eq!(shown(&view, 7, &all()), "a b -c d -e");
    assert_eq!(shown(&view, 4, &all()), "-e");
    assert_eq!(shown(&view, 9, &KeyRange { start: b"b".to_vec(), end: Some(b"d".to_vec()) }), "-b c");
}

#[test]
fn a_range_erase_hides_what_older_versions_and_memtables_have() {
    let view = view(&["a..c@8 +a@7 +b@9", "+a@5 +aa@5 +c@5 d..@6 +d@5 +e@6"]);
    assert_eq!(shown(&view, 9, &all()), "-a -aa b c -d e");
    assert_eq!(shown(&view, 7, &all()), "a aa c -d e");
    let erased = |at: u64| {
        let table = table(&view, at);
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let spans = erased(table, &all()).into_iter();
        spans.map(|span| format!("{}..{}", text(&span.start), text(&span.end.unwrap_or_default()))).collect::<Vec<_>>()
    };
    assert_eq!(erased(9), ["a..c", "d.."]);
    assert_eq!(erased(7), ["d.."]);
}

#[test]
fn runs_are_cut_between_keys_and_count_every_version() {
    let view = view(&["+a@1 +a@2 +a@3 +b@1 +c@1 +c@2 +d@1"]);
    let table = table(&view, 9);
    let memtable = table.memtables().next().expect("it was written to");
    let runs = runs(memtable, &all(), 2, u64::MAX);
    let shown: Vec<_> = runs.iter().map(|run| (run.first_key.as_slice(), run.last_key.as_slice(), run.rows)).collect();
    assert_eq!(shown, [(&b"a"[..], &b"b"[..], 2), (b"c", b"d", 2)]);
    let bytes = |keys: [&[u8]; 2]| {
        let rows = memtable.all_versions().filter(|row| keys.contains(&row.key()));
        rows.map(|row| row.memory_bytes()).sum::<u64>()
    };
    assert_eq!((runs[0].bytes, runs[1].bytes), (bytes([b"a", b"b"]), bytes([b"c", b"d"])), "every version counts");
    let InMemory { rows, bytes } = held(table, &all());
    assert_eq!((rows, bytes), (4, runs.iter().map(|run| run.bytes).sum()));
    let keys: Vec<_> = (0..5).map(|n| nth_key(memtable, b"a", n)).collect();
    let letter = |letter: &[u8]| Some(letter.to_vec());
    assert_eq!(keys, [letter(b"a"), letter(b"b"), letter(b"c"), letter(b"d"), None]);
    assert_eq!(MemoryRows::last_in(table, &KeyRange { start: b"b".to_vec(), end: Some(b"d".to_vec()) }), letter(b"c"));
}
