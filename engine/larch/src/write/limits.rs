//! Decides which rows a table accepts, by the lengths of keys and values, and by whether values are whole or in
//! parts. The rows that the table already has do not matter.

use crate::base::error::{Error, Result};
use crate::base::operand::{MAX_NAME_BYTES, MergeOp};
use crate::base::options::Options;
use crate::base::parts;
use crate::base::table::TableInfo;
use sst::MAX_KEY_BYTES;

/// The greatest length of a value, in bytes, if the write buffer has `write_buffer_bytes` bytes.
pub fn max_value_bytes(write_buffer_bytes: u64) -> u64 {
    write_buffer_bytes / 4
}

/// Returns an error if a key is too long.
///
/// # Errors
///
/// [`Error::KeyTooLong`] if the key has more than [`MAX_KEY_BYTES`] bytes.
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::KeyTooLong { bytes: key.len(), max: MAX_KEY_BYTES });
    }
    Ok(())
}

/// Returns an error if the key or the value of a row is too long. `value_bytes` is the length of the value, or the
/// sum of the lengths of its parts.
fn check_lengths(options: &Options, key: &[u8], value_bytes: usize) -> Result<()> {
    check_key(key)?;
    let max = max_value_bytes(options.write_buffer_bytes);
    if value_bytes as u64 > max {
        return Err(Error::ValueTooLong { bytes: value_bytes, max });
    }
    Ok(())
}

/// Returns an error if `table` cannot accept a row with a whole value.
///
/// # Errors
///
/// [`Error::Grouped`] if the table splits its values into column groups; [`Error::KeyTooLong`] or
/// [`Error::ValueTooLong`] if the row is too long.
pub fn check_row(options: &Options, table: &TableInfo, key: &[u8], value: &[u8]) -> Result<()> {
    let groups = &table.options.groups;
    if groups.len() > 1 {
        return Err(Error::Grouped { table: table.name.clone(), groups: groups.clone() });
    }
    check_lengths(options, key, value.len())
}

/// Returns an error if `table` cannot accept a merge.
///
/// # Errors
///
/// The errors of [`check_row`], where the bytes of `op` count as a value; [`Error::BadOptions`] if the name of a function is
/// too long, or if an older release must be able to read the database.
pub fn check_merge(options: &Options, table: &TableInfo, key: &[u8], op: &MergeOp<'_>) -> Result<()> {
    if !options.compat.reads_merges() {
        return Err(Error::BadOptions(format!(
            "release {} knows no merges; open the database without compat, or read the value and insert the new one",
            options.compat
        )));
    }
    let groups = &table.options.groups;
    if groups.len() > 1 {
        return Err(Error::Grouped { table: table.name.clone(), groups: groups.clone() });
    }
    if let MergeOp::Call { function, .. } = op
        && function.len() > MAX_NAME_BYTES
    {
        let bytes = function.len();
        return Err(Error::BadOptions(format!(
            "the name of a merge function has {bytes} bytes, more than {MAX_NAME_BYTES}; choose a shorter one"
        )));
    }
    check_lengths(options, key, op.value_bytes())
}

/// Returns an error if `table` cannot accept a row with a value in parts.
///
/// # Errors
///
/// [`Error::PartCount`] if the number of parts differs from the number of groups; [`Error::KeyTooLong`] or
/// [`Error::ValueTooLong`] if the row is too long.
pub fn check_parts(options: &Options, table: &TableInfo, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
    let groups = &table.options.groups;
    if parts.len() != groups.len().max(1) {
        return Err(Error::PartCount { table: table.name.clone(), groups: groups.clone(), parts: parts.len() });
    }
    check_lengths(options, key, parts::bytes(parts))
}
