//! The compactions that a writer has offered to workers, and what is known of these. It decides what becomes of an offer, and does not
//! know how it is made or installed.
//!
//! An offer ends when the worker that has claimed it writes a result; when that worker dies; when nobody has claimed it and no worker
//! lives; or when the database is closed. After a failure nothing is offered for a while, so that the writer merges itself.
//!
//! Thread safe.

use super::alive::Alive;
use super::exchange::{Exchange, Exchanged, JobName, Pauses};
use super::job::OfferedJob;
use crate::compact::levels_lock::SharedLevels;
use crate::compact::picks::Claimed;
use crate::compact::work::MergeWork;
use crate::core::environment::Environment;
use os::sync::Mutex;
use std::time::Duration;

/// Offers for each worker that lives: one that it does, and one that it does next.
const OFFERS_EACH: usize = 2;

/// Nothing is offered for so long after a worker has failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// The beat of a worker that has been silent for so long is removed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The offers of one open database.
#[derive(Debug, Default)]
pub struct Offers {
    state: Mutex<OffersState>,
}

#[derive(Debug, Default)]
struct OffersState {
    out: Vec<Offered>,
    alive: Alive,
    /// Nothing is offered before this time.
    refused_until: Duration,
    totals: OfferTotals,
}

/// What became of all offers so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfferTotals {
    /// Results that were installed.
    pub installed: u64,
    /// Bytes of the files that workers have written for these.
    pub bytes: u64,
    /// Offers that ended otherwise.
    pub withdrawn: u64,
}

/// A compaction that a worker is to do. As long as it is held, no other one changes what it changes.
#[derive(Debug)]
pub struct Offered {
    pub job: OfferedJob,
    pub work: MergeWork,
    /// When it was offered.
    pub begin: Duration,
    /// The worker that has claimed it.
    pub worker: Option<u64>,
    pub claimed: Claimed,
    pub levels: SharedLevels,
}

/// What becomes of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays.
    Waits,
    /// Its result is there.
    HasResult,
    /// No worker does it.
    Abandoned,
}

impl Offers {
    /// Takes notice of what the workers have written by `now`.
    pub fn note(&self, found: &Exchanged, now: Duration) {
        self.state.lock().alive.note(&found.beats, now);
    }

    /// Whether the beats of a worker are to be removed.
    pub fn is_forgotten(&self, worker: u64, now: Duration) -> bool {
        self.state.lock().alive.is_silent_for(worker, FORGOTTEN_AFTER, now)
    }

    /// Whether there are workers, of which some may live.
    pub fn has_workers(&self) -> bool {
        !self.state.lock().alive.is_empty()
    }

    /// How many workers live.
    pub fn living(&self, now: Duration, pauses: Pauses) -> usize {
        self.state.lock().alive.count(now, pauses.dead)
    }

    /// How many offers are out.
    pub fn out(&self) -> usize {
        self.state.lock().out.len()
    }

    /// What became of all offers so far.
    pub fn totals(&self) -> OfferTotals {
        self.state.lock().totals
    }

    /// How many more offers the workers can have; `None` if the writer merges itself, because no worker lives or one has failed.
    pub fn room(&self, now: Duration, pauses: Pauses) -> Option<usize> {
        let state = self.state.lock();
        let living = state.alive.count(now, pauses.dead);
        (living > 0 && now >= state.refused_until).then(|| (OFFERS_EACH * living).saturating_sub(state.out.len()))
    }

    /// Adds an offer, whose job is written.
    pub fn add(&self, offered: Offered) {
        self.state.lock().out.push(offered);
    }

    /// The offers, each with its fate as far as names of files say it.
    pub fn fates(&self, found: &Exchanged, now: Duration, pauses: Pauses) -> Vec<(JobName, Fate)> {
        let state = self.state.lock();
        let is_any_alive = state.alive.count(now, pauses.dead) > 0;
        let fate = |offered: &Offered| {
            let name = offered.job.name();
            let fate = match offered.worker {
                _ if found.results.contains(&name) => Fate::HasResult,
                Some(worker) if !state.alive.has(worker, now, pauses.dead) => Fate::Abandoned,
                None if !is_any_alive => Fate::Abandoned,
                _ => Fate::Waits,
            };
            (name, fate)
        };
        state.out.iter().map(fate).collect()
    }

    /// The offers without a known worker whose claims are among those `found`.
    pub fn claims_to_read(&self, found: &Exchanged) -> Vec<JobName> {
        let state = self.state.lock();
        let names = state.out.iter().filter(|offered| offered.worker.is_none()).map(|offered| offered.job.name());
        names.filter(|name| found.claims.contains(name)).collect()
    }

    /// Notes which worker has claimed an offer.
    pub fn claimed_by(&self, name: JobName, worker: u64) {
        let mut state = self.state.lock();
        if let Some(offered) = state.out.iter_mut().find(|offered| offered.job.name() == name) {
            offered.worker = Some(worker);
        }
    }

    /// Takes an offer out. It still keeps others from what it changes.
    pub fn take(&self, name: JobName) -> Option<Offered> {
        let mut state = self.state.lock();
        let at = state.out.iter().position(|offered| offered.job.name() == name)?;
        Some(state.out.swap_remove(at))
    }

    /// The job of an offer.
    pub fn job(&self, name: JobName) -> Option<OfferedJob> {
        let state = self.state.lock();
        state.out.iter().find(|offered| offered.job.name() == name).map(|offered| offered.job.clone())
    }

    /// Notes that a result was installed, with so many bytes of new files.
    pub fn note_installed(&self, bytes: u64) {
        let totals = &mut self.state.lock().totals;
        totals.installed += 1;
        totals.bytes += bytes;
    }

    /// Notes that an offer ended without a result. After a failure of the worker nothing is offered for a while.
    pub fn note_withdrawn(&self, has_failed: bool, now: Duration) {
        let mut state = self.state.lock();
        state.totals.withdrawn += 1;
        if has_failed {
            state.refused_until = now + PAUSE_AFTER_FAILURE;
        }
    }

    /// Takes all offers back. What workers write for them is removed by the next open.
    pub fn withdraw_all(&self, env: &Environment) {
        let out = {
            let mut state = self.state.lock();
            state.totals.withdrawn += state.out.len() as u64;
            std::mem::take(&mut state.out)
        };
        if out.is_empty() || env.check_origin().is_err() {
            return;
        }
        let exchange = Exchange { disk: &*env.machine.disk, database: &env.directory };
        out.iter().for_each(|offered| exchange.remove_job(offered.job.name()));
    }
}
