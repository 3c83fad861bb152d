use super::{NotARow, Strings};

fn strings(all: &[&[u8]]) -> Strings {
    let mut made = Strings::new();
    all.iter().for_each(|string| made.push(string));
    made
}

#[test]
fn a_row_of_one_field_is_kept_as_that_field() {
    let mut value = Vec::new();
    strings(&[b"ada"]).encode(&mut value);
    assert_eq!(value, b"ada");
    let mut back = Strings::new();
    back.decode(&value, 1).expect("one field is any bytes");
    assert_eq!(back, strings(&[b"ada"]));
}

#[test]
fn fields_come_back_together_and_alone() {
    let row = strings(&[b"a", b"", b"\xff\0", b"last"]);
    let mut value = Vec::new();
    row.encode(&mut value);
    let mut back = Strings::new();
    back.decode(&value, 4).expect("it was encoded so");
    assert_eq!(back, row);
    for (field, string) in row.iter().enumerate() {
        back.clear();
        back.decode_one(&value, 4, field).expect("it was encoded so");
        assert_eq!(back.get(0), Some(string));
    }
}

#[test]
fn every_cut_of_a_row_is_refused() {
    let mut value = Vec::new();
    strings(&[b"a", b"bc"]).encode(&mut value);
    for length in 0..value.len() {
        let cut = &value[..length];
        let mut back = strings(&[b"before"]);
        assert_eq!(back.decode(cut, 2), Err(NotARow { bytes: length, fields: 2 }), "{length} bytes");
        assert_eq!(back, strings(&[b"before"]), "nothing is left of it");
    }
    let mut back = Strings::new();
    let falling = [2, 0, 0, 0, 1, 0, 0, 0, b'x', b'y'];
    assert!(back.decode(&falling, 2).is_err());
    assert!(back.decode_one(&falling, 2, 1).is_err());
}

#[test]
fn a_field_is_replaced_by_a_longer_and_by_a_shorter_one() {
    let mut row = strings(&[b"a", b"bc", b"d"]);
    row.replace(1, b"longer");
    assert_eq!(row, strings(&[b"a", b"longer", b"d"]));
    row.replace(1, b"");
    assert_eq!(row, strings(&[b"a", b"", b"d"]));
    row.replace(0, b"now");
    assert_eq!(row, strings(&[b"now", b"", b"d"]));
}
