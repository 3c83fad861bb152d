//! A workload on an open store, whose rate can vary from run to run. It knows nothing of a search.

use crate::ending::Ran;
use crate::live::view::Head;
use harness::report::Run;
use harness::{Failure, Interval};
use std::time::Duration;

/// The length of a run, if none is given.
pub const WINDOW: Duration = Duration::from_secs(10);

/// A workload on an open store, whose rate can vary.
pub trait Rated {
    /// The name of the workload.
    fn name(&self) -> String;

    /// The rate that the user gave.
    fn first_rate(&self) -> Option<f64>;

    /// Whether the store is a server. If not, it works on the threads of the clients.
    fn is_networked(&self) -> bool;

    /// Whether nothing is to be shown while the search goes on.
    fn is_quiet(&self) -> bool;

    /// Whether lines are to be printed on a terminal, too.
    fn is_plain(&self) -> bool;

    /// What is known of a run at `rate` before it begins.
    ///
    /// # Errors
    ///
    /// Fails if no run has this rate.
    fn head(&self, rate: Option<f64>) -> Result<Head, Failure>;

    /// Makes a run at `rate` operations a second, or at no rate: each client begins an operation when its last one is
    /// over. `watch` is called with every interval.
    ///
    /// # Errors
    ///
    /// Fails if the run did not begin.
    fn run(&mut self, rate: Option<f64>, watch: &mut dyn FnMut(&Interval)) -> Result<Ran, Failure>;

    /// Writes the runs to the files that the options of the workload name.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written.
    fn write(&self, runs: &[&Run]) -> Result<(), Failure>;

    /// Closes the store.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}
