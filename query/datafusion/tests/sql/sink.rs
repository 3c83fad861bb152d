//! Writes the rows of a query as files and ingests them into a table.

use crate::session::{Session, config};
use datafusion::arrow::array::AsArray as _;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::execution::session_state::SessionStateBuilder;
use kit::Scratch;
use larch::bulk::IngestOptions;
use larch::{Database, TableOptions};
use larch_datafusion::{BuiltFormat, LarchTable};
use rows::Tuple;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROWS: u32 = 20_000;

fn fill(scratch: &Scratch) -> Database {
    let database = Database::open(scratch.path().join("db")).expect("a database");
    let table = database.table("t").expect("a table");
    let mut import = table.import().expect("an import");
    for id in 0..ROWS {
        import.add(&(id,).to_key(), &(id % 10, vec![7_u8; 100]).to_key()).expect("it is added");
    }
    import.finish(|_| {}).expect("it is imported");
    database
}

/// A session in which the table is called `t`, and which knows `COPY … STORED AS LARCH`.
fn session(database: &Database) -> Session {
    let mut state = SessionStateBuilder::new().with_config(config(4, 1000)).with_default_features().build();
    state.register_file_format(Arc::new(BuiltFormat), true).expect("the name is free");
    let session = Session::of_state(state);
    let table = database.existing_table("t").expect("it can be asked").expect("it is there");
    session.add("t", database, &table, "key.tuple(id u32), value.tuple(small u32, content bytes)");
    session
}

fn shards(directory: &Path) -> Vec<PathBuf> {
    let mut shards: Vec<PathBuf> =
        std::fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("an entry").path()).collect();
    shards.sort();
    shards
}

#[test]
fn the_rows_of_a_query_become_a_table() {
    let scratch = Scratch::new("sql-copy");
    let database = fill(&scratch);
    let session = session(&database);
    let out = scratch.path().join("out");
    let copy = format!(
        "COPY (SELECT id, content, small * 2 AS twice, 'x' || small AS name FROM t WHERE id >= 100) TO '{}' STORED AS LARCH \
         OPTIONS ('columns' 'key.tuple(id u64), value.tuple(content bytes), part(1).json(twice u16, name string)', \
         'groups' 'main, rest')",
        out.display()
    );
    let counted = session.batches(&copy).expect("it is written");
    assert_eq!(counted[0].column(0).as_primitive::<UInt64Type>().value(0), u64::from(ROWS) - 100);
    let shards = shards(&out);
    assert_eq!(shards.len(), 4, "a shard for each partition of the scan");

    let groups = ["main", "rest"].map(str::to_owned).to_vec();
    let new = database.table_with("new", TableOptions { groups, ..TableOptions::default() }).expect("a table");
    let report = new.ingest(&shards, IngestOptions::default()).expect("they are taken in");
    assert_eq!(report.rows, u64::from(ROWS) - 100);
    let columns = "key.tuple(id u64), value.tuple(content bytes), part(1).json(twice u16, name string)";
    let columns = columns.parse().expect("columns");
    let table = LarchTable::new(&database.snapshot(), &new, columns).expect("the columns fit");
    session.context.register_table("new", Arc::new(table)).expect("the name is free");
    let differ = "SELECT count(*) FROM new FULL JOIN t ON new.id = t.id WHERE t.id >= 100 AND \
        (new.id IS NULL OR new.content <> t.content OR twice <> small * 2 OR name <> 'x' || small)";
    assert_eq!(session.rows(differ), ["0"]);
    assert_eq!(session.rows("SELECT count(*), min(id), max(id) FROM new"), ["19900|100|19999"]);
}

#[test]
fn rows_that_do_not_fit_leave_nothing_to_take_in() {
    let scratch = Scratch::new("sql-copy-bad");
    let database = fill(&scratch);
    let session = session(&database);
    let out = scratch.path().join("out");
    let copy = |query: &str, columns: &str| {
        let options = if columns.is_empty() { String::new() } else { format!("OPTIONS ('columns' '{columns}')") };
        format!("COPY ({query}) TO '{}' STORED AS LARCH {options}", out.display())
    };
    for (query, columns, expected) in [
        ("SELECT id, small FROM t", "", "wants the columns of the table"),
        ("SELECT id, small FROM t", "key.tuple(id u32)", "the query has a column small"),
        ("SELECT id FROM t", "key.tuple(id u32), value.tuple(n u8)", "the query has no column n"),
        ("SELECT id, small FROM t", "value.tuple(id u32, small u8)", "the table has no key"),
        ("SELECT id, small FROM t", "key.tuple(id u32), part(1).tuple(small u8), value", "the name of a column"),
        ("SELECT id, small FROM t", "key.tuple(id u8), value.tuple(small u8)", "column id"),
        (
            "SELECT id, nullif(small, 7) AS small FROM t",
            "key.tuple(id u32), value.tuple(small u8)",
            "column small: none",
        ),
        ("SELECT id, 100 / (19999 - id) AS n FROM t", "key.tuple(id u32), value.tuple(n i64)", "ivide by zero"),
    ] {
        let error = session.error(&copy(query, columns));
        assert!(error.contains(expected), "{query}, {columns}: {error}");
        if out.exists() {
            for shard in shards(&out) {
                assert!(!shard.join("LIST").exists(), "{query}, {columns}: {} counts", shard.display());
                std::fs::remove_dir_all(shard).expect("it can be removed");
            }
        }
    }
    std::fs::create_dir_all(out.join("other")).expect("a directory");
    let error = session.error(&copy("SELECT id FROM t", "key.tuple(id u32)"));
    assert!(error.contains("is not empty"), "{error}");
}
