//! The directory `workers`, in which a writer and its workers exchange files. This module names, lists and removes
//! these files, and does not know what they contain.
//!
//! ```text
//! 3f2a00c41be7d905-0000000000000031.beat   worker, count
//! 00000052-9.job  .owner  .result          first number of its files, epoch of the writer
//! ```

use crate::base::error::{Error, Result};
use crate::manifest::directory::names::WORKERS;
use os::{Disk, Machine};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

const BEAT: &str = "beat";
const JOB: &str = "job";
const OWNER: &str = "owner";
const RESULT: &str = "result";

/// The number in the owner file of a job that no worker may do any more.
pub const NOBODY: u64 = 0;

/// The unique name of a job: the first number of its files, and the epoch of the writer that offers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName {
    pub first: u64,
    pub epoch: u64,
}

/// The files found in the directory, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// The workers, each with the count in its beat. For a moment, a worker may have two beats.
    pub beats: Vec<(u64, u64)>,
    pub jobs: BTreeSet<JobName>,
    pub owners: BTreeSet<JobName>,
    pub results: BTreeSet<JobName>,
}

/// How often the writer and the workers look at each other's files, and how long a silent worker counts as alive.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// The time between two looks at the directory while a job is offered or a worker waits for a job.
    pub look: Duration,
    /// The time between two beats of a worker.
    pub beat: Duration,
    /// A worker is dead if it has made no new beat for this long.
    pub dead: Duration,
}

impl Pauses {
    /// The pauses for a database on `machine`. In an object store, each look costs money, so the pauses are longer.
    pub fn of(machine: &Machine) -> Self {
        let millis = Duration::from_millis;
        match machine.disk.keeps_removed() {
            None => Self { look: millis(50), beat: millis(500), dead: millis(3000) },
            Some(_) => Self { look: millis(1000), beat: millis(2000), dead: millis(12_000) },
        }
    }
}

/// The directory `workers` of a database.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'d> {
    pub disk: &'d dyn Disk,
    /// The directory of the database.
    pub database: &'d Path,
}

impl Exchange<'_> {
    fn directory(&self) -> PathBuf {
        self.database.join(WORKERS)
    }

    /// Makes the directory `workers`.
    ///
    /// # Errors
    ///
    /// An error if the directory cannot be made.
    pub fn create(&self) -> Result<()> {
        let directory = self.directory();
        self.disk.create_dir(&directory).map_err(|error| Error::io("create directory", &directory, error))
    }

    /// Removes the directory `workers` if it is empty.
    pub fn remove_if_unused(&self) {
        self.disk.remove_dir(&self.directory()).ok();
    }

    /// Lists the files in the directory.
    ///
    /// # Errors
    ///
    /// An error if the directory cannot be listed.
    pub fn look(&self) -> Result<Exchanged> {
        let directory = self.directory();
        match self.disk.list(&directory) {
            Ok(entries) => Ok(Exchanged::of(entries.iter().map(|entry| entry.name.as_str()))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Exchanged::default()),
            Err(error) => Err(Error::io("list", &directory, error)),
        }
    }

    pub fn job(&self, name: JobName) -> PathBuf {
        self.directory().join(name.with(JOB))
    }

    pub fn owner(&self, name: JobName) -> PathBuf {
        self.directory().join(name.with(OWNER))
    }

    pub fn result(&self, name: JobName) -> PathBuf {
        self.directory().join(name.with(RESULT))
    }

    pub fn beat(&self, worker: u64, count: u64) -> PathBuf {
        self.directory().join(format!("{worker:016x}-{count:016}.{BEAT}"))
    }

    /// Makes sure that no worker takes this job from now on. Its owner file stays, to keep out late workers.
    pub fn close_job(&self, name: JobName) {
        // If a worker owns the job already, its owner file keeps out all others. If the owner file cannot be made,
        // a worker may still take the job, but then finds that the job file is missing.
        self.disk.create_with(&self.owner(name), &NOBODY.to_le_bytes()).ok();
        self.remove_in_order(&[self.job(name), self.result(name)]);
    }

    /// Removes the files of a job, the owner file last.
    pub fn remove_job(&self, name: JobName) {
        self.remove_in_order(&[self.job(name), self.result(name), self.owner(name)]);
    }

    /// Removes the files in order, up to the first that cannot be removed. A later look or the next open removes
    /// the rest.
    fn remove_in_order(&self, paths: &[PathBuf]) {
        let is_gone =
            |removed: io::Result<()>| removed.map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true);
        _ = paths.iter().all(|path| is_gone(self.disk.remove(path)));
    }

    /// Removes the files of all jobs but those of `epoch`.
    pub fn remove_jobs_before(&self, epoch: u64) {
        let found = self.look().unwrap_or_default();
        found.names().into_iter().filter(|name| name.epoch != epoch).for_each(|name| self.remove_job(name));
    }
}

impl JobName {
    fn with(self, ending: &str) -> String {
        format!("{:08}-{}.{ending}", self.first, self.epoch)
    }

    fn parse(stem: &str) -> Option<Self> {
        let (first, epoch) = stem.split_once('-')?;
        let name = Self { first: first.parse().ok()?, epoch: epoch.parse().ok()? };
        (name.with(JOB).strip_suffix(".job") == Some(stem)).then_some(name)
    }
}

impl Exchanged {
    /// All jobs that have a file.
    pub fn names(&self) -> BTreeSet<JobName> {
        [&self.jobs, &self.owners, &self.results].into_iter().flatten().copied().collect()
    }

    fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut all = Self::default();
        for (stem, ending) in names.filter_map(|name| name.rsplit_once('.')) {
            match ending {
                BEAT => all.beats.extend(parse_beat(stem)),
                JOB => all.jobs.extend(JobName::parse(stem)),
                OWNER => all.owners.extend(JobName::parse(stem)),
                RESULT => all.results.extend(JobName::parse(stem)),
                _ => {}
            }
        }
        all
    }
}

fn parse_beat(stem: &str) -> Option<(u64, u64)> {
    let (worker, count) = stem.split_once('-')?;
    Some((u64::from_str_radix(worker, 16).ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use os::sim::SimDisk;

    #[test]
    fn files_are_known_by_their_names_and_other_names_are_passed_over() {
        let disk = SimDisk::new(1);
        let exchange = Exchange { disk: &*disk, database: Path::new("db") };
        assert_eq!(exchange.look().expect("a missing directory has nothing"), Exchanged::default());
        exchange.create().expect("the disk works");
        let (old, new) = (JobName { first: 52, epoch: 9 }, JobName { first: 1_234_567_890, epoch: 10 });
        for path in [
            exchange.job(old),
            exchange.owner(old),
            exchange.job(new),
            exchange.result(new),
            exchange.beat(u64::MAX, 31),
            exchange.directory().join("52-9.job"),
            exchange.directory().join("README"),
        ] {
            disk.create_with(&path, b"").expect("the disk works");
        }
        assert_eq!(exchange.job(old), Path::new("db/workers/00000052-9.job"));
        let expected = Exchanged {
            beats: vec![(u64::MAX, 31)],
            jobs: [old, new].into(),
            owners: [old].into(),
            results: [new].into(),
        };
        assert_eq!(exchange.look().expect("the disk works"), expected);
        exchange.remove_jobs_before(10);
        assert_eq!(exchange.look().expect("the disk works").names(), [new].into());
        exchange.close_job(new);
        let found = exchange.look().expect("the disk works");
        assert_eq!((found.jobs, found.owners, found.results), (BTreeSet::new(), [new].into(), BTreeSet::new()));
    }
}
