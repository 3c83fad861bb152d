//! Gives names to versions, so that compactions keep them, and takes names away. Decides how much of the past is kept,
//! and notes when versions were made. This module does not know what a version contains.

use super::define::is_new_name;
use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::kept::{AsOf, Kept, MAX_KEPT, micros};
use crate::base::retention::{Retained, Retention, TableRetained, TableRule};
use crate::base::table::TableInfo;
use crate::core::Core;
use crate::core::snapshots::PinnedVersion;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::times::{Times, VersionTime};
use crate::manifest::{Edit, FileSet, ManifestLog};
use os::sync::atomic::Ordering;
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
    let outcome = install_with_reserve(core, &mut manifest, &edits);
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
        if core.views.newest().files.oldest_past().is_none() {
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

/// Keeps so much of the past of `table` from now on.
///
/// # Errors
///
/// As [`retain`], and [`Error::TableDropped`].
pub fn retain_table(core: &Core, table: &TableInfo, rule: TableRule) -> Result<()> {
    check_writer(core)?;
    check_release(core)?;
    let _altering = core.writes.altering.lock();
    // As for a database: what a compaction under way may drop is not relied on.
    for is_sure in [false, true] {
        let mut manifest = core.writes.manifest.lock();
        let files = core.views.newest().files_of(table).map(|_| core.views.newest().files.clone())?;
        let past = files.readable_from_of(table.id);
        let keeps_any = rule != TableRule::Own(Retention::None);
        let (from, is_sure) = match past {
            Some(from) => (from, true),
            None => (core.views.visible(), is_sure || !keeps_any),
        };
        let retained = TableRetained { rule, from, is_sure };
        if files.table_pasts.get(table.id) == Some(retained) {
            break;
        }
        let edits = [Edit::RetainTable { table: table.id, retained }];
        let outcome = install_with_reserve(core, &mut manifest, &edits);
        drop((manifest, files));
        core.clean_up_after(&edits);
        outcome?;
    }
    if core.views.newest().files.oldest_past().is_none() {
        *core.writes.times.lock() = Times::default();
    }
    core.background.wake_compact();
    note_time(core);
    Ok(())
}

/// Installs edits after which less may be kept: what is kept may be what fills the disk.
///
/// # Errors
///
/// The errors of [`Core::install`].
pub fn install_with_reserve(core: &Core, manifest: &mut Option<ManifestLog>, edits: &[Edit]) -> Result<()> {
    let mut install = || core.install_in(manifest, edits, FreshFiles::new(&core.env.opener.leftovers), |_| {});
    match install() {
        Err(error) if error.is_disk_full() && core.writes.reserve.give_back() => install(),
        outcome => outcome,
    }
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
    let outcome = install_with_reserve(core, &mut manifest, &edits);
    drop(manifest);
    core.clean_up_after(&edits);
    outcome
}

/// Notes that the newest version is the newest now, if the past is kept.
pub fn note_time(core: &Core) {
    let version = core.views.visible();
    if core.views.newest().files.oldest_past().is_some() {
        core.writes.times.lock().add(VersionTime { version, micros: micros_now(core) });
    }
}

/// The edits of a flush that are about the past: when the versions up to `flushed` were made, and the version with which
/// the past now begins. The caller installs them.
pub fn edits_of_flush(core: &Core, flushed: Version) -> Vec<Edit> {
    let files = core.views.newest().files.clone();
    if files.oldest_past().is_none() {
        return Vec::new();
    }
    note_time(core);
    let begin = begins(core, &files, |begin| begin);
    // Versions that are not durable yet may be given to other commits after a crash. The list keeps the moments until
    // the flush has installed them.
    let times = core.writes.times.lock();
    times.through(flushed).iter().copied().map(Edit::Time).chain(begin).collect()
}

/// The edits by which the past of the database and of its tables begins later, if their rules say so. `bound` may lower
/// the version with which it begins.
fn begins(core: &Core, files: &FileSet, bound: impl Fn(Version) -> Version) -> Vec<Edit> {
    let later = |retention, from| begin_now(core, retention).map(&bound).filter(|begin| *begin > from);
    let database =
        files.retained.filter(|retained| retained.is_sure).and_then(|Retained { retention, from, .. }| {
            later(retention, from).map(|from| Edit::RetainFrom { retention, from })
        });
    let tables = files.table_pasts.iter().filter_map(|(table, retained)| {
        let TableRetained { rule: TableRule::Own(retention), from, is_sure: true } = retained else { return None };
        later(retention, from).map(|from| Edit::RetainTableFrom { table, retention, from })
    });
    database.into_iter().chain(tables).collect()
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
    if moving(&core.views.newest().files).next().is_none() {
        return Ok(None);
    }
    let newest = core.views.visible();
    let durable = core.writes.sync.durable();
    let edits = begins(core, &core.views.newest().files, |begin| begin.min(durable));
    if !edits.is_empty() {
        core.install_in(manifest, &edits, FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
        core.background.wake_compact();
    }
    let files = core.views.newest().files.clone();
    let shortest = moving(&files).filter(|(_, from)| *from < newest).map(|(time, _)| time).min();
    Ok(shortest.map(|time| (time / STEPS).max(Duration::from_secs(1))))
}

/// The times for which the database and its tables keep their past, each with the version with which it begins.
fn moving(files: &FileSet) -> impl Iterator<Item = (Duration, Version)> {
    let database =
        files.retained.filter(|retained| retained.is_sure).map(|retained| (retained.retention, retained.from));
    let tables = files.table_pasts.iter().filter_map(|(_, retained)| match retained {
        TableRetained { rule: TableRule::Own(retention), from, is_sure: true } => Some((retention, from)),
        _ => None,
    });
    database.into_iter().chain(tables).filter_map(|(retention, from)| match retention {
        Retention::Time(time) => Some((time, from)),
        _ => None,
    })
}

/// Drops the moments that the manifest has. Called after a flush.
pub fn after_flush(core: &Core) {
    let files = core.views.newest().files.clone();
    if let Some(noted) = files.times.iter().next_back() {
        core.writes.times.lock().forget_through(noted.version);
    }
    report_size(core, &files);
}

/// Reports older rows that take more than the disk has left. They grow with the commits, so the program learns of it when
/// at most half of the room that there was for them is used up.
fn report_size(core: &Core, files: &FileSet) {
    let reported = &core.writes.past_fills_disk;
    let history_bytes = files.history_bytes();
    // Most databases have no older rows, and then the system is not asked.
    let free_bytes = (history_bytes > 0).then(|| core.env.machine.disk.free_bytes(&core.env.directory).ok().flatten());
    let Some(free_bytes) = free_bytes.flatten().filter(|free| *free < history_bytes) else {
        reported.store(false, Ordering::Relaxed);
        return;
    };
    if !reported.swap(true, Ordering::Relaxed) {
        core.env.report(|| Event::PastFillsDisk { history_bytes, free_bytes });
    }
}

/// The version that `when` stands for. Whether reads can still see it is not known then.
///
/// # Errors
///
/// [`Error::NoSuchKept`] if no version has this name; [`Error::NoTime`] if the time is before all that is known, or if
/// the past is not kept.
pub fn version_of(core: &Core, when: &AsOf) -> Result<Version> {
    let files = core.views.newest().files.clone();
    match when {
        AsOf::Version(version) => Ok(*version),
        AsOf::Name(name) => {
            let found = files.kept(name).map(|kept| kept.version);
            found.ok_or_else(|| Error::NoSuchKept {
                name: name.clone(),
                kept: files.all_kept().map(|kept| kept.name.clone()).collect(),
            })
        }
        AsOf::Time(time) => {
            let asked = micros(*time);
            let from = files.oldest_past();
            let found = from.and_then(|_| version_at(core, asked));
            found.ok_or_else(|| Error::NoTime { asked, oldest: from.and_then(|from| time_of(core, from)) })
        }
    }
}

/// Whether `when` is a time that has not passed, which stands for the newest version.
pub fn is_newest(core: &Core, when: &AsOf) -> bool {
    matches!(when, AsOf::Time(time) if micros(*time) >= micros_now(core))
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
