//! The worker: claims a compaction that the writer of a database offers, merges the files, and says what it wrote. It changes nothing
//! else of the database.

use super::beat::Beats;
use super::exchange::{Exchange, Exchanged, JobName, Pauses};
use super::job::OfferedJob;
use super::result::JobResult;
use crate::cancel::{Cancel, Limit};
use crate::compact::merge::MergeResult;
use crate::compact::work::MergeWork;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::files::output::NewFiles;
use crate::manifest::db_file::FileOpener;
use crate::manifest::{FileSet, ManifestLog, ManifestTail};
use crate::open::{opener, show_files};
use crate::options::Options;
use os::Machine;
use os::sync::Arc;
use pages::PageCache;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the work in errors.
const WORK: &str = "the worker";

/// A process that does compactions for the writer of a database, made by
/// [`Builder::compaction_worker`](crate::Builder::compaction_worker).
#[derive(Debug)]
pub struct CompactionWorker {
    machine: Machine,
    directory: PathBuf,
    options: Options,
    opener: FileOpener,
    id: u64,
    /// What was read of the manifest so far.
    tail: Option<ManifestTail>,
    /// Jobs that are not for this worker.
    passed_over: HashSet<JobName>,
    beats: Beats,
}

/// A compaction that a worker has done, or failed to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactedJob {
    /// The table.
    pub table: String,
    /// The files that were merged.
    pub input_files: u64,
    /// Their bytes.
    pub input_bytes: u64,
    /// The files that were written.
    pub output_files: u64,
    /// Their bytes.
    pub output_bytes: u64,
    /// How long it took.
    pub time: Duration,
    /// Why it failed, if it did. Then the writer does it, and no file is left.
    pub error: Option<Error>,
}

impl CompactionWorker {
    /// A worker for the database in `directory`.
    pub(crate) fn begin(machine: Machine, directory: PathBuf, options: Options) -> Result<Self> {
        options.check()?;
        machine.threads.start().map_err(|error| Error::NoThreads(error.to_string()))?;
        let cache = PageCache::new(options.cache_bytes, options.open_files, sst::validate);
        let opener = opener(&machine, &directory, &options, cache);
        if !ManifestLog::exists(&machine, &directory)? {
            return Err(Error::NotADatabase(directory));
        }
        let tail = ManifestTail::open(&machine, &directory, &opener)?;
        Exchange { disk: &*machine.disk, database: &directory }.create()?;
        let id = machine.random.next_u64();
        let beats = Beats::begin(&machine, directory.clone(), id);
        let passed_over = HashSet::new();
        Ok(Self { machine, directory, options, opener, id, tail: Some(tail), passed_over, beats })
    }

    /// Does jobs until it is cancelled, and calls `done` after each.
    ///
    /// # Errors
    ///
    /// The directory of the database cannot be read or written. A compaction that fails is no error here.
    pub fn run(&mut self, cancel: &Cancel, done: &mut dyn FnMut(&CompactedJob)) -> Result<()> {
        let limit = Limit::new(&self.machine.clock, cancel);
        let pause = Pauses::of(&self.machine).look;
        while !limit.is_over() {
            match self.step(&limit)? {
                Some(job) => done(&job),
                None => self.machine.clock.sleep(pause),
            }
        }
        Ok(())
    }

    /// Does one job, if the writer offers one that no other worker has claimed.
    ///
    /// # Errors
    ///
    /// As [`CompactionWorker::run`].
    pub fn work_once(&mut self) -> Result<Option<CompactedJob>> {
        self.step(&Limit::none(&self.machine.clock.clone()))
    }

