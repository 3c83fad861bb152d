//! Reads the processor time and disk bytes of other processes on this machine: those of a server that is measured.
//! This module does not know which server.

#![allow(clippy::disallowed_methods, reason = "processes are asked of the machine")]

#[cfg(test)]
mod tests;

use crate::store::ServerUse;
use std::collections::BTreeMap;

/// Linux counts the processor time of other processes in hundredths of a second, whatever the kernel's own tick is.
const NANOS_OF_TICK: u64 = 10_000_000;

/// A line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// The processor time of the process itself, in ticks.
    ticks: u64,
    /// The processor time of its children that have ended, in ticks.
    ended_ticks: u64,
}

/// What process `root` and all processes below it have used since they began, including processes that have ended.
/// `None` if no such process exists, or if the system does not say.
pub fn used_below(root: u32) -> Option<ServerUse> {
    let all: BTreeMap<u32, Process> = std::fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| {
            let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((id, process(id)?))
        })
        .collect();
    all.get(&root)?;
    let below = below(&all, root);
    let ticks: u64 = below.iter().map(|id| all[id].ticks + all[id].ended_ticks).sum();
    let io = |of: &dyn Fn(&str) -> Option<u64>| -> Option<u64> {
        // A process that has ended since the list was made adds nothing. If this process is not allowed to look at
        // one of these processes, the sum is unknown.
        below.iter().map(|id| std::fs::read_to_string(format!("/proc/{id}/io"))).try_fold(0, |sum, text| match text {
            Ok(text) => Some(sum + of(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => None,
            Err(_) => Some(sum),
        })
    };
    Some(ServerUse {
        nanos: ticks * NANOS_OF_TICK,
        read_bytes: io(&|text| bytes_after(text, "read_bytes:")),
        written_bytes: io(&written_bytes),
    })
}

/// The parent of process `id` on this machine, if the name of process `id` is `name`.
pub fn parent_of(id: u32, name: &str) -> Option<u32> {
    let comm = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    (comm.trim_end() == name).then(|| process(id))?.map(|process| process.parent)
}

fn process(id: u32) -> Option<Process> {
    parsed(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// Parses `pid (name) state ppid …`. The name may contain any character.
fn parsed(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // proc(5) numbers the fields. The first field here is the state, which has number 3 in proc(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process {
        parent: u32::try_from(number(4)?).ok()?,
        ticks: number(14)? + number(15)?,
        ended_ticks: number(16)? + number(17)?,
    })
}

/// The process `root`, and all processes that descend from it.
fn below(all: &BTreeMap<u32, Process>, root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(all.iter().filter(|(id, process)| process.parent == parent && **id != parent).map(|(id, _)| *id));
        at += 1;
    }
    found
}

/// The bytes that a process made the system write, from the text of its `/proc/PID/io`. The result is the lesser of
/// two counts: the bytes that were given to calls of `write` (`wchar`), and the bytes that the system counted when
/// pages in memory became dirty (`write_bytes`). `wchar` includes bytes that never go to a disk, for example text
/// on a terminal. `write_bytes` counts the whole folio that holds a page, which can be 2 MiB for one row. Only
/// `write_bytes` includes writes through a memory map, so the result is unreliable for a process that writes in
/// both ways.
pub fn written_bytes(text: &str) -> Option<u64> {
    Some(bytes_after(text, "wchar:")?.min(bytes_after(text, "write_bytes:")?))
}

/// The number after `name` in a file like `/proc/PID/io`.
pub(crate) fn bytes_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}
