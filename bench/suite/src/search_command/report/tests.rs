use super::super::limit::Limit;
use super::*;
use crate::search_command::steps::{self, Options};

fn tried(rate: f64, nanos: Option<u64>, verdict: Verdict, limit: Option<Limit>) -> Tried {
    let run = crate::results::tests::run(&format!("run at {rate}"), &["READ"], &[]);
    Tried { rate: Some(rate), nanos, verdict, limit, run }
}

fn search(tried: Vec<Tried>) -> Search {
    let runs: Vec<(f64, Verdict)> =
        tried.iter().map(|tried| (tried.rate.expect("each has one"), tried.verdict)).collect();
    let found = steps::found(Options { first: 1000.0, precision: 0.05, repeats: 1 }, &runs);
    let objective = Objective::parse("p99<5ms").expect("it is one");
    Search { name: "workload c".to_owned(), objective, precision: 0.05, tried, found }
}

#[test]
fn the_text_names_both_bounds_and_the_client_that_was_the_limit() {
    let limited = Some(Limit::Processor(0.93));
    let search = search(vec![
        tried(1000.0, Some(1_200_000), Verdict::Met, None),
        tried(1040.0, Some(7_100_000), Verdict::Missed, limited),
    ]);
    let text = text(&search, None);
    for part in [
        "The highest rate that meets p99 < 5.00 ms is 1,000 op/s or a little more.",
        "lower bound: 1,000 op/s met p99 < 5.00 ms in 1 of 1 runs.",
        "upper bound: 1,040 op/s missed p99 < 5.00 ms in 1 of 1 runs.",
        "The client was the limit at the upper bound: the client's own work took 93 %",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("not confirmed"), "{text}");
    let json: serde_json::Value = serde_json::from_slice(&json(&search, None)).expect("it is JSON");
    assert_eq!((&json["lower"]["operations_per_second"], &json["is_confirmed"]), (&1000.0.into(), &true.into()));
    assert_eq!(json["runs"][1]["verdict"], "missed");
    assert!(page(&search, None).html().contains("runs that missed it"));
}

#[test]
fn what_was_not_found_is_said() {
    let none = text(&search(vec![tried(1000.0, Some(7_100_000), Verdict::Missed, None)]), Some("interrupted"));
    assert!(none.contains("No rate met p99 < 5.00 ms.") && none.contains("before its time: interrupted."), "{none}");
    let few = text(&search(vec![tried(1000.0, None, Verdict::TooFew, None)]), None);
    assert!(few.contains("too few requests to know its p99: let each run take longer"), "{few}");
    let wide = text(&search(vec![tried(1000.0, Some(1), Verdict::Met, None)]), None);
    assert!(wide.contains("upper bound: none") && wide.contains("not confirmed"), "{wide}");
}
