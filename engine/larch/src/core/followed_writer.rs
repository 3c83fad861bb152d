//! What a follower knows about the database that it follows. This module does not know what it is used for.

use super::log_tail::LogTail;
use crate::base::error::Result;
use crate::manifest::directory::lease::Lease;
use crate::manifest::directory::position::Position;
use crate::manifest::{FileSet, ManifestTail};
use os::sync::{Arc, Mutex, Weak};
use std::collections::VecDeque;

/// The state of one follower.
#[derive(Debug)]
pub struct FollowedWriter {
    /// The lease that makes the writer keep all files that the follower shows. `None` if leases are not used, or if
    /// this process could not make one.
    lease: Option<Lease>,
    /// Whether the follower also shows the commits in the logs, and not only files.
    pub with_log: bool,
    /// What the follower has read so far.
    pub state: Mutex<State>,
    /// Held while a thread loads pages of new files and then shows these files, so that only one thread does this.
    pub switching: Mutex<()>,
}

/// What the follower has read so far.
#[derive(Debug)]
pub struct State {
    /// Tails the writer's manifest.
    pub manifest: ManifestTail,
    /// Tails the writer's logs. `None` if the follower does not follow the logs or has to open them again.
    pub log: Option<LogTail>,
    /// The file set that readers see.
    pub shown: ShownFiles,
    /// A newer file set, which readers will see next.
    pub next: Option<ShownFiles>,
    /// Whether reading the manifest or the logs has failed, so that everything has to be opened again.
    pub is_broken: bool,
    /// The file sets that readers may still use and the one that will be shown next, oldest first.
    in_use: VecDeque<(Position, Weak<FileSet>)>,
}

/// A file set, and the position in the manifest at which it was current.
#[derive(Clone, Debug)]
pub struct ShownFiles {
    pub position: Position,
    pub files: Arc<FileSet>,
}

impl FollowedWriter {
    /// Begins to follow. `files` is the file set that `manifest` describes now, and readers see it first.
    pub fn new(lease: Option<Lease>, with_log: bool, manifest: ManifestTail, files: Arc<FileSet>) -> Self {
        let shown = ShownFiles { position: manifest.position(), files };
        let in_use = VecDeque::from([(shown.position, Arc::downgrade(&shown.files))]);
        let state = Mutex::new(State { manifest, log: None, shown, next: None, is_broken: false, in_use });
        Self { lease, with_log, state, switching: Mutex::default() }
    }

    /// Whether the follower has a lease, which keeps the files that it shows.
    pub fn has_lease(&self) -> bool {
        self.lease.is_some()
    }

    /// Tells the writer that it may remove files that no reader of this follower uses any more.
    ///
    /// # Errors
    ///
    /// Fails if the lease cannot be written. Then the writer keeps more files than necessary.
    pub fn renew_lease(&self, state: &mut State) -> Result<()> {
        // The last file set in the queue is `shown` or `next`, which is in use, so the queue never becomes empty.
        while state.in_use.front().is_some_and(|(_, files)| files.strong_count() == 0) {
            state.in_use.pop_front();
        }
        match (&self.lease, state.in_use.front()) {
            (Some(lease), Some((oldest, _))) => lease.say(*oldest),
            _ => Ok(()),
        }
    }
}

impl State {
    /// Makes the file set that the manifest describes now the next one to be shown.
    pub fn prepare_next(&mut self) -> ShownFiles {
        let next = ShownFiles { position: self.manifest.position(), files: Arc::new(self.manifest.files().clone()) };
        self.in_use.retain(|(_, files)| files.strong_count() > 0);
        self.in_use.push_back((next.position, Arc::downgrade(&next.files)));
        self.next = Some(next.clone());
        next
    }

    /// Whether the next file set has tables that the shown one lacks. Commits after the next file set may write to
    /// them.
    pub fn has_new_tables(&self) -> bool {
        let shown = &self.shown.files;
        // The next free id alone does not say so: the id of a table may be taken before the table is created.
        self.next.as_ref().is_some_and(|ShownFiles { files, .. }| {
            files.next_table != shown.next_table || files.tables.keys().any(|id| !shown.tables.contains_key(id))
        })
    }
}
