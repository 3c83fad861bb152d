//! Tools for testing a whole database: a model of its contents, random histories on a simulated machine, crashes and
//! faults, and text scripts. They use only the public API of `larch`.
//!
//! Everything follows from a seed. A failing test prints its seed and the command that runs it again.

pub mod bank;
pub mod corruption;
pub mod faults;
pub mod feeds;
pub mod followers;
pub mod futures;
pub mod history;
pub mod isolation;
pub mod model;
pub mod moved;
pub mod options;
pub mod rerun;
pub mod script;
pub mod simulate;
pub mod specimen;
pub mod stored;
pub mod stress;
pub mod touched;
pub mod transactions;
pub mod twins;
