//! Compares several joined memtables with one memtable that has the same commits.

use super::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sst::{RowKind, Version};

#[test]
fn memtables_together_have_the_rows_and_range_erases_of_one_in_its_order() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let whole = Memtable::new();
        let parts: Vec<Arc<Memtable>> = (0..random.random_range(2..5)).map(|_| Arc::new(Memtable::new())).collect();
        let mut version = Version(0);
        for part in &parts {
            for _ in 0..random.random_range(0..20) {
                version = Version(version.0 + 1);
                let key = [random.random_range(b'a'..b'm')];
                let end = [random.random_range(b'a'..b'n')];
                for memtable in [&whole, &**part] {
                    match version.0 % 3 {
                        0 => drop(memtable.remove_range(&key, &end, version)),
                        1 => memtable.apply(&key, version, RowKind::Erase, &[]),
                        _ => memtable.apply(&key, version, RowKind::Put, &version.0.to_le_bytes()),
                    }
                }
            }
        }
        let newest_first: Vec<_> = parts.into_iter().rev().collect();
        let row = |row: MemRow| (row.key().to_vec(), row.version(), row.kind(), row.value().to_vec());
        let rows: Vec<_> = Joined::of(&newest_first).map(row).collect();
        assert_eq!(rows, whole.all_versions().map(row).collect::<Vec<_>>(), "seed {seed}");
        let joined: Vec<_> = joined_erases(&newest_first).range_erases().collect();
        assert_eq!(joined, whole.range_erases().collect::<Vec<_>>(), "seed {seed}");
    }
}
