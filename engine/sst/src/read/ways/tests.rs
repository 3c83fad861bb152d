//! A look-up must give the same answer wherever its way has ended, whatever is in memory.

use super::*;
use crate::fixture::{Content, shapes};
use crate::read::SoughtKey;
use crate::row::{RowKind, Version};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng, rngs::StdRng};

#[test]
fn answers_are_the_same_wherever_the_way_has_ended_from_every_source() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content::random(&mut rng, if seed == 0 { 400 } else { 60 });
        let shape = shapes()[rng.random_range(0..5)];
        let built = content.build(shape);
        let absent = content.rows.keys().map(|key| [key, &b"+"[..]].concat());
        let keys: Vec<Vec<u8>> = content.rows.keys().cloned().chain(absent).collect();
        let mut reached = [0; 6];
        built.on_every_source(|reader| {
            let sst = &reader.sst;
            for key in &keys {
                let expected = content.get(key, u64::MAX).map(|(version, kind, _)| (*version, *kind));
                for (begins, runs) in [(false, false), (true, false), (true, true)] {
                    let row = reader.step(20, |source| {
                        let mut ways = Ways::default();
                        match begins {
                            false => ways.add(),
                            true => sst.begin_way(&mut ways, source, key),
                        }
                        if runs {
                            ways.run(source);
                        }
                        reached[ways.all[0].at as usize] += 1;
                        sst.get_reached(source, &SoughtKey::new(key), Version::MAX, ways.reached(0))
                    });
                    assert_eq!(row.map(|row| (row.version.0, row.kind)), expected, "{key:?}, {begins}, {runs}");
                }
            }
        });
        let height = built.sst().meta.main.map_or(0, |main| main.root(false).height);
        let ends = [At::Node, At::DataMissing, At::Page];
        let has_met = |at: At| reached[at as usize] > 0;
        assert!(has_met(At::Nowhere) && (height < 1 || ends.into_iter().all(has_met)), "{reached:?}");
        assert!(height < 2 || has_met(At::AboveMissing), "{reached:?}");
        assert!(seed > 0 || height > 1, "the tree of seed 0 has nodes above nodes");
        assert!(!has_met(At::Child), "a way that has run has come to an end: {reached:?}");
    }
}

#[test]
fn a_value_that_is_taken_is_that_of_the_row_and_keys_together_are_found_as_they_are_alone() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut content = Content::random(&mut rng, 200);
        // If rows are hidden or keys are absent, no value is taken.
        let has_plain_rows = seed % 2 == 0;
        if has_plain_rows {
            content.range_erases.clear();
        }
        let built = content.build(shapes()[rng.random_range(0..5)]);
        let absent = content.rows.keys().map(|key| [key, &b"+"[..]].concat()).filter(|_| !has_plain_rows);
        let mut keys: Vec<Vec<u8>> = content.rows.keys().cloned().chain(absent).collect();
        keys.shuffle(&mut rng);
        let newest = content.rows.values().filter_map(|versions| versions.first().map(|(version, ..)| *version)).max();
        let (mut taken, mut looked_up) = (0, 0);
        built.on_every_source(|reader| {
            let sst = &reader.sst;
            for at in [u64::MAX, newest.unwrap_or(0) / 2] {
                for keys in keys.chunks(7) {
                    // Keys without an answer are looked up, and these look-ups bring the missing pages.
                    let answers: Vec<_> = reader.step(200, |source| {
                        let mut ways = Ways::default();
                        let mut answers = Vec::new();
                        for keys in keys.chunks(3) {
                            ways.clear();
                            keys.iter().for_each(|key| sst.begin_way(&mut ways, source, key));
                            ways.run(source);
                            for (i, key) in keys.iter().enumerate() {
                                answers.push(match sst.take_value(source, &mut ways, i, Version(at)) {
                                    Some((page, place)) => {
                                        taken += 1;
                                        Ok(page[place].to_vec())
                                    }
                                    None => {
                                        let (key, reached) = (SoughtKey::new(key), ways.reached(i));
                                        Err(sst.get_reached(source, &key, Version(at), reached))
                                    }
                                });
                            }
                        }
                        let stopped = |answer: &_| matches!(answer, Err(Err(_)));
                        match answers.iter().position(stopped) {
                            Some(i) => Err(answers.swap_remove(i).err().and_then(Result::err).expect("it stopped")),
                            None => {
                                Ok(answers.into_iter().map(|answer| answer.map_err(|row| row.ok().flatten())).collect())
                            }
                        }
                    });
                    for (key, answer) in keys.iter().zip(answers) {
                        let expected = content.get(key, at);
                        match answer {
                            Ok(value) => {
                                let (_, kind, expected) = expected.expect("a row was found");
                                assert_eq!((*kind, expected.as_slice()), (RowKind::Put, value.as_slice()), "{key:?}");
                            }
                            Err(row) => {
                                looked_up += 1;
                                let row = row.map(|row| (row.version.0, row.kind));
                                assert_eq!(row, expected.map(|(version, kind, _)| (*version, *kind)), "{key:?}");
                            }
                        }
                    }
                }
            }
        });
        let has_nodes = built.sst().meta.main.is_some_and(|main| main.root(false).height > 0);
        assert!(
            looked_up > 0 && (taken > 0 || !has_nodes || !has_plain_rows),
            "{taken} values taken, {looked_up} keys looked up"
        );
    }
}
