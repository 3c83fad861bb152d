//! In a node that `validate` accepts, all children and separators can be read and found.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use pages::{Address, PACK_BYTES};
use sst::Totals;
use sst::format::node::{Child, IndexNode, NodeBuilder, validate};
use std::collections::BTreeSet;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let node = if input.byte() == 0 {
        input.rest().to_vec()
    } else {
        let mut node = built(&mut input);
        assert_eq!(validate(&node), Ok(()), "a node we built");
        read(&node);
        input.change(&mut node, 8);
        node
    };
    if validate(&node).is_ok() {
        read(&node);
    }
});

fn built(input: &mut Input<'_>) -> Vec<u8> {
    let mut separators: BTreeSet<Vec<u8>> = (0..input.below(24)).map(|_| input.key()).collect();
    separators.remove([].as_slice());
    let mut builder = NodeBuilder::default();
    let mut totals = Totals::default();
    let mut children = Vec::new();
    // The separator of the first child is empty, because no child comes before it.
    for separator in std::iter::once(Vec::new()).chain(separators) {
        let step = input.number() >> 8;
        totals.rows += 1 + step % 1000;
        totals.bytes += step;
        totals.group_bytes += step >> 20;
        totals.erased += u64::from(input.byte());
        let offset = (input.number() >> 1) / PACK_BYTES * PACK_BYTES;
        let bytes = (1 + u32::from(input.byte())) * PACK_BYTES as u32;
        let child = Child { address: Address { offset, bytes, crc: input.number() as u32 }, totals };
        builder.add(&separator, child);
        children.push((separator, child));
    }
    let mut node = Vec::new();
    builder.finish(children.len(), &mut node, &mut Vec::new());
    let read = IndexNode::new(&node);
    assert_eq!(read.children(), children.len());
    for (i, (separator, child)) in children.iter().enumerate() {
        assert_eq!(read.child(i), *child);
        if let Some(before) = i.checked_sub(1) {
            let mut found = Vec::new();
            read.separator(before, &mut found);
            assert_eq!(found, *separator);
        }
    }
    node
}

fn read(page: &[u8]) {
    let node = IndexNode::new(page);
    let mut before = None::<Vec<u8>>;
    for i in 0..node.children() {
        let child = node.child(i);
        assert_eq!(child.address, node.address(i));
        assert!(child.address.offset.checked_add(child.address.bytes.into()).is_some());
        if let Some(last) = child.totals.rows.checked_sub(1) {
            assert!(node.search_row(last) <= i);
            assert!(i == 0 || node.search_row(last) == i, "row {last} is not found in child {i}");
        }
        if i + 1 < node.children() {
            let mut separator = Vec::new();
            node.separator(i, &mut separator);
            assert!(before.as_ref().is_none_or(|before| *before < separator), "separator {i} is out of order");
            assert_eq!(node.search(&separator), i + 1, "separator {i} is not found");
            before = Some(separator);
        }
    }
    assert_eq!(node.search(&[0xff; 70_000]), node.children() - 1);
    assert_eq!(node.search_row(u64::MAX), node.children() - 1);
}
