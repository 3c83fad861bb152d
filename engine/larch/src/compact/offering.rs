//! Offers compactions to workers, and installs the files that they have merged. This module does not know why a
//! compaction was chosen, or how files are merged.

use super::result::{self, JobResult};
use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::table::TableInfo;
use crate::compact::execute::{install_work, report_begin};
use crate::core::{Core, StopOnPanic};
use crate::levels::levels_lock::SharedLevels;
use crate::levels::offers::exchange::{Exchange, Exchanged, JobName, NOBODY, Pauses};
use crate::levels::offers::job::OfferedJob;
use crate::levels::offers::{Fate, Offered, Place, Withdrawal};
use crate::levels::pick::Pick;
use crate::levels::picks::Claimed;
use crate::levels::work::MergeWork;
use crate::manifest::TableFiles;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::new_files::NewFiles;
use os::sync::Weak;
use os::{Access, Job, Polled};
use sst::Meta;
use sst::format::features::Unreadable;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::Duration;

/// An offer gets this many file numbers for each file that the merge is expected to make, and as many to spare.
/// Unused numbers are lost, but with 64 bits there are enough.
const NUMBERS_EACH: u64 = 16;

/// After this many numbers without a file, no later number has one, because a worker writes its files one at a
/// time, in the order of their numbers.
const MOST_MISSING: u32 = 4;

/// The job that looks for results of workers, as long as a worker lives.
#[derive(Debug)]
pub struct OfferJob(pub Weak<Core>);

impl Job for OfferJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        if core.check_writable().is_err() {
            // A thread may be waiting for the levels lock, which the offers share.
            core.withdraw_offers();
            return Polled::Idle;
        }
        if core.background.is_closing() {
            return Polled::Idle;
        }
        let _guard = StopOnPanic::new(&core);
        if look(&core) {
            return Polled::Worked;
        }
        let (offers, pauses) = (&core.writes.offers, pauses(&core));
        if offers.out() > 0 {
            core.background.wake_offers_after(pauses.look);
        } else if offers.is_watched() {
            core.background.wake_offers_after(pauses.beat);
        }
        Polled::Idle
    }
}

fn pauses(core: &Core) -> Pauses {
    Pauses::of(&core.env.machine)
}

fn exchange(core: &Core) -> Exchange<'_> {
    Exchange { disk: &*core.env.machine.disk, database: &core.env.directory }
}

/// Who will do the next merge.
#[derive(Debug)]
pub enum Merger {
    /// The writer.
    Writer,
    /// A worker, for which this place is reserved.
    Worker(Place),
    /// A worker, once one has less to do.
    Later,
}

/// Chooses who will do the next merge.
pub fn next_merger(core: &Core) -> Merger {
    if !core.env.options.compaction_workers {
        return Merger::Writer;
    }
    let (offers, now, pauses) = (&core.writes.offers, core.env.machine.clock.now(), pauses(core));
    if !offers.is_watched() {
        // The offer job looks for workers, so that the next merge can be left to them.
        core.background.wake_offers_after(Duration::ZERO);
    }
    if !offers.are_taken(now, pauses) {
        return Merger::Writer;
    }
    offers.reserve(now, pauses).map_or(Merger::Later, Merger::Worker)
}

/// Offers the merge of `pick` to the workers. The offer keeps `claimed` and `levels`, so that no other job
/// changes the same files. Returns them if the merge cannot be offered.
pub fn offer(
    core: &Core,
    table: &TableFiles,
    pick: &Pick,
    (claimed, levels): (Claimed, SharedLevels),
) -> Option<(Claimed, SharedLevels)> {
    let Pick::Merge { inputs, to, reason, .. } = pick else { return Some((claimed, levels)) };
    let (offers, begin) = (&core.writes.offers, core.env.machine.clock.now());
    let work = MergeWork::of(table, (inputs, *to, *reason), &core.env.options.levels);
    let Some(job) = job_of(core, &work) else { return Some((claimed, levels)) };
    let (name, bytes) = (job.name(), job.encode());
    let info = work.table.clone();
    report_begin(core, &work);
    // Add the offer before the job is written, because a fast worker may answer at once.
    offers.add(Offered { job, work, begin, owner: None, unreadable: None, claimed, levels });
    let path = exchange(core).job(name);
    let Err(error) = core.env.machine.disk.create_with(&path, &bytes) else {
        core.background.wake_offers_after(pauses(core).look);
        return None;
    };
    let Offered { job, claimed, levels, .. } = offers.take(name)?;
    // The job file may have been written, in part or as a whole.
    exchange(core).close_job(name);
    if error.kind() == ErrorKind::NotFound {
        // The last worker has just ended and removed the directory.
        offers.note_withdrawn(job, Withdrawal::Unowned, begin);
    } else {
        offers.note_withdrawn(job, Withdrawal::Failed, begin);
        report(core, &info, &Error::io("create", &path, error));
    }
    Some((claimed, levels))
}

