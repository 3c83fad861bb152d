//! The program and the machine that made a result.

pub mod disk;
#[cfg(test)]
mod tests;

use disk::{Disk, FileSystem};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// The program that ran, and the machine on which it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The version of Larch.
    pub version: String,
    /// The commit of the program, if it is known. `+changes` is appended if files differed from the commit.
    pub commit: Option<String>,
    /// Whether the program was built without optimisation, so that the numbers mean nothing.
    pub debug_build: bool,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub machine: Machine,
}

/// A machine. What the machine does not report is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// The number of processors that this process may run on.
    pub processors: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// The part of the memory that this process and its group may use, in bytes, if it is limited.
    pub memory_limit_bytes: Option<u64>,
    /// Operating system and processor architecture.
    pub system: String,
    /// Version of the kernel.
    pub kernel: String,
    /// The average number of processes that wanted to run in the minute before the environment was gathered. Other
    /// processes disturb the measurement.
    pub load: f64,
    /// Free bytes of the disk that holds the data.
    pub disk_free_bytes: u64,
    /// Total bytes of that disk.
    pub disk_bytes: u64,
    /// The file system that holds the data. In results of older releases, this field and the fields below are
    /// empty.
    #[serde(default)]
    pub file_system: FileSystem,
    /// The disk that holds this file system.
    #[serde(default)]
    pub disk: Disk,
    /// Whether the kernel gives a process huge pages that it did not ask for: `always`, `madvise`, `never`.
    #[serde(default)]
    pub huge_pages: String,
    /// The governor that decides the clock rate of the processors, for example `performance` or `schedutil`. The
    /// text is empty if no governor of the kernel decides, as in most virtual machines. The text has several names
    /// if processors differ.
    #[serde(default)]
    pub governor: String,
}

impl Environment {
    /// Gathers the environment of this process. The process keeps its data in the directory `place` or below it.
    /// `version` is the version of the program.
    pub fn gather(version: &str, place: &Path) -> Self {
        Self {
            version: version.to_owned(),
            commit: commit(),
            debug_build: cfg!(debug_assertions),
            command: std::env::args().map(|argument| crate::password::without_password(&argument)).collect(),
            machine: Machine::gather(place),
        }
    }
}

/// The commit from which this program was built: `LARCH_COMMIT` if that was set at build time, and otherwise what
/// git says about the source tree, if the tree is still in the same place. `None` outside of a repository.
fn commit() -> Option<String> {
    if let Some(commit) = option_env!("LARCH_COMMIT") {
        return Some(commit.to_owned());
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { head } else { format!("{head}+changes") })
}

impl Machine {
    fn gather(place: &Path) -> Self {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = kib_after(&file("/proc/meminfo"), "MemTotal:").unwrap_or(0);
        // The root group has no such file. If the group has no memory limit, the file says `max`.
        let limit = group_file(&file("/proc/self/cgroup"), "memory.max").and_then(|text| text.trim().parse().ok());
        let there = existing(place);
        let disk = there.and_then(|place| rustix::fs::statvfs(place).ok());
        let (file_system, device) =
            there.and_then(|place| disk::mounted(&file("/proc/self/mountinfo"), place)).unwrap_or_default();
        Self {
            processor: after(&file("/proc/cpuinfo"), "model name").unwrap_or_default(),
            processors: std::thread::available_parallelism().map_or(0, |count| count.get() as u64),
            memory_bytes: memory,
            memory_limit_bytes: limit.filter(|limit| *limit < memory),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernel: file("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: file("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            disk_free_bytes: disk.as_ref().map_or(0, |disk| disk.f_bavail * disk.f_frsize),
            disk_bytes: disk.as_ref().map_or(0, |disk| disk.f_blocks * disk.f_frsize),
            file_system,
            huge_pages: disk::chosen(&file("/sys/kernel/mm/transparent_hugepage/enabled")),
            governor: governors(Path::new("/sys/devices/system/cpu")),
            disk: Disk::of(&device),
        }
    }
}

/// The distinct governors of all processors in a folder like /sys/devices/system/cpu.
fn governors(folder: &Path) -> String {
    let processors = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let governor = |processor: std::fs::DirEntry| {
        let text = std::fs::read_to_string(processor.path().join("cpufreq/scaling_governor")).ok()?;
        Some(text.trim().to_owned())
    };
    let mut all: Vec<String> = processors.filter_map(governor).collect();
    all.sort();
    all.dedup();
    all.join(", ")
}

/// `path` if it exists, else the nearest existing folder above it.
fn existing(path: &Path) -> Option<&Path> {
    path.ancestors()
        .map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path })
        .find(|path| path.exists())
}

/// The text after `name` and a colon in a file like /proc/cpuinfo.
fn after(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kib_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Reads a file of this process's control group. In cgroup v2, the path of the group is in a line `0::/path` of
/// `groups`.
fn group_file(groups: &str, name: &str) -> Option<String> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    std::fs::read_to_string(format!("/sys/fs/cgroup{path}/{name}")).ok()
}