    fn exchange(&self) -> Exchange<'_> {
        Exchange { disk: &*self.machine.disk, database: &self.directory }
    }

    fn step(&mut self, limit: &Limit) -> Result<Option<CompactedJob>> {
        self.beats.goes_on(false);
        self.beats.drive();
        let Exchanged { jobs, claims, .. } = self.exchange().look()?;
        self.passed_over.retain(|name| jobs.contains(name));
        for name in jobs.difference(&claims) {
            if self.passed_over.contains(name) {
                continue;
            }
            let Some(job) = self.read_job(*name)? else { continue };
            if self.claim(*name)? {
                self.beats.goes_on(true);
                let done = self.do_claimed(&job, limit);
                self.beats.goes_on(false);
                return Ok(Some(done));
            }
        }
        Ok(None)
    }

    /// The job of this name; `None` if it is gone, not whole, or not for this release.
    fn read_job(&mut self, name: JobName) -> Result<Option<OfferedJob>> {
        let path = self.exchange().job(name);
        let bytes = match self.machine.disk.read_all(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        match OfferedJob::decode(&bytes) {
            Ok(job) if job.name() == name => Ok(Some(job)),
            Ok(_) | Err(sst::format::features::Unreadable::Newer(_)) => {
                self.passed_over.insert(name);
                Ok(None)
            }
            // It is being written.
            Err(sst::format::features::Unreadable::Corrupt(_)) => Ok(None),
        }
    }

    /// Claims a job. False if another worker has claimed it.
    fn claim(&self, name: JobName) -> Result<bool> {
        let path = self.exchange().claim(name);
        match self.machine.disk.create_with(&path, &self.id.to_le_bytes()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            // The directory was removed, and so was the job.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("create", &path, error)),
        }
    }

    /// Does a job that this worker has claimed, and tells the writer.
    fn do_claimed(&mut self, job: &OfferedJob, limit: &Limit) -> CompactedJob {
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
        let outcome = self.merge(job, limit, &mut done);
        let result = match &outcome {
            Ok((result, _)) => Some(result.clone()),
            // The writer has taken the job back, or this worker ends, and so do its beats.
            Err(Error::Cancelled(_)) => None,
            Err(error) => Some(JobResult::Failed(error.to_string())),
        };
        let told = result.map_or(Ok(()), |result| self.tell(job, &result));
        match (outcome, told) {
            // The writer may read it from now on.
            (Ok((_, mut new)), Ok(())) => drop(new.fresh.take_paths()),
            (Err(error), _) | (_, Err(error)) => done.error = Some(error),
        }
        done.time = self.machine.clock.now() - begin;
        done
    }

    fn tell(&self, job: &OfferedJob, result: &JobResult) -> Result<()> {
        let path = self.exchange().result(job.name());
        let told = self.machine.disk.create_with(&path, &result.encode(job));
        told.map_err(|error| Error::io("create", &path, error))
    }

    /// The file set with the inputs of `job`, and with the numbers of its outputs.
    fn files_for(&mut self, job: &OfferedJob) -> Result<FileSet> {
        let known = self.tail.as_ref().map(|tail| tail.files().files_by_number()).unwrap_or_default();
        let opener = self.opener.knowing(known);
        // If it fails, the tail may be a part of a later file set.
        let mut tail = match self.tail.take() {
            Some(tail) => tail,
            None => ManifestTail::open(&self.machine, &self.directory, &opener)?,
        };
        while tail.position() < job.position && tail.look_again(&self.machine, &self.directory, &opener)? {}
        if tail.files().database != job.database || tail.files().epoch != job.epoch || tail.position() < job.position {
            // Another database may be in the directory by now.
            tail = ManifestTail::open(&self.machine, &self.directory, &opener)?;
        }
        let mut files = tail.files().clone();
        self.tail = Some(tail);
        if (files.database, files.epoch) != (job.database, job.epoch) {
            return Err(self.does_not_fit(job));
        }
        files.next_number = job.numbers.start;
        Ok(files)
    }

    /// The error about a job whose files are not there.
    fn does_not_fit(&self, job: &OfferedJob) -> Error {
        let why = "the database does not have the files that it names".to_owned();
        Error::WorkerFailed { result: self.exchange().job(job.name()), why }
    }

    /// Merges. The new files are durable, and are removed if they are dropped.
    fn merge(&mut self, job: &OfferedJob, limit: &Limit, done: &mut CompactedJob) -> Result<(JobResult, NewFiles)> {
        let compat =
            job.compat.parse().map_err(|_| Error::BadOptions(format!("compat {} is not known", job.compat)))?;
        let files = self.files_for(job)?;
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
        let core = self.core_of(files, options);
        core.writes.end_numbers_at(job.numbers.end);
        let below = table.levels[job.to + 1..].iter().find(|level| !level.is_empty()).cloned().unwrap_or_default();
        let path = self.exchange().job(job.name());
        let (mut looked, pauses) = (self.machine.clock.now(), Pauses::of(&self.machine));
        let mut go_on = |_, _| {
            self.beats.goes_on(true);
            self.beats.drive();
            let now = self.machine.clock.now();
            if now.saturating_sub(looked) >= pauses.beat {
                looked = now;
                return !limit.is_over() && self.machine.disk.exists(&path).unwrap_or(true);
            }
            true
        };
        let merged = work.merge(&core, below, &job.boundaries, &mut go_on)?;
        let MergeResult { outputs, taken_over } = merged.ok_or(Error::Cancelled(WORK))?;
        let new = outputs.finish(job.to as u8, 0)?;
        done.output_files = new.files.len() as u64;
        done.output_bytes = new.bytes();
        let files = new.files.iter().map(|file| (file.number, file.meta.clone())).collect();
        let taken_over = taken_over.iter().map(|file| file.number).collect();
        Ok((JobResult::Merged { files, taken_over }, new))
    }

    fn core_of(&self, files: FileSet, options: Options) -> Arc<Core> {
        let known = self.opener.knowing(files.files_by_number());
        show_files(self.machine.clone(), self.directory.clone(), options, known, files)
    }

    /// The directory of the database.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}
