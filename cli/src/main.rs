//! The `larch` binary as the default workspace builds it: the stores it can measure are Larch, PostgreSQL and none, and
//! it has no query engine.

use std::process::ExitCode;

fn main() -> ExitCode {
    larch_cli::main(larch_cli::STORES)
}
