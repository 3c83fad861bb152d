//! Runs random queries over a table of Larch and over a Parquet file, both filled from the same list of rows. A
//! random case prints its seed; run it again with `LARCH_SEED=n`.

use crate::session::Session;
use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray, UInt8Array, UInt16Array, UInt32Array,
};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::ParquetReadOptions;
use kit::Scratch;
use larch::{Database, Table, TableOptions};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rows::{Descending, Tuple};
use std::collections::BTreeMap;
use std::sync::Arc;

const COLUMNS: &str = r#"key.tuple(shop u16, day u32 desc, name string), value.tuple(amount i64?, price f64),
    part(1).json(note string, visits u32 "$.seen.times"), part(2).split(';')(code u8, text string)"#;

type Key = (u16, u32, String);

#[derive(Clone, Debug)]
struct Row {
    amount: Option<i64>,
    price: f64,
    note: Option<String>,
    visits: Option<u32>,
    code: Option<u8>,
    text: String,
}

impl Row {
    fn random(random: &mut StdRng) -> Self {
        let is_there = |random: &mut StdRng| random.random_range(0..5) > 0;
        Self {
            amount: is_there(random).then(|| random.random_range(-100..100)),
            price: f64::from(random.random_range(-50..50)) / 4.0,
            note: is_there(random).then(|| "a \"note\" é".repeat(random.random_range(0..4))),
            visits: is_there(random).then(|| random.random()),
            code: is_there(random).then(|| random.random()),
            text: "x".repeat(random.random_range(0..30)),
        }
    }

    fn parts(&self) -> [Vec<u8>; 3] {
        let note =
            self.note.as_ref().map(|note| format!("\"note\": {},", serde_json::to_string(note).expect("a string")));
        let visits = self.visits.map_or_else(|| "null".to_owned(), |visits| format!("{{\"times\": {visits}}}"));
        let json = format!("{{{} \"seen\": {visits}}}", note.unwrap_or_default());
        let code = self.code.map_or_else(String::new, |code| code.to_string());
        [(self.amount, self.price).to_key(), json.into_bytes(), format!("{code};{}", self.text).into_bytes()]
    }
}

/// Fills a table whose rows are in several files and in memory, some of them erased. Also returns its rows.
fn fill(database: &Database, random: &mut StdRng) -> (Table, BTreeMap<Key, Row>) {
    let groups = ["main", "notes", "codes"].map(str::to_owned).to_vec();
    let options = TableOptions { groups, page_bytes: 1 << 10, node_bytes: 1 << 10, ..TableOptions::default() };
    let table = database.table_with("sales", options).expect("a table");
    let mut model = BTreeMap::new();
    for round in 0..4 {
        for _ in 0..500 {
            let name = ["", "a", "ab", "b\0c", "zoë"].choose(random).expect("there are some");
            let key =
                (random.random_range(0..6), random.random_range(0..12), format!("{name}{}", random.random_range(0..4)));
            let bytes = (key.0, Descending(key.1), &*key.2).to_key();
            if random.random_range(0..6) == 0 {
                table.remove(&bytes).expect("it is removed");
                model.remove(&key);
            } else {
                let row = Row::random(random);
                table.insert_parts(&bytes, &row.parts()).expect("it is written");
                model.insert(key, row);
            }
        }
        if random.random() {
            let shop = random.random_range(0..6_u16);
            table.remove_range((shop,).range()).expect("it is removed");
            model.retain(|key, _| key.0 != shop);
        }
        match round {
            1 => database.compact().expect("it is compacted"),
            3 => {}
            _ => database.flush().expect("it is flushed"),
        }
    }
    (table, model)
}

fn batch(model: &BTreeMap<Key, Row>) -> RecordBatch {
    // In key order, in which days descend.
    let mut rows: Vec<(&Key, &Row)> = model.iter().collect();
    rows.sort_by(|(one, _), (other, _)| {
        (one.0, Descending(one.1), &one.2)
            .partial_cmp(&(other.0, Descending(other.1), &other.2))
            .expect("they have an order")
    });
    let keys = || rows.iter().map(|(key, _)| *key);
    let values = || rows.iter().map(|(_, row)| *row);
    let array = |array: ArrayRef| array;
    RecordBatch::try_from_iter_with_nullable([
        ("shop", array(Arc::new(UInt16Array::from_iter_values(keys().map(|key| key.0)))), false),
        ("day", array(Arc::new(UInt32Array::from_iter_values(keys().map(|key| key.1)))), false),
        ("name", array(Arc::new(StringViewArray::from_iter_values(keys().map(|key| &key.2)))), false),
        ("amount", array(Arc::new(Int64Array::from_iter(values().map(|row| row.amount)))), true),
        ("price", array(Arc::new(Float64Array::from_iter_values(values().map(|row| row.price)))), false),
        ("note", array(Arc::new(StringViewArray::from_iter(values().map(|row| row.note.as_deref())))), true),
        ("visits", array(Arc::new(UInt32Array::from_iter(values().map(|row| row.visits)))), true),
        ("code", array(Arc::new(UInt8Array::from_iter(values().map(|row| row.code)))), true),
        ("text", array(Arc::new(StringViewArray::from_iter_values(values().map(|row| &row.text)))), false),
    ])
    .expect("the arrays fit")
}

