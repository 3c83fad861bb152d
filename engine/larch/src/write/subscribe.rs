//! Makes and ends subscriptions, moves their positions, and compares them with their limits. This module does not know
//! what a feed gives.
//!
//! ```text
//! acknowledged   1 … 40 | 41 … 57 | 58 …
//! manifest       position 40: from here on, each version is kept
//! memory                  57: what was acknowledged since
//! ```
//!
//! Invariants:
//! - Only the position in the manifest counts for what is kept. So a crash loses no version after it, and the feed goes
//!   on from a version that was acknowledged.
//! - A position gets into the manifest only once its commits are durable.
//! - While positions are noted in memory, the idle job is going to be polled: the first one wakes it, and it asks to be
//!   called again as long as there are some.
//! - Whether a subscription is beyond a limit is decided under the lock of the manifest, with the limits of then.

use super::define::is_new_name;
use super::keep::{check_release, check_writer, install_with_reserve, micros_now, note_time, version_at};
use crate::base::error::{Error, Result};
use crate::base::subscription::{Hold, Limits, MAX_SUBSCRIPTIONS, Subscriber, SubscriptionId};
use crate::core::Core;
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::times::Times;
use crate::manifest::{Edit, FileSet, ManifestLog};
use os::sync::Arc;
use sst::Version;
use std::collections::HashSet;
use std::time::Duration;

/// While there are commits, what was acknowledged gets into the manifest after this time at the latest. An idle
/// database puts it there after a second or two.
pub const NOTE_TIME: Duration = Duration::from_secs(10);

/// The time until an idle database looks for what was acknowledged.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// In an idle database, ages are compared with limits in steps of this part of a limit.
const STEPS: u32 = 16;

/// Makes a subscription named `name` that begins with the version that is the newest now. If there is one, gives it
/// these limits. When the call returns, it is durable.
///
/// # Errors
///
/// [`Error::BadSubscriptionName`], [`Error::TooManySubscriptions`]; [`Error::BadOptions`] if `compat` names a release
/// that does not keep versions; [`Error::ReadOnly`] in a read-only database; the errors of [`Core::install`] and of a
/// sync.
pub fn subscribe(core: &Core, name: &str, limits: Limits) -> Result<SubscriptionId> {
    if !is_new_name(name) {
        return Err(Error::BadSubscriptionName(name.to_owned()));
    }
    check_writer(core)?;
    check_release(core)?;
    // One call at a time: between its two edits, no other call may make the same subscription.
    let _altering = core.writes.altering.lock();
    // A compaction or a flush under way may have begun before the first edit, and then keeps only the version that was
    // the newest at that time. So the subscription begins with the version that is the newest after this edit. If the
    // past is kept already, none of them drops a version after it, and one edit is enough.
    let mut id = None;
    for is_second in [false, true] {
        // After a crash, other commits may get the versions of those that are not durable.
        let position = core.views.visible();
        core.make_durable(position)?;
        let subscriber = put(core, |files| {
            let old = files.subscriber_named(name);
            if let Some(old) = old.filter(|old| old.hold != Hold::Unsure) {
                return Ok(Subscriber { limits, ..old.clone() });
            }
            if old.is_none() && files.subscribers().len() >= MAX_SUBSCRIPTIONS {
                return Err(Error::TooManySubscriptions(MAX_SUBSCRIPTIONS));
            }
            let is_kept = files.keeps_all_from(position);
            let hold = if is_second || is_kept { Hold::Sure } else { Hold::Unsure };
            let id = old.map_or_else(|| SubscriptionId(core.writes.new_number()), |old| old.id);
            Ok(Subscriber { id, name: name.to_owned(), position, micros: micros_now(core), limits, hold })
        })?;
        id = Some(subscriber.id);
        if subscriber.hold != Hold::Unsure {
            break;
        }
    }
    note_time(core);
    Ok(id.expect("a loop runs once at least"))
}

/// Installs what `make` makes of the files, if it changes something.
fn put(core: &Core, make: impl FnOnce(&FileSet) -> Result<Subscriber>) -> Result<Subscriber> {
    let mut manifest = core.writes.manifest.lock();
    let files = core.views.newest().files.clone();
    let subscriber = make(&files)?;
    if files.subscriber(subscriber.id) == Some(&subscriber) {
        return Ok(subscriber);
    }
    let edits = [Edit::Subscribe(subscriber.clone())];
    let outcome = core.install_in(&mut manifest, &edits, FreshFiles::new(&core.env.opener.leftovers), |_| {});
    drop((manifest, files));
    core.clean_up_after(&edits);
    outcome.map(|()| subscriber)
}

