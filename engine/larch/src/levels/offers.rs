//! The compactions that a writer has offered to workers, and what the writer knows about the workers. This module
//! decides what becomes of each offer. It does not know how an offer is made, nor how a result is installed.
//!
//! An offer ends
//! - when the worker that owns its job writes a result or dies;
//! - when nobody owns it, and no worker lives, or the living workers have been idle for a while, or a change of
//!   whole tables waits;
//! - when writes stop, or the database is closed.
//!
//! After a failure, the writer offers nothing for a while and merges itself.
//!
//! A job's owner file names the worker that owns it. A job that has ended is remembered for [`REMEMBERED`], and its
//! owner file stays for as long, so that no late worker can take the job. Then the files that a slow owner may
//! still have written are removed.
//!
//! Thread safe.

pub mod alive;
pub mod exchange;
pub mod job;

use super::levels_lock::SharedLevels;
use super::picks::Claimed;
use super::work::MergeWork;
use alive::Alive;
use exchange::{Exchange, Exchanged, JobName, Pauses};
use job::OfferedJob;
use os::sync::{Arc, Mutex};
use std::collections::BTreeSet;
use std::time::Duration;

/// The writer makes at most this many offers for each living worker: one to do now and one to do next.
const OFFERS_EACH: usize = 2;

/// After a failure of a worker, the writer offers nothing for this long.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// When the owners of this many jobs in a row have died, the writer assumes that the jobs kill the workers.
const DEATHS: u32 = 3;

/// The beat files of a worker are removed after this long without a new beat.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// How long a job is remembered after its end. A worker that is trying to take the job gives up sooner.
const REMEMBERED: Duration = Duration::from_secs(120);

/// While no worker does any job, an offer without an owner ends after this many times [`Pauses::dead`].
const UNOWNED_TIMES: u32 = 10;

/// The offers of one open database.
#[derive(Debug, Default)]
pub struct Offers {
    state: Mutex<OffersState>,
}

#[derive(Debug, Default)]
struct OffersState {
    out: Vec<Offered>,
    ended: Vec<Ended>,
    alive: Alive,
    /// The number of places reserved for offers that are about to be made.
    reserved: usize,
    /// Nothing is offered before this time.
    refused_until: Duration,
    /// How many jobs in a row have now ended because their owners died.
    deaths: u32,
    totals: OfferTotals,
}

/// What became of all offers so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfferTotals {
    /// The number of results that were installed.
    pub installed: u64,
    /// The bytes of all files in the installed results.
    pub bytes: u64,
    /// The number of offers that ended without an installed result.
    pub withdrawn: u64,
}

/// The right to make one more offer. It ends when this value is dropped.
#[derive(Debug)]
pub struct Place(Arc<Offers>);

/// A compaction that is offered to workers. While this value exists, no other compaction changes the same files.
#[derive(Debug)]
pub struct Offered {
    pub job: OfferedJob,
    pub work: MergeWork,
    /// When the job was offered.
    pub begin: Duration,
    /// The worker that owns the job.
    pub owner: Option<u64>,
    /// When a file of this offer was first found unreadable; `None` if no file is.
    pub unreadable: Option<Duration>,
    pub claimed: Claimed,
    pub levels: SharedLevels,
}

/// A job that has ended.
#[derive(Debug)]
struct Ended {
    job: OfferedJob,
    /// When the job is forgotten.
    until: Duration,
    /// Whether the job's result was installed, so that files with its numbers are part of the database.
    is_installed: bool,
}

/// Why an offer ends without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// The owner of the job has died.
    OwnerDied,
    /// The worker has failed.
    Failed,
    /// The writer has withdrawn the offer, or there was no worker to do it.
    Unowned,
}

/// What becomes of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The offer stays.
    Waits,
    /// The job's result is in the directory.
    HasResult,
    /// The offer ends without a result.
    Ends(Withdrawal),
}

