//! Any bytes can be shown as a text that parses to the same bytes. Bytes that decode as a key encode to the same
//! bytes.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use rows::{Declaration, FieldType, Kind};

const KINDS: [Kind; 8] =
    [Kind::Bool, Kind::U16, Kind::I64, Kind::F32, Kind::F64, Kind::String, Kind::Bytes, Kind::Fixed(3)];

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let count = 1 + input.below(4);
    let field = |_| {
        let flags = input.byte();
        FieldType { kind: input.choose(&KINDS), is_optional: flags & 1 > 0, is_descending: flags & 2 > 0 }
    };
    let declaration = Declaration::new((0..count).map(field).collect::<Vec<_>>());
    assert_eq!(declaration.to_string().parse().as_ref(), Ok(&declaration));

    let bytes = input.rest();
    let text = declaration.show(bytes);
    assert_eq!(declaration.parse_front(&text).as_deref(), Ok(bytes), "{declaration}: {text}");
    if let Ok((values, rest)) = declaration.decode_front(bytes) {
        let mut again = Vec::new();
        assert_eq!(declaration.encode(&values, &mut again), Ok(()));
        assert_eq!([&again, rest].concat(), bytes);
    }
    // Here the bytes are taken as a text that a person writes.
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(key) = declaration.parse_key(text) {
            assert_eq!(declaration.decode(&key).map(|values| values.len()), Ok(count), "a key from its text");
        }
        if let Ok(declaration) = text.parse::<Declaration>() {
            assert_eq!(Declaration::from_bytes(&declaration.to_bytes()), Ok(declaration));
        }
    }
});
