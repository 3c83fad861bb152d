//! The command `larch` with a query engine, for `larch sql`.

use std::process::ExitCode;

mod query;

fn main() -> ExitCode {
    larch_cli::main(larch_cli::STORES, Some(query::run))
}