/// The job for a merge, or `None` if the database has no open manifest any more.
fn job_of(core: &Core, work: &MergeWork) -> Option<OfferedJob> {
    let expected = work.bytes() / work.file_bytes + work.inputs.len() as u64;
    let (position, numbers) = {
        let manifest = core.writes.manifest.lock();
        let position = manifest.as_ref()?.position();
        let _numbering = core.writes.numbering.read();
        (position, core.writes.new_numbers((expected + 1) * NUMBERS_EACH))
    };
    Some(OfferedJob {
        database: core.views.newest().files.database,
        epoch: core.env.epoch,
        numbers,
        position,
        table: work.table.id,
        to: work.to,
        reason: work.reason,
        bottom: work.bottom,
        file_bytes: work.file_bytes,
        boundaries: core.views.boundaries().of(work.table.id),
        inputs: work.inputs.clone(),
        compat: core.env.options.compat.to_string(),
    })
}

/// Looks at what the workers have done, and ends offers. Stops at the first offer that has a result, and returns
/// whether there was one.
fn look(core: &Core) -> bool {
    let (offers, pauses) = (&core.writes.offers, pauses(core));
    // If the look fails, go on without it, because offers must still time out.
    let found = exchange(core).look().ok();
    let now = core.env.machine.clock.now();
    let mut may_compact = false;
    if let Some(found) = &found {
        may_compact = offers.note(found, now, pauses);
        tidy(core, found, now);
    }
    let found = found.unwrap_or_default();
    for name in offers.owners_to_read(&found) {
        let bytes = core.env.machine.disk.read_all(&exchange(core).owner(name)).ok();
        match bytes.and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?))) {
            Some(owner) if owner != NOBODY => offers.owned_by(name, owner, now),
            // The owner file is still being written, or its worker died while writing it.
            _ => _ = offers.is_unreadable_for(name, pauses.dead, now),
        }
    }
    let mut has_result = false;
    for (name, fate) in offers.fates(&found, core.writes.levels.is_wanted(), now, pauses) {
        match fate {
            Fate::Waits => {}
            Fate::Ends(why) => {
                withdraw(core, name, why, None);
                may_compact = true;
            }
            Fate::HasResult => match read_result(core, name) {
                Some(result) => {
                    end(core, name, result);
                    has_result = true;
                    break;
                }
                None if offers.is_unreadable_for(name, pauses.dead, now) => {
                    withdraw(core, name, Withdrawal::OwnerDied, None);
                    may_compact = true;
                }
                None => {}
            },
        }
    }
    if may_compact || has_result {
        core.background.wake_compact();
        core.background.tell_progress();
    }
    has_result
}

/// Removes the files among `found` that are no longer needed.
fn tidy(core: &Core, found: &Exchanged, now: Duration) {
    let (offers, exchange) = (&core.writes.offers, exchange(core));
    for &(worker, count) in found.beats.iter().filter(|(worker, _)| offers.is_forgotten(*worker, now)) {
        // If the file cannot be removed, the next look finds it again.
        core.env.machine.disk.remove(&exchange.beat(worker, count)).ok();
    }
    let (forgotten, withdrawn) = offers.forget_ended(now);
    forgotten.into_iter().for_each(|name| exchange.remove_job(name));
    // Remove what a slow worker has written since its offer was withdrawn.
    withdrawn.iter().for_each(|job| remove_files(core, job));
    let known = offers.known();
    let is_left = |name: &JobName| name.epoch == core.env.epoch && !known.contains(name);
    found.names().into_iter().filter(is_left).for_each(|name| exchange.remove_job(name));
}

/// The result of an offer; `None` while a worker is still writing it.
fn read_result(core: &Core, name: JobName) -> Option<Result<JobResult, String>> {
    let job = core.writes.offers.job(name)?;
    let bytes = core.env.machine.disk.read_all(&exchange(core).result(name)).ok()?;
    match JobResult::decode(&bytes, &job) {
        Ok(result) => Some(Ok(result)),
        Err(Unreadable::Corrupt(_)) => None,
        Err(newer @ Unreadable::Newer(_)) => Some(Err(newer.to_string())),
    }
}

