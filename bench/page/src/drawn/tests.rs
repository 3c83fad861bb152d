use super::*;
use crate::{Axis, Curve};

fn line(name: &str, points: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.to_owned(), points }
}

#[test]
fn lines_at_the_same_places_share_them() {
    let points = |by: f64| (0..4).map(|at| (f64::from(at), f64::from(at) * by)).collect::<Vec<_>>();
    let chart = Chart {
        x: Axis::linear("s"),
        y: Axis::logarithmic("us"),
        lines: vec![line("a", points(1.0 / 3.0)), line("b", points(2.0)), line("c", vec![(0.5, 1.0)])],
        ..Chart::default()
    };
    let drawn = Drawn::of(&chart, &[], &[]);
    assert_eq!(drawn.places, [vec![0.0, 1.0, 2.0, 3.0], vec![0.5]]);
    assert_eq!(drawn.lines.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(drawn.lines[0].2, [0.0, 0.33333, 0.66667, 1.0], "five digits are enough for a pixel");
    assert_eq!(drawn.log, (false, true));
    let json = serde_json::to_string(&drawn).expect("it is plain");
    assert_eq!(serde_json::from_str::<Drawn>(&json).expect("it comes back"), drawn);
}

#[test]
fn a_long_line_keeps_its_peaks() {
    let points: Vec<(f64, f64)> =
        (0..100_000).map(|at| (f64::from(at), if at == 77_777 { 9.0 } else { 1.0 })).collect();
    let thin = thinned(&points);
    assert!(thin.len() <= MOST_POINTS, "{}", thin.len());
    assert!(thin.contains(&(77_777.0, 9.0)) && thin.is_sorted_by(|(one, _), (other, _)| one < other));
    assert_eq!(thinned(&points[..MOST_POINTS]), points[..MOST_POINTS], "a short one is as it is");
}

#[test]
fn events_that_touch_are_one() {
    assert_eq!(joined(&[(1.0, 2.0), (2.0, 3.0), (5.0, 6.0)]), [1.0, 3.0, 5.0, 6.0]);
}