impl Offers {
    /// Takes note of the beats that were found `now`. Returns whether more workers live than before.
    pub fn note(&self, found: &Exchanged, now: Duration, pauses: Pauses) -> bool {
        let alive = &mut self.state.lock().alive;
        let before = alive.count(now, pauses.dead);
        alive.note(&found.beats, now, pauses.dead);
        alive.count(now, pauses.dead) > before
    }

    /// Whether `worker` has been silent for so long that its beat files are to be removed.
    pub fn is_forgotten(&self, worker: u64, now: Duration) -> bool {
        self.state.lock().alive.is_silent_for(worker, FORGOTTEN_AFTER, now)
    }

    /// Whether the writer has to look at the directory: workers may live, offers are out, or ended ones may have
    /// left files.
    pub fn is_watched(&self) -> bool {
        let state = self.state.lock();
        !state.alive.is_empty() || !state.out.is_empty() || !state.ended.is_empty()
    }

    /// The number of offers that have not ended.
    pub fn out(&self) -> usize {
        self.state.lock().out.len()
    }

    /// What became of all offers so far.
    pub fn totals(&self) -> OfferTotals {
        self.state.lock().totals
    }

    /// Whether the writer leaves merges to workers: some worker lives, and there is no pause after a failure.
    pub fn are_taken(&self, now: Duration, pauses: Pauses) -> bool {
        let state = self.state.lock();
        state.alive.count(now, pauses.dead) > 0 && now >= state.refused_until
    }

    /// Reserves the place for one more offer; `None` if the workers have enough to do.
    pub fn reserve(self: &Arc<Self>, now: Duration, pauses: Pauses) -> Option<Place> {
        let mut state = self.state.lock();
        let room = OFFERS_EACH * state.alive.count(now, pauses.dead);
        if state.out.len() + state.reserved >= room {
            return None;
        }
        state.reserved += 1;
        drop(state);
        Some(Place(self.clone()))
    }

    /// Adds an offer, whose job is about to be written.
    pub fn add(&self, offered: Offered) {
        self.state.lock().out.push(offered);
    }

    /// The fates of all offers, decided only by the names of files and by times. `is_wanted` says whether a change
    /// of whole tables waits for the levels lock.
    pub fn fates(&self, found: &Exchanged, is_wanted: bool, now: Duration, pauses: Pauses) -> Vec<(JobName, Fate)> {
        let state = self.state.lock();
        let lives = |worker| state.alive.has(worker, now, pauses.dead);
        let is_any_alive = state.alive.count(now, pauses.dead) > 0;
        let is_any_busy = state.out.iter().any(|offered| offered.owner.is_some_and(lives));
        let fate = |offered: &Offered| {
            let name = offered.job.name();
            let is_owned = found.owners.contains(&name);
            let waited = now.saturating_sub(offered.begin);
            let fate = match offered.owner {
                _ if found.results.contains(&name) => Fate::HasResult,
                Some(worker) if lives(worker) => Fate::Waits,
                Some(_) => Fate::Ends(Withdrawal::OwnerDied),
                // The owner will be known as soon as the owner file is read.
                None if is_owned && offered.unreadable.is_none() => Fate::Waits,
                None if is_owned && !offered.is_unreadable_for(pauses.dead, now) => Fate::Waits,
                None if is_owned => Fate::Ends(Withdrawal::OwnerDied),
                None if !is_any_alive || is_wanted => Fate::Ends(Withdrawal::Unowned),
                None if !is_any_busy && waited >= UNOWNED_TIMES * pauses.dead => Fate::Ends(Withdrawal::Failed),
                None => Fate::Waits,
            };
            (name, fate)
        };
        state.out.iter().map(fate).collect()
    }

