//! The data of a chart as the page carries it, in a short form of bounded size. How it is drawn is up to the page's
//! script and `picture`.
//!
//! ```text
//! {"x": "label", "y": "label", "log": [x, y],
//!  "places": [[x, …], …], "lines": [["name", number of its places, [y, …]], …],
//!  "marks": [[x, "text"], …], "lanes": [["name", [from, to, …]], …], "shades": [[from, to, "name"], …]}
//! ```

#[cfg(test)]
mod tests;

use super::{Chart, Lane};
use serde::{Deserialize, Serialize};

/// The most points of a line: more than there are pixels would show nothing more.
const MOST_POINTS: usize = 4_000;

/// A chart in its short form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    pub title: String,
    pub x: String,
    pub y: String,
    pub log: (bool, bool),
    pub places: Vec<Vec<f64>>,
    pub lines: Vec<(String, usize, Vec<f64>)>,
    pub marks: Vec<(f64, String)>,
    pub lanes: Vec<(String, Vec<f64>)>,
    pub shades: Vec<(f64, f64, String)>,
}

impl Drawn {
    /// The short form of a chart.
    pub fn of(chart: &Chart, lanes: &[Lane], shades: &[(f64, f64, String)]) -> Self {
        let mut places: Vec<Vec<f64>> = Vec::new();
        let mut lines = Vec::new();
        for line in &chart.lines {
            let (at, values): (Vec<f64>, Vec<f64>) = thinned(&line.points).into_iter().unzip();
            let at: Vec<f64> = at.into_iter().map(|place| rounded(place, 6)).collect();
            let number = places.iter().position(|known| *known == at).unwrap_or_else(|| {
                places.push(at);
                places.len() - 1
            });
            lines.push((line.name.clone(), number, values.into_iter().map(|value| rounded(value, 4)).collect()));
        }
        Self {
            title: chart.title.clone(),
            x: chart.x.label.clone(),
            y: chart.y.label.clone(),
            log: (chart.x.is_logarithmic, chart.y.is_logarithmic),
            places,
            lines,
            marks: chart.marks.clone(),
            lanes: lanes.iter().map(|lane| (lane.name.clone(), joined(&lane.spans))).collect(),
            shades: shades.to_vec(),
        }
    }
}

/// The size of the groups of points of which only the least and the greatest are drawn; `None` if all are drawn.
pub fn thinned_by(points: usize) -> Option<usize> {
    (points > MOST_POINTS).then(|| points.div_ceil(MOST_POINTS / 2))
}

/// The points, or the least and the greatest of each group if there are too many, which keeps peaks visible.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let Some(each) = thinned_by(points.len()) else { return points.to_vec() };
    let pair = |part: &[(f64, f64)]| {
        let by_value = |one: &usize, other: &usize| part[*one].1.total_cmp(&part[*other].1);
        let least = (0..part.len()).min_by(by_value).expect("a part has a point");
        let greatest = (0..part.len()).max_by(by_value).expect("a part has a point");
        let (first, second) = (least.min(greatest), least.max(greatest));
        if first == second { vec![part[first]] } else { vec![part[first], part[second]] }
    };
    points.chunks(each).flat_map(pair).collect()
}

/// The flattened bounds of all spans, with touching spans joined.
fn joined(spans: &[(f64, f64)]) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::new();
    for (from, to) in spans.iter().map(|(from, to)| (rounded(*from, 6), rounded(*to, 6))) {
        match all.last_mut() {
            Some(last) if *last >= from => *last = last.max(to),
            _ => all.extend([from, to]),
        }
    }
    all
}

/// Rounds to `digits` + 1 significant digits.
fn rounded(number: f64, digits: usize) -> f64 {
    format!("{number:.digits$e}").parse().unwrap_or(number)
}
