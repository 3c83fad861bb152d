//! Reads a file in which the system says something. This module does not know what the file says.

use std::path::Path;
use std::{fs, io};

/// The text of a file; empty if the system does not have the file. `None` if the process has no descriptor or no memory
/// left for it.
pub(super) fn text(path: &Path) -> Option<String> {
    text_or_absent(fs::read_to_string(path))
}

/// A process that has no descriptor left, or no memory, does not know whether there is such a file: a group whose
/// limit could not be read is not a group without a limit. After all other errors the file counts as absent.
fn text_or_absent(read: io::Result<String>) -> Option<String> {
    match read {
        Ok(text) => Some(text),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => None,
        Err(_) => Some(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_looked_at_is_not_a_file_that_is_missing() {
        let read = |errno| text_or_absent(Err(io::Error::from_raw_os_error(errno)));
        for passing in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert_eq!(read(passing), None);
        }
        for absent in [libc::ENOENT, libc::ENOTDIR, libc::EACCES, libc::EOPNOTSUPP] {
            assert_eq!(read(absent).as_deref(), Some(""));
        }
        assert_eq!(text_or_absent(Ok("max\n".to_owned())).as_deref(), Some("max\n"));
    }
}
