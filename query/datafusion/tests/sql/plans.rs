//! Tests, by looking at plans, which parts of a query the scan does itself.

use crate::session::Session;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use kit::Scratch;
use larch::{Database, Snapshot, Table};
use larch_datafusion::{LarchScan, LarchTable};
use rows::{Declaration, Descending, Tuple};
use std::sync::Arc;

fn fill(scratch: &Scratch) -> (Database, Table) {
    let database = Database::open(scratch.path()).expect("a database");
    let table = database.table("t").expect("a table");
    let mut import = table.import().expect("an import");
    for a in 0..200_u32 {
        for b in (0..50_u32).rev() {
            import.add(&(a, Descending(b)).to_key(), &[7; 200]).expect("it is added");
        }
    }
    import.finish(|_| {}).expect("it is imported");
    (database, table)
}

fn session(partitions: usize) -> (Session, Scratch) {
    let scratch = Scratch::new("sql-plans");
    let (database, table) = fill(&scratch);
    let session = Session::new(partitions, 1000);
    session.add("t", &database, &table, "key.tuple(a u32, b u32 desc), value v bytes");
    (session, scratch)
}

#[test]
fn the_order_of_keys_needs_no_sort() {
    let (session, _scratch) = session(1);
    for (order, is_free) in
        [("a", true), ("a, b DESC", true), ("a DESC, b", true), ("a, b", false), ("b", false), ("a DESC", true)]
    {
        let plan = session.plan(&format!("SELECT a, b FROM t ORDER BY {order}"));
        assert_eq!(!plan.contains("SortExec"), is_free, "{order}: {plan}");
    }
    let plan = session.plan("SELECT b FROM t WHERE a = 7 ORDER BY b DESC LIMIT 3");
    assert!(!plan.contains("SortExec") && plan.contains("fetch=3"), "{plan}");
    let plan = session.plan("SELECT b FROM t WHERE a = 7 ORDER BY b LIMIT 3");
    assert!(!plan.contains("SortExec") && plan.contains("backwards, fetch=3"), "{plan}");
    assert_eq!(session.rows("SELECT b FROM t WHERE a = 7 ORDER BY b LIMIT 3"), ["0", "1", "2"]);
    assert_eq!(session.rows("SELECT a, b FROM t ORDER BY a DESC, b LIMIT 2"), ["199|0", "199|1"]);
}

#[test]
fn several_readers_keep_the_order() {
    let (session, _scratch) = session(4);
    let plan = session.plan("SELECT a, b FROM t ORDER BY a, b DESC");
    assert!(
        plan.contains("partitions=4") && plan.contains("SortPreservingMerge") && !plan.contains("SortExec"),
        "{plan}"
    );
    let expected: Vec<String> = (0..200).flat_map(|a| (0..50).rev().map(move |b| format!("{a}|{b}"))).collect();
    assert_eq!(session.rows("SELECT a, b FROM t ORDER BY a, b DESC"), expected);
    let backwards: Vec<String> = expected.into_iter().rev().collect();
    assert_eq!(session.rows("SELECT a, b FROM t ORDER BY a DESC, b"), backwards);
}

#[test]
fn partitions_have_about_equal_bytes() {
    let (session, _scratch) = session(4);
    let counts: Vec<usize> = session.runtime.block_on(async {
        let plan =
            session.context.sql("SELECT a FROM t").await.expect("a plan").create_physical_plan().await.expect("a plan");
        let context = session.context.task_ctx();
        let mut counts = Vec::new();
        for partition in 0..4 {
            let rows =
                datafusion::physical_plan::common::collect(plan.execute(partition, context.clone()).expect("a stream"));
            counts.push(rows.await.expect("rows").iter().map(|batch| batch.num_rows()).sum());
        }
        counts
    });
    assert_eq!(counts.iter().sum::<usize>(), 10_000);
    assert!(counts.iter().all(|rows| (2_000..3_000).contains(rows)), "{counts:?}");
}

