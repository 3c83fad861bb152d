//! The command `larch` with the other engines that it was built with, to measure them.

use harness::Scheme;
use std::process::ExitCode;

/// One for each feature.
const ENGINES: &[Scheme] = &[
    #[cfg(feature = "rocksdb")]
    store_rocksdb::SCHEME,
    #[cfg(feature = "fjall")]
    store_fjall::SCHEME,
    #[cfg(feature = "redb")]
    store_redb::SCHEME,
    #[cfg(feature = "lmdb")]
    store_lmdb::SCHEME,
    #[cfg(feature = "sqlite")]
    store_sqlite::SCHEME,
];

fn main() -> ExitCode {
    let schemes: Vec<Scheme> = larch_cli::SCHEMES.into_iter().chain(ENGINES.iter().copied()).collect();
    larch_cli::main(&schemes)
}
