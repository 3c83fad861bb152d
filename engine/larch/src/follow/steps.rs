//! The steps of a follower: look at what the writer has done, and show it. This module does not know when the steps
//! are called.
//!
//! Invariants:
//! - Each shown version has every commit up to this version, and no commit after it. The shown version only grows,
//!   even after errors. If the file set and the logs have to be opened again after an error, the old ones stay
//!   visible until the new ones have every commit that was shown before.
//! - The follower reads a commit from its log before it looks at the manifest. So when it applies the commit, it
//!   knows every change of tables before the commit. The commit waits until these changes are shown.
//! - A file set is shown together with all commits in the logs that came before its last change. The follower finds
//!   all of them, because they were in the logs before the change was in the manifest.
//! - The lease names the oldest file set that is in use or will be shown next, or an even older one.

use super::replaced;
use crate::base::error::Result;
use crate::base::event::Event;
use crate::base::options::Follow;
use crate::base::record::LogError;
use crate::core::Core;
use crate::core::followed_writer::{FollowedWriter, ShownFiles, State};
use crate::core::log_tail::{Linked, LogTail, is_gone};
use crate::core::views::Filled;
use crate::core::writer::log_path;
use crate::log::oldest_is_missing;
use crate::manifest::ManifestTail;
use crate::manifest::directory::lease::{Lease, NewestLog, newest_log};
use crate::manifest::directory::listing::log_numbers;
use crate::view::View;
use sst::Version;

/// Attempts to open the logs. One fails only if the writer has written the rows of a log to files meanwhile.
const ATTEMPTS: u32 = 20;

/// The most looks of [`Core::catch_up`]. The first one finds all that the writer did before the call, the others what
/// it has done since then.
const LOOKS: u32 = 8;

/// The result of a look.
#[derive(Debug)]
pub struct Seen {
    /// Whether readers see more commits after the look than before it.
    pub has_more: bool,
    /// Whether a file set waits to be shown.
    pub has_files: bool,
}

/// How the follower finds new logs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Find {
    /// The writer has told the follower which log gets commits now.
    Told,
    /// The follower lists the logs in the directory, and so finds all of them without being told.
    Listed,
}

impl Core {
    /// Begins to follow the database that was opened from `manifest`, whose files are already shown. `lease` must
    /// have been made before the manifest was read.
    ///
    /// # Errors
    ///
    /// Fails if the logs cannot be read.
    pub fn begin_to_follow(&self, follow: Follow, lease: Option<Lease>, manifest: ManifestTail) -> Result<()> {
        let with_log = follow == Follow::Commits;
        let followed = FollowedWriter::new(lease, with_log, manifest, self.views.newest().files.clone());
        self.followed.set(followed).expect("a database begins to follow once");
        self.catch_up().map(drop)
    }

    /// Reads and shows what the writer has written so far. Returns the newest version that reads then see. If the
    /// database is not a follower, only returns this version.
    ///
    /// # Errors
    ///
    /// Fails if the manifest or a log cannot be read. Reads then keep seeing what was shown before.
    pub fn catch_up(&self) -> Result<Version> {
        self.env.check_origin()?;
        if let Some(followed) = self.followed.get() {
            for _ in 0..LOOKS {
                if !self.look(followed, Find::Listed)?.has_files {
                    break;
                }
                self.show_next_files(followed)?;
            }
        }
        Ok(self.views.now().1)
    }

    /// Looks at what the writer has done, and shows its commits. [`Core::show_next_files`] shows new files later.
    ///
    /// # Errors
    ///
    /// Fails if the manifest or a log cannot be read. The next look then opens the manifest and the logs again.
    pub fn look_at_writer(&self, followed: &FollowedWriter) -> Result<Seen> {
        self.look(followed, Find::Told)
    }

