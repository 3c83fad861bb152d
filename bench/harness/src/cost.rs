//! What a run takes from the machine.

use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;

/// Processor time, memory and context switches of this process in the window of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Processor time in user mode, in nanoseconds.
    pub user_nanos: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system_nanos: u64,
    /// Processor time of the client threads, in nanoseconds. What an embedded store does in their calls is in it.
    pub client_nanos: u64,
    /// Processor time of the thread that gathers results, in nanoseconds.
    pub gathering_nanos: u64,
    /// Processor time of all other threads, in nanoseconds: what a store does in the background.
    pub background_nanos: u64,
    /// The same by name of thread, where the system tells and the thread was there at the end.
    pub background: BTreeMap<String, u64>,
    /// Client threads there were.
    pub client_threads: u64,
    /// Times a thread gave up the processor to wait.
    pub voluntary_switches: u64,
    /// Times a thread was put aside for another.
    pub involuntary_switches: u64,
    /// Memory in use at the end, in bytes.
    pub resident_bytes: u64,
    /// Greatest memory in use, in bytes.
    pub peak_bytes: u64,
    /// Whether `peak_bytes` is that of the window; if not, the system does not let it be reset, and it is that of the
    /// process since its start.
    pub peak_of_window: bool,
}

/// How the process stands at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {}

impl Snapshot {
    pub(crate) fn take() -> Self {
        Self {}
    }
}

impl Cost {
    pub(crate) fn between(_: &Snapshot, _: &Snapshot) -> Self {
        Self::default()
    }
}

/// Processor time of the calling thread, in nanoseconds.
pub(crate) fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes the calling thread wake when it asked to, as well as the system can. By default Linux takes up to 50 us more, to
/// wake for several timers at once.
pub(crate) fn wake_on_time() {
    #[cfg(target_os = "linux")]
    {
        // Where this is refused, sleeps end later, and what they delayed is counted as waiting.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).unwrap_or_default();
    }
}
