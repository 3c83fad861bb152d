//! Why a read fails if its engine has ended before the read began. This module does not know the engines.

use std::io;

/// The error of a read that had not begun when its engine ended.
pub(super) fn closed() -> io::Error {
    io::Error::other("whoever reads was closed before it began this read")
}