    fn look(&self, followed: &FollowedWriter, find: Find) -> Result<Seen> {
        let mut state = followed.state.lock();
        let before = self.views.now().1;
        let mut outcome = self.look_in(followed, &mut state, find);
        if outcome.is_err() && !state.is_broken {
            // The writer may have shortened or removed a file meanwhile, which is not damage. So open everything
            // again, but only once.
            state.is_broken = true;
            outcome = self.look_in(followed, &mut state, find);
        }
        state.is_broken |= outcome.is_err();
        outcome?;
        // If the lease cannot be written, the writer keeps more files than necessary, and the next look tries again.
        followed.renew_lease(&mut state).ok();
        Ok(Seen { has_more: self.views.now().1 > before, has_files: state.next.is_some() })
    }

    fn look_in(&self, followed: &FollowedWriter, state: &mut State, find: Find) -> Result<()> {
        if state.is_broken {
            let opener = self.env.opener.knowing(state.manifest.files().files_by_number());
            state.manifest = ManifestTail::open(&self.env.machine, &self.env.directory, &opener)?;
            state.log = None;
            state.prepare_next();
            state.is_broken = false;
        }
        if !followed.with_log && !self.writers_tell() {
            // In a store, the disk sees newer files only after a listing.
            log_numbers(&self.env.machine, &self.env.directory)?;
        }
        if followed.with_log && (state.log.is_none() || self.look_at_logs(state, find)? == Linked::Gap) {
            self.open_logs(state)?;
        }
        if state.manifest.look_again(&self.env.machine, &self.env.directory, &self.env.opener)? {
            state.prepare_next();
        }
        if state.has_new_tables() {
            // The next commits may write to a table that is not shown yet.
            return Ok(());
        }
        self.show_commits(state)
    }

    /// Whether the writer and its followers exchange small files. In a store they do not.
    fn writers_tell(&self) -> bool {
        self.env.machine.disk.keeps_removed().is_none()
    }

    /// Whether the writer tells this follower about new logs, which the follower asks for by writing a file. A
    /// follower that could not make a lease does not ask, because nobody would remove this file; it lists the logs
    /// at each look instead.
    fn is_told(&self) -> bool {
        self.writers_tell() && self.followed.get().is_some_and(FollowedWriter::has_lease)
    }

    /// Looks for new logs, and for new commits in the logs.
    fn look_at_logs(&self, state: &mut State, find: Find) -> Result<Linked> {
        let (disk, directory) = (&*self.env.machine.disk, &self.env.directory);
        let Some(log) = &mut state.log else { return Ok(Linked::Yes) };
        let is_told = find == Find::Told
            && self.is_told()
            && match newest_log(disk, directory)? {
                NewestLog::AskedNow => false,
                NewestLog::Is(number) => log.link(disk, directory, number)? == Linked::Yes,
                NewestLog::NotSaid => true,
            };
        let linked = match is_told {
            true => Linked::Yes,
            false => log.link_newest(disk, directory, &log_numbers(&self.env.machine, directory)?)?,
        };
        if linked == Linked::Yes {
            log.look_again()?;
        }
        Ok(linked)
    }

    /// Shows new commits, up to the first one that has to wait for files.
    fn show_commits(&self, state: &mut State) -> Result<()> {
        let (files, may_skip) = (state.shown.files.clone(), state.next.is_none());
        let known = files.last_version;
        let Some(log) = &mut state.log else { return Ok(()) };
        let version = log.apply(Version::MAX, known, may_skip)?.max(known);
        // A log that has begun since the last look has a new memory set, so take the memory sets of all logs again.
        let rules = self.views.newest().rules.clone();
        let view = View { memory: log.memory(), files, generation: self.views.generation(), rules };
        self.views.renew(Filled { view, version }).map_err(|behind| self.fell_behind(behind))
    }

