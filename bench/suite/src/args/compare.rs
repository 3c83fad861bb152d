//! The options of `larch bench compare`, `regress` and `compare-trials`.

use super::{length, time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  larch bench compare --base a1.json a2.json a3.json --new b1.json b2.json b3.json
  larch bench compare --base a*.json --new b*.json --at-least 5% --out compare.html

Make the runs in turns, five a side: a1, b1, a2, b2, … Each should be a process of its own.

First it names what differs besides the figures: host, binary, settings, work.

Exit codes: 0 no significant worsening; 1 a worsening; 2 wrong arguments, or a file that is no result; 3 a result could not be
written; 4 cannot tell: no worsening is shown, but the machine, the workload or the plan differs, nothing says how sure a figure is,
or the runs of a side differ so much that a worsening could be hidden.";

pub const REGRESS_EXAMPLES: &str = "\
Examples:
  larch bench regress --store
  larch bench regress --out regress.html

Exit codes: 0 no significant worsening; 1 a worsening; 2 wrong arguments; 3 a run failed, or a result could not be written; 4 cannot
tell: there is no baseline of this kind of machine, or no worsening is shown, and one may be; 130 interrupted by ^C.

These are times. `cargo x instructions` compares counts, which depend on no machine: instructions, pages and bytes.";

/// How results are compared.
#[derive(Clone, Copy, Debug, Args)]
pub struct How {
    /// Significance level: how often equal results may be reported as different
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = level)]
    pub level: f64,
    /// The least difference that matters; smaller ones are no worsening
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = any_percent)]
    pub at_least: f64,
    /// Standard deviation between runs that is assumed where each side has a single run
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    pub run_spread: f64,
    /// The spread for percentiles above the median
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub tail_spread: f64,
    /// If times may be longer by more than this part, and runs differ too much to see it, the comparison cannot tell
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = any_percent)]
    pub tell: f64,
}

impl How {
    /// The options for the crate `compare`.
    pub fn options(&self) -> compare::Options {
        let How { level, at_least, run_spread: spread, tail_spread, tell } = *self;
        compare::Options { level, at_least, spread, tail_spread, tell, despite_differences: false }
    }
}

/// Options of `larch bench compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Results to compare with
    #[arg(long, required = true, num_args = 1.., value_name = "FILE.json")]
    pub base: Vec<PathBuf>,
    /// Results that are compared
    #[arg(long, required = true, num_args = 1.., value_name = "FILE.json")]
    pub new: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) how: How,
    /// Compares results of other machines, workloads or plans, too, or sides whose runs are not set alike
    #[arg(long)]
    pub despite_differences: bool,
    /// Writes a page with charts
    #[arg(long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
    /// Writes the comparison as JSON
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

/// Options for the runs of `regress` and `compare-trials`.
#[derive(Clone, Debug, Args)]
pub struct RoundArgs {
    /// Records of the table
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub records: u64,
    /// Time of each run
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = length)]
    pub time: Duration,
    /// Warm-up of each run
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub warmup: Duration,
    /// Directory for the databases of the runs [default: beside this program's directory]
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Options of `larch bench regress`.
#[derive(Debug, Args)]
pub struct RegressArgs {
    /// Directory of baselines, with a directory in it for each kind of machine
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks/baselines")]
    pub base: PathBuf,
    /// Stores what is measured as the baseline of this kind of machine, in place of the one before, and compares
    /// nothing
    #[arg(long)]
    pub store: bool,
    /// Another build of this program, whose runs are made in turns with those of this one; no baseline is needed then
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["store", "base"])]
    pub base_program: Option<PathBuf>,
    /// Rounds of the four workloads
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    #[command(flatten)]
    pub(crate) runs: RoundArgs,
    #[command(flatten)]
    pub(crate) how: How,
    /// Writes a page with charts
    #[arg(long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
}

/// Options of `larch bench compare-trials`.
#[derive(Debug, Args)]
pub struct TrialsArgs {
    /// Pairs of runs of this build
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Comparisons of five runs with five that are slowed down, made in turns
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub trials: u32,
    /// Slow-down of these runs
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub slower: f64,
    /// The workload of YCSB, a to f
    #[arg(long, value_name = "a..f", default_value = "c", value_parser = ["a", "b", "c", "d", "e", "f"])]
    pub workload: String,
    #[command(flatten)]
    pub(crate) runs: RoundArgs,
    #[command(flatten)]
    pub(crate) how: How,
}

/// Parses a fraction in percent: `5%` → 0.05.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let part = any_percent(text).ok().filter(|part| *part <= 1.0);
    part.ok_or_else(|| "write a number from 0 to 100 with a percent sign: 5%".to_owned())
}

/// Parses a percentage that may be above 100 %, such as `250%`.
fn any_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let part = number.filter(|number| *number >= 0.0 && number.is_finite()).map(|number| number / 100.0);
    part.ok_or_else(|| "write a number of at least 0 with a percent sign: 50%".to_owned())
}

/// Parses a significance level.
fn level(text: &str) -> Result<f64, String> {
    let level = percent(text)?;
    let is_one = (1e-6..=0.5).contains(&level);
    is_one.then_some(level).ok_or_else(|| "a level is above 0% and at most 50%: 1%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{level, percent};

    #[test]
    fn parts_are_written_in_percent() {
        assert_eq!((percent("5%"), percent("0.5 %"), percent("0%")), (Ok(0.05), Ok(0.005), Ok(0.0)));
        for bad in ["5", "0.05", "-1%", "101%", "%", "nan%", "five%"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        assert!(level("0%").is_err() && level("60%").is_err() && level("1%") == Ok(0.01));
    }
}
