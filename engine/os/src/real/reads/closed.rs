//! The error of reads whose engine ends before they begin. This module does not know the engines.

use std::io;

/// The error of a read that had not begun when its engine was closed.
pub(super) fn closed() -> io::Error {
    io::Error::other("whoever reads was closed before it began this read")
}
