//! Runs that several processes do together. A coordinator divides a run among `larch bench worker` processes,
//! starts them at the same time, and merges their results. A share is the part of the run that one worker does.
//!
//! ```text
//!   larch bench tpcc run --workers A,B          larch bench worker        (at A, and another one at B)
//!     coordinator  <──── challenge ─────────────  nonce
//!                  ───── answer ───────────────>  nonce, proof of the secret
//!                  <──── welcome ──────────────   proof of the secret
//!                  ───── task ─────────────────>  the command's arguments, share 1/2
//!                  <──── ready ────────────────   the target is open, all clients have a session
//!                  ───── go ───────────────────>  when all are ready
//!                  <──── begun, progress, … ───
//!                  ───── stop ─────────────────>  after ^C, or when another worker is lost
//!                  <──── result ───────────────
//! ```
//!
//! This module knows nothing of workloads: a [`Process`] tells a command which share of its run to make, and how to
//! report it.

pub mod coordinator;
pub mod lines;
pub mod protocol;
pub mod secret;

pub use coordinator::Workers;

use crate::args::kv::two_minus_signs;
use crate::stop::Stop;
use harness::{Interval, Prometheus, Share};

/// This process's arguments after `bench`.
pub fn args_of_process() -> Vec<String> {
    let args = two_minus_signs(std::env::args_os()).into_iter().map(|arg| arg.to_string_lossy().into_owned());
    args.skip_while(|arg| arg != "bench").skip(1).collect()
}

/// One process's part in a run.
pub struct Process<'p> {
    /// The share of this process.
    pub share: Share,
    /// Ends the run early when it is set.
    pub stop: &'p Stop,
    /// The server of `--metrics`.
    pub metrics: Option<&'p Prometheus>,
    /// Called when all clients have a session. The clients begin when it returns.
    pub begin: &'p mut dyn FnMut(),
    /// Called with every interval.
    pub watch: &'p mut dyn FnMut(&Interval),
}
