//! The kind of a machine. Results from machines of one kind can be compared with each other.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the machine is asked what it is")]

use harness::report::Environment;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

#[cfg(test)]
mod tests;

/// The processor, the number of processors, the memory and the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineKind {
    processor: String,
    processors: u64,
    memory_gib: u64,
    disk: String,
}

impl MachineKind {
    /// The kind of this machine, and of the disk that holds `place`.
    pub fn here(place: &Path) -> Self {
        let machine = Environment::gather("", place).machine;
        // Rounded, because the reported size differs by some pages from one boot to the next. If the memory of this
        // process is limited, the limit counts.
        let memory = machine.memory_limit_bytes.unwrap_or(machine.memory_bytes);
        Self {
            processor: machine.processor,
            processors: machine.processors,
            memory_gib: (memory as f64 / f64::from(1 << 30)).round() as u64,
            disk: disk(place),
        }
    }

    /// The name of this kind's directory of baselines.
    pub fn name(&self) -> String {
        let Self { processor, processors, memory_gib, disk } = self;
        let text = format!("{processor} {processors} processors {memory_gib} gib {disk}").to_lowercase();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-")
    }
}

impl fmt::Display for MachineKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, processors, memory_gib, disk } = self;
        write!(out, "{processors} processors of {processor}, {memory_gib} GiB, disk {disk}")
    }
}

/// The kind of the disk that holds `place`: `nvme`, `virtio`, `ssd` or `hdd`. `unknown` if the file system is not
/// on a block device.
fn disk(place: &Path) -> String {
    let unknown = || "unknown".to_owned();
    let Ok(about) = fs::metadata(place) else { return unknown() };
    let (major, minor) = (rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
    let Ok(device) = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) else { return unknown() };
    // In sysfs, a partition's directory is inside its disk's.
    let whole = device.ancestors().find(|place| place.join("queue/rotational").is_file());
    let Some(whole) = whole else { return unknown() };
    let rotates = fs::read_to_string(whole.join("queue/rotational")).is_ok_and(|text| text.trim() == "1");
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    kind_of(&name, rotates).to_owned()
}

fn kind_of(name: &str, rotates: bool) -> &'static str {
    match rotates {
        _ if name.starts_with("nvme") => "nvme",
        _ if name.starts_with("vd") => "virtio",
        true => "hdd",
        false => "ssd",
    }
}
