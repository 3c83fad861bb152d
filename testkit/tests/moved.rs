//! A database whose directory is moved or removed while it is open. Then another database comes to the same place.

use testkit::moved::{CHANGES, Change, Changes, change_directory};

#[test]
fn two_writers_never_write_into_one_directory_whatever_was_moved_or_removed() {
    for change in CHANGES {
        let mut all = Changes::default();
        for seed in 0..100 {
            println!("{change:?}, seed {seed}");
            let Changes { durable_after, refused } = change_directory(seed, change);
            all.durable_after += durable_after;
            all.refused += refused;
        }
        match change {
            Change::Moved => assert!(all.refused == 0 && all.durable_after > 1000, "{all:?}"),
            Change::Removed | Change::Unlocked => assert!(all.refused > 1000 && all.durable_after == 0, "{all:?}"),
        }
    }
}
