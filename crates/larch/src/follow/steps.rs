//! What a follower does: it looks at what the writer has done, and shows it. It does not know when it is called.
//!
//! Invariants:
//! - At a version, every commit up to it is shown, and no commit after it. The version only grows, also after
//!   errors: a file set and logs that were opened anew are shown only when they have every commit that was shown
//!   before. Until then the old ones are shown.
//! - A commit is read from its log before the manifest is looked at. So a change of tables that came before the commit
//!   is known when the commit is applied, and the commit waits until the change is shown.
//! - A file set is shown together with the commits in the logs that came before its last change. By then these
//!   commits are in the logs.
//! - The lease is not newer than any file set that a reader uses, or that is about to be shown.

use super::replaced;
use crate::base::error::Result;
use crate::base::event::Event;
use crate::base::options::Follow;
use crate::base::record::LogError;
use crate::core::Core;
use crate::core::following::{Following, ShownFiles, State};
use crate::core::log_tail::{Linked, LogTail, is_gone};
use crate::core::views::Filled;
use crate::core::writer::log_path;
use crate::log::oldest_is_missing;
use crate::manifest::ManifestTail;
use crate::manifest::directory::lease::{Lease, NewestLog, newest_log};
use crate::manifest::directory::listing::log_numbers;
use crate::view::View;
use sst::Version;

/// How often opening the logs is tried. Each try fails only if the writer has put a log into files meanwhile.
const ATTEMPTS: u32 = 20;

/// How often [`Core::catch_up`] looks. Each look after the first finds what the writer has done since the call.
const LOOKS: u32 = 8;

/// What a look has found.
#[derive(Debug)]
pub struct Seen {
    /// Whether readers see more than before.
    pub has_more: bool,
    /// Whether a file set is to be shown.
    pub has_files: bool,
}

/// How logs that have begun are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Find {
    /// The writer says which log takes commits now.
    Told,
    /// The logs are looked for in the directory. This finds all of them, whatever the writer says.
    Listed,
}

impl Core {
    /// Begins to follow the database that was opened from `manifest`, whose files are shown. `lease` was made before
    /// the manifest was read.
    ///
    /// # Errors
    ///
    /// The logs cannot be read.
    pub fn begin_to_follow(&self, follow: Follow, lease: Option<Lease>, manifest: ManifestTail) -> Result<()> {
        let with_log = follow == Follow::Commits;
        let following = Following::new(lease, with_log, manifest, self.views.newest().files.clone());
        self.following.set(following).expect("a database begins to follow once");
        self.catch_up().map(drop)
    }

    /// Reads what the writer has written by now, shows it, and returns the newest version that reads see. In a database
    /// that follows no other process, it only returns that version.
    ///
    /// # Errors
    ///
    /// The manifest or a log cannot be read. What was shown before is shown on.
    pub fn catch_up(&self) -> Result<Version> {
        self.env.check_origin()?;
        if let Some(following) = self.following.get() {
            for _ in 0..LOOKS {
                if !self.look(following, Find::Listed)?.has_files {
                    break;
                }
                self.show_next_files(following)?;
            }
        }
        Ok(self.views.now().1)
    }

    /// Takes notice of what the writer has done, and shows its commits. Files are shown by [`Core::show_next_files`].
    ///
    /// # Errors
    ///
    /// The manifest or a log cannot be read. The next look opens them again.
    pub fn look_at_writer(&self, following: &Following) -> Result<Seen> {
        self.look(following, Find::Told)
    }

    fn look(&self, following: &Following, find: Find) -> Result<Seen> {
        let mut state = following.state.lock();
        let before = self.views.now().1;
        let mut outcome = self.look_in(following, &mut state, find);
        if outcome.is_err() && !state.is_broken {
            // If a file was shortened or removed while it was read, this is no damage.
            state.is_broken = true;
            outcome = self.look_in(following, &mut state, find);
        }
        state.is_broken |= outcome.is_err();
        outcome?;
        // If it cannot be written, the writer keeps more files. The next look tries again.
        following.renew_lease(&mut state).ok();
        Ok(Seen { has_more: self.views.now().1 > before, has_files: state.next.is_some() })
    }

