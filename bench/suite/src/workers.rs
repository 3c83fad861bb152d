//! Runs that several processes do together. A coordinator divides a run among processes of `larch bench worker`,
//! lets them begin together, and merges their results into one. A share is the part of the run that one worker
//! does.
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
//! This module knows no workload. A [`Process`] describes what each process does with its part of a run.

pub mod coordinator;
pub mod lines;
pub mod protocol;
pub mod secret;

pub use coordinator::Workers;

use crate::args::kv::two_minus_signs;
use crate::stop::Stop;
use harness::{Interval, Prometheus, Share};

/// The arguments of `larch bench` that this process was started with.
pub fn args_of_process() -> Vec<String> {
    let args = two_minus_signs(std::env::args_os()).into_iter().map(|arg| arg.to_string_lossy().into_owned());
    args.skip_while(|arg| arg != "bench").skip(1).collect()
}

/// One process's part in a run.
pub struct Process<'p> {
    /// The share of this process.
    pub share: Share,
    /// Ends the run early.
    pub stop: &'p Stop,
    /// The metrics that show the run to other programs.
    pub metrics: Option<&'p Prometheus>,
    /// The harness calls this function when all clients have a session. The clients begin when it returns.
    pub begin: &'p mut dyn FnMut(),
    /// It is called with every interval.
    pub watch: &'p mut dyn FnMut(&Interval),
}
