//! Why a read fails if its engine ended before the read began. It does not know the engines.

use std::io;

/// The error of a read that was not begun when its engine ended.
pub(super) fn closed() -> io::Error {
    io::Error::other("whoever reads was closed before it began this read")
}
