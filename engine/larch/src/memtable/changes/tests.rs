//! Compares what a memtable says has changed after a version with a model that looks at every write.

use super::*;
use crate::base::record::tests::seeds;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sst::RowKind;

/// The keys and the version of a write.
type Write = (KeyRange, u64);

fn key(rng: &mut StdRng) -> Vec<u8> {
    format!("k{:02}", rng.random_range(0..30)).into_bytes()
}

fn write(rng: &mut StdRng, memtable: &Memtable, version: u64) -> Option<Write> {
    if rng.random_range(0..10) == 0 {
        let (start, end) = (key(rng), if rng.random_range(0..4) == 0 { Vec::new() } else { key(rng) });
        memtable.remove_range(&start, &end, Version(version));
        return Some((KeyRange::new(start, Some(end).filter(|end| !end.is_empty()))?, version));
    }
    let (key, kind) = (key(rng), if rng.random_range(0..3) == 0 { RowKind::Erase } else { RowKind::Put });
    memtable.batch().apply(&key, Version(version), kind, b"");
    Some((KeyRange::of_key(&key), version))
}

#[test]
fn every_write_after_a_version_is_found_and_no_other() {
    for seed in seeds(200) {
        let mut rng = StdRng::seed_from_u64(seed);
        let memtable = Memtable::new();
        let writes: Vec<Write> = (1..60).filter_map(|version| write(&mut rng, &memtable, version)).collect();
        for _ in 0..200 {
            let (key, since) = (key(&mut rng), rng.random_range(0..62));
            let is_later = |keys: &KeyRange, version: &u64| *version > since && keys.contains(&key);
            let expected = writes.iter().any(|(keys, version)| is_later(keys, version));
            assert_eq!(memtable.has_changed(&key, Version(since)), expected, "{} {since}", key.escape_ascii());
        }
        for _ in 0..200 {
            let (start, end, since) = (key(&mut rng), key(&mut rng), rng.random_range(0..62));
            let Some(range) = KeyRange::new(start, Some(end)) else { continue };
            let borrowed = KeyRange { start: range.start.as_slice(), end: range.end.as_deref() };
            let found = memtable.changed_key(&borrowed, Version(since));
            let later = || writes.iter().filter(|(_, version)| *version > since);
            assert_eq!(found.is_some(), later().any(|(keys, _)| keys.overlaps(&range)), "{range:?} {since}");
            let is_right = |key: &Vec<u8>| range.contains(key) && later().any(|(keys, _)| keys.contains(key));
            assert!(found.iter().all(is_right), "{found:?} of {range:?}");
        }
    }
}
