//! Offers compactions to workers, and installs what they have merged. It does not know what is compacted why, nor how files are merged.

use super::exchange::{Exchange, JobName, Pauses};
use super::job::OfferedJob;
use super::offers::{Fate, Offered};
use super::result::{self, JobResult};
use crate::compact::levels_lock::SharedLevels;
use crate::compact::pick::Pick;
use crate::compact::picks::Claimed;
use crate::compact::work::MergeWork;
use crate::core::{Core, StopOnPanic};
use crate::error::{Error, Result};
use crate::files::fresh::FreshFiles;
use crate::files::listing::{ListedFile, list};
use crate::files::output::NewFiles;
use crate::manifest::TableFiles;
use os::sync::{Arc, Weak};
use os::{Access, Job, Polled};
use sst::Meta;
use std::collections::HashSet;
use std::time::Duration;

/// So many numbers are taken for each file that a merge is expected to make, and for each merge. None is used twice, and there are
/// enough of them.
const NUMBERS_EACH: u64 = 16;

/// The job that looks at what workers have done, as long as there are some.
#[derive(Debug)]
pub struct OfferJob(pub Weak<Core>);

impl Job for OfferJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        if core.check_writable().is_err() || core.background.is_closing() {
            return Polled::Idle;
        }
        let _guard = StopOnPanic::new(&core);
        look(&core);
        let (offers, pauses) = (&core.writes.offers, pauses(&core));
        if offers.out() > 0 {
            core.background.wake_offers_after(pauses.look);
        } else if offers.has_workers() {
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

/// Whether a merge that is due has to wait, because workers live and have enough to do.
pub fn must_wait(core: &Core, pick: &Pick) -> bool {
    if !core.env.options.compaction_workers || !matches!(pick, Pick::Merge { .. }) {
        return false;
    }
    if !core.writes.offers.has_workers() {
        // The next merge may find one.
        core.background.wake_offers_after(Duration::ZERO);
    }
    core.writes.offers.room(core.env.machine.clock.now(), pauses(core)) == Some(0)
}

/// What became of an attempt to offer a merge.
pub enum Attempt {
    /// Workers have it.
    Offered,
    /// The caller has to merge.
    Own(Claimed, SharedLevels),
}

/// Offers what `pick` says to merge if a worker lives. `claimed` and `levels` keep others from what it changes.
pub fn offer(core: &Core, table: &TableFiles, pick: &Pick, claimed: Claimed, levels: SharedLevels) -> Attempt {
    let now = core.env.machine.clock.now();
    let offers = &core.writes.offers;
    let Pick::Merge { inputs, to, reason, .. } = pick else { return Attempt::Own(claimed, levels) };
    let has_room = core.env.options.compaction_workers && offers.room(now, pauses(core)).is_some_and(|room| room > 0);
    if !has_room {
        return Attempt::Own(claimed, levels);
    }
    let work = MergeWork::of(table, (inputs, *to, *reason), &core.env.options.levels);
    let Some(job) = job_of(core, &work) else { return Attempt::Own(claimed, levels) };
    let path = exchange(core).job(job.name());
    if let Err(error) = core.env.machine.disk.create_with(&path, &job.encode()) {
        // A part of it may be there.
        core.env.machine.disk.remove(&path).ok();
        fail(core, &work, &Error::io("create", &path, error));
        return Attempt::Own(claimed, levels);
    }
    work.report_begin(core);
    offers.add(Offered { job, work, begin: now, worker: None, claimed, levels });
    core.background.wake_offers_after(pauses(core).look);
    Attempt::Offered
}

/// The job for a merge; `None` if the database is being closed.
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
        boundaries: core.views.boundaries(),
        inputs: work.inputs.clone(),
        compat: core.env.options.compat.to_string(),
    })
}

/// Looks at what the workers have done, and ends the offers that have ended.
fn look(core: &Core) {
    let (offers, pauses, exchange) = (&core.writes.offers, pauses(core), exchange(core));
    // Without an answer, time goes on all the same.
    let found = exchange.look();
    let now = core.env.machine.clock.now();
    if let Ok(found) = &found {
        offers.note(found, now);
        for &(worker, count) in found.beats.iter().filter(|(worker, _)| offers.is_forgotten(*worker, now)) {
            core.env.machine.disk.remove(&exchange.beat(worker, count)).ok();
        }
    }
    let found = found.unwrap_or_default();
    for name in offers.claims_to_read(&found) {
        let claim = core.env.machine.disk.read_all(&exchange.claim(name)).ok();
        // A claim that is not whole is being written.
        if let Some(worker) = claim.and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?))) {
            offers.claimed_by(name, worker);
        }
    }
    let mut has_ended = false;
    for (name, fate) in offers.fates(&found, now, pauses) {
        let is_living = offers.living(now, pauses) > 0;
        has_ended |= match fate {
            Fate::Waits => false,
            Fate::Abandoned => withdraw(core, name, None),
            Fate::HasResult => match read_result(core, name) {
                Some(Ok(result)) => end(core, name, result),
                Some(Err(why)) => withdraw(core, name, Some(&bad_result(core, name, &why))),
                // It is being written, unless its writer has died.
                None => !is_living && withdraw(core, name, None),
            },
        };
    }
    if has_ended {
        core.background.wake_compact();
        core.background.tell_progress();
    }
}

