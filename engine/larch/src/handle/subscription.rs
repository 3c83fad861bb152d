//! Named positions in the feed of changes, which the database stores. What they hold is decided in
//! `write/subscribe.rs`.

use super::database::Database;
use crate::base::error::{Error, Result};
use crate::base::subscription::{Hold, Limits, Subscribed, Subscriber, SubscriptionId};
use crate::changes::Changes;
use crate::core::handle::DatabaseHandle;
use crate::write::subscribe;
use os::sync::Arc;
use sst::Version;
use std::time::Duration;

/// A named position in the feed of changes: [`Database::subscribe`](crate::Database::subscribe).
///
/// The position is stored in the database. From there on, the past is kept, so that the feed finds every commit however
/// far the reader lags, within the [limits](Limits) of the subscription.
#[derive(Debug)]
pub struct Subscription {
    handle: Arc<DatabaseHandle>,
    id: SubscriptionId,
    name: String,
}

impl Subscription {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All commits up to this version were [acknowledged](Subscription::acknowledge). After a crash it may be an older
    /// version, which was acknowledged before.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSubscription`] if the subscription was ended.
    pub fn position(&self) -> Result<Version> {
        subscribe::position(self.handle.core(), self.id).ok_or_else(|| self.ended())
    }

    /// Whether the subscription was beyond a limit, and holds nothing since. The feed goes on as long as it finds the
    /// commits; then it fails with [`Error::ChangesGone`]. To begin again, end the subscription and subscribe anew.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSubscription`] if the subscription was ended.
    pub fn has_let_go(&self) -> Result<bool> {
        let files = self.handle.core().views.newest().files.clone();
        files.subscriber(self.id).map(|subscriber| subscriber.hold == Hold::Nothing).ok_or_else(|| self.ended())
    }

    /// A feed of the commits that were not acknowledged. It does not move the position: acknowledge what was done.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSubscription`] if the subscription was ended.
    pub fn changes(&self) -> Result<Changes> {
        Ok(Changes::new(self.handle.clone(), self.position()?))
    }

    /// Says that all commits up to `version` have been dealt with, so that the past before it need not be held. Does
    /// nothing if the position is not before `version`.
    ///
    /// The call takes about as long as a look at a map. It writes nothing: the position becomes durable with the next
    /// flush, when the database is closed, and otherwise within ten seconds. After a crash, the feed may give again
    /// what was acknowledged since. [`Subscription::sync`] makes the position durable at once.
    ///
    /// # Errors
    ///
    /// [`Error::NotKept`] if there is no such version yet; [`Error::NoSuchSubscription`] if the subscription was ended.
    /// If the database takes no writes, the call fails like [`Table::insert`](crate::Table::insert).
    pub fn acknowledge(&self, version: Version) -> Result<()> {
        if subscribe::acknowledge(self.handle.core(), self.id, version)? { Ok(()) } else { Err(self.ended()) }
    }

    /// Makes what was acknowledged durable, of this and of all other subscriptions of the database. It costs a sync of
    /// the manifest, and one of the log if the last of these commits is not durable yet.
    ///
    /// # Errors
    ///
    /// [`Error::Log`] if the manifest cannot be written, and then nothing has changed; [`Error::OutcomeUnknown`] if a
    /// sync fails.
    pub fn sync(&self) -> Result<()> {
        subscribe::make_durable(self.handle.core())
    }

    fn ended(&self) -> Error {
        no_such(self.handle.core().views.newest().files.subscribers(), &self.name)
    }
}

/// The error if there is no subscription of this name.
fn no_such<'s>(all: impl Iterator<Item = &'s Subscriber>, name: &str) -> Error {
    let mut subscriptions: Vec<String> = all.map(|subscriber| subscriber.name.clone()).collect();
    subscriptions.sort_unstable();
    Error::NoSuchSubscription { name: name.to_owned(), subscriptions }
}

