//! All queries of TPC-H, on tables of many partitions and of a single page. The expected answers come from
//! DataFusion in this process, on the same rows in memory, without Larch or Ballista.

use crate::cluster::{Cluster, answer, larch};
use crate::compared::{compare, expected, script};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::datasource::MemTable;
use kit::Scratch;
use larch::Database;
use rows::Tuple;
use std::fmt::Display;
use std::path::Path;
use tpchgen::generators as rows_of;
use tpchgen::q_and_a::queries;

/// The values of the parameters `:1`, `:2`, … in each query: those for which the specification gives answers, or
/// others where these would leave no row of the small tables here.
const PARAMETERS: [&[&str]; 22] = [
    &["90"],
    &["15", "BRASS", "EUROPE"],
    &["BUILDING", "1995-03-15"],
    &["1993-07-01"],
    &["ASIA", "1994-01-01"],
    &["1994-01-01", "0.06", "24"],
    &["FRANCE", "GERMANY"],
    &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
    &["green"],
    &["1993-10-01"],
    &["GERMANY", "0.001"],
    &["MAIL", "SHIP", "1994-01-01"],
    &["special", "requests"],
    &["1995-09-01"],
    &["1996-01-01"],
    &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
    &["Brand#23", "MED BOX"],
    &["250"],
    &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
    &["forest", "1994-01-01", "CANADA"],
    &["SAUDI ARABIA"],
    &["13", "31", "23", "29", "30", "18", "17"],
];

/// A table of TPC-H.
struct Table {
    name: &'static str,
    /// The leading columns of the table, which form its key.
    key: &'static [&'static str],
    /// The rows as text, with a `|` after each field.
    lines: Vec<String>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

fn table(
    name: &'static str,
    key: &'static [&'static str],
    lines: impl IntoIterator<Item: Display>,
    batches: impl IntoIterator<Item = Result<RecordBatch, datafusion::arrow::error::ArrowError>>,
) -> Table {
    let lines = lines.into_iter().map(|row| row.to_string()).collect();
    let batches: Vec<RecordBatch> = batches.into_iter().map(|batch| batch.expect("the rows fit")).collect();
    Table { name, key, lines, schema: batches[0].schema(), batches }
}

/// Makes the tables whose names `is_asked` accepts, at a scale. At scale 1, all eight tables together have a
/// gigabyte of text.
fn tables(scale: f64, is_asked: impl Fn(&str) -> bool) -> Vec<Table> {
    macro_rules! table {
        ($name:literal, $key:expr, $rows:ident, $arrow:ident) => {
            is_asked($name).then(|| {
                let rows = || rows_of::$rows::new(scale, 1, 1);
                table($name, $key, rows().iter(), tpchgen_arrow::$arrow::new(rows()))
            })
        };
    }
    let tables = [
        table!("region", &["r_regionkey"], RegionGenerator, RegionArrow),
        table!("nation", &["n_nationkey"], NationGenerator, NationArrow),
        table!("supplier", &["s_suppkey"], SupplierGenerator, SupplierArrow),
        table!("customer", &["c_custkey"], CustomerGenerator, CustomerArrow),
        table!("part", &["p_partkey"], PartGenerator, PartArrow),
        table!("partsupp", &["ps_partkey", "ps_suppkey"], PartSuppGenerator, PartSuppArrow),
        table!("orders", &["o_orderkey"], OrderGenerator, OrderArrow),
        table!("lineitem", &["l_orderkey", "l_linenumber"], LineItemGenerator, LineItemArrow),
    ];
    tables.into_iter().flatten().collect()
}

impl Table {
    /// Puts the rows into a table of Larch, with numbers as the key, and all fields as text in the value.
    fn fill(&self, database: &Database) {
        let table = database.table(self.name).expect("a table");
        let mut import = table.import().expect("an import");
        for line in &self.lines {
            let number = |name: &&str| -> i64 {
                let at = self.schema.index_of(name).expect("there is such a column");
                line.split('|').nth(at).and_then(|field| field.parse().ok()).unwrap_or_else(|| panic!("{line}"))
            };
            let key: Vec<u8> = self.key.iter().flat_map(|name| (number(name),).to_key()).collect();
            import.add(&key, line.trim_end_matches('|').as_bytes()).expect("it is added");
        }
        import.finish(|_| {}).expect("it is imported");
    }

