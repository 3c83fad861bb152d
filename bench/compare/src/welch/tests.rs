use super::*;
use crate::batch_means;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Series whose properties are known.
pub struct Series {
    random: StdRng,
}

impl Series {
    pub fn new(seed: u64) -> Self {
        println!("seed {seed:#x}");
        Self { random: StdRng::seed_from_u64(seed) }
    }

    /// A standard normal value (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        let (first, second): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos()
    }

    /// An AR(1) series of variance 1 with coefficient `memory`.
    pub fn values(&mut self, length: usize, memory: f64) -> Vec<f64> {
        let mut value = self.normal();
        let step = |_| {
            let this = value;
            value = memory * value + (1.0 - memory * memory).sqrt() * self.normal();
            this
        };
        (0..length).map(step).collect()
    }

    /// A run of 60 s with mean `mean`. The seconds of the run have a standard deviation of 3 % and are AR(1) with
    /// coefficient 0.5, so the standard error of the run's mean is 0.67 %. Runs differ by `spread`.
    pub fn run(&mut self, mean: f64, spread: f64) -> Estimate {
        let mean = mean * (1.0 + spread * self.normal());
        let seconds: Vec<f64> = self.values(60, 0.5).iter().map(|value| mean * (1.0 + 0.03 * value)).collect();
        let value = batch_means::mean(&seconds);
        let within = batch_means::uncertainty(&seconds).expect("there are seconds");
        Estimate { value, within: Some(Uncertainty { variance: within.variance / value.powi(2), ..within }) }
    }

    pub fn side(&mut self, runs: usize, mean: f64, spread: f64) -> Vec<Estimate> {
        (0..runs).map(|_| self.run(mean, spread)).collect()
    }
}

/// The share of `rounds` comparisons at a level of 1 % that find a difference.
fn found(rounds: u32, runs: usize, slower: f64, spread: f64, assumed: f64) -> f64 {
    let mut series = Series::new(0x5eed_0003 + runs as u64);
    let is_found = |_: &u32| {
        let (base, new) = (series.side(runs, 1e5, spread), series.side(runs, 1e5 / (1.0 + slower), spread));
        difference(&base, &new, 0.01, assumed).p.expect("the seconds say how sure it is") < 0.01
    };
    f64::from((0..rounds).filter(is_found).count() as u32) / f64::from(rounds)
}

#[test]
fn runs_of_one_build_show_no_difference_more_often_than_the_level() {
    // Each side has a single run. Runs differ by the assumed spread, or by less.
    for spread in [0.0, 0.01, 0.02] {
        let wrong = found(4_000, 1, 0.0, spread, 0.02);
        assert!(wrong <= 0.012, "one run a side, {spread}: {wrong}");
    }
    // Each side has several runs. The spread is measured, and nothing is assumed.
    for (runs, spread) in [(2, 0.02), (3, 0.05), (5, 0.0), (5, 0.02), (10, 0.1)] {
        let wrong = found(4_000, runs, 0.0, spread, 0.0);
        assert!(wrong <= 0.013, "{runs} runs a side, {spread}: {wrong}");
    }
}

#[test]
fn seconds_alone_would_show_what_is_not_there() {
    let wrong = found(1_000, 1, 0.0, 0.02, 0.0);
    assert!(wrong > 0.2, "without the variance between runs {wrong} of the pairs would differ");
}

#[test]
fn five_runs_a_side_find_five_percent_where_runs_differ_by_at_most_two() {
    // Ten normal values have an average range of 3.08 standard deviations. So ten runs within 2 % have a standard
    // deviation of 2 % / 3.08 = 0.65 %, which the variation within a run alone causes here.
    let right = found(1_000, 5, 0.05, 0.0, 0.0);
    assert!(right >= 0.99, "{right}");
    // The extremes of the runs are 3.7 % apart.
    let right = found(1_000, 5, 0.05, 0.01, 0.0);
    assert!(right >= 0.9, "{right}");
}

#[test]
fn an_interval_holds_the_true_ratio_as_often_as_it_says() {
    let mut series = Series::new(0x5eed_0010);
    let holds = |_: &u32| {
        let (base, new) = (series.side(5, 1e5, 0.02), series.side(5, 1.1e5, 0.02));
        let (from, to) = difference(&base, &new, 0.05, 0.0).interval.expect("there are several runs");
        (from..to).contains(&0.1)
    };
    let share = f64::from((0..2_000).filter(holds).count() as u32) / 2_000.0;
    assert!((0.93..0.98).contains(&share), "{share}");
}

#[test]
fn figures_are_those_of_welch() {
    // Welch's test by hand: means ln 100 and ln 110, standard deviations of the logarithms 0.01 and 0.02, 5 runs a
    // side.
    let side = |center: f64, sd: f64| {
        let steps = [-1.0, -1.0, 0.0, 1.0, 1.0];
        let values = steps.map(|step: f64| center * (step * sd).exp());
        values.map(|value| Estimate { value, within: None })
    };
    let found = difference(&side(100.0, 0.01), &side(110.0, 0.02), 0.05, 0.0);
    assert!((found.ratio - 0.1).abs() < 1e-12, "{found:?}");
    // t = ln 1.1 / sqrt(0.0005 / 5) = 9.531, with 5.882 degrees of freedom. The 0.975 quantile is 2.459.
    let (from, to) = found.interval.expect("runs differ");
    assert!(((1.0 + from).ln() - (0.09531 - 0.02459)).abs() < 1e-4, "{found:?}");
    assert!(((1.0 + to).ln() - (0.09531 + 0.02459)).abs() < 1e-4, "{found:?}");
    assert!(found.p.is_some_and(|p| (5e-5..1.2e-4).contains(&p)), "{found:?}");
}

#[test]
fn without_a_second_run_or_intervals_nothing_is_said_of_how_sure_it_is() {
    let one = [Estimate { value: 100.0, within: None }];
    let two = [Estimate { value: 110.0, within: None }];
    let found = difference(&one, &two, 0.01, 0.02);
    assert_eq!((found.interval, found.p), (None, None));
    let same = difference(&[one[0], one[0]], &[one[0], one[0]], 0.01, 0.02);
    assert_eq!((same.ratio, same.p), (0.0, Some(1.0)));
    let counted = difference(&[one[0], one[0]], &[two[0], two[0]], 0.01, 0.02);
    assert_eq!(counted.p, Some(0.0), "counts that never vary differ");
}
