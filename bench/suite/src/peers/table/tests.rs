use super::{Against, Goal, Row, Table};
use crate::peers::{absent, verdict, verdict_of};

fn row(name: &'static str, goals: &[(Against, f64)], figures: &[&[f64]]) -> Row {
    Row {
        name,
        unit: "K/s",
        less_is_better: name == "bytes",
        goals: goals.iter().map(|(against, ratio)| Goal { against: *against, ratio: *ratio }).collect(),
        figures: figures.iter().map(|figures| figures.to_vec()).collect(),
        failed: Vec::new(),
    }
}

fn table(rows: Vec<Row>) -> Table {
    Table { engines: ["larch", "rocksdb", "lmdb"].map(str::to_owned).to_vec(), rows, failures: Vec::new() }
}

#[test]
fn a_ratio_is_the_median_of_the_repeats_own_ratios() {
    // In the second repeat, the machine was slow for both engines.
    let gets = row("get", &[(Against::Engine("rocksdb"), 3.0)], &[&[300.0, 30.0, 310.0], &[100.0, 10.0, 100.0], &[]]);
    let verdicts = table(vec![gets]).verdicts();
    assert_eq!(verdicts.len(), 1);
    assert_eq!((verdicts[0].ratio, verdicts[0].reached), (3.0, true));
}

#[test]
fn the_best_is_one_of_the_others() {
    let gets = row("get", &[(Against::Best, 1.5)], &[&[100.0], &[50.0], &[80.0]]);
    let bytes = row("bytes", &[(Against::Best, 1.0)], &[&[100.0], &[50.0], &[80.0]]);
    let verdicts = table(vec![gets, bytes]).verdicts();
    assert_eq!((verdicts[0].against.as_str(), verdicts[0].ratio, verdicts[0].reached), ("the best, lmdb", 1.25, false));
    assert_eq!(
        (verdicts[1].against.as_str(), verdicts[1].ratio, verdicts[1].reached),
        ("the best, rocksdb", 2.0, false)
    );
}

#[test]
fn a_goal_without_its_other_side_is_told_and_not_counted() {
    let gets = row("get", &[(Against::Engine("lmdb"), 1.0), (Against::Own("two"), 1.0)], &[&[100.0], &[50.0], &[]]);
    let table = table(vec![gets]);
    assert_eq!(table.verdicts(), []);
    assert_eq!(table.unmeasured(), ["get against lmdb", "get against our own two"]);
}

#[test]
fn a_table_in_text_has_medians_and_spreads() {
    let gets = row("get", &[(Against::Engine("lmdb"), 1.0)], &[&[90.0, 100.0, 110.0], &[5.0], &[200.0, 200.0, 200.0]]);
    let text = table(vec![gets]).markdown();
    assert!(text.contains("| get | K/s | 100 ±10 % | 5.00 | 200 ±0 % |"), "{text}");
    assert!(text.contains("| get against lmdb | 1 | 0.50 | falls short |"), "{text}");
}

#[test]
fn a_ratio_is_not_rounded_to_the_goal_that_it_missed() {
    let gets = row("get", &[(Against::Engine("lmdb"), 1.0)], &[&[99.7], &[], &[100.0]]);
    let text = table(vec![gets]).markdown();
    assert!(text.contains("| get against lmdb | 1 | 0.9970 | falls short |"), "{text}");
}

#[test]
fn a_goal_whose_own_side_failed_is_missed() {
    let mut gets = row("get", &[(Against::Engine("lmdb"), 1.0)], &[&[], &[50.0], &[80.0]]);
    gets.failed.push(0);
    let table = table(vec![gets]);
    assert_eq!(table.verdicts().iter().map(|verdict| verdict.reached).collect::<Vec<_>>(), [false]);
    assert!(table.markdown().contains("| get | K/s | failed | 50.0 | 80.0 |"), "{}", table.markdown());
}

