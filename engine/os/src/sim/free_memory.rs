//! A source of readings that a test sets. This module does not know the memory of the system.

use crate::free_memory::{FreeMemory, MemoryReading};
use crate::sync::Mutex;

/// Gives the reading that was set last; at first it has none.
#[derive(Debug, Default)]
pub struct SimFreeMemory(Mutex<Option<MemoryReading>>);

impl SimFreeMemory {
    /// From now on, this is what is free.
    pub fn set(&self, reading: Option<MemoryReading>) {
        *self.0.lock() = reading;
    }
}

impl FreeMemory for SimFreeMemory {
    fn read(&self) -> Option<MemoryReading> {
        self.0.lock().clone()
    }
}