    /// The statements that declare the columns of the table, with a view that casts texts to other types where
    /// needed.
    fn declared(&self) -> String {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for field in self.schema.fields() {
            let name = field.name();
            let (kind, cast) = match field.data_type() {
                DataType::Int64 => ("i64", None),
                DataType::Int32 => ("i32", None),
                DataType::Decimal128(digits, scale) => ("string", Some(format!("decimal({digits}, {scale})"))),
                DataType::Date32 => ("string", Some("date".to_owned())),
                _ => ("string", None),
            };
            let is_key = self.key.contains(&name.as_str());
            fields.push(if is_key { "_ string".to_owned() } else { format!("{name} {kind}") });
            columns.push(match cast {
                Some(to) => format!("cast({name} AS {to}) AS {name}"),
                None if is_key => format!("cast({name} AS {}) AS {name}", if kind == "i32" { "int" } else { "bigint" }),
                None => name.clone(),
            });
        }
        let key: Vec<String> = self.key.iter().map(|name| format!("{name} i64")).collect();
        let Self { name, .. } = self;
        format!(
            "CREATE EXTERNAL TABLE {name}_texts STORED AS LARCH LOCATION '{name}' OPTIONS ('columns' \
            'key.tuple({}), value.split(''|'')({})'); CREATE OR REPLACE VIEW {name} AS SELECT {} FROM {name}_texts;\n",
            key.join(", "),
            fields.join(", "),
            columns.join(", ")
        )
    }
}

/// A query with its parameters, numbered from 1. If it needs a view, the statement that makes the view comes first.
fn query(number: usize) -> String {
    let mut text = queries::query(number as i32).expect("there are 22 queries").replace(" day (3)", " day");
    // From the last parameter on, because `:1` is a prefix of `:10`.
    for (at, parameter) in PARAMETERS[number - 1].iter().enumerate().rev() {
        text = text.replace(&format!(":{}", at + 1), parameter);
    }
    let text = text.replace(":s", "0");
    let statements = text.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    statements.filter(|statement| !statement.starts_with("drop")).collect::<Vec<_>>().join(";\n")
}

/// The tables as rows in memory.
fn in_memory(tables: &[Table]) -> impl Iterator<Item = (&str, MemTable)> {
    tables.iter().map(|Table { name, schema, batches, .. }| {
        (*name, MemTable::try_new(schema.clone(), vec![batches.clone()]).expect("the rows fit"))
    })
}

fn fill(tables: &[Table], directory: &Path) {
    let database = Database::open(directory).expect("a database");
    tables.iter().for_each(|table| table.fill(&database));
    database.close().expect("it is closed");
}

#[test]
fn all_queries_of_tpch_have_the_answers_of_datafusion_over_rows_in_memory() {
    let scratch = Scratch::new("ballista-tpch");
    let directory = scratch.path().join("db");
    let tables = tables(0.01, |_| true);
    fill(&tables, &directory);
    let queries: Vec<String> = (1..=22).map(query).collect();
    let expected = expected(in_memory(&tables), &queries);
    let empty: Vec<_> = (1..=22).filter(|number| expected[number - 1].is_empty()).collect();
    assert!(empty.is_empty(), "queries without a row say little: {empty:?}");
    let declared: String = tables.iter().map(Table::declared).collect();
    let script = script(&declared, "", &queries);
    let mut alone = larch(&["sql", "--format", "csv"]);
    alone.arg(&directory).arg(&script);
    compare("one process", &queries, &expected, &answer(alone));
    let cluster = Cluster::start();
    for threads in [1, 2, 3, 8] {
        let printed = answer(cluster.command(&directory, threads, &script));
        compare(&format!("--threads {threads}"), &queries, &expected, &printed);
    }
    cluster.stop();
}

/// Ballista's adaptive planner answered this query wrongly: it swapped the sides of a join beneath a stage that had
/// already ended.
#[test]
fn a_stage_that_has_ended_is_read_as_it_was_written() {
    let scratch = Scratch::new("ballista-sides");
    let directory = scratch.path().join("db");
    let tables = tables(0.2, |name| ["region", "nation", "supplier", "partsupp"].contains(&name));
    fill(&tables, &directory);
    let query = "SELECT count(*) FROM partsupp, supplier, nation, region WHERE s_suppkey = ps_suppkey \
        AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'";
    let queries = [query.to_owned()];
    let expected = expected(in_memory(&tables), &queries);
    assert_eq!(expected, [["35920"]]);
    // Columns of 32 bits are compared with keys of 64 bits, so the sides of joins are cast.
    let columns = [
        ("region", "key.tuple(r_regionkey i64), value.split(''|'')(_ string, r_name string)"),
        ("nation", "key.tuple(n_nationkey i64), value.split(''|'')(_ string, n_name string, n_regionkey i32)"),
        ("supplier", "key.tuple(s_suppkey i64), value.split(''|'')(_ string, _ string, _ string, s_nationkey i32)"),
        ("partsupp", "key.tuple(ps_partkey i64, ps_suppkey i64)"),
    ];
    let declare = |(name, columns): &(&str, &str)| {
        format!(
            "CREATE OR REPLACE EXTERNAL TABLE {name} STORED AS LARCH LOCATION '{name}' OPTIONS ('columns' '{columns}');\n"
        )
    };
    let declared: String = columns.iter().map(declare).collect();
    let cluster = Cluster::start();
    for threads in [2, 6] {
        for asked in ["", "SET ballista.planner.adaptive.enabled = true;\n"] {
            let printed = answer(cluster.command(&directory, threads, &script(&declared, asked, &queries)));
            compare(&format!("--threads {threads} {asked}"), &queries, &expected, &printed);
        }
    }
    cluster.stop();
}
