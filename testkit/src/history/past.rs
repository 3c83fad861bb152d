//! Checks what the engine says of the past that it retains: the feed of changes, and the rows in which versions differ.

use crate::model::Model;
use larch::past::{ChangeKind, Difference};
use larch::{Database, Error, MergeOp, Result, Table, Version};
use std::collections::{BTreeMap, BTreeSet};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows(model: &Model, name: &str, at: Version) -> Rows {
    model.rows(name, at).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Checks that the commits after the version `from`, as a feed gives them, lead from the rows of then to those of each
/// later commit.
pub fn expect_feed(db: &Database, model: &Model, name: &str, table: &Table, from: Version) -> Result<()> {
    let mut feed = db.changes(from)?.of(table)?;
    let (mut now, mut last) = (rows(model, name, from), from);
    loop {
        let change = match feed.next_change() {
            Err(error @ Error::ChangesGone { .. }) => panic!("{name:?} from {from:?}: {error}"),
            next => next?,
        };
        let Some(change) = change else { break };
        let what = || format!("{name:?} from {from:?}: {change:?}");
        assert_eq!(change.table_number(), table.number(), "{}", what());
        assert!(change.version() > last, "{}: given again", what());
        match change.kind() {
            ChangeKind::Put { key, value, .. } => drop(now.insert(key.to_vec(), value.concat())),
            ChangeKind::Merge { key, op: MergeOp::Append(bytes) } => {
                now.entry(key.to_vec()).or_default().extend_from_slice(bytes);
            }
            ChangeKind::Erase { key } => drop(now.remove(key)),
            ChangeKind::EraseRange { start, end } => {
                now.retain(|key, _| &key[..] < start || end.is_some_and(|end| end <= &key[..]));
            }
            other => panic!("{}: {other:?}", what()),
        }
        if change.is_last() {
            last = change.version();
            assert_eq!(feed.position(), last, "{}", what());
            assert!(now == rows(model, name, last), "{}: the rows after it differ", what());
        }
    }
    let position = feed.position();
    assert!(position >= last && now == rows(model, name, position), "{name:?} from {from:?} to {position:?}");
    Ok(())
}

/// Checks the rows in which `table` differs between the version `from` and the newest.
pub fn expect_diff(db: &Database, model: &Model, name: &str, table: &Table, from: Version) -> Result<()> {
    let (then, now) = (db.at(from)?, db.snapshot());
    let [before, after] = [rows(model, name, from), rows(model, name, now.version())];
    let keys: BTreeSet<&Vec<u8>> =
        before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key)).collect();
    let mut expected = keys.into_iter();
    for difference in table.diff(&then, &now, ..)? {
        let Difference { key, before: old, after: new, .. } = difference?;
        let what = || format!("{name:?} from {from:?}: {}", key.escape_ascii());
        assert_eq!(Some(&key), expected.next(), "{}", what());
        let [old, new] = [old, new].map(|parts| parts.map(|parts| parts.concat()));
        assert_eq!((old.as_ref(), new.as_ref()), (before.get(&key), after.get(&key)), "{}", what());
    }
    assert_eq!(expected.next(), None, "{name:?} from {from:?}: the diff lacks a row");
    Ok(())
}