/// Ends the subscription named `name`. Returns what it was; `None` if there is none.
///
/// # Errors
///
/// [`Error::ReadOnly`] in a read-only database; the errors of [`Core::install`].
pub fn unsubscribe(core: &Core, name: &str) -> Result<Option<Subscriber>> {
    check_writer(core)?;
    // Between the two edits of a call that makes a subscription, none may end it.
    let _altering = core.writes.altering.lock();
    let mut manifest = core.writes.manifest.lock();
    let files = core.views.newest().files.clone();
    let Some(subscriber) = files.subscriber_named(name).cloned() else { return Ok(None) };
    let edits = [Edit::Unsubscribe(subscriber.id)];
    let outcome = install_with_reserve(core, &mut manifest, &edits);
    drop((manifest, files));
    core.clean_up_after(&edits);
    outcome?;
    let acknowledged = core.writes.acknowledged.lock().positions.remove(&subscriber.id);
    if core.views.newest().files.oldest_past().is_none() {
        *core.writes.times.lock() = Times::default();
    }
    core.background.wake_compact();
    let position = acknowledged.map_or(subscriber.position, |position| position.max(subscriber.position));
    Ok(Some(Subscriber { position, ..subscriber }))
}

/// The position of a subscription, also if the manifest does not have it yet. `None` if the subscription has ended.
pub fn position(core: &Core, id: SubscriptionId) -> Option<Version> {
    // What was noted is forgotten once the manifest has it. So it is read first, or a position could go back.
    let noted = core.writes.acknowledged.lock().positions.get(&id).copied();
    let position = core.views.newest().files.subscriber(id)?.position;
    Some(noted.map_or(position, |noted| noted.max(position)))
}

/// Notes that all commits up to `version` were acknowledged. Takes no lock that others hold for long, and writes
/// nothing. Returns false if the subscription has ended.
///
/// # Errors
///
/// [`Error::NotKept`] if there is no such version yet; [`Error::ReadOnly`] in a read-only database.
pub fn acknowledge(core: &Core, id: SubscriptionId, version: Version) -> Result<bool> {
    check_writer(core)?;
    let newest = core.views.visible();
    if version > newest {
        return Err(Error::NotKept { version, newest });
    }
    let files = core.views.newest().files.clone();
    let Some(subscriber) = files.subscriber(id) else { return Ok(false) };
    if version > subscriber.position {
        let is_first = core.writes.acknowledged.lock().note(id, version, core.env.machine.clock.now());
        if is_first {
            core.background.wake_idle_after(IDLE_TIME);
        }
    }
    Ok(true)
}

/// Puts what was acknowledged into the manifest.
///
/// # Errors
///
/// [`Error::OutcomeUnknown`] if a sync of the log fails; the errors of [`Core::install`].
pub fn make_durable(core: &Core) -> Result<()> {
    let newest = core.writes.acknowledged.lock().positions.values().copied().max();
    let Some(newest) = newest else { return Ok(()) };
    core.make_durable(newest)?;
    let mut manifest = core.writes.manifest.lock();
    settle(core, &mut manifest, newest)
}

/// Puts into the manifest what was acknowledged, as far as it is `durable`, and has subscriptions let go that are
/// beyond a limit.
fn settle(core: &Core, manifest: &mut Option<ManifestLog>, durable: Version) -> Result<()> {
    let edits = edits(core, durable);
    if !edits.is_empty() {
        install_with_reserve(core, manifest, &edits)?;
        core.background.wake_compact();
    }
    after_install(core, !edits.is_empty());
    let_go_in(core, manifest)
}

/// The edits that put into the manifest what was acknowledged, as far as it is `durable`. The caller installs them, and
/// then calls [`after_install`].
pub fn edits(core: &Core, durable: Version) -> Vec<Edit> {
    let files = core.views.newest().files.clone();
    let acknowledged = core.writes.acknowledged.lock();
    let moved = files.subscribers().filter_map(|subscriber| {
        let noted = acknowledged.positions.get(&subscriber.id).map(|noted| (*noted).min(durable));
        let position = noted.filter(|noted| *noted > subscriber.position)?;
        Some(Edit::Acknowledge { id: subscriber.id, position })
    });
    moved.collect()
}

/// Forgets what the manifest has. `has_moved` says whether the caller has installed [`edits`] that move a position.
pub fn after_install(core: &Core, has_moved: bool) {
    let files = core.views.newest().files.clone();
    let mut acknowledged = core.writes.acknowledged.lock();
    let is_ahead = |id, position| files.subscriber(id).is_some_and(|subscriber| subscriber.position < position);
    acknowledged.positions.retain(|id, position| is_ahead(*id, *position));
    if has_moved {
        acknowledged.since = core.env.machine.clock.now();
    }
}

