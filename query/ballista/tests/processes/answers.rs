//! Compares the answers with those of a single process. Also checks what each process has read, and the error
//! messages.

use crate::cluster::{Cluster, answer, larch};
use kit::Scratch;
use larch::stats::PageKind;
use larch::{Database, TableOptions};
use os::sync::atomic::{AtomicBool, Ordering};
use rows::Tuple;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: u32 = 40_000;

/// The statements that declare the columns of both tables, with which every query begins.
const TABLES: &str = "CREATE OR REPLACE EXTERNAL TABLE orders STORED AS LARCH LOCATION 'orders' OPTIONS ('columns' \
    'key.tuple(id u32), value.tuple(shop u16, amount u64), part(1) note bytes'); \
    CREATE OR REPLACE EXTERNAL TABLE shops STORED AS LARCH LOCATION 'shops' OPTIONS ('columns' \
    'key.tuple(shop u16), value city string'); ";

/// Makes a database with orders in two column groups, and their shops.
fn fill(directory: &Path) -> Database {
    let database = Database::open(directory).expect("a database");
    fill_in(&database);
    database
}

fn fill_in(database: &Database) {
    let groups = ["main", "note"].map(str::to_owned).to_vec();
    let options = TableOptions { groups, page_bytes: 4 << 10, node_bytes: 4 << 10, ..TableOptions::default() };
    let orders = database.table_with("orders", options).expect("a table");
    let mut import = orders.import().expect("an import");
    for id in 0..ROWS {
        let parts = [((id % 100) as u16, u64::from(id) * 3).to_key(), vec![id as u8; 150]];
        import.add_parts(&(id,).to_key(), &parts).expect("it is added");
    }
    import.finish(|_| {}).expect("it is imported");
    let shops = database.table("shops").expect("a table");
    for shop in 0..100_u16 {
        shops.insert((shop,).to_key(), ["Bonn", "Oslo", "Rome"][usize::from(shop % 3)]).expect("it is written");
    }
    database.flush().expect("it is flushed");
}

/// A command with statements about both tables, which the executors answer.
pub fn ask_with(cluster: &Cluster, database: &Path, sql: &str) -> Command {
    cluster.command(database, 8, &format!("{TABLES}{sql}"))
}

#[track_caller]
fn ask(cluster: &Cluster, database: &Path, sql: &str) -> String {
    answer(ask_with(cluster, database, sql))
}

/// The answer of a single process.
#[track_caller]
pub fn alone(database: &Path, sql: &str) -> String {
    let mut command = larch(&["sql", "--format", "csv"]);
    command.arg(database).arg(format!("{TABLES}{sql}"));
    answer(command)
}

/// Makes both tables in a new directory.
pub fn filled(name: &str) -> (Scratch, PathBuf) {
    let scratch = Scratch::new(name);
    let directory = scratch.path().join("db");
    fill(&directory).close().expect("it is closed");
    (scratch, directory)
}

#[test]
fn two_executors_answer_as_one_process_does() {
    let (_scratch, directory) = filled("ballista-answers");
    let cluster = Cluster::start();
    for sql in [
        "SELECT count(*) FROM orders",
        "SELECT count(*) AS n, sum(amount) AS s, min(id) AS a, max(note) AS b FROM orders",
        "SELECT shop, count(*) AS n, sum(amount) AS s FROM orders GROUP BY shop ORDER BY shop",
        "SELECT city, count(*) AS n, max(amount) AS m FROM orders JOIN shops ON orders.shop = shops.shop GROUP BY city ORDER BY city",
        "SELECT id, amount FROM orders WHERE id BETWEEN 17000 AND 17100 ORDER BY id",
        "SELECT id, shop FROM orders ORDER BY id DESC LIMIT 7",
        "SELECT id, amount FROM orders WHERE shop = 17 ORDER BY amount DESC, id LIMIT 5",
        "SELECT a.id FROM orders a JOIN orders b ON a.id = b.id WHERE b.id IN (5, 7, 39999) ORDER BY a.id",
        "SELECT count(*) AS n FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
        "SELECT id FROM orders WHERE id > 100000",
        "SELECT count(*) AS n FROM (SELECT id FROM orders UNION ALL SELECT id FROM orders WHERE id < 9) t",
    ] {
        assert_eq!(ask(&cluster, &directory, sql), alone(&directory, sql), "{sql}");
    }
    let plan = ask(&cluster, &directory, "EXPLAIN SELECT sum(amount) FROM orders WHERE id < 4000");
    assert!(plan.contains("PlacedScan: database=") && plan.contains("keys=[() to (4000)]"), "{plan}");
    assert!(ask(&cluster, &directory, "SHOW TABLES").contains("orders"));
    cluster.stop();
}