    fn look_in(&self, following: &Following, state: &mut State, find: Find) -> Result<()> {
        if state.is_broken {
            let opener = self.env.opener.knowing(state.manifest.files().files_by_number());
            state.manifest = ManifestTail::open(&self.env.machine, &self.env.directory, &opener)?;
            state.log = None;
            state.prepare_next();
            state.is_broken = false;
        }
        if !following.with_log && !self.writers_tell() {
            // On a store, this is what learns of the newest state.
            log_numbers(&self.env.machine, &self.env.directory)?;
        }
        if following.with_log && (state.log.is_none() || self.look_at_logs(state, find)? == Linked::Gap) {
            self.open_logs(state)?;
        }
        if state.manifest.look_again(&self.env.machine, &self.env.directory, &self.env.opener)? {
            state.prepare_next();
        }
        if state.has_new_tables() {
            // Commits may be on a table that is not shown yet.
            return Ok(());
        }
        self.show_commits(state)
    }

    /// Whether writer and followers exchange files beside the files of the database. On a store they do not.
    fn writers_tell(&self) -> bool {
        self.env.machine.disk.keeps_removed().is_none()
    }

    /// Whether the writer tells this follower of new logs. A follower that could not make a lease does not ask for
    /// this, because nobody would remove its file. Each time it looks for logs in the directory of the database.
    fn is_told(&self) -> bool {
        self.writers_tell() && self.following.get().is_some_and(Following::has_lease)
    }

    /// Takes notice of what was appended to the logs, and of new logs.
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

    /// Shows the commits that have come, up to one that has to wait for files.
    fn show_commits(&self, state: &mut State) -> Result<()> {
        let (files, may_skip) = (state.shown.files.clone(), state.next.is_none());
        let known = files.last_version;
        let Some(log) = &mut state.log else { return Ok(()) };
        let version = log.apply(Version::MAX, known, may_skip)?.max(known);
        // Logs that have begun since the last look have memory sets of their own.
        let view = View { memory: log.memory(), files, generation: self.views.generation() };
        self.views.renew(Filled { view, version }).map_err(|behind| self.fell_behind(behind))
    }

    /// Opens the logs whose rows are not in files, and shows them with the newest files.
    fn open_logs(&self, state: &mut State) -> Result<()> {
        let (machine, directory) = (&self.env.machine, &self.env.directory);
        if self.is_told() {
            // A log that begins from here on is either told or listed.
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
                // The rows of the logs are in files now, or a log had not begun and was removed.
                Err(error) if (is_changed || is_gone(&error)) && attempts < ATTEMPTS => continue,
                Err(error) => return Err(error.into()),
            }
            let next = state.prepare_next();
            // All commits that came before the last change of the files are in the logs by now.
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

    /// Loads pages of the files that are to be shown, and shows them.
    ///
    /// # Errors
    ///
    /// A log cannot be read.
    pub fn show_next_files(&self, following: &Following) -> Result<()> {
        let turn = following.switching.lock();
        let begin = self.env.machine.clock.now();
        let (shown, next) = {
            let state = following.state.lock();
            let Some(next) = state.next.clone() else { return Ok(()) };
            (state.shown.files.clone(), next)
        };
        // Meanwhile commits are shown with the old files.
        let rest = match self.env.options.follow_preloads {
            true => replaced::load(self, &shown, &next.files),
            false => Vec::new(),
        };
        drop(shown);
        let mut state = following.state.lock();
        let is_newer = state.shown.position < next.position;
        if is_newer {
            let outcome = self.show_if_linked(following, &mut state, &next);
            state.is_broken |= outcome.is_err();
            outcome?;
            following.renew_lease(&mut state).ok();
        } else {
            // It is shown already.
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

    fn show_if_linked(&self, following: &Following, state: &mut State, next: &ShownFiles) -> Result<()> {
        if following.with_log && state.log.is_none() {
            return self.open_logs(state);
        }
        match self.look_at_logs(state, Find::Listed)? {
            Linked::Yes => self.show(state, next),
            Linked::Gap => self.open_logs(state),
        }
    }

    /// Shows a file set, with the commits in the logs that came before its last change.
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
            // Readers do not see these commits before the files, because the visible version is still the old one.
            // If the logs were opened anew, they must have every commit that readers have seen. If such a commit was
            // a change of tables, it was in the manifest when it was shown.
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
