//! Tests joins of every shape, planned in each possible way and divided into few and many parts. The expected
//! answers come from DataFusion in this process, which has the same rows in memory.

use crate::cluster::{Cluster, answer, larch};
use crate::compared::{compare, expected, script};
use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use kit::Scratch;
use larch::{Database, TableOptions};
use os::sync::Arc;
use rows::Tuple;

/// A table whose rows have an `id`, the key, and three numbers that depend on it: `few`, of 32 bits, has 97
/// different values, `many` about as many as the table has rows, and `half` is NULL in every second row.
struct Table {
    name: &'static str,
    rows: i64,
}

/// Tables of one page, of some pages, and of many. Each has some ids and numbers that the others do not have.
const TABLES: [Table; 3] =
    [Table { name: "small", rows: 60 }, Table { name: "middle", rows: 900 }, Table { name: "large", rows: 6_000 }];

impl Table {
    fn row(&self, at: i64) -> (i64, i32, i64, Option<i64>) {
        let id = at * 2 + self.rows % 7;
        (id, (id * 31 % 97) as i32, id * 7919 % (self.rows + 11), (at % 2 == 0).then_some(id % 50))
    }

    fn fill(&self, database: &Database) {
        let options = TableOptions { page_bytes: 4 << 10, node_bytes: 4 << 10, ..TableOptions::default() };
        let table = database.table_with(self.name, options).expect("a table");
        let mut import = table.import().expect("an import");
        for at in 0..self.rows {
            let (id, few, many, half) = self.row(at);
            import.add(&(id,).to_key(), &(few, many, half).to_key()).expect("it is added");
        }
        import.finish(|_| {}).expect("it is imported");
    }

    fn in_memory(&self) -> MemTable {
        let rows = || (0..self.rows).map(|at| self.row(at));
        let columns: [(&str, ArrayRef, bool); 4] = [
            ("id", Arc::new(Int64Array::from_iter_values(rows().map(|row| row.0))), false),
            ("few", Arc::new(Int32Array::from_iter_values(rows().map(|row| row.1))), false),
            ("many", Arc::new(Int64Array::from_iter_values(rows().map(|row| row.2))), false),
            ("half", Arc::new(rows().map(|row| row.3).collect::<Int64Array>()), true),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("they are as long");
        MemTable::try_new(batch.schema(), vec![vec![batch]]).expect("the rows fit")
    }

    fn declared(&self) -> String {
        let Self { name, .. } = self;
        format!(
            "CREATE OR REPLACE EXTERNAL TABLE {name} STORED AS LARCH LOCATION '{name}' \
            OPTIONS ('columns' 'key.tuple(id i64), value.tuple(few i32, many i64, half i64?)');\n"
        )
    }
}

/// A query, and whether it is asked with each way to plan a join. A query that differs from another one only by the
/// sizes of its sides is asked only where these decide how the join is planned.
struct Query {
    text: String,
    is_always_asked: bool,
}

/// Queries for each kind of join, with the larger table on either side, keys of equal and of different types, with
/// and without NULL, some with filters beside the keys.
fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    let on = [
        "a.few = b.many",
        "a.half = b.few",
        "a.many = b.id AND a.half <> b.half",
        "a.few = b.few AND a.many < b.many AND a.id <> b.id",
    ];
    for (kind, sides) in [
        ("JOIN", "ab"),
        ("LEFT JOIN", "ab"),
        ("RIGHT JOIN", "ab"),
        ("FULL JOIN", "ab"),
        ("LEFT SEMI JOIN", "a"),
        ("LEFT ANTI JOIN", "a"),
        ("RIGHT SEMI JOIN", "b"),
        ("RIGHT ANTI JOIN", "b"),
    ] {
        for (at, (left, right)) in [("large", "small"), ("small", "large"), ("large", "middle")].into_iter().enumerate()
        {
            for (number, on) in on.iter().enumerate() {
                let sums = sides
                    .chars()
                    .map(|side| format!("count({side}.half), sum({side}.id), sum({side}.few * {side}.many)"));
                let sums = sums.collect::<Vec<_>>().join(", ");
                let text = format!("SELECT count(*), {sums} FROM {left} a {kind} {right} b ON {on}");
                queries.push(Query { text, is_always_asked: number % 3 == at });
            }
        }
    }
    queries.extend(
        [
            // Joined rows, where the queries above return only sums.
            "SELECT a.id, b.id, b.half FROM middle a LEFT JOIN small b ON a.few = b.few",
            "SELECT a.id, a.half, b.half FROM small a FULL JOIN middle b ON a.id = b.id WHERE b.id IS NULL OR b.id < 300",
            // Joins of a table with itself, once and twice.
            "SELECT count(*), sum(a.many + b.many) FROM large a JOIN large b ON a.id = b.id",
            "SELECT a.few, count(*), sum(b.id) FROM middle a JOIN middle b ON a.few = b.few GROUP BY a.few",
            "SELECT count(*), sum(c.id) FROM middle a JOIN middle b ON a.id = b.many JOIN middle c ON b.id = c.many",
            // Several joins: chains of tables, and joins of joins.
            "SELECT count(*), sum(l.many) FROM large l, middle m, small s WHERE l.few = m.many AND m.few = s.few",
            "SELECT s.few, count(*) FROM large l JOIN middle m ON l.many = m.id JOIN small s ON m.half = s.half GROUP BY s.few",
            "SELECT count(*), sum(x.i), sum(y.i) FROM (SELECT l.id i, s.few f FROM large l JOIN small s ON l.few = s.many) x \
            JOIN (SELECT m.id i, s.few f FROM middle m LEFT JOIN small s ON m.many = s.id) y ON x.f = y.f",
            "SELECT count(*), sum(l.id), sum(s.id) FROM large l LEFT JOIN middle m ON l.id = m.id FULL JOIN small s ON m.few = s.few",
            "SELECT count(*) FROM large l LEFT JOIN (SELECT few, count(*) n FROM middle GROUP BY few) g ON l.few = g.few WHERE g.n > 9",
            "SELECT count(*), sum(l.id) FROM large l JOIN small a ON l.few = a.few JOIN small b ON l.many = b.id JOIN small c ON l.half = c.half",
            // Queries without JOIN that are planned as joins.
            "SELECT count(*), sum(id) FROM large WHERE few IN (SELECT many FROM small)",
            "SELECT count(*), sum(id) FROM large WHERE many NOT IN (SELECT id FROM middle)",
            "SELECT count(*), sum(id) FROM middle WHERE half NOT IN (SELECT half FROM small WHERE half IS NOT NULL)",
            "SELECT count(*), sum(id) FROM middle WHERE half NOT IN (SELECT half FROM small)",
            "SELECT count(*), sum(id) FROM large l WHERE EXISTS (SELECT 1 FROM middle m WHERE m.few = l.few AND m.id > l.id)",
            "SELECT count(*), sum(id) FROM large l WHERE NOT EXISTS (SELECT 1 FROM small s WHERE s.many = l.many)",
            "SELECT count(*), sum(id) FROM large l WHERE many > (SELECT avg(many) FROM middle m WHERE m.few = l.few)",
            "SELECT count(*), sum(id) FROM large WHERE id > (SELECT max(id) FROM middle)",
            // Joins without an equality, or with an empty side.
            "SELECT count(*), sum(a.id * b.id) FROM small a, small b",
            "SELECT count(*), sum(a.id) FROM middle a JOIN small b ON a.many < b.many",
            "SELECT count(*), sum(a.id), sum(b.id) FROM middle a LEFT JOIN small b ON a.many < b.many AND b.few = 3",
            "SELECT count(*), count(b.id) FROM large a LEFT JOIN (SELECT * FROM small WHERE id < 0) b ON a.few = b.few",
            "SELECT count(*) FROM (SELECT id FROM large UNION ALL SELECT id FROM middle) u JOIN small s ON u.id = s.id",
            "SELECT few, id FROM large JOIN small USING (few, id)",
        ]
        .map(|text| Query { text: text.to_owned(), is_always_asked: true }),
    );
    queries
}

