//! The `larch` binary of the default workspace. It can measure Larch, PostgreSQL and the store that does nothing, and
//! it has no query engine.

use std::process::ExitCode;

fn main() -> ExitCode {
    larch_cli::main(larch_cli::STORES)
}
