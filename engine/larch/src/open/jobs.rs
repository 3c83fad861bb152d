//! Starts the jobs of a database. This is the only file that knows all jobs, but not what they do.

use super::idle::{IDLE_TIME, IdleJob};
use crate::compact::CompactJob;
use crate::compact::offering::OfferJob;
use crate::core::Core;
use crate::core::background::Workers;
use crate::core::waiting::WakeJob;
use crate::inspect::published::{PERIOD, PublishJob};
use crate::inspect::scrub::ScrubJob;
use crate::warm::job::WarmJob;
use crate::write::flush::FlushJob;
use crate::write::log_job::LogJob;
use crate::write::sync_job::SyncJob;
use os::Priority;
use os::process::ProcessOrigin;
use os::sync::Arc;
use std::time::Duration;

/// The most compactions that one database runs at the same time. The pool keeps a thread free for flushes, so a
/// machine with few processors runs fewer.
const MOST_COMPACTIONS: usize = 4;

/// Starts the background work of a database that was opened for writing.
pub fn begin(core: &Arc<Core>) {
    let threads = &core.env.machine.threads;
    let weak = || Arc::downgrade(core);
    // In a store, a file that changes every second would cost a request each time.
    let publishes = core.env.options.publish_metrics && core.env.machine.disk.keeps_removed().is_none();
    let workers = Workers {
        sync: threads.sleeping_worker(Priority::Urgent, Arc::new(SyncJob(weak()))).into(),
        flush: threads.worker(Priority::High, Arc::new(FlushJob(weak()))),
        log: threads.worker(Priority::High, Arc::new(LogJob(weak()))),
        compact: (0..MOST_COMPACTIONS)
            .map(|_| threads.worker(Priority::Normal, Arc::new(CompactJob(weak()))))
            .collect(),
        offers: threads.sleeping_worker(Priority::Normal, Arc::new(OfferJob(weak()))),
        warm: threads.worker(Priority::Low, Arc::new(WarmJob(weak()))),
        scrub: threads.worker(Priority::Low, Arc::new(ScrubJob::new(weak()))),
        idle: threads.worker(Priority::Low, Arc::new(IdleJob::new(weak()))),
        waiting: threads.sleeping_worker(Priority::Urgent, Arc::new(WakeJob(weak()))),
        publish: publishes.then(|| threads.worker(Priority::Low, Arc::new(PublishJob::new(weak())))),
    };
    // A reader that ends wakes the compaction jobs. If the last handle was dropped before, or this is a forked
    // child, there is no job to wake.
    let (compact, origin) = (Arc::downgrade(&workers.compact), ProcessOrigin::here());
    core.views.snapshots.on_gone(move || {
        if let Some(compact) = compact.upgrade().filter(|_| origin.is_here()) {
            compact.iter().for_each(|worker| worker.wake());
        }
    });
    core.writes.sync.begin(workers.sync.clone());
    core.background.begin(workers);
    if core.env.options.compaction_workers {
        core.background.wake_offers_after(Duration::ZERO);
    }
    core.background.wake_publish_after(PERIOD);
    let weak = weak();
    core.env.log_disk.on_open(move || {
        if let Some(core) = weak.upgrade() {
            core.background.wake_idle_after(IDLE_TIME);
        }
    });
}
