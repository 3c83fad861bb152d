//! Gives names to versions, so that compactions keep them, and takes names away. Decides how much of the past is kept,
//! and notes when versions were made. This module does not know what a version contains.

use super::define::is_new_name;
use crate::base::error::{Error, Result};
use crate::base::kept::{Kept, MAX_KEPT};
use crate::base::retention::{Retained, Retention};
use crate::core::Core;
use crate::core::snapshots::PinnedVersion;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::times::{Times, VersionTime};
use crate::manifest::{Edit, ManifestLog};
use sst::Version;
use std::time::Duration;

/// In an idle database, the past moves on in steps of this part of the time for which it is kept.
const STEPS: u32 = 16;

/// Gives `name` to the version of `pin`. When the call returns, name and version are durable.
///
/// # Errors
///
/// [`Error::BadKeptName`], [`Error::KeptAlready`], [`Error::TooManyKept`]; [`Error::BadOptions`] if `compat` names a
/// release that does not keep versions; [`Error::ReadOnly`] in a read-only database; the errors of [`Core::install`]
/// and of a sync.
pub fn keep(core: &Core, name: &str, pin: &PinnedVersion) -> Result<Kept> {
    if !is_new_name(name) {
        return Err(Error::BadKeptName(name.to_owned()));
    }
    check_writer(core)?;
    check_release(core)?;
    // After a crash, the name must not stand for a version that lacks commits.
    core.make_durable(pin.version())?;
    let new = Kept::new(name, pin.version(), micros_now(core));
    let edits = [Edit::Keep(new.clone())];
    let mut manifest = core.writes.manifest.lock();
    let files = core.views.newest().files.clone();
    if let Some(kept) = files.kept(name) {
        return Err(Error::KeptAlready { name: name.to_owned(), version: kept.version });
    }
    if files.all_kept().len() >= MAX_KEPT {
        return Err(Error::TooManyKept(MAX_KEPT));
    }
    let outcome = core.install_in(&mut manifest, &edits, FreshFiles::new(&core.env.opener.leftovers), |_| {});
    drop((manifest, files));
    core.clean_up_after(&edits);
    outcome.map(|()| new)
}

/// Takes `name` away from its version, which compactions drop from then on unless it has another name or a reader.
/// Returns the version; `None` if no version has this name.
///
/// # Errors
///
/// [`Error::ReadOnly`] in a read-only database; the errors of [`Core::install`].
pub fn forget(core: &Core, name: &str) -> Result<Option<Kept>> {
    check_writer(core)?;
    let edits = [Edit::Forget(name.to_owned())];
    let mut manifest = core.writes.manifest.lock();
    let Some(kept) = core.views.newest().files.kept(name).cloned() else { return Ok(None) };
    let mut install = || core.install_in(&mut manifest, &edits, FreshFiles::new(&core.env.opener.leftovers), |_| {});
    let outcome = match install() {
        // What the name keeps may be what fills the disk.
        Err(error) if error.is_disk_full() && core.writes.reserve.give_back() => install(),
        outcome => outcome,
    };
    drop(manifest);
    core.clean_up_after(&edits);
    outcome?;
    // A compaction may now drop what only readers of this version saw.
    core.background.wake_compact();
    Ok(Some(kept))
}

/// Keeps so much of the past from now on.
///
/// # Errors
///
/// [`Error::BadOptions`] if `compat` names a release that does not keep the past; [`Error::ReadOnly`] in a read-only
/// database; the errors of [`Core::install`].
pub fn retain(core: &Core, retention: Retention) -> Result<()> {
    check_writer(core)?;
    check_release(core)?;
    // One call at a time: between its two edits, no other call may end the past that begins.
    let _altering = core.writes.altering.lock();
    if retention == Retention::None {
        change_retained(core, |_| None)?;
        if core.views.newest().files.retained_from().is_none() {
            *core.writes.times.lock() = Times::default();
        }
        core.background.wake_compact();
        return Ok(());
    }
    // A compaction or a flush under way may have begun before the first edit, and then keeps only the version that was
    // the newest at that time. So the past begins with the version that is the newest after the edit.
    for is_sure in [false, true] {
        change_retained(core, |old| {
            let old = old.filter(|old| old.is_sure).map(|old| Retained { retention, ..old });
            old.or(Some(Retained { retention, from: core.views.visible(), is_sure }))
        })?;
    }
    note_time(core);
    Ok(())
}

/// Installs what `change` makes of that which is kept of the past. Both happen under the lock of the manifest, because a
/// flush may move the beginning of the past on.
fn change_retained(core: &Core, change: impl FnOnce(Option<Retained>) -> Option<Retained>) -> Result<()> {
    let mut manifest = core.writes.manifest.lock();
    let old = core.views.newest().files.retained;
    let new = change(old);
    if new == old {
        return Ok(());
    }
    let edits = [Edit::Retain(new)];
    let outcome = core.install_in(&mut manifest, &edits, FreshFiles::new(&core.env.opener.leftovers), |_| {});
    drop(manifest);
    core.clean_up_after(&edits);
    outcome
}

