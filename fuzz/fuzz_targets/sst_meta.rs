//! Footer and meta: what decodes, comes back when it is encoded again.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use os::BLOCK_BYTES;
use pages::Address;
use sst::format::meta::Unknown;
use sst::{GroupTrees, KeyBounds, MAX_GROUPS, Meta, Root, Totals, Tree, Version};

const META_AT: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    match input.byte() % 4 {
        0 => drop(Meta::from_footer(input.rest())),
        1 => meta(input.rest()),
        2 => {
            // A footer around a meta of the fuzzer's bytes.
            let meta = input.rest();
            let meta = &meta[..meta.len().min(BLOCK_BYTES - META_AT - 4)];
            let mut block = vec![0; BLOCK_BYTES];
            block[..8].copy_from_slice(b"LARCHSST");
            block[8..12].copy_from_slice(&sst::FORMAT_VERSION.to_le_bytes());
            block[12..16].copy_from_slice(meta.get(8..12).unwrap_or(&[0; 4]));
            block[16..24].copy_from_slice(meta.first_chunk::<8>().unwrap_or(&[0; 8]));
            block[24..28].copy_from_slice(&(meta.len() as u32).to_le_bytes());
            block[META_AT..][..meta.len()].copy_from_slice(meta);
            footer(block);
        }
        _ => {
            let built = built(&mut input);
            let mut block = built.footer();
            assert_eq!(Meta::from_footer(&block), Ok(built));
            input.change(&mut block[..BLOCK_BYTES - 4], 8);
            footer(block);
        }
    }
});

/// A meta alone, as the manifest has it.
fn meta(mut bytes: &[u8]) {
    let Ok(meta) = Meta::decode(&mut bytes) else { return };
    let mut again = Vec::new();
    meta.encode(&mut again);
    assert_eq!(Meta::decode(&mut again.as_slice()), Ok(meta));
}

/// A whole block, sealed here.
fn footer(mut block: Vec<u8>) {
    let (body, seal) = block.split_last_chunk_mut::<4>().expect("a block is longer");
    seal.copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let Ok(meta) = Meta::from_footer(&block) else { return };
    assert_eq!(Meta::from_footer(&meta.footer()).as_ref(), Ok(&meta));
    assert!(meta.trees().count() <= 3 + 2 * MAX_GROUPS);
    for (_, tree) in meta.trees() {
        assert!(tree.btree.or(tree.flat).is_some_and(|root| root == tree.root(false)));
    }
    meta.rows();
    meta.index_bytes();
}

fn built(input: &mut Input<'_>) -> Meta {
    let mut root = |present: bool| {
        present.then(|| Root {
            address: Address { offset: input.number(), bytes: input.number() as u32, crc: input.number() as u32 },
            height: input.byte(),
            index_bytes: input.number(),
        })
    };
    let (btree, flat) = (root(true), root(true));
    let mut tree = || {
        let which = input.byte() % 4;
        (which > 0).then(|| Tree {
            totals: Totals {
                rows: input.number(),
                bytes: input.number(),
                group_bytes: input.number(),
                erased: input.number(),
            },
            data_pages: input.number(),
            btree: btree.filter(|_| which & 1 != 0),
            flat: flat.filter(|_| which & 2 != 0),
        })
    };
    let (main, history, range_erases) = (tree(), tree(), tree());
    let count = usize::from(main.map_or(0, |tree| tree.totals.rows as u8)) % 4;
    let groups = (0..count).map(|_| GroupTrees { newest: tree(), older: tree() }).collect();
    Meta {
        file_id: input.number(),
        file_bytes: input.number(),
        main,
        history,
        range_erases,
        bounds: KeyBounds::cut(&input.key(), &input.key()),
        oldest: Version(input.number()),
        newest: Version(input.number()),
        value_bytes: input.number(),
        user_bytes: input.number(),
        groups,
        unknown: Unknown { features: u32::from(input.byte()) << 8, extension: input.bytes(9).to_vec() },
    }
}
