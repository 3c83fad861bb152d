//! What a follower knows about the database that it follows. This module does not know what is done with this
//! knowledge.

use super::log_tail::LogTail;
use crate::base::error::Result;
use crate::manifest::directory::lease::Lease;
use crate::manifest::directory::position::Position;
use crate::manifest::{FileSet, ManifestTail};
use os::sync::{Arc, Mutex, Weak};
use std::collections::VecDeque;

/// The state of one follower.
#[derive(Debug)]
pub struct Following {
    /// The lease that keeps all files that the follower shows. The lease exists if leases are used and this process
    /// can make one.
    lease: Option<Lease>,
    /// Whether the follower also follows the logs.
    pub with_log: bool,
    /// What the follower has read so far.
    pub state: Mutex<State>,
    /// A thread holds this lock while it loads pages of new files and shows the files. So only one thread at a time
    /// does this.
    pub switching: Mutex<()>,
}

/// What the follower has read so far.
#[derive(Debug)]
pub struct State {
    /// The manifest of the followed database.
    pub manifest: ManifestTail,
    /// The logs of the followed database, or `None` if the follower does not follow the logs or has to open them
    /// again.
    pub log: Option<LogTail>,
    /// The file set that readers see.
    pub shown: ShownFiles,
    /// A newer file set, which will be shown next.
    pub next: Option<ShownFiles>,
    /// Whether a read of the manifest or the logs has failed. Then everything has to be opened again.
    pub is_broken: bool,
    /// The file sets that readers may still use, the oldest first.
    in_use: VecDeque<(Position, Weak<FileSet>)>,
}

/// A file set, and the position in the manifest that has led to this file set.
#[derive(Clone, Debug)]
pub struct ShownFiles {
    pub position: Position,
    pub files: Arc<FileSet>,
}

impl Following {
    /// Begins to follow. `files` is the file set that `manifest` has now.
    pub fn new(lease: Option<Lease>, with_log: bool, manifest: ManifestTail, files: Arc<FileSet>) -> Self {
        let shown = ShownFiles { position: manifest.position(), files };
        let in_use = VecDeque::from([(shown.position, Arc::downgrade(&shown.files))]);
        let state = Mutex::new(State { manifest, log: None, shown, next: None, is_broken: false, in_use });
        Self { lease, with_log, state, switching: Mutex::default() }
    }

    /// Whether the follower has a lease, which keeps the shown files.
    pub fn has_lease(&self) -> bool {
        self.lease.is_some()
    }

    /// Tells the writer that it may remove the files that no reader uses any more.
    ///
    /// # Errors
    ///
    /// Fails if the lease cannot be written. If writing fails, the writer keeps more files than necessary.
    pub fn renew_lease(&self, state: &mut State) -> Result<()> {
        // The newest file set in the queue is `shown` or `next`, so at least one file set stays in the queue.
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
    /// Makes the current file set of the manifest the next one to show.
    pub fn prepare_next(&mut self) -> ShownFiles {
        let next = ShownFiles { position: self.manifest.position(), files: Arc::new(self.manifest.files().clone()) };
        self.in_use.retain(|(_, files)| files.strong_count() > 0);
        self.in_use.push_back((next.position, Arc::downgrade(&next.files)));
        self.next = Some(next.clone());
        next
    }

    /// Whether the next file set has tables that the shown file set does not have. Commits that come after the next
    /// file set may write to these tables.
    pub fn has_new_tables(&self) -> bool {
        self.next.as_ref().is_some_and(|next| next.files.next_table != self.shown.files.next_table)
    }
}