/// The result of an offer; `None` if it is not whole.
fn read_result(core: &Core, name: JobName) -> Option<Result<JobResult, String>> {
    use sst::format::features::Unreadable;
    let job = core.writes.offers.job(name)?;
    let bytes = core.env.machine.disk.read_all(&exchange(core).result(name)).ok()?;
    match JobResult::decode(&bytes, &job) {
        Ok(result) => Some(Ok(result)),
        Err(Unreadable::Corrupt(_)) => None,
        Err(newer @ Unreadable::Newer(_)) => Some(Err(newer.to_string())),
    }
}

fn bad_result(core: &Core, name: JobName, why: &str) -> Error {
    Error::WorkerFailed { result: exchange(core).result(name), why: why.to_owned() }
}

/// Ends an offer that has a result.
fn end(core: &Core, name: JobName, result: JobResult) -> bool {
    let (files, taken_over) = match result {
        JobResult::Failed(why) => return withdraw(core, name, Some(&bad_result(core, name, &why))),
        JobResult::Merged { files, taken_over } => (files, taken_over.into_iter().collect::<HashSet<_>>()),
    };
    let Some(Offered { job, work, begin, claimed, levels, worker: _ }) = core.writes.offers.take(name) else {
        return false;
    };
    let table = work.table.clone();
    let installed =
        result::check(&job, &work, files, &taken_over).map_err(|why| bad_result(core, name, &why)).and_then(|files| {
            let mut new = NewFiles { files, fresh: FreshFiles::new(&core.env.opener.leftovers) };
            check_footers(core, &new)?;
            let paths = new.files.iter().map(|file| core.env.opener.path(file.number, file.epoch));
            paths.for_each(|path| new.fresh.add(path));
            let bytes = new.bytes();
            work.install(core, new, &taken_over, begin).map(|()| bytes)
        });
    // In this order: who examines the table next sees the new files, and no claim.
    drop((claimed, levels));
    match installed {
        Ok(bytes) => {
            core.writes.offers.note_installed(bytes);
            core.background.troubles.compaction_succeeded(table.id);
            exchange(core).remove_job(name);
        }
        Err(error) => {
            core.writes.offers.note_withdrawn(true, core.env.machine.clock.now());
            if !matches!(error, Error::NoSuchTable(_)) {
                report(core, &table, &error);
            }
            exchange(core).remove_job(name);
            // If writes were stopped, the manifest may have the files.
            if core.check_writable().is_ok() {
                clean_up(core, &job);
            }
        }
    }
    true
}

/// Compares the footers of new files with what the result says.
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

/// Takes an offer back. With an `error` it is the worker that failed. Returns whether there was such an offer.
fn withdraw(core: &Core, name: JobName, error: Option<&Error>) -> bool {
    let Some(offered) = core.writes.offers.take(name) else { return false };
    core.writes.offers.note_withdrawn(error.is_some(), core.env.machine.clock.now());
    let is_there = core.views.table_info(offered.work.table.id).is_some();
    if let Some(error) = error.filter(|_| is_there) {
        report(core, &offered.work.table, error);
    }
    clean_up(core, &offered.job);
    true
}

/// Removes a job that was taken back, and the files that its worker has written.
fn clean_up(core: &Core, job: &OfferedJob) {
    exchange(core).remove_job(job.name());
    let env = &core.env;
    // What cannot be found now is removed by the next open.
    for file in list(&env.machine, &env.directory).unwrap_or_default() {
        if let ListedFile::Sst(name, number) = file
            && job.numbers.contains(&number)
            && env.opener.path(number, job.epoch).ends_with(&name)
        {
            env.opener.leftovers.remove(&env.directory.join(name));
        }
    }
}

/// Notes that a merge could not be offered.
fn fail(core: &Core, work: &MergeWork, error: &Error) {
    core.writes.offers.note_withdrawn(true, core.env.machine.clock.now());
    report(core, &work.table, error);
}

/// Reports that the work of a worker failed. The writer merges itself then, so it is no failed compaction yet.
fn report(core: &Core, table: &Arc<crate::manifest::TableInfo>, error: &Error) {
    use crate::event::Event;
    core.env.report(|| Event::WorkerFailed { table: table.name.clone(), error: error.to_string() });
}
