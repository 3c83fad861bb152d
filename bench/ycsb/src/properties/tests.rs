use super::{BadSyntax, Properties};
use crate::random::Random;
use crate::vectors::named;

#[test]
fn files_are_read_as_java_reads_them() {
    let mut properties = Properties::new();
    properties.load(include_bytes!("../../vectors/syntax.properties")).expect("Java reads it, too");
    let escaped = |text: &str| -> String {
        let plain = |unit: u16| (0x21..0x7f).contains(&unit) && unit != u16::from(b'\\') && unit != u16::from(b'=');
        let show = |unit| match plain(unit) {
            true => char::from(unit as u8).to_string(),
            false => format!("\\u{unit:04x}"),
        };
        text.encode_utf16().map(show).collect()
    };
    let [case] = &named(include_str!("../../vectors/properties.txt"), "syntax")[..] else { panic!("one case") };
    let read: Vec<(String, String)> = properties.iter().map(|(name, value)| (escaped(name), escaped(value))).collect();
    let mut expected: Vec<(String, String)> =
        case.entries().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    expected.sort();
    let mut read = read;
    read.sort();
    assert_eq!(read, expected);
}

#[test]
fn a_broken_escape_is_named_by_its_line() {
    let load = |file: &[u8]| Properties::new().load(file);
    assert_eq!(load(b"a=1\n\nb=\\u12"), Err(BadSyntax::Escape { line: 3 }));
    assert_eq!(load(b"a=\\u00g1"), Err(BadSyntax::Escape { line: 1 }));
    assert_eq!(load(b"# \\u00g1"), Ok(()));
}

#[test]
fn arguments_come_over_files() {
    let mut properties = Properties::new();
    properties.load(b"a=1\nb=2").expect("two properties");
    properties.set_argument("a=3=4").expect("a property");
    properties.set_argument("c=").expect("a property");
    assert_eq!(properties.get("a"), Some("3=4"));
    assert_eq!(properties.get("b"), Some("2"));
    assert_eq!(properties.get("c"), Some(""));
    assert_eq!(properties.set_argument("d"), Err(BadSyntax::NoValue("d".to_owned())));
}

#[test]
fn any_bytes_are_read_or_refused() {
    for seed in 0..2000 {
        let mut random = Random::with_state(seed);
        let alphabet = b"a1 =:#!\\u\n\r\t\x0c\xe9\0";
        let bytes: Vec<u8> =
            (0..random.below(40)).map(|_| alphabet[random.below(alphabet.len() as i32) as usize]).collect();
        let mut properties = Properties::new();
        if properties.load(&bytes).is_err() {
            let text = String::from_utf8_lossy(&bytes);
            assert!(text.contains("\\u"), "seed {seed}: {text:?}");
        }
    }
}
