//! Every row can be read from a page of rows, or of parts of rows, that `validate` accepts, and a search finds rows
//! by key.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use sst::format::data_page::{DataPageBuilder, Layout, validate};
use sst::format::group_page::{self, GroupLayout, GroupPageBuilder};
use sst::format::{OutsideValue, PageRows};
use sst::{RowKind, Until, Version};
use std::collections::BTreeMap;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let kind = input.byte();
    if kind & 1 != 0 {
        return parts(input, kind & 2 != 0);
    }
    let page = if kind == 0 {
        input.rest().to_vec()
    } else {
        let mut page = built(&mut input);
        assert_eq!(validate(&page), Ok(()), "a page we built");
        read(&page);
        input.change(&mut page, 8);
        page
    };
    if validate(&page).is_ok() {
        read(&page);
    }
});

/// Builds a page of a column group, or takes the bytes for such a page, and reads the page.
fn parts(mut input: Input<'_>, is_built: bool) {
    let mut page = Vec::new();
    if is_built {
        let mut builder = GroupPageBuilder::default();
        for _ in 0..1 + input.below(24) {
            let (number, flags, part) = (input.number(), input.byte(), input.bytes(40));
            let reference = reference(number);
            let outside = flags & 4 != 0;
            builder.add(if outside { &reference } else { &part }, outside);
        }
        builder.finish(&mut page);
        assert_eq!(group_page::validate(&page), Ok(()), "a page we built");
        input.change(&mut page, 8);
    } else {
        page.extend_from_slice(input.rest());
    }
    if group_page::validate(&page).is_ok() {
        let layout = GroupLayout::of(&page);
        for i in 0..layout.rows() {
            let part = layout.part(&page, i);
            let bytes = &page[part.at..part.at + part.bytes];
            assert!(!part.outside || OutsideValue::new(bytes).is_some());
        }
    }
}

/// Returns a reference to a value outside its page, which has one chunk. The length of the value is computed from
/// `number`.
fn reference(number: u64) -> Vec<u8> {
    let mut reference = Vec::new();
    let chunk = pages::Address { offset: number >> 1, bytes: 4160, crc: 0 };
    OutsideValue::encode(&mut reference, 1 + number % 4096, &[chunk]);
    reference
}

/// The time of a row with this version.
fn until(version: u64) -> Until {
    Until::from_millis(version ^ 0x55)
}

fn built(input: &mut Input<'_>) -> Vec<u8> {
    let mut rows = BTreeMap::new();
    for _ in 0..1 + input.below(24) {
        let key = input.key();
        rows.insert(key, (input.number(), input.byte(), input.bytes(40)));
    }
    let mut builder = DataPageBuilder::new(input.number() >> 1);
    for (key, (version, flags, value)) in &rows {
        let kind = RowKind::from_u8(flags % 4).expect("there are four");
        let reference = reference(*version);
        let outside = flags & 4 != 0;
        let stored: &[u8] = if outside { &reference } else { value };
        match kind {
            RowKind::PutUntil => builder.add_until(key, Version(*version), until(*version), outside, stored),
            kind => builder.add(key, Version(*version), kind, outside, stored),
        }
        if flags & 8 != 0 {
            builder.mark_history();
        }
    }
    let mut page = Vec::new();
    builder.finish(&mut page);
    let layout = Layout::of(&page);
    for (i, (key, (version, flags, value))) in rows.iter().enumerate() {
        let mut found = Vec::new();
        let record = layout.read_row(&page, i, &mut found);
        assert_eq!((&found, record.version.0, record.kind as u8), (key, *version, flags % 4));
        assert_eq!(record.until(&page), (flags % 4 == 3).then(|| until(*version)));
        assert!(record.outside || page[record.value_at..][..record.value_bytes] == **value);
    }
    page
}

fn read(page: &[u8]) {
    let layout = Layout::of(page);
    let (mut key, mut before, mut copied) = (Vec::new(), None::<Vec<u8>>, [0; 16]);
    assert!(layout.rows() > 0);
    for i in 0..layout.rows() {
        let record = layout.read_row(page, i, &mut key);
        assert_eq!(record, layout.record(page, i));
        assert!(key.starts_with(layout.prefix(page)));
        let value = &page[record.value_at..][..record.value_bytes];
        if record.outside {
            let reference = OutsideValue::new(value).expect("the check has decoded it");
            assert!(reference.chunks().count() > 0);
        }
        assert!(before.as_ref().is_none_or(|before| *before < key), "row {i} is out of order");
        assert_eq!(layout.search(page, &key), Ok(i), "row {i} is not found");
        layout.copy_key(page, i, &mut copied);
        assert!(key.iter().chain(std::iter::repeat(&0)).zip(&copied).all(|(a, b)| a == b));
        // Searches for the shortest string that sorts after the key. That string is the key of the next row, or
        // lies between the keys of the two rows.
        key.push(0);
        let place = layout.search(page, &key);
        assert!(place == Err(i + 1) || place == Ok(i + 1), "{place:?} after row {i}");
        key.pop();
        before = Some(key.clone());
    }
    assert_eq!(layout.search(page, &[0xff; 70_000]), Err(layout.rows()));
}
