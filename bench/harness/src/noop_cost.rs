//! The client's own cost of an operation, measured on a store that does nothing.

use crate::client::Workload;
use crate::measured::Measured;
use crate::noop::Noop;
use crate::plan::{Length, Plan};
use crate::run::{RunError, run};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The longest time that [`noop_nanos`] measures. Values of several megabytes take long to make. Then few
/// operations are enough.
pub const NOOP_LIMIT: Duration = Duration::from_secs(3);

/// The processor time that the client spends on an operation of `workload`, in nanoseconds, without the work of a
/// store. The time is measured in a closed loop on a store that does nothing. The loop has `operations` operations,
/// or all operations of the workload if the workload has fewer. The sessions of the store that does nothing are like
/// the sessions of the measured store. `depth` is the depth of the measured run, from its [`Cost`](crate::Cost).
/// `clients` is the number of clients that share a thread (1 where calls wait). The result is subtracted from the
/// cost of the measured store. The measurement does operations of the workload, and these operations are then used
/// up, as after any run. The measurement takes [`NOOP_LIMIT`] at most, and ends when `stop` is set.
///
/// # Errors
///
/// Returns the errors of [`run`].
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
        // On a store that holds nothing, all operations of a workload may fail.
        Err(RunError::NothingMeasured { partial }) if partial.failed > 0 => *partial,
        measured => measured?,
    };
    let Measured { operations, failed, .. } = measured;
    Ok(measured.cost.client_nanos as f64 / (operations + failed) as f64)
}