#[test]
fn joins_of_every_shape_have_the_answers_of_datafusion_over_rows_in_memory() {
    let scratch = Scratch::new("ballista-joins");
    let directory = scratch.path().join("db");
    let database = Database::open(&directory).expect("a database");
    TABLES.iter().for_each(|table| table.fill(&database));
    database.close().expect("it is closed");
    let asked = queries();
    let queries: Vec<String> = asked.iter().map(|query| query.text.clone()).collect();
    let expected = expected(TABLES.iter().map(|table| (table.name, table.in_memory())), &queries);
    let declared: String = TABLES.iter().map(Table::declared).collect();
    let merged = "SET datafusion.optimizer.prefer_hash_join = false;\n";
    for settings in ["", merged] {
        let mut alone = larch(&["sql", "--threads", "3", "--format", "csv"]);
        alone.arg(&directory).arg(script(&declared, settings, &queries));
        compare(&format!("one process {settings}"), &queries, &expected, &answer(alone));
    }
    let pairs = queries.iter().cloned().zip(expected.iter().cloned());
    let always = pairs.zip(&asked).filter(|(_, query)| query.is_always_asked).map(|(pair, _)| pair);
    let (few, of_few): (Vec<_>, Vec<_>) = always.unzip();
    let cluster = Cluster::start();
    // The estimated sizes of the sides decide in which of three ways a join is planned. Each of these settings
    // forces one.
    let exchanged = "SET datafusion.optimizer.hash_join_single_partition_threshold = 0;\n\
        SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 0;\n\
        SET ballista.optimizer.broadcast_join_threshold_bytes = 1;\n";
    let hashed = format!("{exchanged}SET datafusion.optimizer.prefer_hash_join = true;\n");
    let sorted = format!("{exchanged}{merged}");
    let all = (&queries, &expected);
    let few = (&few, &of_few);
    for (threads, settings, (queries, expected)) in
        [(8, "", all), (2, "", few), (1, "", few), (3, &*hashed, few), (3, &*sorted, few)]
    {
        println!("--threads {threads} {settings}");
        let printed = answer(cluster.command(&directory, threads, &script(&declared, settings, queries)));
        compare(&format!("--threads {threads}\n{settings}"), queries, expected, &printed);
    }
    cluster.stop();
}
