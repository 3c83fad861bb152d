//! Runs of TPC-C among other runs: their results by TPC-C's own rules. This module does not know how they are run.

use harness::report;
use tpcc::figures::Figures;
use tpcc::rules::Mode;
use tpcc::summary::Summary;

/// The summary of a run of TPC-C as text; `None`: the run is of another workload.
pub fn summary(run: &report::Run) -> Option<String> {
    of_run(run).map(|summary| summary.text())
}

/// The figures of a run of TPC-C; `None`: the run is of another workload.
pub fn figures(run: &report::Run) -> Option<Figures> {
    of_run(run).map(|summary| Figures::of(&summary))
}

/// The run as it is written to a file: with its figures if it is one of TPC-C.
pub fn with_figures(run: &report::Run) -> report::Run {
    let mut whole = run.clone();
    whole.tpcc = figures(run).map(|figures| serde_json::to_value(figures).expect("names are texts"));
    whole
}

/// What a run of TPC-C came to by its rules.
fn of_run(run: &report::Run) -> Option<Summary<'_>> {
    let value = |name: &str| run.workload.iter().find(|pair| pair.name == name).map(|pair| pair.value.as_str());
    let name = run.name.strip_prefix(NAME)?;
    let mode = Some(name.strip_prefix(SIMULATED).unwrap_or(name)).filter(|mode| value("mode") == Some(mode))?;
    let (mode, _) = Mode::ALL.into_iter().find(|(_, name)| *name == mode)?;
    let warehouses = value("warehouses")?.parse().ok()?;
    Some(Summary { mode, warehouses, measured: &run.measured })
}

/// What names of its runs begin with.
pub const NAME: &str = "tpcc ";

/// What follows it if a server gave constant rows.
pub const SIMULATED: &str = "simulated ";
