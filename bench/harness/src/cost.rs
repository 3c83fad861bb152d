//! Measures the processor time, memory and context switches of a run. The client's own part is measured separately.

#![allow(clippy::disallowed_methods, reason = "the process is asked of the machine")]

mod device;
pub mod processes;
#[cfg(test)]
mod tests;

use crate::store::StoreUse;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Processor time, memory and context switches of this process in the window of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Processor time in user mode, in nanoseconds.
    pub user_nanos: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system_nanos: u64,
    /// Processor time of the client threads, in nanoseconds. This time includes the work that an embedded store
    /// does in the calls of these threads.
    pub client_nanos: u64,
    /// The part of `client_nanos` spent waiting for a point in time: until an operation is due, until a retry, or
    /// until the end of a wait that the client asked for. It is part of the client's own cost, and is counted in the
    /// interval in which it was spent.
    #[serde(default)]
    pub pausing_nanos: u64,
    /// Processor time of the thread that gathers results, in nanoseconds.
    pub gathering_nanos: u64,
    /// Processor time of all other threads, in nanoseconds: what a store does in the background.
    pub background_nanos: u64,
    /// The processor time of these threads by name, in nanoseconds. Threads that had ended, or that the system does
    /// not report, are missing.
    pub background: BTreeMap<String, u64>,
    /// The number of client threads.
    pub client_threads: u64,
    /// The number of requests that each client thread could have under way. `None` if calls waited and each client
    /// was a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// How often a thread gave up the processor to wait.
    pub voluntary_switches: u64,
    /// How often the system stopped a thread to run another thread.
    pub involuntary_switches: u64,
    /// Memory in use at the end, in bytes; 0 if the system does not report it.
    pub resident_bytes: u64,
    /// The greatest memory in use in the window, in bytes; 0 if the system does not report it. The value is exact
    /// if the process never used as much memory before the window. Otherwise, the value is the greatest of the
    /// samples that were taken every 20 ms.
    pub peak_bytes: u64,
    /// Whether `peak_bytes` is the peak of the window. The value is false in older results, and if the system does
    /// not report the peak.
    pub peak_of_window: bool,
    /// What the store used outside this process. `None` in results of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreUse>,
    /// Bytes that were read from the disk for this process, where the system counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes: Option<u64>,
    /// Bytes that were written to the disk for this process, where the system counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes: Option<u64>,
    /// Bytes that the disks of the machine read, for all programs, where the system counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_read_bytes: Option<u64>,
    /// Bytes that the disks of the machine wrote, for all programs, where the system counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_written_bytes: Option<u64>,
}

/// Clients that use more than this share of the processors they could use may be what limits the run.
const BUSY: f64 = 0.7;

impl Cost {
    /// What was used from `before` to `after`. `clients` is what the client threads used. `seen_bytes` is the
    /// greatest memory that was seen in use between `before` and `after`.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot, clients: Clients, seen_bytes: u64) -> Self {
        let grown = |of: fn(&Snapshot) -> u64| of(after).saturating_sub(of(before));
        let (user_nanos, system_nanos) = (grown(|at| at.user_nanos), grown(|at| at.system_nanos));
        let gathering_nanos = grown(|at| at.gathering_nanos);
        let mut background = BTreeMap::new();
        for (id, (name, nanos)) in &after.threads {
            let nanos = nanos - before.threads.get(id).map_or(0, |(_, before)| (*before).min(*nanos));
            *background.entry(name.clone()).or_default() += nanos;
        }
        background.retain(|_, nanos| *nanos > 0);
        let ours = clients.nanos + gathering_nanos;
        let more = |of: fn(&Snapshot) -> Option<u64>| Some(of(after)?.saturating_sub(of(before)?));
        Self {
            user_nanos,
            system_nanos,
            client_nanos: clients.nanos,
            pausing_nanos: clients.pausing_nanos,
            gathering_nanos,
            background_nanos: (user_nanos + system_nanos).saturating_sub(ours),
            background,
            client_threads: clients.threads,
            depth: clients.depth,
            voluntary_switches: grown(|at| at.voluntary_switches),
            involuntary_switches: grown(|at| at.involuntary_switches),
            resident_bytes: after.resident_bytes,
            peak_bytes: match after.peak_bytes > before.peak_bytes {
                true => after.peak_bytes,
                false => seen_bytes.max(before.resident_bytes).max(after.resident_bytes),
            },
            peak_of_window: after.resident_bytes > 0,
            store: before.store.zip(after.store).map(|(before, after)| after.since(before)),
            disk_read_bytes: more(|at| at.read_bytes),
            disk_written_bytes: more(|at| at.written_bytes),
            device_read_bytes: more(|at| Some(at.device_bytes?.0)),
            device_written_bytes: more(|at| Some(at.device_bytes?.1)),
        }
    }

    /// Processor time of the whole process, in nanoseconds.
    pub fn process_nanos(&self) -> u64 {
        self.user_nanos + self.system_nanos
    }

    /// The client's own mean cost of an operation, in nanoseconds: `noop_nanos`, which is what an operation costs on
    /// a store that does nothing, and the operation's share of `pausing_nanos`. The rest of `client_nanos` was used
    /// by the store. The result is capped at the mean time that client threads used for an operation, because
    /// `noop_nanos`, measured at another time, can exceed it.
    pub fn own_nanos(&self, noop_nanos: f64, operations: u64) -> f64 {
        let operations = operations.max(1) as f64;
        (noop_nanos + self.pausing_nanos as f64 / operations).min(self.client_nanos as f64 / operations)
    }

    /// The client's own time as a share of the client threads' processor time, 0 to 1.
    pub fn own_share(&self, noop_nanos: f64, operations: u64) -> f64 {
        let own = self.own_nanos(noop_nanos, operations) * operations as f64;
        if self.client_nanos == 0 { 0.0 } else { own / self.client_nanos as f64 }
    }

    /// How busy the client threads were in a window of `nanos` on a machine with `processors`, as a share of the
    /// processors that they could use.
    pub fn busy(&self, nanos: u64, processors: usize) -> f64 {
        let used = self.client_threads.min(processors as u64) as f64 * nanos as f64;
        if used == 0.0 { 0.0 } else { self.client_nanos as f64 / used }
    }

    /// A warning for a run over a network whose clients were so busy that they, and not the store, may have limited
    /// it. The window was `nanos` long, and the machine has `processors`.
    pub fn warning(&self, nanos: u64, processors: usize) -> Option<String> {
        let busy = self.busy(nanos, processors);
        (busy > BUSY).then(|| {
            format!(
                "the client threads were busy {:.0} % of the time they could have ({} threads, {processors} \
                 processors): the client may be what limits this result; use more threads or another machine for it",
                busy * 100.0,
                self.client_threads,
            )
        })
    }
}

