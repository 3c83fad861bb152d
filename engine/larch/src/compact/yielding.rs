//! Lets a compaction yield to commits that wait for a processor (decision 107). This module does not know what is
//! compacted.
//!
//! If more threads are ready than the machine has processors, the system takes the processor from a thread for some
//! milliseconds, and this thread may be in the middle of a commit. A compaction can tell that it is too much for the
//! machine: it waits for a processor itself. It then *yields*, which means that it sleeps for some milliseconds, unless
//! commits will soon wait for its result.

use crate::base::table::TableId;
use crate::core::Core;
use crate::levels::pick;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sst::Version;
use std::time::Duration;

/// A compaction sleeps this many times as long as it waited for a processor.
const SLEEPS_PER_WAIT: u32 = 20;

/// A compaction sleeps at most this many times as long as it worked before, with its waits for a processor.
const SLEEPS_PER_WORK: u32 = 4;

/// A compaction does not sleep for a shorter time than this.
const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

/// A close, or a commit that has begun to wait for the compaction, waits at most this long for the end of a sleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// One compaction that yields to commits. Its thread calls [`offer`](Yielding::offer) again and again.
pub struct Yielding<'c> {
    core: &'c Arc<Core>,
    table: TableId,
    /// When the last call of `offer` ended.
    since: Duration,
    /// How long the thread had waited for a processor by then; `None` if the system does not say.
    waited: Option<Duration>,
    /// The newest commit by then.
    newest: Version,
}

impl<'c> Yielding<'c> {
    /// For a compaction of `table` that begins now, on this thread.
    pub fn new(core: &'c Arc<Core>, table: TableId) -> Self {
        let (since, waited) = (core.env.machine.clock.now(), core.env.machine.threads.waited_for_processor());
        Self { core, table, since, waited, newest: core.views.visible() }
    }

    /// Sleeps if two things have happened since the last call: the thread has waited for a processor, and commits have
    /// been made. Does not sleep if somebody waits for the compaction.
    pub fn offer(&mut self) {
        let machine = &self.core.env.machine;
        let Some(before) = self.waited else { return };
        let Some(waited) = machine.threads.waited_for_processor() else { return };
        let newest = self.core.views.visible();
        let has_commits = newest != self.newest;
        let work = machine.clock.now().saturating_sub(self.since);
        let sleep = sleep_after(work, waited.saturating_sub(before));
        if sleep >= SHORTEST_SLEEP && has_commits && !self.is_awaited() {
            machine.clock.sleep(sleep);
            self.core.env.written.yielded_nanos.fetch_add(sleep.as_nanos() as u64, Ordering::Relaxed);
        }
        (self.since, self.waited, self.newest) = (machine.clock.now(), Some(waited), newest);
    }

    /// Whether a change of all levels waits for the compaction, commits will soon wait because of the files in level 0,
    /// or the table is gone.
    fn is_awaited(&self) -> bool {
        if self.core.writes.levels.is_wanted() {
            return true;
        }
        let view = self.core.views.newest();
        let levels = &self.core.env.options.levels;
        view.files.tables.get(&self.table).is_none_or(|table| pick::is_behind(table, levels))
    }
}

/// How long to sleep after `work`, of which the thread has `waited` for a processor.
fn sleep_after(work: Duration, waited: Duration) -> Duration {
    (waited * SLEEPS_PER_WAIT).min(work * SLEEPS_PER_WORK).min(LONGEST_SLEEP)
}

#[cfg(test)]
mod tests;
