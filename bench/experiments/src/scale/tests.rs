use super::*;
use crate::experiment::tests::{ground, tiny};
use kit::Scratch;

#[test]
fn a_tiny_experiment_is_what_was_predicted() {
    let [once, again] = [0, 1].map(|_| MoreRows::of(Scale::Tiny));
    let (_, ground, outcome) = tiny(once, again);
    assert_eq!(ground.cells().len(), 3 * (1 + 1));
    assert_eq!(outcome.goals.len(), CHECKED.len());
    assert!(outcome.goals.iter().all(|goal| goal.is_reached), "{:?}", outcome.goals);
}

#[test]
fn keys_grow_with_their_numbers() {
    for rows in [1, 2, 1000, 64_000_000] {
        let numbers = (0..1000.min(rows)).chain(rows - 1..rows);
        let keys: Vec<_> = numbers.map(|number| key(number, rows)).collect();
        assert!(keys[..keys.len() - 1].is_sorted_by(|a, b| a < b), "{rows}");
    }
}

#[test]
fn what_was_published_is_quoted_as_it_was() {
    let scratch = Scratch::new("scale");
    let Block::Table(table) = MoreRows::of(Scale::Tiny).published(&ground(&scratch)) else { panic!("it is a table") };
    let shown: Vec<Vec<String>> = table.rows.iter().map(|row| row[..3].to_vec()).collect();
    let quoted = quoted::YDB_TPCC.map(|run| {
        let without_commas = |tpmc: quoted::Quote| page::figure(tpmc.value());
        vec![run.cache.text(), without_commas(run.flat.tpmc), without_commas(run.tree.tpmc)]
    });
    assert_eq!(shown, quoted);
    let digits: String = shown[0][1].chars().filter(char::is_ascii_digit).collect();
    assert_eq!(digits, quoted::YDB_TPCC[0].flat.tpmc.written, "all digits are shown");
}
