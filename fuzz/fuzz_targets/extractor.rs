//! An extractor that parses stays the same when it is written and read again, and the keys that it makes of any row
//! decode by its declaration.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use rows::Extractor;

/// Examples of extractors. The fuzzer makes other extractors from parts of these.
const DECLARED: [&str; 8] = [
    "key, value[2..6].le f32?",
    "key.tuple(u8, string? desc, bytes)[1] desc, value.split(',')[*] i16 lenient",
    "value.text f64, part(1).be u32 desc",
    r#"value.json("$.a[*].b") string?"#,
    r#"value.json("$[*]") f64 lenient, key[..3]"#,
    r#"value.json("$.a['b'][0]") bool required"#,
    "value string? desc, part(1)[1..]",
    "value.split(':')[1] u128, key bytes[2]",
];

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let declared = match input.below(DECLARED.len() + 1) {
        known @ 0..8 => DECLARED[known],
        _ => std::str::from_utf8(input.bytes(200)).unwrap_or_default(),
    };
    let Ok(extractor) = declared.parse::<Extractor>() else { return };
    assert_eq!(Extractor::from_bytes(&extractor.to_bytes()).as_ref(), Ok(&extractor));

    let (key, first) = (input.bytes(20), input.bytes(200));
    let parts = [first, input.rest()];
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let result = extractor.index_keys(key, &|group| parts.get(group).copied(), &mut |key| keys.push(key.to_vec()));
    assert!(result.is_ok() || keys.is_empty());
    assert!(keys.is_sorted_by(|a, b| a < b));
    for key in keys {
        extractor.declaration().decode(&key).expect("a key of the index");
    }
});
