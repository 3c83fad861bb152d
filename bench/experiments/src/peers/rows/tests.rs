use super::*;
use crate::experiment::tests::ground;
use crate::outcome::Measured;
use crate::peers::orders::micros;
use kit::Scratch;

/// The cells of the table and the goals of one part, after `samples` (task, engine, sample) in repeat after repeat.
pub fn measured(
    engines: &[&'static str],
    rows: Vec<Row>,
    samples: &[(&'static str, &'static str, Sample)],
) -> (Vec<Vec<String>>, Vec<outcome::Goal>) {
    let seen = Seen::of(engines, rows, samples);
    (seen.shown(), seen.part.goals(&seen.ground))
}

/// Checks that every goal can be measured if every engine has figures in every row.
pub fn check_sides(engines: &[&'static str], rows: Vec<Row>) {
    let part = Part { title: "part".to_owned(), engines: engines.to_vec(), repeats: 1, rows };
    let sides = part.wanted().flat_map(|(_, against, _)| match against {
        Against::Engine(name) | Against::FigureOf(name) | Against::Above(name) => vec![name],
        Against::Between(ours, theirs) => vec![ours, theirs],
        Against::Own(_) | Against::Best | Against::Figure => vec![],
    });
    let absent: Vec<&str> = sides.filter(|side| !engines.contains(side)).collect();
    assert!(absent.is_empty() && part.wanted().count() > 0, "{absent:?}");
    for (_, against, _) in part.wanted() {
        let Against::Own(other) = against else { continue };
        assert!(part.rows.iter().any(|row| row.name == other), "{other}");
    }
}

struct Seen {
    part: Part,
    ground: Ground,
    _scratch: Scratch,
}

impl Seen {
    fn of(engines: &[&'static str], rows: Vec<Row>, samples: &[(&'static str, &'static str, Sample)]) -> Self {
        let scratch = Scratch::new("rows");
        let mut ground = ground(&scratch);
        let part = Part { title: "part".to_owned(), engines: engines.to_vec(), repeats: 3, rows };
        for (task, engine, sample) in samples {
            let is_free = |repeat: &u64| !ground.has(&part.cell(task, engine, *repeat).to_string());
            let repeat = (0..).find(is_free).expect("there is another repeat");
            let value = serde_json::to_value(sample).expect("it is plain data");
            ground.keep(&part.cell(task, engine, repeat).to_string(), value).expect("there is room");
        }
        Self { part, ground, _scratch: scratch }
    }

    fn fail(&mut self, task: &'static str, engine: &'static str) {
        let cell = self.part.cell(task, engine, 0).to_string();
        self.ground.fail(&cell, "its process ended".to_owned());
    }

    fn shown(&self) -> Vec<Vec<String>> {
        let Block::Table(table) = self.part.table(&self.ground) else { panic!("it is a table") };
        table.rows
    }

    fn goals(&self) -> Vec<(String, Option<f64>, bool)> {
        let goals = self.part.goals(&self.ground).into_iter();
        let figure = |measured| if let Measured::Figure(figure) = measured { Some(figure) } else { None };
        goals.map(|goal| (goal.what, goal.measured.and_then(figure), goal.is_reached)).collect()
    }
}

/// Samples of `get` with these rates, for each engine.
fn gets(rates: &[(&'static str, &[u64])]) -> Vec<(&'static str, &'static str, Sample)> {
    let sample = |rate: &u64| Sample { operations: 1000 * rate, nanos: 1_000_000_000, ..Sample::default() };
    let of = |(engine, rates): &(&'static str, &[u64])| {
        let engine = *engine;
        rates.iter().map(move |rate| ("get", engine, sample(rate))).collect::<Vec<_>>()
    };
    rates.iter().flat_map(of).collect()
}

const ENGINES: [&str; 3] = ["larch", "rocksdb", "lmdb"];

fn of_gets(goals: &[(Against, f64)], rates: &[(&'static str, &[u64])]) -> Seen {
    Seen::of(&ENGINES, vec![Row::rate("get", goals)], &gets(rates))
}

#[test]
fn a_ratio_is_the_median_of_the_repeats_own_ratios() {
    // In the second repeat, the machine was slow for both engines.
    let seen =
        of_gets(&[(Against::Engine("rocksdb"), 3.0)], &[("larch", &[300, 30, 310]), ("rocksdb", &[100, 10, 100])]);
    assert_eq!(seen.goals(), [("get against rocksdb".to_owned(), Some(3.0), true)]);
}

#[test]
fn the_best_is_one_of_the_others() {
    let rates: [(&str, &[u64]); 3] = [("larch", &[100]), ("rocksdb", &[50]), ("lmdb", &[80])];
    let seen = of_gets(&[(Against::Best, 1.5)], &rates);
    assert_eq!(seen.goals(), [("get against the best, lmdb".to_owned(), Some(1.25), false)]);
    let bytes = Row { less_is_better: true, ..Row::rate("get", &[(Against::Best, 1.0)]) };
    let seen = Seen::of(&ENGINES, vec![bytes], &gets(&rates));
    assert_eq!(seen.goals(), [("get against the best, rocksdb".to_owned(), Some(2.0), false)]);
}

#[test]
fn what_was_not_measured_is_told_and_is_no_goal() {
    let goals = [(Against::Engine("lmdb"), 1.0), (Against::Own("two"), 1.0)];
    let rows = vec![Row::rate("get", &goals), Row::rate("load", &[])];
    let seen = Seen::of(&ENGINES, rows, &gets(&[("larch", &[100]), ("rocksdb", &[50])]));
    assert_eq!(seen.goals(), []);
    assert_eq!(seen.part.gaps(&seen.ground), ["get against lmdb", "get against our own two", "load on any engine"]);
}

#[test]
fn a_table_has_medians_and_spreads() {
    let seen = of_gets(&[], &[("larch", &[90, 100, 110]), ("rocksdb", &[5]), ("lmdb", &[200, 200, 200])]);
    assert_eq!(seen.shown(), [["get", "K/s", "100 ±10 %", "5.00", "200 ±0 %"]]);
}

#[test]
fn a_goal_whose_own_side_failed_is_missed() {
    let mut seen = of_gets(&[(Against::Engine("lmdb"), 1.0)], &[("rocksdb", &[50]), ("lmdb", &[80])]);
    seen.fail("get", "larch");
    assert_eq!(seen.goals(), [("get against anything: it failed".to_owned(), None, false)]);
    assert_eq!(seen.shown(), [["get", "K/s", "failed", "50.0", "80.0"]]);
}

#[test]
fn a_goal_of_another_engine_of_ours_needs_no_figure_of_the_first() {
    let goals = [(Against::Between("rocksdb", "lmdb"), 1.0), (Against::FigureOf("lmdb"), 70.0)];
    let mut seen = of_gets(&goals, &[("rocksdb", &[50]), ("lmdb", &[80])]);
    seen.fail("get", "larch");
    let measured: Vec<Option<f64>> = seen.goals().into_iter().map(|(_, measured, _)| measured).collect();
    assert_eq!(measured, [Some(0.625), Some(80.0)]);
}

#[test]
fn one_stop_at_level_0_in_any_sample_is_a_goal_missed() {
    let of = |stops: &[Option<u64>]| {
        let sample = |stops: &Option<u64>| ("get", "larch", Sample { level0_stops: *stops, ..Sample::default() });
        let rows = vec![Row::rate("get", &[]), crate::peers::memory::stops("stops")];
        let seen = Seen::of(&["larch"], rows, &stops.iter().map(sample).collect::<Vec<_>>());
        seen.goals().into_iter().map(|(_, _, is_reached)| is_reached).collect::<Vec<_>>()
    };
    assert_eq!(of(&[None]), [false; 0], "a store that does not count says nothing");
    assert_eq!(of(&[Some(0), Some(0)]), [true]);
    assert_eq!(of(&[Some(0), Some(1), Some(0)]), [false]);
}

#[test]
fn a_repeat_without_a_percentile_leaves_the_row_blank() {
    let late = |p99_nanos| ("get", "larch", Sample { p99_nanos, ..Sample::default() });
    let row = Row::less("late", "us", "get", |sample| micros(sample.p99_nanos), &[(Against::Figure, 2.0)]);
    let of = |samples: [Option<u64>; 3]| {
        let seen = Seen::of(&["larch"], vec![row.clone()], &samples.map(late));
        (seen.shown()[0][2].clone(), seen.goals().len(), seen.part.gaps(&seen.ground))
    };
    assert_eq!(of([Some(2000); 3]), ("2.00 ±0 %".to_owned(), 1, vec![]));
    assert_eq!(of([Some(2000), None, Some(2000)]), ("-".to_owned(), 0, vec!["late".to_owned()]));
}