/// Notes that the newest version is the newest now, if the past is kept.
pub fn note_time(core: &Core) {
    let version = core.views.visible();
    if core.views.newest().files.retained_from().is_some() {
        core.writes.times.lock().add(VersionTime { version, micros: micros_now(core) });
    }
}

/// The edits of a flush that are about the past: when the versions up to `flushed` were made, and the version with which
/// the past now begins. The caller installs them.
pub fn edits_of_flush(core: &Core, flushed: Version) -> Vec<Edit> {
    let files = core.views.newest().files.clone();
    if files.readable_from().is_none() {
        return Vec::new();
    }
    note_time(core);
    let begin = files.retained.filter(|retained| retained.is_sure).and_then(|Retained { retention, from, .. }| {
        let begin = begin_now(core, retention).filter(|begin| *begin > from)?;
        Some(Edit::RetainFrom { retention, from: begin })
    });
    // Versions that are not durable yet may be given to other commits after a crash. The list keeps the moments until
    // the flush has installed them.
    let times = core.writes.times.lock();
    times.through(flushed).iter().copied().map(Edit::Time).chain(begin).collect()
}

/// The version with which the past begins now by the rule. `None` if the rule says nothing.
fn begin_now(core: &Core, retention: Retention) -> Option<Version> {
    match retention {
        Retention::None | Retention::Everything => None,
        Retention::Versions(versions) => core.views.visible().0.checked_sub(versions).map(Version),
        Retention::Time(time) => {
            let ago = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            micros_now(core).checked_sub(ago).and_then(|micros| version_at(core, micros))
        }
    }
}

/// If the past is kept for a time, lets it begin later without a flush. The idle job calls this, because without it the past of
/// a database without commits would take space for ever. Returns when to call it again, or `None` if only a commit makes a
/// call useful. The past moves on in steps of a sixteenth of the time, so that an idle database seldom writes.
///
/// # Errors
///
/// The errors of [`Core::install`]. Nothing has changed then.
pub fn move_on(core: &Core, manifest: &mut Option<ManifestLog>) -> Result<Option<Duration>> {
    let Some(Retained { retention: retention @ Retention::Time(time), from, is_sure: true }) =
        core.views.newest().files.retained
    else {
        return Ok(None);
    };
    let newest = core.views.visible();
    let durable = core.writes.sync.durable();
    let begin = begin_now(core, retention).map(|begin| begin.min(durable));
    if let Some(begin) = begin.filter(|begin| *begin > from) {
        let edits = [Edit::RetainFrom { retention, from: begin }];
        core.install_in(manifest, &edits, FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
        core.background.wake_compact();
    }
    let is_over = begin.unwrap_or(from).max(from) >= newest;
    Ok((!is_over).then(|| (time / STEPS).max(Duration::from_secs(1))))
}

/// Drops the moments that the manifest has. Called after a flush.
pub fn after_flush(core: &Core) {
    if let Some(noted) = core.views.newest().files.times.iter().next_back() {
        core.writes.times.lock().forget_through(noted.version);
    }
}

/// The newest version that had been made by `micros`, in microseconds after the beginning of 1970. `None` if no noted time
/// is so early.
pub fn version_at(core: &Core, micros: u64) -> Option<Version> {
    if micros >= micros_now(core) {
        return Some(core.views.visible());
    }
    let noted = core.writes.times.lock().version_at(micros);
    noted.or_else(|| core.views.newest().files.times.version_at(micros))
}

/// The first noted time by which `version` had been made, in microseconds after the beginning of 1970. `None` if no time
/// was noted since.
pub fn time_of(core: &Core, version: Version) -> Option<u64> {
    let files = core.views.newest().files.clone();
    files.times.time_of(version).or_else(|| core.writes.times.lock().time_of(version))
}

/// The time now, in microseconds after the beginning of 1970.
pub fn micros_now(core: &Core) -> u64 {
    core.env.machine.clock.wall().as_micros() as u64
}

/// Returns an error if an older release has to be able to read the database, and it would drop what is kept.
///
/// # Errors
///
/// [`Error::BadOptions`].
pub fn check_release(core: &Core) -> Result<()> {
    let release = core.env.options.compat;
    if release.reads_kept() {
        return Ok(());
    }
    Err(Error::BadOptions(format!(
        "compat {release}: Larch {release} does not keep versions; open the database without compat to keep one"
    )))
}

/// Returns an error if this process must not write.
///
/// # Errors
///
/// [`Error::ReadOnly`] in a read-only database; otherwise those of [`Core::check_writable`].
pub fn check_writer(core: &Core) -> Result<()> {
    core.check_writable()?;
    if core.env.options.read_only { Err(Error::ReadOnly) } else { Ok(()) }
}
