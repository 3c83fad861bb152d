use super::*;
use crate::figures::Figures;
use harness::report::figures::said;
use harness::{Noted, Times};

/// A minute in which each delivery took 90 s, and each other transaction took 3 ms.
fn measured() -> Measured {
    let kind = |transaction: Transaction, oks, rolled_back| {
        let nanos = if transaction == Transaction::Delivery { 90_000_000_000 } else { 3_000_000 };
        let mut times = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
        times.record_n(nanos, oks + rolled_back).expect("it grows");
        let name = Transaction::NAMES[transaction as usize].to_owned();
        Measure { name, oks, rolled_back, service: Times::from_hdr(&times), ..Measure::default() }
    };
    let mut measured = Measured {
        nanos: 60_000_000_000,
        began_unix_millis: 1_714_480_513_700,
        kinds: vec![
            kind(Transaction::NewOrder, 990, 10),
            kind(Transaction::Payment, 1000, 0),
            kind(Transaction::OrderStatus, 100, 0),
            kind(Transaction::Delivery, 100, 0),
            kind(Transaction::StockLevel, 100, 0),
        ],
        counts: COUNTS.iter().map(|name| Noted { name: (*name).to_owned(), value: 0 }).collect(),
        ..Measured::default()
    };
    measured.kinds[1].failures.insert("conflict".to_owned(), 7);
    measured.counts[ATTEMPTS + 1].value = 5;
    (measured.counts[0].value, measured.counts[1].value) = (10_000, 100);
    (measured.counts[2].value, measured.counts[3].value) = (150, 500);
    measured
}

#[test]
fn a_result_has_the_lines_of_the_document() {
    let measured = measured();
    let text = Summary { mode: Mode::Spec, warehouses: 100, measured: &measured }.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..14],
        [
            "Result: Total",
            "Time: 60 seconds",
            "Start measure: 1714480513",
            "Warehouses: 100",
            "New orders: 1000",
            "tpmC: 1000",
            "Efficiency: 77.76",
            // In the measured minute, 2,300 transactions were completed, and 2 payments failed for good.
            "Throughput: 38",
            "Goodput: 38",
            "NewOrder: OK: 1000, FAILED: 0 (0.00%), retries: 0, of the former 10 rolled back",
            "Payment: OK: 1000, FAILED: 2 (0.20%), retries: 5",
            "OrderStatus: OK: 100, FAILED: 0 (0.00%), retries: 0",
            "Delivery: OK: 100, FAILED: 0 (0.00%), retries: 0",
            "StockLevel: OK: 100, FAILED: 0 (0.00%), retries: 0",
        ]
    );
    assert!(text.contains("NewOrder:\n50%: 3.00 ms\n90%: 3.00 ms\n"));
    assert!(text.contains("These are no official results of TPC."));
}

#[test]
fn what_is_out_of_bounds_does_not_hold() {
    let measured = measured();
    let summary = Summary { mode: Mode::Spec, warehouses: 100, measured: &measured };
    let broken: Vec<String> = summary.limits().into_iter().filter(|one| !one.holds()).map(|one| one.name).collect();
    let wanted = ["payments by last name", "order statuses by last name", "90 % of Delivery within"];
    assert_eq!(broken, wanted);
}

#[test]
fn a_result_without_waits_has_no_efficiency_and_an_empty_one_no_figures() {
    let measured = measured();
    assert_eq!(Summary { mode: Mode::NoWait, warehouses: 1, measured: &measured }.efficiency(), None);
    let nothing = Measured::default();
    let summary = Summary { mode: Mode::Spec, warehouses: 1, measured: &nothing };
    assert_eq!((summary.tpmc(), summary.limits()), (0.0, Vec::new()));
    assert!(summary.text().contains("tpmC: 0\n"));
}

#[test]
fn a_share_of_few_is_not_judged() {
    let mut measured = measured();
    (measured.kinds[0].oks, measured.kinds[0].rolled_back) = (970, 30);
    let text = |measured: &Measured| Summary { mode: Mode::Spec, warehouses: 100, measured }.text();
    assert!(
        text(&measured).contains("new orders rolled back: 3.00 %, 0.9 to 1.1 %: too few to say\n"),
        "{}",
        text(&measured)
    );
    (measured.kinds[0].oks, measured.kinds[0].rolled_back) = (97_000, 3000);
    assert!(
        text(&measured).contains("new orders rolled back: 3.00 %, 0.9 to 1.1 %: DOES NOT HOLD\n"),
        "{}",
        text(&measured)
    );
}

