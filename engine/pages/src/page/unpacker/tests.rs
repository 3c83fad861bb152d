//! What unpacking promises: which bytes come back, what it refuses, and which contexts it keeps.

use super::*;
use crate::flaky::SplitMix;
use crate::page::packer::Packer;

/// `payload` compressed by zstd.
fn packed(payload: &[u8]) -> Vec<u8> {
    let mut page = payload.to_vec();
    let bytes = Packer::default().zstd(&mut page, 0, 3).expect("this build has zstd");
    page[payload.len()..][..bytes].to_vec()
}

fn rows(count: u32) -> Vec<u8> {
    (0..count).flat_map(|row| format!("row {row} of the table;").into_bytes()).collect()
}

#[test]
fn a_payload_unpacks_to_its_length_and_into_no_less() {
    let unpacker = Unpacker::default();
    let rows = rows(100);
    let packed = packed(&rows);
    let unpack = |bytes: usize| {
        let mut payload = vec![0; bytes];
        unpacker.zstd(&packed, &mut payload).map(|length| payload[..length].to_vec())
    };
    assert_eq!(unpack(rows.len()), Ok(rows.clone()));
    assert_eq!(unpack(rows.len() + 1), Ok(rows.clone()));
    for less in [1, rows.len() / 2, rows.len()] {
        assert_eq!(
            unpack(rows.len() - less),
            Err(Undecoded::Damaged("does not unpack: destination buffer is too small".to_owned()))
        );
    }
}

#[test]
fn bytes_that_are_no_frame_are_refused_and_the_next_page_unpacks() {
    let seed = 9;
    println!("seed {seed}");
    let mut random = SplitMix(seed);
    let unpacker = Unpacker::default();
    let rows = rows(200);
    let packed = packed(&rows);
    let mut payload = vec![0; rows.len()];
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut wrong = packed.clone();
        for _ in 0..1 + random.next() % 3 {
            let place = random.next() as usize % wrong.len();
            wrong[place] = random.next() as u8;
        }
        wrong.truncate(wrong.len() - random.next() as usize % 3);
        refused += u32::from(unpacker.zstd(&wrong, &mut payload).is_err());
        assert_eq!(unpacker.zstd(&packed, &mut payload), Ok(rows.len()), "this one is whole");
        assert_eq!(payload, rows);
    }
    assert!(refused > 5_000, "{refused}");
}

#[test]
fn one_context_is_kept_always_and_more_up_to_the_limit() {
    let unpacker = Unpacker::default();
    let [first, second, third] = [(); 3].map(|()| unpacker.take());
    let each = size(&first);
    assert!((64 << 10..=128 << 10).contains(&each), "{each}: as the documents say");
    assert_eq!(unpacker.memory_bytes(), 3 * each);
    [first, second, third].into_iter().for_each(|context| unpacker.give_back(context));
    assert_eq!(unpacker.memory_bytes(), each);

    unpacker.set_most_idle_bytes(2 * each);
    let contexts = [(); 3].map(|()| unpacker.take());
    assert_eq!(unpacker.memory_bytes(), 3 * each);
    contexts.into_iter().for_each(|context| unpacker.give_back(context));
    assert_eq!(unpacker.memory_bytes(), 2 * each);
    unpacker.set_most_idle_bytes(2 * each - 1);
    assert_eq!(unpacker.memory_bytes(), each);
    unpacker.set_most_idle_bytes(0);
    assert_eq!(unpacker.memory_bytes(), each);
}