#[test]
fn each_executor_reads_only_its_partitions() {
    let (_scratch, directory) = filled("ballista-reads");
    // The pages that a single process reads for all rows.
    let database = Database::builder(&directory).read_only(true).cache_bytes(256 << 20).open().expect("it is there");
    let orders = database.existing_table("orders").expect("it can be asked").expect("it is there");
    let all = orders.select(["main", "note"]).expect("it has them").iter();
    assert_eq!(all.inspect(|row| assert!(row.is_ok(), "{row:?}")).count(), ROWS as usize);
    let metrics = database.metrics();
    let [data, groups] = [PageKind::Data, PageKind::Group].map(|kind| metrics.pages.of_kind(kind).faults);
    drop((orders, database));
    assert!(data > 100 && groups > 1000, "{data} and {groups} pages");

    let cluster = Cluster::start();
    assert_eq!(ask(&cluster, &directory, "SELECT sum(amount) AS s, max(note) AS m FROM orders").lines().count(), 2);
    let [one, two] = cluster.stop();
    assert_eq!(one[0] + two[0], 8, "each partition is read once: {one:?} and {two:?}");
    // A page with rows of two partitions is read twice.
    for (read, alone) in [(one[1] + two[1], data), (one[2] + two[2], groups)] {
        assert!(
            (alone..alone + 8).contains(&read),
            "no other page is read twice: {read} and {alone}: {one:?} and {two:?}"
        );
    }
    assert!(one[2] > 0 && two[2] > 0, "both read: {one:?} and {two:?}");

    // The next query needs only one column group and a range of keys.
    let cluster = Cluster::start();
    let sum = ask(&cluster, &directory, "SELECT sum(amount) AS s FROM orders WHERE id < 4000");
    assert_eq!(sum, "s\n23994000\n");
    let [one, two] = cluster.stop();
    let pages = one[1] + two[1];
    assert_eq!(one[2] + two[2], 0, "{one:?} and {two:?}");
    assert!(pages >= data / 10 && pages <= data / 10 + 4, "{pages} of {data} pages: {one:?} and {two:?}");
}

#[test]
fn queries_see_what_a_writer_has_put_in_files() {
    let scratch = Scratch::new("ballista-writer");
    let directory = scratch.path().join("db");
    let database = fill(&directory);
    let shops = database.existing_table("shops").expect("it can be asked").expect("it is there");
    let cluster = Cluster::start();
    let count = "SELECT count(*) AS n, count(DISTINCT city) AS c FROM shops";
    for more in 0..3_u16 {
        assert_eq!(ask(&cluster, &directory, count), format!("n,c\n{},3\n", 100 + more));
        shops.insert((100 + more,).to_key(), "Rome").expect("it is written");
        database.flush().expect("it is flushed");
    }
    cluster.stop();
}

