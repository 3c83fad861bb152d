//! A database at a URL, as the engine opens it. This module does not know how requests are sent to a store.

use crate::{Patience, Place, RemoteStore};
use larch::machine::Machine;
use larch::{Builder, Database};
use objects::{BranchInfo, BranchReport, DropReport, Local, Outside, StoreDisk, TierOptions, TieredStore};
use os::io::StoreReads;
use os::sync::Arc;
use os::{DirectoryEntry, Store};
use std::env;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How many reads may be under way. At 5 ms each, 256 reads make 50,000 per second.
const DEPTH: usize = 256;

/// The default limit for the blocks that are kept on this machine, in bytes.
const TIER_BYTES: u64 = 4 << 30;

/// What is also kept on this machine.
#[derive(Clone, Debug, Default)]
pub struct Near {
    /// A directory for logs, with a subdirectory per database. With it, a synced commit is on this machine at once,
    /// and in the store about two puts later. A machine that takes over then may lack the last commits, but has a
    /// prefix of all commits. Without it, a synced commit is in the store at once.
    pub logs: Option<PathBuf>,
    /// A directory for blocks that were read from the store, with a subdirectory per database, and the most bytes
    /// that the blocks of each database may take.
    pub tier: Option<(PathBuf, u64)>,
    /// A directory for temporary data of this process: sorted runs of imports and of new indexes, and large
    /// transactions. `None` for the system's directory for temporary files.
    pub scratch: Option<PathBuf>,
}

impl Near {
    /// The settings of the environment: `LARCH_LOGS` is a directory for logs, `LARCH_TIER` one for blocks, which
    /// take at most `LARCH_TIER_BYTES` (4 GiB by default), and `LARCH_SCRATCH` one for temporary files.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the value of `LARCH_TIER_BYTES` is not a number.
    pub fn of_environment() -> io::Result<Self> {
        let bytes = match env::var("LARCH_TIER_BYTES") {
            Ok(bytes) => bytes.parse().map_err(|_| {
                let why = format!("LARCH_TIER_BYTES={bytes} is no number of bytes");
                io::Error::new(io::ErrorKind::InvalidInput, why)
            })?,
            Err(_) => TIER_BYTES,
        };
        Ok(Self {
            logs: env::var_os("LARCH_LOGS").map(Into::into),
            tier: env::var_os("LARCH_TIER").map(|directory| (directory.into(), bytes)),
            scratch: env::var_os("LARCH_SCRATCH").map(Into::into),
        })
    }
}

/// The location of a database that exists or is to be made.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The store, which counts the requests that it gets.
    pub store: Arc<RemoteStore>,
    /// The tier with blocks on this machine, if any.
    pub tier: Option<Arc<TieredStore>>,
    /// A machine whose disk is in the store.
    pub machine: Machine,
    directory: PathBuf,
}