    /// Opens the logs whose rows are not in files, and shows their commits with the newest files.
    fn open_logs(&self, state: &mut State) -> Result<()> {
        let (machine, directory) = (&self.env.machine, &self.env.directory);
        if self.is_told() {
            // From now on the writer tells about new logs. The listing below finds those that began before.
            newest_log(&*machine.disk, directory)?;
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            let numbers = log_numbers(machine, directory)?;
            let oldest = state.manifest.files().oldest_log;
            let opened = LogTail::open(&*machine.disk, directory, (&numbers, oldest), &self.env.held.rows);
            let is_changed = state.manifest.look_again(machine, directory, &self.env.opener)?;
            let opened = opened.and_then(|log| log.ok_or_else(|| oldest_is_missing(&log_path(directory, oldest))));
            match opened {
                Ok(log) => state.log = Some(log),
                // Not damage: the rows of the log are in files now, or the log was removed before it had begun. Try
                // again.
                Err(error) if (is_changed || is_gone(&error)) && attempts < ATTEMPTS => continue,
                Err(error) => return Err(error.into()),
            }
            let next = state.prepare_next();
            // Now the logs have all commits before the last change of the files.
            if self.look_at_logs(state, Find::Listed)? == Linked::Yes && next.files.oldest_log == oldest {
                return self.show(state, &next);
            }
            if attempts >= ATTEMPTS {
                let newest = log_path(directory, numbers.last().copied().unwrap_or(oldest));
                let why = format!("it does not continue log {oldest}, which is the oldest that the manifest needs");
                return Err(LogError::corrupt(&newest, 0, why).into());
            }
        }
    }

    /// Loads pages of the files to be shown next, and then shows the files.
    ///
    /// # Errors
    ///
    /// Fails if a log cannot be read.
    pub fn show_next_files(&self, followed: &FollowedWriter) -> Result<()> {
        let turn = followed.switching.lock();
        let begin = self.env.machine.clock.now();
        let (shown, next) = {
            let state = followed.state.lock();
            let Some(next) = state.next.clone() else { return Ok(()) };
            (state.shown.files.clone(), next)
        };
        // Meanwhile, commits are shown with the old files.
        let rest = match self.env.options.follow_preloads {
            true => replaced::load(self, &shown, &next.files),
            false => Vec::new(),
        };
        drop(shown);
        let mut state = followed.state.lock();
        let is_newer = state.shown.position < next.position;
        if is_newer {
            let outcome = self.show_if_linked(followed, &mut state, &next);
            state.is_broken |= outcome.is_err();
            outcome?;
            followed.renew_lease(&mut state).ok();
        } else {
            // Readers already see this file set or a newer one.
            state.next.take_if(|waiting| waiting.position <= next.position);
        }
        drop((state, turn));
        if !is_newer {
            return Ok(());
        }
        rest.into_iter().for_each(|rest| rest.load(self));
        let time = self.env.machine.clock.now() - begin;
        self.env.report(|| Event::FilesShown { version: self.views.now().1, time });
        Ok(())
    }

    fn show_if_linked(&self, followed: &FollowedWriter, state: &mut State, next: &ShownFiles) -> Result<()> {
        if followed.with_log && state.log.is_none() {
            return self.open_logs(state);
        }
        match self.look_at_logs(state, Find::Listed)? {
            Linked::Yes => self.show(state, next),
            Linked::Gap => self.open_logs(state),
        }
    }

    /// Shows the file set `next`, with all commits in the logs that came before its last change.
    fn show(&self, state: &mut State, next: &ShownFiles) -> Result<()> {
        let files = &next.files;
        let mut filled = Filled {
            view: View { files: files.clone(), ..View::clone(&self.views.newest()) },
            version: files.flushed_version,
        };
        if let Some(log) = &mut state.log {
            if !log.forget_before(files.oldest_log) {
                state.log = None;
                return self.open_logs(state);
            }
            // Apply commits before the files are shown. Readers do not see them yet, because the visible version is
            // still the old one. If the logs were opened again, they must have every commit that readers have seen;
            // a change of tables is in no log, but if readers have seen it, the manifest has it.
            let most = files.last_version.max(self.views.visible());
            filled.version = log.apply(most, files.last_version, true)?.max(files.last_version);
            filled.view.memory = log.memory();
        }
        self.views.renew(filled).map_err(|behind| self.fell_behind(behind))?;
        self.indexes.renew(files, &self.env.options.extractors);
        state.shown = next.clone();
        state.next.take_if(|waiting| waiting.position <= next.position);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
