//! The command line of `larch bench`.

use clap::{Args, Subcommand};

/// Measure stores
#[derive(Debug, Args)]
pub struct Bench {
    /// What to measure.
    #[command(subcommand)]
    pub what: Measurement,
}

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Measurement {
    /// List the stores that can be measured, and what the others take
    Targets,
}
