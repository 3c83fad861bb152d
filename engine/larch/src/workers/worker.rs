//! The worker: becomes the owner of a compaction that the writer offers, merges the files, and reports the files that
//! it has written. It changes nothing else in the database.

use super::beat::Beats;
use crate::base::error::{Error, Result};
use crate::base::options::Options;
use crate::base::watch::GoOn;
use crate::compact::execute::merge_work;
use crate::compact::result::JobResult;
use crate::core::files_only::{hold, opener, show_files};
use crate::core::page_cache::new_cache;
use crate::files::merge::MergeResult;
use crate::levels::offers::exchange::{Exchange, Exchanged, JobName, NOBODY, Pauses};
use crate::levels::offers::job::OfferedJob;
use crate::levels::work::MergeWork;
use crate::manifest::db_file::FileOpener;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{FileSet, ManifestLog, ManifestTail};
use os::Machine;
use os::sync::Arc;
use pages::PageCache;
use sst::format::features::Unreadable;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of this work in errors.
const WORK: &str = "the worker";

/// A worker that does compactions for the writer of a database in another process, made by
/// [`Builder::compaction_worker`](crate::Builder::compaction_worker).
#[derive(Debug)]
pub struct CompactionWorker {
    machine: Machine,
    directory: PathBuf,
    options: Options,
    cache: Arc<PageCache>,
    /// The number of the worker. If it cannot tell the writer the result of a job, it takes a new number, so that the
    /// owner of that job counts as dead.
    id: u64,
    beats: Beats,
    /// Offered jobs that this worker cannot do.
    passed_over: HashSet<JobName>,
}

/// A compaction that a worker has done, or failed to do.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CompactedJob {
    /// The table.
    pub table: String,
    /// The number of files that were merged.
    pub input_files: u64,
    /// The bytes of the files that were merged.
    pub input_bytes: u64,
    /// The number of files that were written.
    pub output_files: u64,
    /// The bytes of the files that were written.
    pub output_bytes: u64,
    /// How long the compaction took.
    pub time: Duration,
    /// Why the compaction failed, if it did. The writer then does it itself, and removes the files that this worker
    /// could not remove.
    pub error: Option<Error>,
}

impl CompactionWorker {
    /// Begins to beat as a worker for the database in `directory`.
    pub(crate) fn begin(machine: Machine, directory: PathBuf, options: Options) -> Result<Self> {
        options.check()?;
        machine.threads.start().map_err(|error| Error::NoThreads(error.to_string()))?;
        if !ManifestLog::exists(&machine, &directory)? {
            return Err(Error::NotADatabase(directory));
        }
        let machine = hold(&machine, &directory)?;
        let cache = new_cache(options.cache, options.open_files, &machine);
        Exchange { disk: &*machine.disk, database: &directory }.create()?;
        let id = new_id(&machine);
        let beats = Beats::begin(&machine, directory.clone(), id);
        Ok(Self { machine, directory, options, cache, id, beats, passed_over: HashSet::new() })
    }

    /// Does jobs until `watch` ends the work. It is called with each job that is done or has failed, and again and
    /// again with `None`, during jobs and while none is offered. Each time, it decides whether to go on.
    ///
    /// # Errors
    ///
    /// An error if the directory of the database cannot be read or written; [`Error::Forked`] in a forked child. A
    /// failed compaction is not an error.
    pub fn run<G: GoOn>(&mut self, mut watch: impl FnMut(Option<&CompactedJob>) -> G) -> Result<()> {
        let pause = Pauses::of(&self.machine).look;
        while watch(None).goes_on() {
            match self.step(&mut || watch(None).goes_on())? {
                Some(job) if watch(Some(&job)).goes_on() => {}
                Some(_) => return Ok(()),
                None => self.machine.clock.sleep(pause),
            }
        }
        Ok(())
    }

    /// Does one job that the writer offers and no other worker owns. Returns `None` if no such job exists.
    ///
    /// # Errors
    ///
    /// The errors of [`CompactionWorker::run`].
    pub fn work_once(&mut self) -> Result<Option<CompactedJob>> {
        self.step(&mut || true)
    }

