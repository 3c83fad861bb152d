use super::*;
use harness::report::{Environment, Pair};
use harness::{Measured, Plan};

fn report(processor: &str, cache: &str) -> Report {
    let mut environment = Environment { version: "0.2.0".to_owned(), ..Environment::default() };
    environment.machine.processor = processor.to_owned();
    environment.machine.load = f64::from(cache.len() as u32);
    let mut run = Run::new("workload c", "larch:db", &Plan::default(), Measured::default());
    run.settings = vec![Pair::new("cache", cache), Pair::new("index", "btree")];
    let mut report = Report::new(environment);
    report.runs = vec![run];
    report
}

#[test]
fn what_differs_is_listed_and_what_does_not_is_not() {
    let results = [("a".to_owned(), report("one", "64 MiB")), ("b".to_owned(), report("another", "1 GiB"))];
    let shown = table(&results).expect("two things differ");
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    assert_eq!(shown.rows, [row(["processor", "0 of one", "0 of another"]), row(["cache", "64 MiB", "1 GiB"])]);
    assert_eq!(shown.columns, ["", "a", "b"]);
    assert_eq!(machines(&results), 2);
}

#[test]
fn results_of_one_machine_with_the_same_settings_do_not_differ() {
    let results = [("a".to_owned(), report("one", "64 MiB")), ("b".to_owned(), report("one", "64 MiB"))];
    assert_eq!(table(&results), None);
    assert_eq!(machines(&results), 1);
}