#[test]
fn an_engine_that_failed_is_told_and_makes_a_bad_end() {
    let gets = || row("get", &[(Against::Engine("lmdb"), 1.0)], &[&[100.0], &[], &[50.0]]);
    assert!(verdict(&table(vec![gets()])).is_good);
    let failures = vec!["get: rocksdb: its process ended".to_owned()];
    let ending = verdict(&Table { failures, ..table(vec![gets()]) });
    assert!(!ending.is_good && ending.text.contains("failed: get: rocksdb: its process ended\n"), "{}", ending.text);
}

#[test]
fn what_was_not_measured_is_told_and_makes_a_gap() {
    let whole = row("get", &[(Against::Engine("lmdb"), 1.0)], &[&[100.0], &[], &[50.0]]);
    let ending = verdict(&table(vec![whole.clone()]));
    assert!(ending.is_good && ending.gap().is_none(), "{}", ending.text);

    // LMDB, with which the goal compares Larch, was not measured.
    let half = row("scan", &[(Against::Engine("lmdb"), 1.0)], &[&[100.0], &[], &[]]);
    // This row has neither a goal nor a figure.
    let empty = row("load", &[], &[&[], &[], &[]]);
    let ending = verdict(&table(vec![whole.clone(), half, empty]));
    assert!(ending.is_good, "{}", ending.text);
    assert!(ending.text.contains("not measured: scan against lmdb\nnot measured: load on any engine\n"));
    let gap = "--require-peers: 2 rows, goals or engines were not measured";
    assert_eq!(ending.gap().as_deref(), Some(gap));

    // This engine is not in the binary.
    let mut ending = verdict(&table(vec![whole]));
    ending.leave_out(&absent(&["noop", "lmdb"], &[harness::noop::SCHEME]));
    assert!(ending.is_good && ending.gap().is_some(), "{}", ending.text);
    assert!(
        ending.text.ends_with("not measured: lmdb, which this binary does not have: cargo x bench --with lmdb …\n")
    );
}

#[test]
fn a_goal_of_another_engine_of_ours_needs_no_figure_of_the_first() {
    let goals = [(Against::Between("rocksdb", "lmdb"), 1.0), (Against::FigureOf("lmdb"), 70.0)];
    let mut gets = row("get", &goals, &[&[], &[50.0], &[80.0]]);
    gets.failed.push(0);
    let table = table(vec![gets]);
    let verdicts = table.verdicts();
    assert_eq!(verdicts.iter().map(|verdict| verdict.ratio).collect::<Vec<_>>(), [0.625, 80.0]);
    assert!(!table.is_measured(), "the others alone are no result");
}

#[test]
fn a_run_of_another_engine_of_ours_is_a_result() {
    let mut table = Table::new(["larch 16K", "larch 4K", "lmdb"]);
    table.add(Row::new("get", "K/s", Vec::new()));
    assert!(!table.is_measured());
    table.row("get").figures[1].push(50.0);
    assert!(table.is_measured());
}

#[test]
fn every_part_of_a_report_has_to_be_good() {
    let part = |figure: f64| {
        let mut table = Table::new(["larch", "lmdb"]);
        table.add(
            Row::new("reads a get", "reads", vec![Goal { against: Against::Figure, ratio: 1.02 }]).less_is_better(),
        );
        table.row("reads a get").figures[0].push(figure);
        table
    };
    assert!(verdict_of(&[("one", part(1.0)), ("two", part(1.02))]).is_good);
    let ending = verdict_of(&[("one", part(1.0)), ("two", part(1.03))]);
    assert!(!ending.is_good);
    assert!(ending.text.contains("## two\n") && ending.text.contains("| at most 1.02 | 1.03 | falls short |"));
    let nothing = Table::new(["larch", "lmdb"]);
    assert!(!verdict_of(&[("one", part(1.0)), ("two", nothing)]).is_good, "nothing measured is no good end");
}
