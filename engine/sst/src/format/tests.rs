//! Pages of a length that the format does not allow are refused when they are loaded.

use super::node::{Child, NodeBuilder, Totals};
use super::*;
use pages::Address;

/// A node with `children` children. Its separators have 64 KiB each, and no two of them begin with the same byte.
fn node(children: u8) -> Vec<u8> {
    let mut builder = NodeBuilder::default();
    for i in 0..children {
        let address = Address { offset: u64::from(i) * 4096, bytes: 4096, crc: 0 };
        let totals = Totals { rows: u64::from(i) + 1, bytes: u64::from(i + 1) * 4096, ..Totals::default() };
        builder.add(&vec![i; 64 << 10], Child { address, totals });
    }
    let mut page = Vec::new();
    builder.finish(children.into(), &mut page, &mut Vec::new());
    page
}

#[test]
fn a_node_beyond_its_limit_is_refused_and_a_list_has_another() {
    assert_eq!(validate(PageKind::Index, &node(4)), Ok(()));
    let larger = node(5);
    let why = format!("a node of {} bytes, at most 262144 are allowed", larger.len());
    assert_eq!(validate(PageKind::Index, &larger), Err(why));
    assert_eq!(validate(PageKind::Flat, &larger), Ok(()));
}

#[test]
fn a_value_chunk_has_a_byte_and_at_most_a_mebibyte() {
    let chunk = |bytes: usize| validate(PageKind::Value, &vec![0; HEADER_BYTES + bytes]);
    assert_eq!((chunk(1), chunk(1 << 20)), (Ok(()), Ok(())));
    for bytes in [0, (1 << 20) + 1] {
        assert_eq!(chunk(bytes), Err(format!("a value chunk of {bytes} bytes, 1 to 1048576 are allowed")));
    }
}