/// Subscriptions.
impl Database {
    /// Subscribes to the changes: the subscription `name`, which begins with the newest version of now. If there is
    /// one of this name, it stays where it is, and gets these limits. When the call returns, the subscription and the
    /// commits up to its position are durable. One that [has let go](Subscription::has_let_go) holds nothing with
    /// wider limits either: [end](Database::unsubscribe) it first.
    ///
    /// From its position on, the database keeps its past as [`Database::retain`] does, until the reader
    /// [acknowledges](Subscription::acknowledge) the commits, or the subscription is beyond its limits. So a feed of it
    /// finds every commit, also after a restart, and a reader that lags takes space: without limits, as much as there
    /// is.
    ///
    /// A checkpoint, a backup and a branch have the subscriptions, too, and hold the past for them once they are opened
    /// for writing. Their readers know nothing of the copy, so [end](Database::unsubscribe) there what has no reader.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let orders = db.table("orders")?;
    /// use larch::past::Limits;
    ///
    /// let week = std::time::Duration::from_secs(7 * 86_400);
    /// let mail = db.subscribe("mail", Limits::NONE.age(week).bytes(10 << 30))?;
    /// orders.insert("1", "two apples")?;
    ///
    /// let mut changes = mail.changes()?;
    /// while let Some(change) = changes.next_change()? {
    ///     println!("order {}", change.key().escape_ascii());
    /// }
    /// mail.acknowledge(changes.position())?;
    /// # assert_eq!(mail.position()?, db.version());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::BadSubscriptionName`] if the name is empty, longer than 255 bytes or has control characters;
    ///   [`Error::TooManySubscriptions`] if there are 1,000.
    /// * [`Error::BadOptions`] if the database is [compatible](crate::Builder::compat) with a release that does not
    ///   keep versions; [`Error::ReadOnly`] in a read-only database.
    /// * [`Error::Log`] if the manifest cannot be written; [`Error::OutcomeUnknown`] if a sync of the log fails. If the
    ///   database takes no writes, the call fails like [`Table::insert`](crate::Table::insert).
    pub fn subscribe(&self, name: &str, limits: Limits) -> Result<Subscription> {
        let id = subscribe::subscribe(self.core(), name, limits)?;
        Ok(Subscription { handle: self.handle().clone(), id, name: name.to_owned() })
    }

    /// The subscription `name`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSubscription`] if there is none.
    pub fn subscription(&self, name: &str) -> Result<Subscription> {
        let files = self.core().views.newest().files.clone();
        let found = files.subscriber_named(name).filter(|subscriber| subscriber.hold != Hold::Unsure);
        let id = found.ok_or_else(|| no_such(files.subscribers(), name))?.id;
        Ok(Subscription { handle: self.handle().clone(), id, name: name.to_owned() })
    }

    /// Ends the subscription `name`. Compactions then drop what only it held. Returns what it was; `None` if there is
    /// none.
    ///
    /// # Errors
    ///
    /// As [`Database::subscribe`], but not because of the name.
    pub fn unsubscribe(&self, name: &str) -> Result<Option<Subscribed>> {
        Ok(subscribe::unsubscribe(self.core(), name)?.map(listed))
    }

    /// All subscriptions, the one that is furthest behind first. A read-only database shows those positions that are
    /// durable.
    pub fn subscriptions(&self) -> Vec<Subscribed> {
        let core = self.core();
        let files = core.views.newest().files.clone();
        let there = files.subscribers().filter(|subscriber| subscriber.hold != Hold::Unsure);
        let mut all: Vec<Subscribed> = there
            .map(|subscriber| {
                let position = subscribe::position(core, subscriber.id).unwrap_or(subscriber.position);
                listed(Subscriber { position, ..subscriber.clone() })
            })
            .collect();
        all.sort_by(|a, b| (a.position, &a.name).cmp(&(b.position, &b.name)));
        all
    }
}

fn listed(subscriber: Subscriber) -> Subscribed {
    let Subscriber { name, position, micros, limits, hold, .. } = subscriber;
    let has_let_go = hold == Hold::Nothing;
    Subscribed { name, position, since: Duration::from_micros(micros), limits, has_let_go }
}

#[cfg(test)]
mod tests;
