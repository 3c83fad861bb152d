//! Tests that a file gives back exactly what was written, and that damaged files are refused.

use super::*;

fn traces() -> Vec<Trace> {
    let access =
        |unit, how| TracedAccess { file: 7, unit, bytes: 4096, kind: PageKind::Data, how, reason: Reason::Scan };
    let accesses = vec![access(1, How::Needed), access(2, How::Ahead), access(1, How::Hit)];
    vec![
        Trace { name: "reads".to_owned(), operations: 2, accesses },
        Trace { name: "nothing".to_owned(), operations: 0, accesses: Vec::new() },
    ]
}

#[test]
fn traces_come_back_as_they_were() {
    assert_eq!(decode(&encode(&traces())), Some(traces()));
    assert_eq!(decode(MAGIC), Some(Vec::new()));
}

#[test]
fn damage_is_refused() {
    let bytes = encode(&traces());
    let ends: Vec<usize> = (0..bytes.len()).filter(|end| decode(&bytes[..*end]).is_some()).collect();
    // The file may end between two traces.
    assert_eq!(ends, [8, bytes.len() - 24]);
    // These places are bytes of the magic, and bytes of the first access: its fields kind, how, reason and zero.
    for place in [42, 43, 44, 45, 0] {
        let mut damaged = bytes.clone();
        damaged[place] = 0xFF;
        assert_eq!(decode(&damaged), None, "byte {place}");
    }
    // A count that is too large for any file.
    let mut long = bytes;
    long[22..30].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(decode(&long), None);
}
