//! For tests of how threads meet: runs a test many times, its threads in any order; under loom, in every order. It does
//! not know what the threads do.

#[cfg(loom)]
pub use super::loom::{model, thread};
#[cfg(shuttle)]
pub use super::shuttle::thread;
#[cfg(not(any(loom, shuttle)))]
pub use std::thread;

/// Runs a test with random schedules.
#[cfg(shuttle)]
pub fn model(test: impl Fn() + Send + Sync + 'static) {
    super::shuttle::check_random(test, 1000);
}

/// Runs a test many times.
#[cfg(not(any(loom, shuttle)))]
pub fn model(test: impl Fn() + Send + Sync + 'static) {
    let times = if cfg!(miri) { 20 } else { 2000 };
    (0..times).for_each(|_| test());
}
