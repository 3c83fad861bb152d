//! What tables with a rule of their own keep of their past. This module does not know how the rules are stored.

use crate::base::retention::{Retained, Retention, TableRetained, TableRule};
use crate::base::table::TableId;
use os::sync::Arc;
use sst::Version;
use std::collections::BTreeMap;

/// The stretch of the past that a table or a database keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// This version and each later one are kept.
    pub from: Version,
    /// Whether reads can see all these versions.
    pub is_sure: bool,
}

impl From<Retained> for Past {
    fn from(retained: Retained) -> Self {
        Self { from: retained.from, is_sure: retained.is_sure }
    }
}

/// The tables of a database that have a rule of their own. A clone is cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TablePasts(Arc<BTreeMap<TableId, TableRetained>>);

impl TablePasts {
    /// Whether no table has a rule of its own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All tables with a rule of their own, by id.
    pub fn iter(&self) -> impl Iterator<Item = (TableId, TableRetained)> {
        self.0.iter().map(|(table, retained)| (*table, *retained))
    }

    /// The rule of `table`, if it has one of its own.
    pub fn get(&self, table: TableId) -> Option<TableRetained> {
        self.0.get(&table).copied()
    }

    /// What `table` keeps, in a database that keeps `database`.
    pub fn past(&self, table: TableId, database: Option<Retained>) -> Option<Past> {
        let database = database.map(Past::from);
        match self.get(table) {
            None => database,
            Some(TableRetained { rule: TableRule::Own(Retention::None), .. }) => None,
            Some(TableRetained { rule: TableRule::Own(_), from, is_sure }) => Some(Past { from, is_sure }),
            Some(TableRetained { rule: TableRule::OfDatabase, from, is_sure }) => {
                database.map(|past| Past { from: past.from.max(from), is_sure: past.is_sure && is_sure })
            }
        }
    }

    /// The table gets this rule.
    pub fn set(&mut self, table: TableId, retained: TableRetained) {
        Arc::make_mut(&mut self.0).insert(table, retained);
    }

    /// The past of `table` now begins with `from`, if it is kept by `rule` and begins earlier.
    pub fn begin(&mut self, table: TableId, rule: Retention, from: Version) {
        if self.get(table).is_some_and(|old| old.is_sure && old.rule == TableRule::Own(rule) && old.from < from)
            && let Some(retained) = Arc::make_mut(&mut self.0).get_mut(&table)
        {
            retained.from = from;
        }
    }

    /// Forgets a table that is dropped.
    pub fn remove(&mut self, table: TableId) {
        if self.0.contains_key(&table) {
            Arc::make_mut(&mut self.0).remove(&table);
        }
    }

    /// Forgets tables that keep just what the database keeps.
    pub fn forget_needless(&mut self, database: Option<Retained>) {
        let is_needless = |retained: &TableRetained| {
            let is_older = |database: Retained| database.is_sure && retained.is_sure && database.from >= retained.from;
            retained.rule == TableRule::OfDatabase && database.is_none_or(is_older)
        };
        if self.0.values().any(is_needless) {
            Arc::make_mut(&mut self.0).retain(|_, retained| !is_needless(retained));
        }
    }

    /// Gives up what is kept after `newest`. Reads can rely on what is left, because no compaction is under way.
    pub fn keep_through(&mut self, newest: Version) {
        if !self.is_empty() {
            for retained in Arc::make_mut(&mut self.0).values_mut() {
                let from = if retained.is_sure { retained.from.min(newest) } else { newest };
                (retained.from, retained.is_sure) = (from, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(3);

    fn retained(from: u64) -> Retained {
        Retained { retention: Retention::Everything, from: Version(from), is_sure: true }
    }

    fn pasts(rule: TableRule, from: u64) -> TablePasts {
        let mut pasts = TablePasts::default();
        pasts.set(TABLE, TableRetained { rule, from: Version(from), is_sure: true });
        pasts
    }

    #[test]
    fn a_rule_of_a_table_goes_before_that_of_the_database() {
        let from = |pasts: &TablePasts, database| pasts.past(TABLE, database).map(|past| past.from.0);
        let none = TablePasts::default();
        assert_eq!((from(&none, None), from(&none, Some(retained(5)))), (None, Some(5)));
        let nothing = pasts(TableRule::Own(Retention::None), 9);
        assert_eq!(from(&nothing, Some(retained(5))), None);
        let own = pasts(TableRule::Own(Retention::Versions(7)), 9);
        assert_eq!((from(&own, None), from(&own, Some(retained(5)))), (Some(9), Some(9)));
        let again = pasts(TableRule::OfDatabase, 9);
        assert_eq!(from(&again, None), None);
        assert_eq!((from(&again, Some(retained(5))), from(&again, Some(retained(12)))), (Some(9), Some(12)));
        assert_eq!(from(&own, None).map(|_| own.past(TableId(4), None)), Some(None));
    }

    #[test]
    fn a_table_that_keeps_what_the_database_keeps_is_forgotten() {
        for (rule, database, is_kept) in [
            (TableRule::OfDatabase, Some(retained(8)), true),
            (TableRule::OfDatabase, Some(retained(9)), false),
            (TableRule::OfDatabase, None, false),
            (TableRule::Own(Retention::Everything), Some(retained(9)), true),
        ] {
            let mut pasts = pasts(rule, 9);
            pasts.forget_needless(database);
            assert_eq!(!pasts.is_empty(), is_kept, "{rule:?} {database:?}");
        }
    }

    #[test]
    fn a_past_moves_on_only_by_its_own_rule() {
        let mut pasts = pasts(TableRule::Own(Retention::Versions(7)), 9);
        pasts.begin(TABLE, Retention::Everything, Version(20));
        assert_eq!(pasts.get(TABLE).map(|past| past.from), Some(Version(9)));
        pasts.begin(TABLE, Retention::Versions(7), Version(20));
        pasts.begin(TABLE, Retention::Versions(7), Version(15));
        assert_eq!(pasts.get(TABLE).map(|past| past.from), Some(Version(20)));
        pasts.keep_through(Version(12));
        assert_eq!(pasts.get(TABLE).map(|past| past.from), Some(Version(12)));
        pasts.remove(TABLE);
        assert!(pasts.is_empty());
    }
}