#[test]
fn a_result_as_data_says_what_its_text_says() {
    let measured = measured();
    let summary = Summary { mode: Mode::Spec, warehouses: 100, measured: &measured };
    let json = serde_json::to_value(Figures::of(&summary)).expect("names are texts");
    assert_eq!(json["notice"], "These are no official results of TPC.");
    assert_eq!((&json["new_orders"], &json["tpmc"]), (&1000.into(), &1000.0.into()));
    assert_eq!((100.0 * json["efficiency"].as_f64().expect("a number")).round(), 7776.0);
    let payments = &json["transactions"][1];
    assert_eq!((&payments["ok"], &payments["failed"], &payments["retries"]), (&1000.into(), &2.into(), &5.into()));
    assert_eq!(json["transactions"][0]["rolled_back"], 10);
    let limits = json["limits"].as_array().expect("a list");
    let holds = |name: &str| limits.iter().find(|limit| limit["name"] == name).map(|limit| limit["holds"].clone());
    assert_eq!(holds("90 % of Delivery within"), Some(false.into()));
    assert_eq!(holds("payments of customers of other warehouses"), Some(true.into()));
    assert_eq!(json["deviations"].as_array().map(Vec::len), Some(Mode::Spec.deviations().len()));
}

#[test]
fn the_list_has_every_number_of_the_text() {
    let mut measured = measured();
    measured.retries = 5;
    measured.kinds[0].waited = Some(measured.kinds[0].service.clone());
    for mode in [Mode::Spec, Mode::NoWait] {
        let summary = Summary { mode, warehouses: 100, measured: &measured };
        let text = summary.text();
        // The date is in the JSON of the run.
        let told = text.lines().filter(|line| !line.starts_with("Start measure") && !line.starts_with("Time"));
        let told = told.collect::<Vec<_>>().join("\n");
        let missing = said::missing(&said::without_labels(&told), &Figures::of(&summary).list());
        assert_eq!(missing, Vec::<String>::new());
    }
}

#[test]
fn a_percentile_from_too_few_transactions_is_not_told() {
    let mut measured = measured();
    let of_few = |measured: &Measured| Summary { mode: Mode::NoWait, warehouses: 1, measured }.text();
    assert!(of_few(&measured).contains("StockLevel:\n50%: 3.00 ms\n90%: 3.00 ms\n95%: too few to say\n"));
    measured.kinds[4].service = Times::default();
    measured.kinds[4].oks = 0;
    assert!(of_few(&measured).contains("StockLevel:\n50%: too few to say\n"));
}

#[test]
fn the_response_time_of_fewer_than_100_transactions_is_not_judged() {
    let mut measured = measured();
    let of = |measured: &Measured| {
        let summary = Summary { mode: Mode::Spec, warehouses: 100, measured };
        let json = serde_json::to_value(Figures::of(&summary)).expect("names are texts");
        let limits = json["limits"].as_array().expect("a list").clone();
        let limit = limits.into_iter().find(|limit| limit["name"] == "90 % of Delivery within").expect("it has one");
        let text = summary.text().lines().find(|line| line.starts_with("90 % of Delivery")).map(str::to_owned);
        (limit["is"].clone(), limit["holds"].clone(), text.expect("it has a line"))
    };
    let (is, holds, text) = of(&measured);
    assert!(is.as_f64().is_some_and(|millis| millis >= 90_000.0) && holds == false, "{is} {holds}");
    assert!(text.ends_with(": DOES NOT HOLD"), "{text}");
    let mut times = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    times.record_n(90_000_000_000, 99).expect("it grows");
    (measured.kinds[3].oks, measured.kinds[3].service) = (99, Times::from_hdr(&times));
    let null = serde_json::Value::Null;
    let line = "90 % of Delivery within: -, at most 80000 ms: too few to say".to_owned();
    assert_eq!(of(&measured), (null.clone(), null, line));
}