#[test]
fn a_scan_that_another_process_planned_gives_the_same_rows() {
    let scratch = Scratch::new("sql-spec");
    let (database, table) = fill(&scratch);
    let columns: larch_datafusion::Columns = "key.tuple(a u32, b u32 desc), value v bytes".parse().expect("columns");
    let table_of = |snapshot: &Snapshot| LarchTable::new(snapshot, &table, columns.clone()).expect("the columns fit");
    let ours = table_of(&database.snapshot());
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let context = SessionContext::new();
        context.register_table("t", Arc::new(ours)).expect("the name is free");
        let plan = context.sql("SELECT b FROM t WHERE a IN (3, 9)").await.expect("a plan");
        let plan = plan.create_physical_plan().await.expect("a plan");
        let mut node: Arc<dyn ExecutionPlan> = plan;
        while node.downcast_ref::<LarchScan>().is_none() {
            node = node.children()[0].clone();
        }
        let spec = node.downcast_ref::<LarchScan>().expect("it is one").spec().clone();
        let sent = serde_json::to_vec(&spec).expect("plain values");
        assert_eq!(serde_json::from_slice::<larch_datafusion::ScanSpec>(&sent).expect("they are read back"), spec);
        let theirs = table_of(&database.snapshot()).scan_of(spec.clone()).expect("it is of this table");
        assert_eq!(theirs.spec(), &spec);
        let rows = theirs.execute(0, context.task_ctx()).expect("a stream");
        let rows = datafusion::physical_plan::common::collect(rows).await.expect("rows");
        assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 100);
        let other = larch_datafusion::ScanSpec { table: "u".to_owned(), ..spec };
        assert!(table_of(&database.snapshot()).scan_of(other).is_err());
    });
}

#[test]
fn a_table_that_declares_its_keys_needs_nothing_else() {
    let scratch = Scratch::new("sql-declared");
    let database = Database::open(scratch.path()).expect("a database");
    let metadata = Declaration::of::<(u32, String)>().to_bytes();
    let declared = larch::TableOptions { metadata, ..larch::TableOptions::default() };
    let table = database.table_with("declared", declared).expect("a table");
    table.insert((17_u32, "Bonn").to_key(), "value").expect("it is written");
    let raw = database.table("raw").expect("a table");
    raw.insert("k", "v").expect("it is written");
    let session = Session::new(2, 1000);
    for (name, table) in LarchTable::all(&database, &database.snapshot()).expect("tables") {
        session.context.register_table(&*name, Arc::new(table)).expect("the name is free");
    }
    assert_eq!(session.rows("SELECT key_1, key_0, value FROM declared WHERE key_0 = 17"), ["Bonn|17|76616c7565"]);
    assert_eq!(session.rows("SELECT * FROM raw WHERE key = 'k'"), ["6b|76"]);
    let plan = session.plan("SELECT * FROM raw WHERE key = 'k'");
    assert!(!plan.contains("FilterExec"), "{plan}");
}

#[test]
fn the_guide_shows_statements_that_work_and_the_plan_that_they_have() {
    let page = include_str!("../../../../docs/guide/sql.md");
    let block = page.split("```sql").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has statements");
    let (declaration, query) = block.trim().trim_end_matches(';').split_once(");").expect("there are two");
    let scratch = Scratch::new("sql-guide");
    let database = Database::open(scratch.path()).expect("a database");
    let groups = ["main", "info", "notes"].map(str::to_owned).to_vec();
    let table = database.table_with("orders", larch::TableOptions { groups, ..larch::TableOptions::default() });
    let parts = [(7_i64, Some(0.5_f64)).to_key(), br#"{"address": {"city": "Oslo"}}"#.to_vec(), Vec::new()];
    let table = table.expect("a table");
    for day in 20_239..20_243_u32 {
        table.insert_parts((17_u16, Descending(day), 1_u32).to_key(), &parts).expect("it is written");
    }
    let session = Session::with_factory(&database);
    session.batches(&format!("{declaration})")).expect("the table is declared");
    assert_eq!(session.rows(query), ["Oslo|14"]);
    let plan = session.plan(query);
    let scan = plan.lines().find_map(|line| Some(&line[line.find("LarchScan")?..])).expect("it scans");
    assert!(page.contains(&format!("```text\n{scan}\n```")), "the guide shows another plan than {scan}");
}