    /// The offers whose owner files are to be read: they are among `found`, and the owners are not known yet.
    pub fn owners_to_read(&self, found: &Exchanged) -> Vec<JobName> {
        let state = self.state.lock();
        let names = state.out.iter().filter(|offered| offered.owner.is_none()).map(|offered| offered.job.name());
        names.filter(|name| found.owners.contains(name)).collect()
    }

    /// Notes that `worker` owns an offer, and so was alive a moment ago.
    pub fn owned_by(&self, name: JobName, worker: u64, now: Duration) {
        let state = &mut *self.state.lock();
        if let Some(offered) = state.out.iter_mut().find(|offered| offered.job.name() == name) {
            (offered.owner, offered.unreadable) = (Some(worker), None);
            state.alive.saw(worker, now);
        }
    }

    /// Notes that a file of an offer is unreadable, because a worker is still writing it or has died meanwhile.
    /// Returns whether it has been so for `time`.
    pub fn is_unreadable_for(&self, name: JobName, time: Duration, now: Duration) -> bool {
        let mut state = self.state.lock();
        let offered = state.out.iter_mut().find(|offered| offered.job.name() == name);
        offered.is_some_and(|offered| {
            offered.unreadable.get_or_insert(now);
            offered.is_unreadable_for(time, now)
        })
    }

    /// Removes an offer from the list and returns it. It still keeps other compactions from changing the same
    /// files.
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

    /// Notes that the result of `job` was installed. The new files have `bytes` bytes.
    pub fn note_installed(&self, job: OfferedJob, bytes: u64, now: Duration) {
        let state = &mut *self.state.lock();
        state.totals.installed += 1;
        state.totals.bytes += bytes;
        state.deaths = 0;
        state.ended.push(Ended { job, until: now + REMEMBERED, is_installed: true });
    }

    /// Notes that `job` ended without an installed result.
    pub fn note_withdrawn(&self, job: OfferedJob, why: Withdrawal, now: Duration) {
        let state = &mut *self.state.lock();
        state.totals.withdrawn += 1;
        state.deaths = if why == Withdrawal::OwnerDied { state.deaths + 1 } else { 0 };
        if why == Withdrawal::Failed || state.deaths >= DEATHS {
            state.refused_until = now + PAUSE_AFTER_FAILURE;
            state.deaths = 0;
        }
        state.ended.push(Ended { job, until: now + REMEMBERED, is_installed: false });
    }

    /// Forgets the jobs that ended long ago. Returns the names of all of them, and the jobs that ended without an
    /// installed result, whose files are to be removed.
    pub fn forget_ended(&self, now: Duration) -> (Vec<JobName>, Vec<OfferedJob>) {
        let mut state = self.state.lock();
        let forgotten: Vec<Ended> = state.ended.extract_if(.., |ended| ended.until <= now).collect();
        let names = forgotten.iter().map(|ended| ended.job.name()).collect();
        (names, forgotten.into_iter().filter(|ended| !ended.is_installed).map(|ended| ended.job).collect())
    }

    /// The names of all jobs that are offered or still remembered.
    pub fn known(&self) -> BTreeSet<JobName> {
        let state = self.state.lock();
        let out = state.out.iter().map(|offered| offered.job.name());
        out.chain(state.ended.iter().map(|ended| ended.job.name())).collect()
    }

    /// Withdraws all offers. Workers may still write files for them, which the next open removes.
    pub fn withdraw_all(&self, exchange: Exchange<'_>, now: Duration) {
        let out = {
            let mut state = self.state.lock();
            state.totals.withdrawn += state.out.len() as u64;
            std::mem::take(&mut state.out)
        };
        for Offered { job, .. } in out {
            exchange.close_job(job.name());
            self.state.lock().ended.push(Ended { job, until: now + REMEMBERED, is_installed: false });
        }
    }
}

impl Offered {
    fn is_unreadable_for(&self, time: Duration, now: Duration) -> bool {
        self.unreadable.is_some_and(|since| now.saturating_sub(since) >= time)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.state.lock().reserved -= 1;
    }
}