/// The client threads of a run: their number, and what they used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clients {
    pub(crate) threads: u64,
    /// See [`Cost::depth`].
    pub(crate) depth: Option<u64>,
    pub(crate) nanos: u64,
    pub(crate) pausing_nanos: u64,
}

/// What the process has used up to one moment. The thread that gathers results takes this snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    user_nanos: u64,
    system_nanos: u64,
    gathering_nanos: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    resident_bytes: u64,
    /// The greatest memory since the process began. This peak is not reset at the beginning of a window, because
    /// other programs that watch this process read the peak, too.
    peak_bytes: u64,
    /// The name and processor time of each thread, by thread id. The thread that takes the snapshot and the client
    /// threads are left out.
    threads: BTreeMap<String, (String, u64)>,
    store: Option<StoreUse>,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    /// What the disks of the machine read and wrote.
    device_bytes: Option<(u64, u64)>,
}

/// The prefix of the names of client threads.
pub(crate) const CLIENT: &str = "client ";

impl Snapshot {
    /// What the process has used up to now. `store` is what the store has used up to now.
    pub(crate) fn take(store: StoreUse) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let nanos = |of: fn(&Usage) -> nix::sys::time::TimeVal| {
            usage
                .as_ref()
                .map_or(0, |usage| of(usage).tv_sec() as u64 * 1_000_000_000 + of(usage).tv_usec() as u64 * 1000)
        };
        let switches = |of: fn(&Usage) -> nix::libc::c_long| usage.as_ref().map_or(0, |usage| of(usage) as u64);
        Self {
            user_nanos: nanos(Usage::user_time),
            system_nanos: nanos(Usage::system_time),
            gathering_nanos: thread_nanos(),
            voluntary_switches: switches(Usage::voluntary_context_switches),
            involuntary_switches: switches(Usage::involuntary_context_switches),
            resident_bytes: bytes_in(&status, "VmRSS:").unwrap_or(0),
            peak_bytes: bytes_in(&status, "VmHWM:").unwrap_or(0),
            threads: threads(),
            store: Some(store),
            read_bytes: processes::bytes_after(&io, "read_bytes:"),
            written_bytes: processes::written_bytes(&io),
            device_bytes: device::bytes(),
        }
    }
}

/// Memory in use, in bytes; 0 where the system does not tell.
pub(crate) fn resident_bytes() -> u64 {
    bytes_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), "VmRSS:").unwrap_or(0)
}

/// The bytes in the line of `status` that begins with `name`, like `VmRSS:     1234 kB`.
fn bytes_in(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// All threads except the calling thread and the client threads. Empty if the system does not report threads.
fn threads() -> BTreeMap<String, (String, u64)> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return BTreeMap::new() };
    let this = rustix::thread::gettid().as_raw_nonzero().to_string();
    let one = |task: std::fs::DirEntry| {
        let id = task.file_name().into_string().ok()?;
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?.trim_end().to_owned();
        if id == this || name.starts_with(CLIENT) {
            return None;
        }
        // The first number in `schedstat` is the time on a processor in nanoseconds (scheduler statistics,
        // proc-schedstat). `stat` only has hundredths of a second.
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = times.split_whitespace().next()?.parse().ok()?;
        Some((id, (name, nanos)))
    };
    tasks.filter_map(|task| one(task.ok()?)).collect()
}

/// Processor time of the calling thread, in nanoseconds.
pub fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes the calling thread wake at the time that it asked for, as exactly as the system can. By default, Linux
/// wakes a thread up to 50 us late, so that one interrupt can serve several timers.
pub(crate) fn wake_on_time() {
    #[cfg(target_os = "linux")]
    {
        // If the system refuses to set the slack, sleeps end later, and the time is counted as waiting.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).unwrap_or_default();
    }
}
