//! What an operation costs the client by itself: measured on a store that does nothing.

use crate::client::Workload;
use crate::measured::Measured;
use crate::noop::Noop;
use crate::plan::{Length, Plan};
use crate::run::{RunError, run};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long [`noop_nanos`] measures at most: values of megabytes take long to make, so few operations say enough.
pub const NOOP_LIMIT: Duration = Duration::from_secs(3);

/// Processor time an operation of `workload` costs by itself, in nanoseconds: made, measured and forgotten on a store
/// that does nothing, in a closed loop of this number of `operations`, or of all if they are fewer. The sessions of
/// that store are like those of the store that it is subtracted from: `depth` is that of [`Cost`](crate::Cost), and
/// `clients` those that share a thread (1 where calls wait). The workload is used up as in any run. It takes
/// [`NOOP_LIMIT`] at most, and ends when `stop` is set.
///
/// # Errors
///
/// The errors of [`run`].
pub fn noop_nanos<W: Workload>(
    workload: &W,
    clients: usize,
    depth: Option<usize>,
    operations: u64,
    stop: &AtomicBool,
) -> Result<f64, RunError> {
    let store = depth.map_or(Noop::waiting(), Noop::flying);
    let length = Length::Operations(operations.max(clients as u64));
    let plan = Plan { clients, length, limit: Some(NOOP_LIMIT), ..Plan::default() };
    let measured = match run(&store, workload, &plan, stop, &mut |_| {}) {
        // A store that has nothing may be one that nothing succeeds on.
        Err(RunError::NothingMeasured { partial }) if partial.failed > 0 => *partial,
        measured => measured?,
    };
    let Measured { operations, failed, .. } = measured;
    Ok(measured.cost.client_nanos as f64 / (operations + failed) as f64)
}