#[test]
fn what_goes_wrong_is_said_to_the_one_who_asks() {
    let (scratch, directory) = filled("ballista-failures");
    let fails = |mut command: Command, code: i32, message: &str| {
        let output = command.output().expect("the program starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{command:?}: {told}");
        assert!(told.contains(message), "{command:?}: {told}");
    };
    let cluster = Cluster::start();
    fails(ask_with(&cluster, &directory, "SELECT max(nobody) FROM orders"), 2, "nobody");
    fails(ask_with(&cluster, &scratch.path().join("nowhere"), "SELECT 1"), 3, "has no database");
    let wrong = "CREATE EXTERNAL TABLE wrong STORED AS LARCH LOCATION 'shops' OPTIONS ('columns' \
        'key.tuple(shop u16), value.json(city string)'); SELECT max(city) FROM wrong";
    fails(ask_with(&cluster, &directory, wrong), 3, "table shops, row (0)");
    let copy = "COPY (SELECT id FROM orders) TO 'out' STORED AS LARCH OPTIONS ('columns' 'key.tuple(id u32)')";
    fails(ask_with(&cluster, &directory, copy), 2, "leave --scheduler out");
    let mut follows = ask_with(&cluster, &directory, "SELECT 1");
    follows.arg("--follow");
    fails(follows, 2, "leave --follow or --scheduler out");
    // The cluster still answers after these errors.
    assert_eq!(ask(&cluster, &directory, "SELECT count(*) AS n FROM shops"), "n\n100\n");
    let address = cluster.address.clone();
    cluster.stop();
    fails(
        larch(&["sql", "--scheduler", &address, &directory.display().to_string(), "SELECT count(*) FROM shops"]),
        3,
        "",
    );
    fails(larch(&["sql-executor", "--scheduler", "nobody"]), 2, "HOST:PORT");
    fails(larch(&["sql-executor", "--scheduler", &address]), 3, "check addresses and ports");
}

/// Each commit moves an amount from one row to another, mostly in another partition, so the sum of all amounts is
/// the same in all versions.
#[test]
fn no_answer_mixes_versions_while_a_writer_goes_on() {
    let scratch = Scratch::new("ballista-moves");
    let directory = scratch.path().join("db");
    let database = fill(&directory);
    let orders = database.existing_table("orders").expect("it can be asked").expect("it is there");
    let cluster = Cluster::start();
    let sum = "SELECT count(*) AS n, sum(amount) AS s FROM orders";
    let expected = ask(&cluster, &directory, sum);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let row =
                |id: u32, amount: u64| ((id,).to_key(), [((id % 100) as u16, amount).to_key(), vec![id as u8; 150]]);
            for moved in (1..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                let mut batch = database.batch();
                let (from, to) = (ROWS - 1, 0);
                for (id, amount) in [(from, u64::from(from) * 3 - moved % 1000), (to, moved % 1000)] {
                    let (key, parts) = row(id, amount);
                    batch.insert_parts(&orders, key, &parts);
                }
                batch.commit().expect("it is written");
                // The writer makes new files all the time, so a query succeeds only if each process can show the
                // version at which it began.
                if moved % 200 == 0 {
                    database.flush().expect("it is flushed");
                }
            }
        });
        let outputs: Vec<_> = (0..5).map(|_| ask_with(&cluster, &directory, sum).output()).collect();
        stop.store(true, Ordering::Relaxed);
        for output in outputs {
            let output = output.expect("the program starts");
            let (answer, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let is_refused = output.status.code() == Some(3) && told.contains("show other rows each time");
            assert!(is_refused || answer == expected, "{answer}{told}");
        }
    });
    assert_eq!(ask(&cluster, &directory, sum), expected);
    cluster.stop();
}

/// The database is in a store (here a directory), where each process reads it.
#[test]
fn executors_follow_a_database_in_a_store() {
    let scratch = Scratch::new("ballista-store");
    let url = format!("file://{}", scratch.path().join("store").display());
    let connection = larch_remote::Connection::of_url(&url, &larch_remote::Near::default()).expect("it is a directory");
    let database = connection.builder().open().expect("a database");
    fill_in(&database);
    let cluster = Cluster::start();
    let place = Path::new(&url);
    for sql in [
        "SELECT shop, count(*) AS n, sum(amount) AS s FROM orders GROUP BY shop ORDER BY shop",
        "SELECT city, max(id) AS m FROM orders JOIN shops ON orders.shop = shops.shop GROUP BY city ORDER BY city",
    ] {
        assert_eq!(ask(&cluster, place, sql), alone(place, sql), "{sql}");
    }
    // All processes see what the writer does next.
    let shops = database.existing_table("shops").expect("it can be asked").expect("it is there");
    shops.insert((100_u16,).to_key(), "Rome").expect("it is written");
    database.flush().expect("it is flushed");
    assert_eq!(ask(&cluster, place, "SELECT count(*) AS n FROM shops"), "n\n101\n");
    let [one, two] = cluster.stop();
    assert!(one[1] > 0 && two[1] > 0, "both read: {one:?} and {two:?}");
}
