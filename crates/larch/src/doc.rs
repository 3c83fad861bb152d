//! For the examples in the documentation: a new directory for each, removed when the process ends is not promised.

use os::Machine;
use std::path::PathBuf;

/// A directory that no other example uses, under the system's temporary directory.
pub fn directory(name: &str) -> PathBuf {
    let unique = Machine::real().random.next_u64();
    std::env::temp_dir().join(format!("larch-doc-{name}-{unique:016x}"))
}
