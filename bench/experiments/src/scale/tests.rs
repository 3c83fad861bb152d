use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_is_what_was_predicted() {
    let scratch = Scratch::new("scale");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: true, price: None };
    let size = Size::of(Scale::Tiny);
    let mut ground = Ground::with_stop("scale", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("the disk works"));
    assert_eq!(ground.cells().len(), size.rows.len() * (1 + size.caches.len()));
    let outcome = outcome(&ground, &size);
    assert_eq!(outcome.goals.len(), CHECKED.len());
    assert_eq!(outcome.finish("scale", &ground, &args).expect("there is room"), Ending::Good);
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
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false, price: None };
    let ground = Ground::with_stop("scale", &args, 1 << 20, Stop::never()).expect("there is room");
    let rows = published(&ground, &Size::of(Scale::Tiny)).rows;
    let quoted: Vec<&[String]> = rows.iter().map(|row| &row[..3]).collect();
    assert_eq!(
        quoted,
        [["54 GB", "151,485", "151,435"], ["18 GB", "115,815", "117,808"], ["2 GB", "72,032", "75,677"]]
    );
}
