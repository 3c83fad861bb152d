//! The client's own cost of an operation, measured on a store that does nothing.

use crate::client::Workload;
use crate::measured::Measured;
use crate::noop::Noop;
use crate::plan::{Length, Plan};
use crate::run::{RunError, run};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The longest time that [`noop_nanos`] measures. Values of megabytes take long to make, and few operations are
/// enough then.
pub const NOOP_LIMIT: Duration = Duration::from_secs(3);

/// The processor time that an operation of `workload` costs by itself, in nanoseconds. The operation is made,
/// measured and forgotten on a store that does nothing, in a closed loop of `operations` operations, or of all if the
/// workload has fewer. That store has sessions like the sessions of the measured store, from whose cost the result is
/// subtracted: `depth` is the measured run's [`Cost`](crate::Cost) field of this name, and `clients` is the number of
/// clients that share a thread (1 where calls wait). As in any run, the workload is used up. The measurement takes
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
        // A workload may succeed with no operation on a store that holds nothing.
        Err(RunError::NothingMeasured { partial }) if partial.failed > 0 => *partial,
        measured => measured?,
    };
    let Measured { operations, failed, .. } = measured;
    Ok(measured.cost.client_nanos as f64 / (operations + failed) as f64)
}
