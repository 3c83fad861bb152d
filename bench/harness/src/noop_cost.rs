//! Measures the client's own cost of an operation, on a store that does nothing.

use crate::client::Workload;
use crate::measured::Measured;
use crate::noop::Noop;
use crate::plan::{Length, Plan};
use crate::run::{RunError, run};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The longest time that [`noop_nanos`] measures. Values of several megabytes take long to make, but then few
/// operations are enough.
pub const NOOP_LIMIT: Duration = Duration::from_secs(3);

/// The processor time that the client itself spends on an operation of `workload`, in nanoseconds, to be subtracted
/// from the cost on the measured store. Measured in a closed loop of `operations` operations, or of all that the
/// workload has, on a store that does nothing. Its sessions are like those of the measured store: `depth` is the
/// depth of the measured run, from its [`Cost`](crate::Cost), and `clients` is the number of clients that share a
/// thread (1 where calls wait). The operations are used up, as after any run. The measurement takes [`NOOP_LIMIT`]
/// at most, and ends when `stop` is set.
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
