//! Encodes files that hold only a list and are written as a whole: their beginning and their end. This module does
//! not know what is in the list.
//!
//! ```text
//!  0  magic                 8
//!  8  format version        u32    1
//! 12  features              u32    see sst::format::features
//! 16  id                    u64
//! 24  content
//!     crc32c of all before  u32
//! ```

use os::{Access, Disk};
use sst::format::features::{self, Unreadable};
use std::io;
use std::path::Path;

const FORMAT_VERSION: u32 = 1;
const HEAD_BYTES: usize = 24;
const CRC_BYTES: usize = 4;

/// A longer list is taken to be damaged. An entry has 60 to 500 bytes, so a list has room for at least half a
/// million files.
const MOST_BYTES: u64 = 256 << 20;

/// Makes a list with this id and these feature bits. `write` appends the content.
pub fn seal(magic: &[u8; 8], features: u32, id: u64, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = magic.to_vec();
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&features.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    write(&mut out);
    let crc = crc_fast::crc32_iscsi(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Checks a list made by [`seal`], and returns its id and its content. `known` are the required features that it may
/// have. If the magic does not match, the error names `what`, the kind of list that was expected.
///
/// # Errors
///
/// Fails if the bytes are damaged, or if a newer release has written them.
pub fn unseal<'b>(bytes: &'b [u8], magic: &[u8; 8], known: u32, what: &str) -> Result<(u64, &'b [u8]), Unreadable> {
    let parts = bytes.len().checked_sub(CRC_BYTES).and_then(|at| bytes.split_at_checked(at));
    let (body, crc) = parts.ok_or("it is shorter than a checksum")?;
    let (head, content) = body.split_at_checked(HEAD_BYTES).ok_or("it is shorter than its head")?;
    let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    if &head[..8] != magic {
        return Err(format!("it is no {what}").into());
    }
    // The format version is checked first, because a newer version may have the checksum elsewhere.
    features::check_version(number(8), FORMAT_VERSION)?;
    if crc_fast::crc32_iscsi(body).to_le_bytes() != crc {
        return Err("its checksum does not match".into());
    }
    features::check(number(12), known)?;
    Ok((u64::from_le_bytes(head[16..24].try_into().expect("eight bytes")), content))
}

/// The feature bits of a list that [`unseal`] has read.
pub fn features_of(bytes: &[u8]) -> u32 {
    bytes[12..].first_chunk().map_or(0, |bits| u32::from_le_bytes(*bits))
}

/// The bytes of the list at `path`, or a message if the file is too long for a list.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn read(disk: &dyn Disk, path: &Path) -> io::Result<Result<Vec<u8>, String>> {
    let bytes = disk.open(path, Access::Read)?.len()?;
    if bytes > MOST_BYTES {
        return Ok(Err(format!("it has {bytes} bytes, more than any list")));
    }
    disk.read_all(path).map(Ok)
}

/// Functions that the tests of all these lists use.
#[cfg(test)]
pub mod tests {
    use super::CRC_BYTES;

    /// Checks that `decode` refuses the list if its end is missing or a bit is flipped.
    pub fn expect_damage_found<T, E>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T, E>) {
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = bytes.to_vec();
                flipped[at] ^= 1 << bit;
                assert!(decode(&flipped).is_err(), "bit {bit} of byte {at}");
            }
        }
    }

    /// Changes the bytes of the list, and then corrects its checksum.
    pub fn changed(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        bytes.truncate(bytes.len() - CRC_BYTES);
        change(&mut bytes);
        let crc = crc_fast::crc32_iscsi(&bytes);
        bytes.extend(crc.to_le_bytes());
        bytes
    }
}