/// Writes the rows to a Parquet file and registers the file as the table `parquet`.
fn add_parquet(session: &Session, directory: &Scratch, rows: RecordBatch) {
    let file = directory.path().join("sales.parquet");
    let file = file.to_str().expect("a path of text");
    session.runtime.block_on(async {
        let frame = session.context.read_batch(rows).expect("a batch is a table");
        let options = DataFrameWriteOptions::new().with_single_file_output(true);
        frame.write_parquet(file, options, None).await.expect("the file is written");
        let options = ParquetReadOptions::default();
        session.context.register_parquet("parquet", file, options).await.expect("the file is read");
    });
}

fn condition(random: &mut StdRng, depth: u32) -> String {
    if depth > 0 && random.random_range(0..2) == 0 {
        let (one, two) = (condition(random, depth - 1), condition(random, depth - 1));
        let word = if random.random() { "AND" } else { "OR" };
        return format!("({one} {word} {two})");
    }
    let operator = ["=", "<", "<=", ">", ">=", "<>"].choose(random).expect("there are some");
    let (shop, day) = (random.random_range(0..7), random.random_range(0..13));
    let name = ["", "a1", "ab", "b\0c2", "zoë0", "zz"].choose(random).expect("there are some");
    match random.random_range(0..14) {
        0..3 => format!("shop {operator} {shop}"),
        3..5 => format!("day {operator} {day}"),
        5 => format!("name {operator} '{name}'"),
        6 => format!("shop BETWEEN {shop} AND {}", shop + random.random_range(0..3)),
        7 => format!("day NOT BETWEEN {day} AND {}", day + random.random_range(0..3)),
        8 => format!("shop IN ({shop}, {day}, 1)"),
        9 => format!("name LIKE '{}%'", &name[..name.len().min(1)]),
        10 => format!("shop {operator} {}", [-1, 70_000].choose(random).expect("there are some")),
        11 => format!("amount {operator} {}", day - 6),
        12 => format!("code {operator} {}", day * 20),
        _ => "note IS NOT NULL".to_owned(),
    }
}

fn query(random: &mut StdRng) -> (String, bool) {
    let condition = if random.random_range(0..5) == 0 { "TRUE".to_owned() } else { condition(random, 2) };
    let turn = |random: &mut StdRng| random.random::<bool>();
    match random.random_range(0..9) {
        0 => (format!("SELECT count(*) FROM t WHERE {condition}"), true),
        1 => {
            let sums = "count(*), sum(amount), min(price), max(visits), count(note), min(shop), max(shop), min(day), max(name)";
            (format!("SELECT {sums} FROM t WHERE {condition}"), true)
        }
        2 => (format!("SELECT shop, day, sum(price), max(text) FROM t WHERE {condition} GROUP BY shop, day"), false),
        3 => {
            let (order, limit) = (turn(random), random.random_range(0..40));
            let order = if order { "shop, day DESC, name" } else { "shop DESC, day, name DESC" };
            (format!("SELECT name, shop, code FROM t WHERE {condition} ORDER BY {order} LIMIT {limit}"), true)
        }
        4 => (format!("SELECT day, name, note FROM t WHERE {condition} ORDER BY day, shop, name OFFSET 3"), true),
        5 => {
            let limit = [0, 1, 100, 1000].choose(random).expect("there are some");
            (format!("SELECT count(*) FROM (SELECT note FROM t WHERE {condition} LIMIT {limit})"), true)
        }
        6 => (format!("SELECT DISTINCT shop FROM t WHERE {condition}"), false),
        7 => {
            let on = "a.shop = b.shop AND a.day = b.day";
            (
                format!(
                    "SELECT count(*), sum(b.amount) FROM t a JOIN t b ON {on} WHERE b.{}",
                    "shop > 1 AND b.day < 6"
                ),
                true,
            )
        }
        _ => (format!("SELECT * FROM t WHERE {condition}"), false),
    }
}

#[test]
fn queries_have_the_answers_that_they_have_over_a_parquet_file() {
    let given = std::env::var("LARCH_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in given.map_or(0..6, |seed: u64| seed..seed + 1) {
        println!("LARCH_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let directory = Scratch::new("sql-compared");
        let database = Database::open(directory.path().join("db")).expect("a database");
        let (table, model) = fill(&database, &mut random);
        let session = Session::new(random.random_range(1..5), *[1, 7, 100, 8192].choose(&mut random).expect("some"));
        session.add("larch", &database, &table, COLUMNS);
        add_parquet(&session, &directory, batch(&model));
        // The queries read an earlier snapshot, so they must not see this.
        table.remove_range(..).expect("it is removed");
        for _ in 0..60 {
            let (sql, is_ordered) = query(&mut random);
            let answer = |table: &str| {
                let mut rows = session.rows(&sql.replace(" t ", &format!(" {table} ")));
                if !is_ordered {
                    rows.sort();
                }
                rows
            };
            let (ours, theirs) = (answer("larch"), answer("parquet"));
            assert_eq!(ours, theirs, "{sql}\n{}", session.plan(&sql.replace(" t ", " larch ")));
        }
    }
}
