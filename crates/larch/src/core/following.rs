//! What a follower knows of the database that it follows. It does not know what is done with it.

use super::log_tail::LogTail;
use crate::base::error::Result;
use crate::manifest::directory::lease::Lease;
use crate::manifest::directory::position::Position;
use crate::manifest::{FileSet, ManifestTail};
use os::sync::{Arc, Mutex, Weak};
use std::collections::VecDeque;

/// The state of one database that is open as a follower.
#[derive(Debug)]
pub struct Following {
    /// Keeps all files that are shown. It exists where leases are used and this process can make one.
    lease: Option<Lease>,
    /// Whether the logs are followed.
    pub with_log: bool,
    /// What was read so far.
    pub state: Mutex<State>,
    /// Held while files are replaced: one thread at a time loads pages of new files and shows them.
    pub switching: Mutex<()>,
}

/// What was read so far.
#[derive(Debug)]
pub struct State {
    /// The manifest.
    pub manifest: ManifestTail,
    /// The logs. `None` if they are not followed, or if they have to be opened again.
    pub log: Option<LogTail>,
    /// The file set that readers see.
    pub shown: ShownFiles,
    /// A newer file set, which is to be shown.
    pub next: Option<ShownFiles>,
    /// Whether reading has failed, so that all is to be opened again.
    pub is_broken: bool,
    /// The file sets that some reader may still use, from the oldest on.
    in_use: VecDeque<(Position, Weak<FileSet>)>,
}

/// A file set, and the place in the manifest to which the file set belongs.
#[derive(Clone, Debug)]
pub struct ShownFiles {
    pub position: Position,
    pub files: Arc<FileSet>,
}

impl Following {
    /// Follows from `files` on, which `manifest` has.
    pub fn new(lease: Option<Lease>, with_log: bool, manifest: ManifestTail, files: Arc<FileSet>) -> Self {
        let shown = ShownFiles { position: manifest.position(), files };
        let in_use = VecDeque::from([(shown.position, Arc::downgrade(&shown.files))]);
        let state = Mutex::new(State { manifest, log: None, shown, next: None, is_broken: false, in_use });
        Self { lease, with_log, state, switching: Mutex::default() }
    }

    /// Whether a lease keeps what is shown.
    pub fn has_lease(&self) -> bool {
        self.lease.is_some()
    }

    /// Lets the writer remove the files that no reader of `state` uses any more.
    ///
    /// # Errors
    ///
    /// The lease cannot be written. Then the writer keeps more files.
    pub fn renew_lease(&self, state: &mut State) -> Result<()> {
        // The newest of these file sets is `shown` or `next`, so at least one stays.
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
    /// Takes the file set of the manifest as the next one to show.
    pub fn prepare_next(&mut self) -> ShownFiles {
        let next = ShownFiles { position: self.manifest.position(), files: Arc::new(self.manifest.files().clone()) };
        self.in_use.retain(|(_, files)| files.strong_count() > 0);
        self.in_use.push_back((next.position, Arc::downgrade(&next.files)));
        self.next = Some(next.clone());
        next
    }

    /// Whether the next file set has tables that the shown file set has not. Commits that come after the next file
    /// set may be on these tables.
    pub fn has_new_tables(&self) -> bool {
        self.next.as_ref().is_some_and(|next| next.files.next_table != self.shown.files.next_table)
    }
}
