//! Queries the tables of TPC-C, which another crate writes. Their columns are declared in `queries`.

use kit::Scratch;
use std::path::Path;
use std::process::Command;

/// Runs the program, which must succeed.
#[track_caller]
fn larch(directory: &Scratch, arguments: &[&str]) -> String {
    let output =
        Command::new(kit::program::larch("bench,parquet")).args(arguments).current_dir(directory.path()).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_warehouse_that_was_just_loaded_answers_as_the_standard_says() {
    let directory = Scratch::new("sql-tpcc");
    larch(&directory, &["bench", "tpcc", "import", "--warehouses", "1", "--target", "larch:db"]);
    let queries = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries");
    let declared = queries.join("tpcc.sql").display().to_string();
    let ask = |sql: &str| larch(&directory, &["sql", "db", sql, "--file", &declared, "--format", "csv"]);
    // The row counts of clause 4.3.3.1 of TPC-C, and the first consistency conditions of its clause 3.3.2.
    let counts = "SELECT (SELECT count(*) FROM item) i, (SELECT count(*) FROM stock) s, (SELECT count(*) FROM customer) c, \
        (SELECT count(*) FROM history) h, (SELECT count(*) FROM orders) o, (SELECT count(*) FROM new_order) n";
    assert_eq!(ask(counts), "i,s,c,h,o,n\n100000,100000,30000,30000,30000,9000\n");
    let sums = "SELECT (SELECT sum(year_to_date) FROM warehouse) w, (SELECT sum(year_to_date) FROM district) d, \
        (SELECT sum(amount) FROM history) h";
    assert_eq!(ask(sums), "w,d,h\n30000000,30000000,30000000\n");
    let lines = "SELECT (SELECT sum(lines) FROM orders) = (SELECT count(*) FROM order_line) AS same";
    assert_eq!(ask(lines), "same\ntrue\n");
    let newest = "SELECT min(next_order - 1) a, max(next_order - 1) b, (SELECT max(number) FROM orders) o, \
        (SELECT min(number) FROM new_order WHERE warehouse = 1 AND district = 7) n FROM district";
    assert_eq!(ask(newest), "a,b,o,n\n3000,3000,3000,2101\n");
    let open =
        "SELECT count(*) - count(carrier) n, bool_and(is_all_local) l, max(lines) m FROM orders WHERE district <= 2";
    assert_eq!(ask(open), "n,l,m\n1800,true,15\n");
    let credit = "SELECT min(credit_limit) c, min(balance) b, max(paid_in_year) p, min(middle) m, min(length(data)) >= 300 d \
        FROM customer WHERE warehouse = 1";
    assert_eq!(ask(credit), "c,b,p,m,d\n5000000,-1000,1000,OE,true\n");
    let stock = "SELECT min(quantity) >= 10 a, max(quantity) <= 100 b, sum(sold) s, min(length(info_10)) l FROM stock";
    assert_eq!(ask(stock), "a,b,s,l\ntrue,true,0,24\n");

    let both = ["tpcc.sql", "ch.sql"].map(|name| std::fs::read_to_string(queries.join(name)).expect("a file"));
    std::fs::write(directory.path().join("both.sql"), both.concat()).expect("it is written");
    let answers = larch(&directory, &["sql", "db", "--file", "both.sql", "--format", "csv"]);
    let headers = [
        "line,quantity,amount",
        "lines,orders\n",
        "revenue\n",
        "lines,first_carriers,others\n",
        "last,customer,number",
    ];
    assert!(headers.iter().all(|header| answers.contains(header)), "{answers}");
    // In each district, the lines of all but the last 900 orders were delivered.
    let delivered: u64 = answers
        .lines()
        .skip_while(|line| *line != "lines,orders")
        .skip(1)
        .take_while(|line| *line != "revenue")
        .map(|line| line.split(',').next_back().and_then(|orders| orders.parse::<u64>().ok()).expect("a count"))
        .sum();
    assert_eq!(delivered, 21_000);
}
