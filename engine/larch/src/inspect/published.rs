//! The metrics of a writer, in a file that other processes read: `metrics/writer` in the directory of the database.
//! This module does not know what is counted.
//!
//! ```text
//! process 4242\n          the writer's process
//! json 5312\n             the bytes of the metrics as JSON
//! prometheus 9120\n       the bytes of the metrics in the format of Prometheus
//! checksum a84af4cb\n     CRC-32C of the three lines above and of both texts
//! {…}\n# HELP …\n         both texts; bytes after them belong to an older, longer state
//! ```
//!
//! As long as the writer has the database open, it holds a lock on the file, which the system releases when the
//! process ends. So a reader that gets the lock has found the file of a dead writer, and removes it. The writer
//! rewrites the file in place, so that the lock stays on it. A reader that meets a half-written state sees this by the
//! checksum, and reads again.

use super::metrics::Metrics;
use crate::base::error::{Error, Result, is_write_refused};
use crate::core::Core;
use crate::manifest::directory::names::METRICS;
use os::process::ProcessOrigin;
use os::sync::{Arc, Mutex, Weak};
use os::{Access, Disk, File, Job, Lock, Machine, Polled};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

/// The name of the file in the directory [`METRICS`].
const WRITER: &str = "writer";

/// How often the writer looks whether its metrics have changed. A process that writes for a shorter time publishes
/// nothing.
pub const PERIOD: Duration = Duration::from_secs(1);

/// How often a reader reads a state that is being written.
const ATTEMPTS: u32 = 100;

/// The metrics of the process that writes to a database, as [`Builder::writer_metrics`](crate::Builder::writer_metrics)
/// reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterMetrics {
    /// The number that the operating system has given to the writer's process.
    pub process: u32,
    /// The metrics as [`Metrics::to_json`] makes them.
    pub json: String,
    /// The metrics as [`Metrics::to_prometheus`] makes them.
    pub prometheus: String,
}

impl WriterMetrics {
    fn to_bytes(&self) -> Vec<u8> {
        let Self { process, json, prometheus } = self;
        let head = format!("process {process}\njson {}\nprometheus {}\n", json.len(), prometheus.len());
        let sum = checksum(&head, json, prometheus);
        format!("{head}checksum {sum:08x}\n{json}{prometheus}").into_bytes()
    }

    /// Decodes a state; `None` if it is incomplete, for example because the writer is just writing it.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut rest = text;
        let mut field = |name: &str| {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            line.strip_prefix(name)?.strip_prefix(' ')
        };
        let process = field("process")?.parse().ok()?;
        let (json, prometheus): (usize, usize) = (field("json")?.parse().ok()?, field("prometheus")?.parse().ok()?);
        let sum = u32::from_str_radix(field("checksum")?, 16).ok()?;
        let (json, rest) = rest.split_at_checked(json)?;
        let (prometheus, _) = rest.split_at_checked(prometheus)?;
        let head = format!("process {process}\njson {}\nprometheus {}\n", json.len(), prometheus.len());
        (sum == checksum(&head, json, prometheus)).then_some(())?;
        Some(Self { process, json: json.to_owned(), prometheus: prometheus.to_owned() })
    }

    /// Reads what the writer of the database in `directory` has published. Returns `None` if no living process has
    /// published its metrics, and then removes the file of a dead one.
    ///
    /// # Errors
    ///
    /// An error if the file cannot be read.
    pub(crate) fn read(disk: &dyn Disk, directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(METRICS).join(WRITER);
        for _ in 0..ATTEMPTS {
            let bytes = match disk.read_all(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                read => read.map_err(|error| Error::io("read", &path, error))?,
            };
            match disk.lock(&path) {
                Ok(lock) => {
                    remove(disk, &path);
                    drop(lock);
                    return Ok(None);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The writer has just closed the database, or this process may not lock files here. In the second
                // case, it cannot know whether the writer lives.
                Err(error) if error.kind() == ErrorKind::NotFound || is_write_refused(&error) => return Ok(None),
                Err(error) => return Err(Error::io("lock", &path, error)),
            }
            // The lock was held after the state was read, so its writer lived. A state without text is that of a
            // writer that has just made the file.
            if let Some(found) = Self::from_bytes(&bytes) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

fn checksum(head: &str, json: &str, prometheus: &str) -> u32 {
    crc_fast::crc32_iscsi([head, json, prometheus].concat().as_bytes())
}

/// Removes the file and its directory. Called under the lock of the file.
fn remove(disk: &dyn Disk, path: &Path) {
    // If this fails, the next writer takes the file over, or the next reader removes it.
    disk.remove(path).ok();
    disk.remove_dir(path.parent().unwrap_or(Path::new(""))).ok();
}

/// Publishes the metrics of a database once a second, if they have changed.
#[derive(Debug)]
pub struct PublishJob {
    core: Weak<Core>,
    place: Mutex<Option<Place>>,
}

/// The file of a writer. It is removed when this value is dropped.
#[derive(Debug)]
struct Place {
    disk: Arc<dyn Disk>,
    origin: ProcessOrigin,
    path: PathBuf,
    file: Arc<dyn File>,
    #[expect(dead_code, reason = "it tells others that the writer lives, until it is dropped")]
    lock: Box<dyn Lock>,
    written: Vec<u8>,
}

impl PublishJob {
    /// The job of the database `core`.
    pub fn new(core: Weak<Core>) -> Self {
        Self { core, place: Mutex::default() }
    }

    /// Writes the metrics, if they have changed. An error is ignored, because the next poll tries again, and nothing
    /// in the database depends on the file.
    fn publish(&self, core: &Core) -> std::io::Result<()> {
        let metrics = Metrics::of(core);
        let state =
            WriterMetrics { process: std::process::id(), json: metrics.to_json(), prometheus: metrics.to_prometheus() };
        let bytes = state.to_bytes();
        let mut place = self.place.lock();
        let place = match &mut *place {
            Some(place) => place,
            none => none.insert(Place::new(&core.env.machine, &core.env.directory)?),
        };
        if place.written != bytes {
            // If the write fails, a part of the state may be in the file.
            place.written.clear();
            place.file.write_at(&bytes, 0)?;
            place.written = bytes;
        }
        Ok(())
    }
}

impl Job for PublishJob {
    fn poll(&self) -> Polled {
        if let Some(core) = self.core.upgrade() {
            self.publish(&core).ok();
            core.background.wake_publish_after(PERIOD);
        }
        Polled::Idle
    }
}

impl Place {
    fn new(machine: &Machine, directory: &Path) -> std::io::Result<Self> {
        let disk = machine.disk.clone();
        let path = directory.join(METRICS).join(WRITER);
        disk.create_dir(&directory.join(METRICS))?;
        let lock = disk.lock(&path)?;
        let file = disk.open(&path, Access::Write)?;
        Ok(Self { disk, origin: ProcessOrigin::here(), path, file, lock, written: Vec::new() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // In a forked child, the file is still that of the parent process.
        if self.origin.is_here() {
            remove(&*self.disk, &self.path);
        }
    }
}
