use super::{Text, push_checkable};
use crate::vectors::named;

const FILE: &str = include_str!("../../vectors/keys.txt");

#[test]
fn checkable_values_are_those_of_java() {
    for case in named(FILE, "integrity") {
        for (name, expected) in &case.entries()[1..] {
            let (key, field) = name.split_once(' ').expect("key and field");
            let mut value = b"before".to_vec();
            push_checkable(key.as_bytes(), field.as_bytes(), case.get("fieldlength"), &mut value);
            assert_eq!(String::from_utf8_lossy(&value), format!("before{expected}"));
        }
    }
}

#[test]
fn text_is_printable_and_does_not_repeat() {
    let mut text = Text::of_client(1, 2);
    let mut seen = vec![0; 100_000];
    text.fill(&mut seen);
    assert!(seen.iter().all(|byte| (32..=95).contains(byte)), "{seen:?}");
    let mut eights: Vec<&[u8]> = seen.chunks_exact(8).collect();
    eights.sort_unstable();
    eights.dedup();
    assert_eq!(eights.len(), seen.len() / 8);
    for byte in 32..=95 {
        assert!(seen.contains(&byte), "{byte} never comes");
    }
}

#[test]
fn text_depends_on_seed_and_client_alone() {
    let text = |seed, client, bytes| {
        let mut out = vec![0; bytes];
        Text::of_client(seed, client).fill(&mut out);
        out
    };
    assert_eq!(text(1, 2, 100), text(1, 2, 100));
    assert_ne!(text(1, 2, 100), text(1, 3, 100));
    assert_ne!(text(1, 2, 100), text(2, 2, 100));
    for bytes in 0..60 {
        assert_eq!(text(1, 2, bytes), text(1, 2, 100)[..bytes]);
    }
}
