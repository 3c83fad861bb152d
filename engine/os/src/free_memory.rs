//! How much memory of the machine is free at the moment. This module does not know who would use it.

use std::fmt::Debug;
use std::time::Duration;

/// A source of readings. Thread safe.
pub trait FreeMemory: Send + Sync + Debug {
    /// What is free now; `None` where the system does not say, or cannot be asked at the moment.
    fn read(&self) -> Option<MemoryReading>;
}

/// What is free at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReading {
    /// The machine, and each control group with a limit of its own that this process is in. All of them bound what
    /// the process can take.
    pub scopes: Vec<ScopeMemory>,
    /// For how long, since the machine was started, some thread has waited for memory. Zero where the system does not
    /// count this.
    pub stalled: Duration,
    /// What the system has written to swap of this process. Zero where it does not say.
    pub swapped_bytes: u64,
}

/// The memory of the machine or of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeMemory {
    /// All of it.
    pub total_bytes: u64,
    /// What programs can take before the system has to refuse memory or end a process: the free bytes, and those that
    /// the system can free at once, such as cached files.
    pub available_bytes: u64,
    /// What nothing uses, not even the system for cached files.
    pub free_bytes: u64,
}
