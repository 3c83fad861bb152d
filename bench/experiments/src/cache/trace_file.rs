//! Reads and writes files of traces.
//!
//! ```text
//! magic "LARCHTR1"
//! for each trace:  name length u8 | name | operations u64 | accesses u64
//!     each access: file u32 | unit u32 | bytes u32 | kind u8 | how u8 | reason u8 | 0
//! ```
//!
//! Numbers are little-endian. The file ends with the last access.

#![allow(clippy::disallowed_methods, reason = "files of the command line, never simulated")]

use crate::cache::recorded::Trace;
use crate::cache::{empty, unfit};
use harness::Failure;
use pages::trace::{How, TracedAccess};
use pages::{PageKind, Reason};
use std::fs;
use std::path::Path;

const MAGIC: &[u8; 8] = b"LARCHTR1";

/// Writes traces to `path`, replacing an existing file.
pub fn save(path: &Path, traces: &[Trace]) -> Result<(), Failure> {
    let error = |error| Failure::session("output", format!("cannot write {}: {error}", path.display()));
    fs::write(path, encode(traces)).map_err(error)
}

/// Reads and checks traces.
pub fn load(path: &Path) -> Result<Vec<Trace>, Failure> {
    let bytes = fs::read(path).map_err(|error| unfit(format!("cannot read {}: {error}", path.display())))?;
    let traces =
        decode(&bytes).ok_or_else(|| unfit(format!("{} is no file of traces, or it is damaged", path.display())))?;
    if traces.is_empty() {
        return Err(empty(format!("there is no trace in {}", path.display())));
    }
    Ok(traces)
}

fn encode(traces: &[Trace]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for trace in traces {
        let name = &trace.name.as_bytes()[..trace.name.len().min(255)];
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&trace.operations.to_le_bytes());
        bytes.extend_from_slice(&(trace.accesses.len() as u64).to_le_bytes());
        for access in &trace.accesses {
            for number in [access.file, access.unit, access.bytes] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&[access.kind as u8, access.how as u8, access.reason as u8, 0]);
        }
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Vec<Trace>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut traces = Vec::new();
    while !rest.is_empty() {
        let length = take::<1>(&mut rest)?[0];
        let (name, after) = rest.split_at_checked(length.into())?;
        rest = after;
        let operations = u64::from_le_bytes(take(&mut rest)?);
        let count = u64::from_le_bytes(take(&mut rest)?);
        let (accesses, after) = rest.split_at_checked(usize::try_from(count).ok()?.checked_mul(16)?)?;
        rest = after;
        let accesses = accesses.chunks_exact(16).map(decode_access).collect::<Option<Vec<TracedAccess>>>()?;
        traces.push(Trace { name: String::from_utf8(name.to_vec()).ok()?, operations, accesses });
    }
    Some(traces)
}

fn decode_access(bytes: &[u8]) -> Option<TracedAccess> {
    let mut rest = bytes;
    let [file, unit, length] = [take(&mut rest)?, take(&mut rest)?, take(&mut rest)?].map(u32::from_le_bytes);
    let [kind, how, reason, zero] = take(&mut rest)?;
    let how = *How::ALL.get(usize::from(how))?;
    let (kind, reason) = (PageKind::from_u8(kind)?, *Reason::ALL.get(usize::from(reason))?);
    let is_right = zero == 0 && (length > 0 || how == How::Dead);
    is_right.then_some(TracedAccess { file, unit, bytes: length, kind, how, reason })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

#[cfg(test)]
mod tests;