    fn exchange(&self) -> Exchange<'_> {
        Exchange { disk: &*self.machine.disk, database: &self.directory }
    }

    fn step(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<CompactedJob>> {
        if !self.beats.are_here() {
            return Err(Error::Forked);
        }
        self.beats.go_on();
        let Exchanged { jobs, owners, .. } = self.exchange().look()?;
        self.passed_over.retain(|name| jobs.contains(name));
        let names: Vec<JobName> =
            jobs.difference(&owners).filter(|name| !self.passed_over.contains(name)).copied().collect();
        for name in names {
            if let Some(job) = self.own(name)? {
                return Ok(Some(self.do_owned(&job, goes_on)));
            }
        }
        Ok(None)
    }

    /// Tries to become the owner of a job, and returns it. `None` if another worker owns it, if it no longer
    /// exists, or if this release cannot do it.
    fn own(&mut self, name: JobName) -> Result<Option<OfferedJob>> {
        if self.read_job(name)?.is_none() {
            return Ok(None);
        }
        let path = self.exchange().owner(name);
        match self.machine.disk.create_with(&path, &self.id.to_le_bytes()) {
            Ok(()) => {}
            // If the file exists, another worker is the owner. If the directory is missing, it was removed because no
            // job and no beat was left in it.
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => return Ok(None),
            Err(error) => {
                // The owner file may exist in spite of the error, so this worker may be the owner without knowing it.
                self.machine.disk.remove(&path).ok();
                self.begin_anew();
                return Err(Error::io("create", &path, error));
            }
        }
        // The writer removes a job's file before its owner file. So if the job's file still exists now, no other
        // worker has done the job.
        let job = self.read_job(name)?;
        if job.is_none() {
            self.machine.disk.remove(&path).ok();
        }
        Ok(job)
    }

    /// Reads a job. `None` if its file is missing or incomplete, or if this release cannot do it.
    fn read_job(&mut self, name: JobName) -> Result<Option<OfferedJob>> {
        let path = self.exchange().job(name);
        let bytes = match self.machine.disk.read_all(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        match OfferedJob::decode(&bytes) {
            Ok(job) if job.name() == name => Ok(Some(job)),
            Ok(_) | Err(Unreadable::Newer(_)) => {
                self.passed_over.insert(name);
                Ok(None)
            }
            // The writer is still writing the file.
            Err(Unreadable::Corrupt(_)) => Ok(None),
        }
    }

    /// Takes a new number for this worker. The owner of jobs under the old number then counts as dead.
    fn begin_anew(&mut self) {
        self.id = new_id(&self.machine);
        self.beats = Beats::begin(&self.machine, self.directory.clone(), self.id);
        self.beats.go_on();
    }

    /// Does a job that this worker owns, and tells the writer the result.
    fn do_owned(&mut self, job: &OfferedJob, goes_on: &mut dyn FnMut() -> bool) -> CompactedJob {
        let begin = self.machine.clock.now();
        let mut done = CompactedJob {
            table: String::new(),
            input_files: job.inputs.len() as u64,
            input_bytes: 0,
            output_files: 0,
            output_bytes: 0,
            time: Duration::ZERO,
            error: None,
        };
        let outcome = self.merge(job, goes_on, &mut done);
        let told = match &outcome {
            Ok((result, _)) => self.tell(job, result),
            // The writer has taken the job back, or `watch` has ended the work, so no result is written.
            Err(error @ Error::Cancelled(_)) => Err(error.clone()),
            Err(error) => self.tell(job, &JobResult::Failed(error.to_string())),
        };
        if told.is_err() {
            self.begin_anew();
        }
        match (outcome, told) {
            // The writer may read the new files now, so they are not removed here.
            (Ok((_, mut new)), Ok(())) => drop(new.fresh.take_paths()),
            (Err(error), _) | (_, Err(error)) => done.error = Some(error),
        }
        done.time = self.machine.clock.now() - begin;
        done
    }

    fn tell(&self, job: &OfferedJob, result: &JobResult) -> Result<()> {
        let path = self.exchange().result(job.name());
        let told = self.machine.disk.create_with(&path, &result.encode(job));
        told.map_err(|error| {
            // The file may exist in part.
            self.machine.disk.remove(&path).ok();
            Error::io("create", &path, error)
        })
    }

    /// A file set with the inputs of `job`, and the opener of its files.
    fn files_for(&self, job: &OfferedJob) -> Result<(FileSet, FileOpener)> {
        let opener = opener(&self.machine, &self.directory, &self.options, self.cache.clone());
        let pauses = Pauses::of(&self.machine);
        let end = self.machine.clock.now() + pauses.dead;
        loop {
            let tail = ManifestTail::open(&self.machine, &self.directory, &opener)?;
            let is_theirs = (tail.files().database, tail.files().epoch) == (job.database, job.epoch);
            if is_theirs && tail.position() >= job.position {
                tail.files().check_codecs()?;
                return Ok((tail.into_files(), opener));
            }
            // A store may answer with an older state of the manifest, so the worker tries again for a while.
            if self.machine.clock.now() >= end {
                return Err(self.does_not_fit(job));
            }
            self.beats.go_on();
            self.machine.clock.sleep(pauses.look);
        }
    }

    /// The error for a job that names files which the database does not have.
    fn does_not_fit(&self, job: &OfferedJob) -> Error {
        let why = "the database does not have the files that it names".to_owned();
        Error::WorkerFailed { result: self.exchange().job(job.name()), why }
    }

    /// Merges the files of a job. The new files are durable, and are removed when the returned value is dropped.
    fn merge(
        &mut self,
        job: &OfferedJob,
        goes_on: &mut dyn FnMut() -> bool,
        done: &mut CompactedJob,
    ) -> Result<(JobResult, NewFiles)> {
        let compat =
            job.compat.parse().map_err(|_| Error::BadOptions(format!("compat {} is not known", job.compat)))?;
        let (mut files, opener) = self.files_for(job)?;
        files.next_number = job.numbers.start;
        let table = files.tables.get(&job.table).cloned().ok_or_else(|| self.does_not_fit(job))?;
        done.table.clone_from(&table.info.name);
        let is_there = |&(level, number): &(usize, u64)| table.levels[level].iter().any(|file| file.number == number);
        if !job.inputs.iter().all(is_there) {
            return Err(self.does_not_fit(job));
        }
        let options = Options { compat, read_only: true, ..self.options.clone() };
        let mut work = MergeWork::of(&table, (&job.inputs, job.to, job.reason), &options.levels);
        (work.bottom, work.file_bytes) = (job.bottom, job.file_bytes);
        done.input_bytes = work.bytes();
        let opener = opener.knowing(files.files_by_number());
        let core = show_files(self.machine.clone(), self.directory.clone(), options, opener, files);
        core.writes.end_numbers_at(job.numbers.end);
        let path = self.exchange().job(job.name());
        let (mut looked, pauses) = (self.machine.clock.now(), Pauses::of(&self.machine));
        let mut go_on = |_, _| {
            self.beats.go_on();
            let now = self.machine.clock.now();
            if now.saturating_sub(looked) >= pauses.beat {
                looked = now;
                return goes_on() && self.machine.disk.exists(&path).unwrap_or(true);
            }
            true
        };
        let merged = merge_work(&core, &table, &work, &job.boundaries, 0, &mut go_on)?;
        let MergeResult { outputs, taken_over } = merged.ok_or(Error::Cancelled(WORK))?;
        let new = outputs.finish(job.to as u8, 0)?;
        done.output_files = new.files.len() as u64;
        done.output_bytes = new.bytes();
        let files = new.files.iter().map(|file| (file.number, file.meta.clone())).collect();
        let taken_over = taken_over.iter().map(|file| file.number).collect();
        Ok((JobResult::Merged { files, taken_over }, new))
    }

    /// The directory of the database.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// A random number, which no other worker has.
fn new_id(machine: &Machine) -> u64 {
    machine.random.next_u64().max(NOBODY + 1)
}
