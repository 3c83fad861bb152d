//! Tests SQL over databases on disk, from outside of the crate.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests on the real disk, with processes of their own"
)]

mod command;
mod compared;
mod expiry;
mod failures;
mod pages;
mod plans;
mod session;
mod sink;
mod streams;
mod tpcc;