fn bad_result(core: &Core, name: JobName, why: String) -> Error {
    Error::WorkerFailed { result: exchange(core).result(name), why }
}

/// Ends an offer that has a result.
fn end(core: &Core, name: JobName, result: Result<JobResult, String>) {
    let (files, taken_over) = match result {
        Ok(JobResult::Merged { files, taken_over }) => (files, taken_over.into_iter().collect::<HashSet<_>>()),
        Ok(JobResult::Failed(why)) | Err(why) => {
            let error = bad_result(core, name, why);
            return withdraw(core, name, Withdrawal::Failed, Some(&error));
        }
    };
    let offers = &core.writes.offers;
    let Some(Offered { job, work, begin, claimed, levels, .. }) = offers.take(name) else { return };
    let table = work.table.clone();
    let installed =
        result::check(&job, &work, files, &taken_over).map_err(|why| bad_result(core, name, why)).and_then(|files| {
            let mut new = NewFiles { files, fresh: FreshFiles::new(&core.env.opener.leftovers) };
            check_footers(core, &new)?;
            let paths = new.files.iter().map(|file| core.env.opener.path(file.number, file.epoch));
            paths.for_each(|path| new.fresh.add(path));
            let bytes = new.bytes();
            install_work(core, work, new, &taken_over, begin).map(|()| bytes)
        });
    // Drop the claim only after the install: a thread that finds no claim on these files then sees the new files.
    drop((claimed, levels));
    exchange(core).close_job(name);
    let now = core.env.machine.clock.now();
    match installed {
        Ok(bytes) => {
            offers.note_installed(job, bytes, now);
            core.background.troubles.compaction_succeeded(table.id);
        }
        // Writes are refused now. The manifest may name the new files, so they must stay.
        Err(_) if core.check_writable().is_err() => offers.note_installed(job, 0, now),
        Err(Error::NoSuchTable(_)) => {
            remove_files(core, &job);
            offers.note_withdrawn(job, Withdrawal::Unowned, now);
        }
        Err(error) => {
            remove_files(core, &job);
            offers.note_withdrawn(job, Withdrawal::Failed, now);
            report(core, &table, &error);
        }
    }
}

/// Checks that the footers of new files match what the result says.
fn check_footers(core: &Core, new: &NewFiles) -> Result<()> {
    for file in &new.files {
        let path = core.env.opener.path(file.number, file.epoch);
        let opened = core.env.machine.disk.open(&path, Access::Read);
        let opened = opened.map_err(|error| Error::io("open", &path, error))?;
        let meta: Meta = sst::read_footer(&*opened, &path)?;
        if meta != file.meta {
            let why = "its footer is not the one that the result describes".to_owned();
            return Err(Error::WorkerFailed { result: path, why });
        }
    }
    Ok(())
}

/// Withdraws an offer. `error` is the worker's error, if it has failed.
fn withdraw(core: &Core, name: JobName, why: Withdrawal, error: Option<&Error>) {
    let offers = &core.writes.offers;
    let Some(Offered { job, work, owner, claimed, levels, .. }) = offers.take(name) else { return };
    exchange(core).close_job(name);
    drop((claimed, levels));
    if owner.is_some() {
        remove_files(core, &job);
    }
    offers.note_withdrawn(job, why, core.env.machine.clock.now());
    let is_there = core.views.table_info(work.table.id).is_some();
    if let Some(error) = error.filter(|_| is_there) {
        report(core, &work.table, error);
    }
}

/// Removes the files that a worker has written for a withdrawn offer. The next open removes files that appear
/// later.
fn remove_files(core: &Core, job: &OfferedJob) {
    let mut missing = 0;
    for number in job.numbers.clone() {
        let path = core.env.opener.path(number, job.epoch);
        match core.env.machine.disk.exists(&path) {
            Ok(true) => core.env.opener.leftovers.remove(&path),
            Ok(false) if missing < MOST_MISSING => missing += 1,
            _ => return,
        }
    }
}

/// Reports that a worker could not do a merge. It does not count as a failed compaction, because the writer will
/// merge itself.
fn report(core: &Core, table: &TableInfo, error: &Error) {
    core.env.report(|| Event::WorkerFailed { table: table.name.clone(), error: error.to_string() });
}
