//! Named positions in the feed of changes, which hold the past back. This module does not know what a version contains.

use sst::Version;
use std::time::Duration;

/// The most subscriptions of a database.
pub const MAX_SUBSCRIPTIONS: usize = 1_000;

/// How much of the past a subscription may hold. Beyond its limits it lets go of the past, and its feed ends with
/// [`Error::ChangesGone`](crate::Error::ChangesGone) once commits after its position are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The oldest commit that was not acknowledged may be so old; `None` means of any age.
    ///
    /// The age is measured by the wall clock of the process that writes. If the clock jumps ahead, commits get older.
    pub age: Option<Duration>,
    /// Older versions of rows may take this number of bytes in files; `None` means any number.
    ///
    /// All older versions count that lie in files with commits after the position, also those that snapshots and names
    /// keep, and those that something else has kept and no compaction has dropped yet. Those of tables whose past a
    /// [rule](crate::Database::retain) keeps from the position on do not count.
    pub bytes: Option<u64>,
}

impl Limits {
    /// No limits: the past is held for as long as the subscription is there.
    pub const NONE: Self = Self { age: None, bytes: None };

    /// Limits the age.
    #[must_use]
    pub fn age(self, age: Duration) -> Self {
        Self { age: Some(age), ..self }
    }

    /// Limits the bytes.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }
}

/// A subscription, as [`Database::subscriptions`](crate::Database::subscriptions) lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subscribed {
    /// Its name.
    pub name: String,
    /// All commits up to this version were acknowledged.
    pub position: Version,
    /// When it was made, as the time since the beginning of 1970 by the clock of the process that wrote to the
    /// database.
    pub since: Duration,
    /// How much of the past it may hold.
    pub limits: Limits,
    /// Whether it was beyond a limit, and holds nothing since.
    pub has_let_go: bool,
}

/// The number of a subscription in its database. No two subscriptions get the same, also if they have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub u64);

/// What a subscription holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Compactions that begin now keep every version after its position. One that began before may drop some.
    Unsure,
    /// Every version after its position is there.
    Sure,
    /// Nothing: it was beyond a limit.
    Nothing,
}

/// A subscription, as the manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// Its number.
    pub id: SubscriptionId,
    /// Its name. No other subscription has it.
    pub name: String,
    /// All commits up to this version were acknowledged.
    pub position: Version,
    /// When it was made, in microseconds after the beginning of 1970.
    pub micros: u64,
    /// How much it may hold.
    pub limits: Limits,
    /// What it holds.
    pub hold: Hold,
}

impl Subscriber {
    /// Whether it keeps compactions from dropping versions after its position.
    pub fn holds(&self) -> bool {
        self.hold != Hold::Nothing
    }
}
