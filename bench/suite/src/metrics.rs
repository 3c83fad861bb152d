//! `--metrics`: serves live measurements to Prometheus.

use crate::say;
use harness::{Failure, Prometheus};

/// Serves the measurements at `address`, if one was given, and prints where.
///
/// # Errors
///
/// Fails if the address cannot be bound: this machine does not have it, or another program uses it.
pub fn serve(address: Option<&str>) -> Result<Option<Prometheus>, Failure> {
    let served = address.map(Prometheus::serve).transpose()?;
    if let Some(served) = &served {
        say(&format!("metrics: http://{}/metrics", served.address()));
    }
    Ok(served)
}
