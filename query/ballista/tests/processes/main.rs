//! Tests of the answers that a scheduler and executors, processes on this machine, give together.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests on the real disk, with processes of their own"
)]

mod answers;
mod cluster;
mod compared;
mod joins;
mod lost;
mod tpch;
