//! Counts what queries read from disk.

use crate::session::Session;
use kit::Scratch;
use larch::stats::PageKind;
use larch::{Database, Table, TableOptions};
use rows::Tuple;

const ROWS: u32 = 20_000;
const COLUMNS: &str = "key.tuple(id u32), value.tuple(amount u64), part(1).tuple(small u32), part(2) large bytes";

/// Fills a table with three column groups, one of which has most of the bytes, in one file.
fn fill(scratch: &Scratch) -> (Database, Table) {
    let directory = scratch.path().join("db");
    let groups = ["main", "small", "large"].map(str::to_owned).to_vec();
    let database = Database::open(&directory).expect("a database");
    let options = TableOptions { groups, page_bytes: 4 << 10, node_bytes: 4 << 10, ..TableOptions::default() };
    let table = database.table_with("t", options).expect("a table");
    let mut import = table.import().expect("an import");
    for id in 0..ROWS {
        let parts = [(u64::from(id) * 3,).to_key(), (id % 100,).to_key(), vec![id as u8; 200]];
        import.add_parts(&(id,).to_key(), &parts).expect("it is added");
    }
    import.finish(|_| {}).expect("it is imported");
    database.close().expect("it is closed");
    let database = Database::builder(&directory).read_only(true).open().expect("it is there");
    let table = database.existing_table("t").expect("it can be asked").expect("it is there");
    (database, table)
}

/// Runs a query with an empty cache. Returns the pages of rows and of column groups that it reads, and the bytes in
/// all.
fn reads(sql: &str, expected: &str) -> (u64, u64, u64) {
    let scratch = Scratch::new("sql-pages");
    let (database, table) = fill(&scratch);
    let session = Session::new(4, 1000);
    session.add("t", &database, &table, COLUMNS);
    let before = database.metrics();
    assert_eq!(session.rows(sql), [expected], "{sql}");
    let after = database.metrics();
    let of_kind = |kind| after.pages.of_kind(kind).faults - before.pages.of_kind(kind).faults;
    let bytes = after.page_read_bytes - before.page_read_bytes;
    (of_kind(PageKind::Data), of_kind(PageKind::Group), bytes)
}

#[test]
fn an_aggregate_of_one_group_reads_no_page_of_the_others() {
    let (data, groups, all_bytes) = reads("SELECT sum(amount) FROM t", "599970000");
    assert!(data > 0 && groups == 0, "{data} and {groups} pages");
    let (_, small, small_bytes) = reads("SELECT sum(small) FROM t", "990000");
    // 20,000 rows of 4 bytes need 20 pages of 4 KiB, and 20,000 rows of 200 bytes need 1,000 pages.
    assert!((1..100).contains(&small), "{small} pages of a group with {ROWS} rows of 4 bytes");
    assert!(all_bytes < 600 << 10 && small_bytes < 800 << 10, "{all_bytes} and {small_bytes} bytes");
    let (_, large, _) = reads("SELECT max(large) FROM t", &"ff".repeat(200));
    assert!(large > 900, "{large} pages of a group with {ROWS} rows of 200 bytes");
}

#[test]
fn counts_and_ends_read_no_rows() {
    let (data, groups, _) = reads("SELECT count(*) FROM t", "20000");
    assert_eq!((data, groups), (0, 0));
    // The least and the greatest key take a page each.
    let (data, groups, _) = reads("SELECT count(*), min(id), max(id), count(id) FROM t", "20000|0|19999|20000");
    assert!(data <= 2 && groups == 0, "{data} and {groups} pages");
    let (data, groups, _) = reads("SELECT count(*), max(id) FROM t WHERE id BETWEEN 70 AND 9000", "8931|9000");
    assert!(data <= 2 && groups == 0, "{data} and {groups} pages");
}

#[test]
fn a_filter_on_keys_reads_only_its_pages() {
    // At about 20 bytes a row in the main group, 100 rows are on two pages, or on three if they begin and end within
    // a page.
    let (data, groups, _) = reads("SELECT sum(amount) FROM t WHERE id >= 10000 AND id < 10100", "3014850");
    assert!((1..=3).contains(&data) && groups == 0, "{data} and {groups} pages");
    let (data, groups, _) =
        reads("SELECT sum(small), count(large) FROM t WHERE id BETWEEN 10000 AND 10099", "4950|100");
    // 100 rows of 200 bytes are on six pages.
    assert!(data <= 3 && groups <= 10, "{data} and {groups} pages");
    let (data, groups, _) = reads("SELECT sum(amount) FROM t WHERE id IN (5, 7000, 19000)", "78015");
    assert!(data <= 3 && groups == 0, "{data} and {groups} pages");
    // For a constant with a fraction, DataFusion casts the key. The scan must still read only the range of matching
    // keys.
    for (filter, sum) in [("id = 3.0", "9"), ("id IN (5.0, 7000, 19000.5)", "21015"), ("id > 19989.5", "599835")] {
        let (data, groups, _) = reads(&format!("SELECT sum(amount) FROM t WHERE {filter}"), sum);
        assert!((1..=3).contains(&data) && groups == 0, "{filter}: {data} and {groups} pages");
    }
    let (data, groups, _) = reads("SELECT count(large) FROM t WHERE id = 3.5 OR id > 30000.5", "0");
    assert_eq!((data, groups), (0, 0));
    let (data, groups, _) = reads("SELECT count(large) FROM t WHERE id > 30000 AND small = 7", "0");
    assert_eq!((data, groups), (0, 0));
}

#[test]
fn a_limit_reads_the_first_rows_alone() {
    let (data, groups, _) = reads("SELECT sum(small) FROM (SELECT small FROM t LIMIT 10)", "45");
    assert!(data <= 2 && groups <= 1, "{data} and {groups} pages");
    let (data, groups, _) = reads("SELECT max(id) FROM (SELECT id FROM t ORDER BY id DESC LIMIT 10)", "19999");
    assert!(data <= 10 && groups == 0, "{data} and {groups} pages");
}
