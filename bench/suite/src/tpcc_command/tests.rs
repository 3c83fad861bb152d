use super::share_of;
use harness::{Plan, Share, Workload as _};
use tpcc::rules::{Mode, Rules};
use tpcc::terminal::Terminals;
use tpcc::{Drawing, Form};

#[test]
fn shares_have_the_terminals_of_the_whole_run() {
    let warehouses = 5;
    let rules =
        Rules { mode: Mode::NoWait, drawing: Drawing::of(&Form { warehouses, seed: 1, loaded: 1_000_000_000 }) };
    let shown = |terminals: &Terminals<'_>, clients: usize| -> Vec<String> {
        (0..clients).map(|number| format!("{:?}", terminals.client(number, clients))).collect()
    };
    for clients in [5, 7, 50, 53] {
        let whole = Plan { clients, ..Plan::default() };
        let mut expected = shown(&Terminals { rules: &rules, warehouses: 1..=warehouses, seed: 7 }, clients);
        expected.sort();
        for of in 1..=5 {
            let mut all = Vec::new();
            for number in 0..of {
                let (own, plan) = share_of(Share::new(number, of), warehouses, &whole).expect("each has one");
                all.extend(shown(&Terminals { rules: &rules, warehouses: own, seed: 7 }, plan.clients));
            }
            all.sort();
            assert!(all == expected, "{clients} terminals, {of} shares");
        }
    }
    let few = Plan { clients: 2, ..Plan::default() };
    assert!(share_of(Share::new(1, 2), warehouses, &few).is_err(), "its warehouses have no terminal");
    assert!(share_of(Share::new(5, 6), warehouses, &Plan { clients: 50, ..few }).is_err());
}

#[test]
fn files_and_page_have_every_number_of_the_text() {
    for mode in ["spec", "nowait"] {
        let mut run =
            crate::results::tests::run(&format!("tpcc {mode}"), &tpcc::Transaction::NAMES, &tpcc::terminal::COUNTS);
        run.workload = vec![harness::report::Pair::new("mode", mode), harness::report::Pair::new("warehouses", "83")];
        let text = super::summary(&run).expect("it is a run of TPC-C");
        // The date is a member of its own.
        let told: Vec<&str> = text.lines().filter(|line| !line.starts_with("Start measure")).collect();
        crate::results::tests::check(&run, &told.join("\n"));
        crate::results::tests::check(&run, &harness::report::text::text(&run));
    }
}