/// Has subscriptions let go that are beyond a limit. Called after a flush, which has made the space grow. After a
/// failure, the next flush or the idle job does it.
pub fn let_go(core: &Core) {
    if core.views.newest().files.subscribers().len() > 0 {
        let_go_in(core, &mut core.writes.manifest.lock()).ok();
    }
}

fn let_go_in(core: &Core, manifest: &mut Option<ManifestLog>) -> Result<()> {
    let files = core.views.newest().files.clone();
    let newest = core.views.visible();
    let mut all: Vec<Subscriber> = files.subscribers().filter(|one| one.hold == Hold::Sure).cloned().collect();
    let counted_from = {
        let acknowledged = core.writes.acknowledged.lock();
        for subscriber in &mut all {
            let noted = acknowledged.positions.get(&subscriber.id).copied();
            subscriber.position = noted.map_or(subscriber.position, |noted| noted.max(subscriber.position));
        }
        acknowledged.counted_from
    };
    all.retain(|subscriber| subscriber.position < newest);
    let large = too_large(&files, &all, counted_from);
    let beyond = all.iter().filter(|one| is_too_old(core, one) || large.is_some_and(|large| large.id == one.id));
    let edits: Vec<Edit> = beyond.map(|one| Edit::LetGo { id: one.id, position: one.position }).collect();
    if edits.is_empty() {
        return Ok(());
    }
    install_with_reserve(core, manifest, &edits)?;
    if large.is_some() {
        core.writes.acknowledged.lock().counted_from = core.writes.next_number();
    }
    core.background.wake_compact();
    Ok(())
}

/// Whether the first commit that was not acknowledged is older than the limit. It is, at least as old as the next
/// moment that was noted.
fn is_too_old(core: &Core, subscriber: &Subscriber) -> bool {
    let Some(age) = subscriber.limits.age else { return false };
    let ago = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    let then = micros_now(core).checked_sub(ago).and_then(|micros| version_at(core, micros));
    then.is_some_and(|then| then > subscriber.position)
}

/// The subscription that holds most, if it holds more bytes than its limit allows. Of several, only the one that is
/// furthest behind can give space back, and only that of tables of which no rule holds the same. Files with numbers
/// before `counted_from` do not count.
fn too_large<'s>(files: &FileSet, all: &'s [Subscriber], counted_from: u64) -> Option<&'s Subscriber> {
    let last = all.iter().min_by_key(|subscriber| subscriber.position)?;
    let limit = last.limits.bytes?;
    let is_ruled = |table| files.rule_past(table).is_some_and(|past| past.from <= last.position);
    let tables = files.tables.values().filter(|table| !is_ruled(table.info.id));
    let held = tables.flat_map(|table| table.files()).map(|(_, file)| file);
    let mut seen = HashSet::new();
    let counted = held.filter(|file| file.number >= counted_from && file.age() > last.position.0);
    // Several tables may see a file.
    let bytes = counted.filter(|file| seen.insert(file.number)).map(|file| file.sst.meta.history_bytes()).sum::<u64>();
    (bytes > limit).then_some(last)
}

/// Puts what was acknowledged some time ago into the manifest. The idle job calls this once a second while there are
/// commits.
pub fn note_old(core: &Core) {
    let since = {
        let acknowledged = core.writes.acknowledged.lock();
        (!acknowledged.positions.is_empty()).then_some(acknowledged.since)
    };
    if since.is_none_or(|since| core.env.machine.clock.now().saturating_sub(since) < NOTE_TIME) {
        return;
    }
    // The job must not wait for a thread that may wait for background work.
    if let Some(mut manifest) = core.writes.manifest.try_lock() {
        // After a failure, the next flush or the next call does it.
        settle(core, &mut manifest, core.writes.sync.durable()).ok();
    }
}

/// As a flush does, puts what was acknowledged into the manifest, and compares subscriptions with their limits. The
/// idle job calls this. Returns when to call it again, or `None` if only a commit or a call makes that useful.
///
/// # Errors
///
/// The errors of [`Core::install`]. Nothing has changed then.
pub fn move_on(core: &Core, manifest: &mut Option<ManifestLog>) -> Result<Option<Duration>> {
    settle(core, manifest, core.writes.sync.durable())?;
    let files: Arc<FileSet> = core.views.newest().files.clone();
    let newest = core.views.visible();
    let behind = files.subscribers().filter(|subscriber| subscriber.hold == Hold::Sure && subscriber.position < newest);
    let ages = behind.filter_map(|subscriber| subscriber.limits.age);
    Ok(ages.map(|age| (age / STEPS).max(IDLE_TIME)).min())
}

/// Whether something was acknowledged that the manifest does not have: it came just now, or is not durable yet.
pub fn has_more(core: &Core) -> bool {
    !core.writes.acknowledged.lock().positions.is_empty()
}
