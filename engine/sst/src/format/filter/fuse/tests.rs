//! A partition of release 0.1 denies no hash whose fingerprint it has, and bytes of another shape are refused.
//! Files that this release has written are among the golden files.

use super::*;

/// A page that has the fingerprint of `hash`. It has `segments` segments for first places, each of 8 places, and
/// fingerprints of `bytes` bytes.
fn page_with(hash: u64, segments: u32, bytes: u8) -> Vec<u8> {
    let mut page = vec![0; SEGMENTS_AT];
    page[24] = 1;
    page.extend_from_slice(&segments.to_le_bytes());
    page.extend_from_slice(&7_u64.to_le_bytes());
    page.extend_from_slice(&[3, bytes, 0, 0, 0, 0, 0, 0]);
    let fingerprints = Fingerprints::of(&page);
    page.resize(FINGERPRINTS_AT + fingerprints.places() as usize * usize::from(bytes), 0);
    let h = mix(hash ^ 7);
    let at = FINGERPRINTS_AT + fingerprints.places_of(h)[0] * usize::from(bytes);
    let own = (h ^ (h >> 32)).to_le_bytes();
    page[at..at + usize::from(bytes)].copy_from_slice(&own[..usize::from(bytes)]);
    page
}

#[test]
fn a_hash_is_denied_unless_its_fingerprint_is_there() {
    for bytes in [1, 2] {
        for segments in [1, 2, 9] {
            for hash in (0..200).map(mix) {
                let page = page_with(hash, segments, bytes);
                assert_eq!(validate(&page), Ok(()));
                let fingerprints = Fingerprints::of(&page);
                assert!(fingerprints.may_contain(&page, hash), "{hash:x}");
                let others = (1..=100).filter(|i| fingerprints.may_contain(&page, hash.wrapping_add(*i))).count();
                assert!(others < 10, "{others} of 100 others");
                let count = (segments + 2) * 8;
                assert_eq!(fingerprints.to_string(), format!("{count} fingerprints of {} bits", bytes * 8));
            }
        }
    }
}

#[test]
fn without_fingerprints_everything_may_be_there() {
    let mut page = vec![0; FINGERPRINTS_AT];
    page[24] = 1;
    assert_eq!(validate(&page), Ok(()));
    assert!((0..100).all(|hash| Fingerprints::of(&page).may_contain(&page, mix(hash))));
}

#[test]
fn bytes_of_another_shape_are_refused() {
    let page = page_with(5, 1, 2);
    for len in 0..page.len() {
        assert!(validate(&page[..len]).is_err());
    }
    let check = |at: usize, bytes: &[u8]| {
        let mut changed = page.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        validate(&changed).expect_err("it is refused")
    };
    assert_eq!(check(SHAPE_AT, &[19]), "a filter of unknown shape [19, 2, 0, 0, 0, 0, 0, 0]");
    assert_eq!(check(SHAPE_AT + 1, &[0]), "a filter of 1 segments has fingerprints of 0 bytes");
    assert_eq!(check(SEGMENTS_AT, &[0; 4]), "a filter of 0 segments has fingerprints of 2 bytes");
    assert_eq!(check(SEGMENTS_AT, &[2]), format!("a filter of {} bytes in {}", page.len() + 16, page.len()));
    assert!(check(SEGMENTS_AT, &[0xff; 4]).contains("bytes in"), "more than a page has");
}
