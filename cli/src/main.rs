//! The `larch` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    larch_cli::main()
}