/// A file name for a place. It is unique, even among a database and its branches.
fn name_of(place: &Place) -> String {
    let text = format!("{}/{}", place.bucket, place.prefix);
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

impl Connection {
    /// Connects to what a URL names: `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory`.
    ///
    /// # Errors
    ///
    /// As [`RemoteStore::of_url`], and an error of the system if a directory of `near` cannot be used. Whether the
    /// store can be reached is only found out by the first request.
    pub fn of_url(url: &str, near: &Near) -> io::Result<Connection> {
        Connection::new(RemoteStore::of_url(url)?, Path::new(url), near)
    }

    /// Connects to a place.
    ///
    /// # Errors
    ///
    /// An error of the system if it has no threads for the event loop, or if a directory of `near` cannot be used.
    pub fn of_place(place: Place, patience: Patience, near: &Near) -> io::Result<Connection> {
        let directory = PathBuf::from("/").join(place.prefix.as_ref());
        Connection::new(RemoteStore::new(place, patience)?, &directory, near)
    }

    fn new(store: RemoteStore, directory: &Path, near: &Near) -> io::Result<Connection> {
        let (store, real) = (Arc::new(store), Machine::real());
        let outside = outside(&real);
        let own = name_of(store.place());
        let tier = match &near.tier {
            Some((directory, budget_bytes)) => {
                let options = TierOptions {
                    disk: real.disk.clone(),
                    reads: real.reads.clone(),
                    threads: real.threads.clone(),
                    budget_bytes: *budget_bytes,
                };
                Some(Arc::new(TieredStore::open(store.clone(), &directory.join(&own), options)?))
            }
            None => None,
        };
        let objects: Arc<dyn Store> = tier.clone().map_or(store.clone() as Arc<dyn Store>, |tier| tier);
        let local = Local {
            disk: real.disk.clone(),
            logs: near.logs.as_ref().map(|logs| logs.join(&own)),
            scratch: Some(near.scratch.clone().unwrap_or_else(env::temp_dir)),
        };
        let disk = StoreDisk::with_local(objects, directory, outside, local);
        let reads = Arc::new(StoreReads::new(DEPTH, real.reads.clone(), real.clock.clone()));
        Ok(Connection { store, tier, machine: Machine { disk, reads, ..real }, directory: directory.to_owned() })
    }

    /// A builder of the database. Opening it for writing takes over from the process that writes to it.
    pub fn builder(&self) -> Builder {
        Database::builder(&self.directory).machine(self.machine.clone()).reserve_bytes(0)
    }

    /// Makes a database at the place `to` that shares the files of this one. It has all commits that were durable
    /// in the store when the call began. Afterwards, both databases can be written to. Only the manifest and the
    /// logs are copied. Neither database needs to be open, and a process that writes to this one can go on. If this
    /// database is open here, sync it first, so that its commits are in the branch.
    ///
    /// # Errors
    ///
    /// `NotFound` if no database is here; `AlreadyExists` if a database is at `to`; `InvalidInput` if `to` is in
    /// another bucket or is this place; other errors of the store. If the call ends before the branch exists, this
    /// database keeps all its files for an hour.
    pub fn branch(&self, to: &Place) -> io::Result<BranchReport> {
        let from = self.store.place();
        if from.bucket != to.bucket {
            let why = format!("a branch lies in the bucket of its origin: {} is not {}", to.bucket, from.bucket);
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        let machine = Machine { reads: Machine::real().reads, ..self.machine.clone() };
        let ssts_of = |disk: &Arc<StoreDisk>| {
            let machine = Machine { disk: disk.clone(), ..machine.clone() };
            let seen = Database::builder(&self.directory).machine(machine).read_only(true).open();
            let files = seen.map_err(io::Error::other)?.sst_files().into_iter();
            Ok(files.map(|(name, bytes)| DirectoryEntry { name, bytes }).collect())
        };
        let places = (from.prefix.as_ref(), to.prefix.as_ref());
        objects::branch(&self.objects(), &outside(&self.machine), places, &self.directory, &ssts_of)
            .map_err(|error| self.named(error))
    }

    /// The branches of this database that may still need its files.
    ///
    /// # Errors
    ///
    /// `NotFound` if no database was ever here; other errors of the store.
    pub fn branches(&self) -> io::Result<Vec<BranchInfo>> {
        let prefix = self.store.place().prefix.as_ref();
        objects::branches(&self.objects(), &outside(&self.machine), prefix).map_err(|error| self.named(error))
    }

    /// Removes this database with all its files. A process that is still writing to it gets an error at its next
    /// write.
    ///
    /// # Errors
    ///
    /// `NotFound` if no database was ever here; `DirectoryNotEmpty` if branches need files of this database; other
    /// errors of the store. A removal that fails halfway is continued by the next call.
    pub fn drop_database(&self) -> io::Result<DropReport> {
        let prefix = self.store.place().prefix.as_ref();
        objects::drop_database(&self.objects(), &outside(&self.machine), prefix).map_err(|error| self.named(error))
    }

    /// All objects of the bucket, under names that begin with `/`.
    fn objects(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Adds the bucket to the text of an error, which otherwise names only a prefix within the bucket.
    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("in {}: {error}", self.store.place().bucket))
    }
}

/// What a journal needs from a machine.
fn outside(machine: &Machine) -> Outside {
    Outside {
        clock: machine.clock.clone(),
        random: machine.random.clone(),
        threads: machine.threads.clone(),
        who: who(),
    }
}

/// The name of this process, for people who want to know who writes.
fn who() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).map(str::to_owned);
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "an unknown machine".to_owned());
    format!("process {} on {host}", std::process::id())
}
