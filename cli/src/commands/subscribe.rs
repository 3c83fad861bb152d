//! `larch subscribe` makes a named position in the feed of changes, which the database stores, `larch subscriptions`
//! lists these, and `larch unsubscribe` ends one.

use super::retain::{length, time};
use crate::args::{Common, InspectSubscriptions, Subscribe, Unsubscribe};
use crate::database;
use crate::escape::shown_name;
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use crate::size;
use larch::Database;
use larch::past::{Limits, Subscribed};
use serde::Serialize;

/// A subscription.
#[derive(Serialize)]
struct Listed<'s> {
    name: &'s str,
    /// All commits up to this version were acknowledged.
    position: u64,
    /// How many versions are newer.
    behind: u64,
    /// When it was made, in UTC.
    since: String,
    /// The greatest age of a commit that was not acknowledged, as the option takes it.
    age: Option<String>,
    /// The most bytes of older versions.
    bytes: Option<u64>,
    /// Whether it was beyond a limit, and holds nothing any more.
    has_let_go: bool,
}

impl<'s> Listed<'s> {
    fn of(subscribed: &'s Subscribed, newest: u64) -> Self {
        let Subscribed { name, position, since, limits, has_let_go, .. } = subscribed;
        Self {
            name,
            position: position.0,
            behind: newest.saturating_sub(position.0),
            since: time(*since),
            age: limits.age.map(length),
            bytes: limits.bytes,
            has_let_go: *has_let_go,
        }
    }

    fn text(&self) -> String {
        let Self { name, position, behind, since, age, bytes, has_let_go } = self;
        let limits = match (age, bytes) {
            (None, None) => "without limits".to_owned(),
            (Some(age), None) => format!("within {age}"),
            (None, Some(bytes)) => format!("within {}", size::bytes(*bytes)),
            (Some(age), Some(bytes)) => format!("within {age} and {}", size::bytes(*bytes)),
        };
        let hold = if *has_let_go { "; it was beyond its limits and holds nothing" } else { "" };
        let (name, position, behind) = (shown_name(name), size::count(*position), size::of(*behind, "version"));
        format!("{name}: after version {position}, {behind} behind, {limits}, since {since} UTC{hold}")
    }
}

/// A line for each subscription, as `larch stats` shows them.
pub fn lines(database: &Database) -> Vec<String> {
    let newest = database.version().0;
    database.subscriptions().iter().map(|subscribed| Listed::of(subscribed, newest).text()).collect()
}

/// Runs `larch subscribe`.
pub fn subscribe(common: &Common, args: &Subscribe) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let mut limits = Limits::NONE;
    if let Some(age) = args.age {
        limits = limits.age(age);
    }
    if let Some(bytes) = args.bytes {
        limits = limits.bytes(bytes);
    }
    database.subscribe(&args.name, limits)?;
    let (all, newest) = (database.subscriptions(), database.version().0);
    database.close()?;
    let mut output = Output::new();
    if let Some(subscribed) = all.iter().find(|subscribed| subscribed.name == args.name) {
        output.line(Listed::of(subscribed, newest).text())?;
    }
    output.finish()
}

/// Runs `larch subscriptions`.
pub fn list(common: &Common, args: &InspectSubscriptions) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let (mut output, newest) = (Output::new(), database.version().0);
    for subscribed in database.subscriptions() {
        let listed = Listed::of(&subscribed, newest);
        if args.json { output.json(&listed)? } else { output.line(listed.text())? }
    }
    output.finish()
}

/// Runs `larch unsubscribe`.
pub fn unsubscribe(common: &Common, args: &Unsubscribe) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let is_ended = database.unsubscribe(&args.name)?.is_some();
    let missing = if is_ended { None } else { database.subscription(&args.name).err() };
    database.close()?;
    missing.map_or(Ok(()), |error| Err(CommandFailure::Engine(error)))
}
