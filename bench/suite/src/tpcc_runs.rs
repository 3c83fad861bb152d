//! Recognises TPC-C runs in results and summarises them by TPC-C's own rules.

use crate::live::view::KnownBy;
use harness::report;
use tpcc::figures::Figures;
use tpcc::live;
use tpcc::rules::Mode;
use tpcc::summary::Summary;

/// The summary of a run of TPC-C as text, or `None` if the run has another workload.
pub fn summary(run: &report::Run) -> Option<String> {
    of_run(run).map(|summary| summary.text())
}

/// The figures of a run of TPC-C, or `None` if the run has another workload.
pub fn figures(run: &report::Run) -> Option<Figures> {
    of_run(run).map(|summary| Figures::of(&summary))
}

/// The run as it is written to a file: with the list of all its figures, and the figures of a TPC-C run.
pub fn with_figures(run: &report::Run) -> report::Run {
    let mut whole = run.clone();
    whole.figures = run.all_figures().into_owned();
    if let Some(figures) = figures(run) {
        whole.figures.extend(figures.list());
        whole.tpcc = Some(serde_json::to_value(figures).expect("names are texts"));
    }
    whole
}

fn of_run(run: &report::Run) -> Option<Summary<'_>> {
    let value = |name: &str| run.workload.iter().find(|pair| pair.name == name).map(|pair| pair.value.as_str());
    let name = run.name.strip_prefix(NAME)?;
    let mode = Some(name.strip_prefix(SIMULATED).unwrap_or(name)).filter(|mode| value("mode") == Some(mode))?;
    let (mode, _) = Mode::ALL.into_iter().find(|(_, name)| *name == mode)?;
    let warehouses = value("warehouses")?.parse().ok()?;
    Some(Summary { mode, warehouses, measured: &run.measured })
}

/// The rate that TPC-C is known by: new orders per minute.
pub const TPMC: KnownBy = KnownBy { name: "tpmC", count: live::new_orders, unit_seconds: 60.0 };

/// The rate that a run is known by, or `None` if it is no run of TPC-C.
pub fn known_by(run: &report::Run) -> Option<KnownBy> {
    of_run(run).map(|_| TPMC)
}

/// The prefix of every TPC-C run's name.
pub const NAME: &str = "tpcc ";

/// Follows [`NAME`] in the name of a simulated run, in which the server returned constant rows.
pub const SIMULATED: &str = "simulated ";
