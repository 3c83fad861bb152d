//! A look-up answers the same from wherever an approach has stopped, whatever is in memory.

use super::*;
use crate::fixture::{Content, shapes};
use crate::read::SoughtKey;
use crate::row::Version;
use rand::{RngExt, SeedableRng, rngs::StdRng};

#[test]
fn answers_are_the_same_after_each_stage_from_every_source() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content::random(&mut rng, 60);
        let shape = shapes()[rng.random_range(0..5)];
        let built = content.build(shape);
        let absent = content.rows.keys().map(|key| [key, &b"+"[..]].concat());
        let keys: Vec<Vec<u8>> = content.rows.keys().cloned().chain(absent).collect();
        let mut reached = [0; 6];
        built.on_every_source(|reader| {
            let sst = &reader.sst;
            for key in &keys {
                let expected = content.get(key, u64::MAX).map(|(version, kind, _)| (*version, *kind));
                for stages in 0..9 {
                    let row = reader.step(20, |source| {
                        let (mut roots, mut approach) = (Roots::default(), Approach::default());
                        if stages > 0 {
                            sst.approach(source, &mut roots, key, &mut approach);
                        }
                        for _ in 1..stages {
                            approach.advance(source, &sst.file, key);
                        }
                        reached[approach.stage as usize] += 1;
                        sst.get_filtered(source, &SoughtKey::new(key), Version::MAX, Some(&approach))
                    });
                    assert_eq!(row.map(|row| (row.version.0, row.kind)), expected, "{key:?} after {stages} stages");
                }
            }
        });
        let has_nodes = built.sst().meta.main.is_some_and(|main| main.root(false).height > 0);
        assert!(
            reached[0] > 0
                && (!has_nodes
                    || [Stage::Page, Stage::Missing, Stage::Row].iter().all(|&stage| reached[stage as usize] > 0)),
            "{reached:?}"
        );
    }
}
