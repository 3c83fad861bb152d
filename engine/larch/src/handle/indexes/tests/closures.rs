//! Tests indexes whose keys a closure makes: the first `index_by` creates the index, and a program calls it again
//! after each open.

use super::*;

fn open(disk: &Arc<SimDisk>) -> (Database, Table) {
    let db = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).open().expect("it opens");
    let table = db.table("people").expect("the disk works");
    (db, table)
}

fn by_city(table: &Table) -> Index {
    table.index_by("by_city", |_, city, emit| emit(city)).expect("the disk works")
}

fn names(index: &Index, city: &str) -> Vec<Vec<u8>> {
    let rows = index.get_by(city).expect("the disk works");
    rows.iter().map(|(name, _)| name.to_vec()).collect()
}

#[test]
fn an_index_by_a_closure_has_the_rows_of_before_and_of_after() {
    let (_db, table) = open(&SimDisk::new(1));
    table.insert("ada", "London").expect("the disk works");
    let index = by_city(&table);
    table.insert("mary", "London").expect("the disk works");
    table.insert("emmy", "Erlangen").expect("the disk works");
    assert_eq!(names(&index, "London"), [b"ada".to_vec(), b"mary".to_vec()]);
    table.insert("ada", "Paris").expect("the disk works");
    assert_eq!(names(&by_city(&table), "London"), [b"mary"], "a second call gives the same index");
    assert!(index.check(|_| {}).expect("it can be read").problems.is_empty());
}

#[test]
fn after_an_open_writes_wait_for_the_closure_and_say_so() {
    let disk = SimDisk::new(1);
    let (db, table) = open(&disk);
    by_city(&table);
    table.insert("ada", "London").expect("the disk works");
    drop(table);
    db.close().expect("the disk works");
    let (_db, table) = open(&disk);
    assert_eq!(names(&table.index("by_city").expect("it is there"), "London"), [b"ada"], "reads need no closure");
    let error = table.insert("mary", "London").expect_err("nothing makes its keys");
    assert!(matches!(error, Error::NoClosure { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("index_by(\"by_city\", ..)") && text.contains("people"), "{text}");
    let error = table.index("by_city").expect("it is there").check(|_| {}).expect_err("nothing makes keys");
    assert!(matches!(error, Error::NoClosure { .. }), "{error}");
    let index = by_city(&table);
    table.insert("mary", "London").expect("now something makes them");
    table.remove("ada").expect("the disk works");
    assert_eq!(names(&index, "London"), [b"mary"]);
    assert!(index.check(|_| {}).expect("it can be read").problems.is_empty());
}

#[test]
fn an_index_of_another_kind_is_not_taken_for_that_of_a_closure() {
    let extractors = |declaration: &[u8]| Ok(Box::new(Extractor::of(declaration)?) as Box<dyn IndexKeys>);
    let builder = Database::builder("db").machine(Machine::simulated(1).0).extractors(extractors);
    let db = builder.open().expect("it opens");
    let table = db.table("t").expect("the disk works");
    table.create_index("words", "words", &IndexOptions::default(), |_| {}).expect("it is built");
    let error = table.index_by("words", |_, _, _| {}).expect_err("it has a declaration");
    assert!(matches!(error, Error::IndexExists { .. }), "{error}");
    let error = table.create_index("other", BY_CLOSURE, &IndexOptions::default(), |_| {}).expect_err("no closure");
    assert!(matches!(error, Error::NoClosure { .. }), "{error}");
    let unique = IndexOptions { unique: true };
    table.index_by_with("value", &unique, |_, value, emit| emit(value)).expect("it is built");
    table.insert("a", "1").expect("the disk works");
    assert!(matches!(table.insert("b", "1"), Err(Error::Duplicate { .. })));
    assert!(matches!(table.index_by("value", |_, _, _| {}), Err(Error::IndexExists { .. })));
    let groups = ["a", "b"].map(str::to_owned).to_vec();
    let grouped = db.table_with("grouped", TableOptions { groups, ..TableOptions::default() }).expect("it is made");
    assert!(matches!(grouped.index_by("value", |_, _, _| {}), Err(Error::Grouped { .. })));
}

#[test]
fn a_closure_of_an_index_that_could_not_be_created_makes_no_keys_of_the_next_one() {
    let disk = SimDisk::new(1);
    let extractors = |declaration: &[u8]| Ok(Box::new(Extractor::of(declaration)?) as Box<dyn IndexKeys>);
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).extractors(extractors);
    let db = builder.open().expect("it opens");
    let table = db.table("people").expect("the disk works");
    table.insert("ada", "London").expect("the disk works");
    disk.set_capacity(0);
    let failed = table.index_by("by_city", |_, _, emit| emit(b"wrong"));
    assert!(failed.expect_err("the disk is full").is_disk_full());
    disk.set_capacity(u64::MAX);
    let index = table.create_index("value", "value", &IndexOptions::default(), |_| {}).expect("the disk works");
    table.insert("mary", "London").expect("the disk works");
    assert_eq!(names(&index, "wrong"), [] as [Vec<u8>; 0]);
    assert!(index.check(|_| {}).expect("it can be read").problems.is_empty());
}

#[test]
fn a_dropped_index_may_come_again_with_another_closure() {
    let (db, table) = open(&SimDisk::new(1));
    table.insert("ada", "London").expect("the disk works");
    by_city(&table);
    table.drop_index("by_city").expect("the disk works");
    let index = table.index_by("by_city", |_, city, emit| emit(&city[..1])).expect("it is built");
    assert_eq!(names(&index, "L"), [b"ada"]);
    // A renamed table keeps its index and its closure.
    drop(index);
    let table = db.rename_table("people", "persons").expect("the disk works");
    table.insert("lise", "Lund").expect("the closure is known");
    assert_eq!(names(&table.index("by_city").expect("it is there"), "L"), [b"ada".to_vec(), b"lise".to_vec()]);
}
