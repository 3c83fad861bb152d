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
use std::time::Duration;

/// While there are commits, what was acknowledged gets into the manifest after this time at the latest. An idle
/// database puts it there after a second or two.
const NOTE_TIME: Duration = Duration::from_secs(10);

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
/// that does not keep versions; [`Error::ReadOnly`] in a read-only database; the errors of [`Core::install`].
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
        let subscriber = put(core, |files| {
            let old = files.subscriber_named(name);
            if let Some(old) = old.filter(|old| old.hold != Hold::Unsure) {
                return Ok(Subscriber { limits, ..old.clone() });
            }
            if old.is_none() && files.subscribers().len() >= MAX_SUBSCRIPTIONS {
                return Err(Error::TooManySubscriptions(MAX_SUBSCRIPTIONS));
            }
            let position = core.views.visible();
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
    let position = core.views.newest().files.subscriber(id)?.position;
    let noted = core.writes.acknowledged.lock().positions.get(&id).copied();
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
    install(core, &mut manifest, &edits(core, newest))
}

fn install(core: &Core, manifest: &mut Option<ManifestLog>, edits: &[Edit]) -> Result<()> {
    if edits.is_empty() {
        return Ok(());
    }
    core.install_in(manifest, edits, FreshFiles::new(&core.env.opener.leftovers), |_| {})?;
    after_install(core);
    core.background.wake_compact();
    Ok(())
}

/// The edits that put into the manifest what was acknowledged, as far as it is `durable`, and those of subscriptions
/// that are beyond a limit. The caller installs them, and then calls [`after_install`].
pub fn edits(core: &Core, durable: Version) -> Vec<Edit> {
    let files = core.views.newest().files.clone();
    if files.subscribers().len() == 0 {
        return Vec::new();
    }
    let mut edits = Vec::new();
    // The subscriptions where they will be then.
    let mut all: Vec<Subscriber> = files.subscribers().cloned().collect();
    {
        let acknowledged = core.writes.acknowledged.lock();
        for subscriber in &mut all {
            let noted = acknowledged.positions.get(&subscriber.id).map(|noted| (*noted).min(durable));
            if let Some(position) = noted.filter(|noted| *noted > subscriber.position) {
                subscriber.position = position;
                edits.push(Edit::Acknowledge { id: subscriber.id, position });
            }
        }
    }
    let newest = core.views.visible();
    all.retain(|subscriber| subscriber.hold == Hold::Sure && subscriber.position < newest);
    let let_go = |subscriber: &Subscriber| Edit::LetGo { id: subscriber.id, position: subscriber.position };
    edits.extend(all.iter().filter(|subscriber| is_too_old(core, subscriber)).map(let_go));
    edits.extend(too_large(core, &files, &all).map(let_go));
    edits
}

/// Whether the first commit that was not acknowledged is older than the limit. It is, at least as old as the next
/// moment that was noted.
fn is_too_old(core: &Core, subscriber: &Subscriber) -> bool {
    let Some(age) = subscriber.limits.age else { return false };
    let ago = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    let then = micros_now(core).checked_sub(ago).and_then(|micros| version_at(core, micros));
    then.is_some_and(|then| then > subscriber.position)
}

/// The subscription that holds most, if it holds more bytes than its limit allows and no rule holds them, too. Of
/// several, only the one that is furthest behind can give space back.
fn too_large<'s>(core: &Core, files: &FileSet, all: &'s [Subscriber]) -> Option<&'s Subscriber> {
    let last = all.iter().min_by_key(|subscriber| subscriber.position)?;
    let limit = last.limits.bytes?;
    if files.retained.is_some_and(|retained| retained.from <= last.position) {
        return None;
    }
    let mut acknowledged = core.writes.acknowledged.lock();
    let from = acknowledged.counted_from;
    let counted = files.files_by_number();
    let counted = counted.values().filter(|file| file.number >= from && file.age() > last.position.0);
    let is_too_large = counted.map(|file| file.sst.meta.history_bytes()).sum::<u64>() > limit;
    if is_too_large {
        acknowledged.counted_from = core.writes.next_number();
    }
    is_too_large.then_some(last)
}

/// Forgets what the manifest has.
pub fn after_install(core: &Core) {
    let files = core.views.newest().files.clone();
    let mut acknowledged = core.writes.acknowledged.lock();
    if acknowledged.positions.is_empty() {
        return;
    }
    let is_ahead = |id, position| files.subscriber(id).is_some_and(|subscriber| subscriber.position < position);
    acknowledged.positions.retain(|id, position| is_ahead(*id, *position));
    acknowledged.since = core.env.machine.clock.now();
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
        install(core, &mut manifest, &edits(core, core.writes.sync.durable())).ok();
    }
}

/// As a flush does, puts what was acknowledged into the manifest, and compares subscriptions with their limits. The
/// idle job calls this. Returns when to call it again, or `None` if only a commit or a call makes that useful.
///
/// # Errors
///
/// The errors of [`Core::install`]. Nothing has changed then.
pub fn move_on(core: &Core, manifest: &mut Option<ManifestLog>) -> Result<Option<Duration>> {
    install(core, manifest, &edits(core, core.writes.sync.durable()))?;
    let files: Arc<FileSet> = core.views.newest().files.clone();
    let newest = core.views.visible();
    let behind = files.subscribers().filter(|subscriber| subscriber.hold == Hold::Sure && subscriber.position < newest);
    let ages = behind.filter_map(|subscriber| subscriber.limits.age);
    Ok(ages.map(|age| (age / STEPS).max(IDLE_TIME)).min())
}
