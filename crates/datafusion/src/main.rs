//! The command `larch` with a query engine, for `larch sql`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let query = Some(larch_datafusion::command::run as larch_cli::RunQuery);
    larch_cli::main_with(larch_cli::STORES, larch_cli::Additions { query, ..Default::default() })
}
