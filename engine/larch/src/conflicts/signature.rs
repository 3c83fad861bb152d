//! Represents a set of keys by 64 bits, like a tiny Bloom filter, and keeps the signatures of the latest commits.
//! This module does not know what a transaction is.
//!
//! Under the writer's lock, a transaction is compared with the commits since its last comparison. Some of them may
//! not be applied to the memtables yet, and waiting for them under the lock would make all other commits wait, too.
//! Usually, the signatures already prove that such a commit wrote nothing on which the transaction depends.

use crate::base::ops::{CommitOps, Op};
use crate::base::table::TableId;
use sst::Version;
use sst::format::filter::hash_key;

/// A set of keys, as bits. Two sets without a common bit have no key in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(u64);

/// A commit with more operations than this gets a signature with all bits set, because most would be set anyway.
const MOST_OPS: u32 = 32;

impl Signature {
    /// The signature of the empty set.
    pub const NONE: Self = Self(0);
    /// The signature that stands for any key.
    pub const ANY: Self = Self(u64::MAX);

    /// The signature of the keys that `ops` write.
    pub fn of_ops(ops: CommitOps<'_>) -> Self {
        if ops.count() > MOST_OPS {
            return Self::ANY;
        }
        let mut keys = Self::NONE;
        for (table, op) in ops.iter() {
            match op {
                Op::Put { key, .. } | Op::Merge { key, .. } | Op::Erase { key } => keys.add(TableId(table), key),
                Op::RangeErase { .. } => return Self::ANY,
            }
        }
        keys
    }

    /// Adds `key` of `table`.
    pub fn add(&mut self, table: TableId, key: &[u8]) {
        // The same hash as in filters. The table id is mixed in, so that equal keys of two tables usually get
        // different bits.
        let hash = hash_key(key) ^ u64::from(table.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 |= 1 << (hash >> 58);
    }

    /// Whether the two sets may have a key in common.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The signatures of this many commits are kept, which is also the most commits that can be applied at the same
/// time.
const COMMITS: usize = 64;

/// The keys that the latest commits wrote.
#[derive(Debug)]
pub struct LatestKeys {
    /// A ring: a commit's version determines its place, which has the version and the signature of the keys
    /// written.
    commits: [(Version, Signature); COMMITS],
}

impl Default for LatestKeys {
    fn default() -> Self {
        Self { commits: [(Version(0), Signature::ANY); COMMITS] }
    }
}

impl LatestKeys {
    /// Notes that the commit `version` writes `keys`.
    pub fn note(&mut self, version: Version, keys: Signature) {
        self.commits[version.0 as usize % COMMITS] = (version, keys);
    }

    /// Whether some commit after the version `after`, up to the version `to`, may have written one of `keys`. True
    /// if the signature of such a commit is not kept.
    pub fn may_have(&self, keys: Signature, after: Version, to: Version) -> bool {
        if to.0.saturating_sub(after.0) > COMMITS as u64 {
            return true;
        }
        (after.0 + 1..=to.0).any(|version| {
            let (known, written) = self.commits[version as usize % COMMITS];
            known != Version(version) || written.meets(keys)
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn signature(keys: &[&str]) -> Signature {
        let mut signature = Signature::NONE;
        keys.iter().for_each(|key| signature.add(TableId(1), key.as_bytes()));
        signature
    }

    #[test]
    fn signatures_with_a_common_key_meet_and_most_others_do_not() {
        let keys: Vec<String> = (0..1000).map(|number| format!("key {number}")).collect();
        let mut met = 0;
        for (number, key) in keys.iter().enumerate() {
            assert!(signature(&[key, "a", "b"]).meets(signature(&["c", key])));
            met += usize::from(signature(&[key]).meets(signature(&[&keys[(number + 1) % 1000]])));
        }
        assert!(met < 50, "{met} of 1,000 pairs met, 16 are expected");
        assert!(!signature(&[]).meets(Signature::ANY) && signature(&["a"]).meets(Signature::ANY));
    }

    #[test]
    fn a_commit_that_is_not_known_may_have_written_anything() {
        let mut latest = LatestKeys::default();
        let (ours, other) = (signature(&["a"]), signature(&["b"]));
        assert!(!ours.meets(other), "the test is about two bits");
        assert!(latest.may_have(ours, Version(4), Version(5)), "nothing is known of 5");
        for version in 1..=100 {
            latest.note(Version(version), if version == 50 { ours } else { other });
        }
        assert!(!latest.may_have(ours, Version(50), Version(100)));
        assert!(latest.may_have(ours, Version(49), Version(100)));
        assert!(latest.may_have(ours, Version(50), Version(101)), "nothing is known of 101");
        assert!(latest.may_have(other, Version(30), Version(100)), "36 and those before it were replaced");
        assert!(!latest.may_have(ours, Version(100), Version(100)), "nothing came since");
        latest.note(Version(102), other);
        assert!(latest.may_have(ours, Version(100), Version(102)), "101 took its version in another way");
    }
}
