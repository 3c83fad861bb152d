//! A footer or a meta that decodes stays the same when it is encoded and decoded again.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use os::BLOCK_BYTES;
use pages::Address;
use sst::format::field;
use sst::format::filter::FilterForm;
use sst::format::meta::Unknown;
use sst::{FilterTree, GroupTrees, KeyBounds, MAX_GROUPS, MAX_ORIGIN_BYTES, Meta, Root, Totals, Tree, Version};

const META_AT: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    match input.byte() % 4 {
        0 => drop(Meta::from_footer(input.rest())),
        1 => meta(input.rest()),
        2 => {
            // Makes a footer around a meta that the fuzzer has made.
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
            let origin = if built.has_origin { &b"origin"[..] } else { b"" };
            let mut block = built.footer(origin);
            assert_eq!(Meta::from_footer(&block), Ok(built));
            input.change(&mut block[..BLOCK_BYTES - 4], 8);
            footer(block);
        }
    }
});

/// Checks a meta without a footer, as the manifest has it.
fn meta(mut bytes: &[u8]) {
    let Ok(meta) = Meta::decode(&mut bytes) else { return };
    let mut again = Vec::new();
    meta.encode(&mut again);
    assert_eq!(Meta::decode(&mut again.as_slice()), Ok(meta));
}

/// Checks a footer block, after it has given the block the right checksum.
fn footer(mut block: Vec<u8>) {
    let (body, seal) = block.split_last_chunk_mut::<4>().expect("a block is longer");
    seal.copy_from_slice(&crc_fast::crc32_iscsi(body).to_le_bytes());
    let Ok((meta, origin)) = Meta::with_origin(&block) else { return };
    if !meta.has_origin || (1..=MAX_ORIGIN_BYTES).contains(&origin.len()) {
        assert_eq!(Meta::with_origin(&meta.footer(origin)), Ok((meta.clone(), origin)));
    }
    assert!(meta.trees().count() <= 4 + 2 * MAX_GROUPS);
    for (_, tree) in meta.trees() {
        let root = tree.root(false);
        assert_eq!(tree.btree.or(tree.flat), Some(root));
        assert_eq!(root.height == 0, tree.data_pages == 1);
        assert!(tree.flat.is_none_or(|flat| flat.height == root.height.min(1)));
    }
    let rows = |tree: Option<Tree>| tree.map(|tree| tree.totals.rows);
    for GroupTrees { newest, older } in &meta.groups {
        assert_eq!((rows(*newest), rows(*older)), (rows(meta.main), rows(meta.history.get())));
    }
    if let Some(FilterTree { tree, partition_rows, .. }) = meta.filter {
        assert_eq!(tree.totals.rows, meta.rows());
        assert!((tree.data_pages - 1).checked_mul(partition_rows.into()).is_some_and(|before| before < meta.rows()));
    }
    meta.rows();
    meta.index_bytes();
}

/// A meta such as a real file may have.
fn built(input: &mut Input<'_>) -> Meta {
    let [main, history, range_erases] = [(); 3].map(|()| {
        let rows = input.number();
        (input.byte() % 4 > 0).then(|| tree(input, rows))
    });
    let group_count = input.byte() % 4;
    let group = |_| GroupTrees {
        newest: main.map(|main| tree(input, main.totals.rows)),
        older: history.map(|history| tree(input, history.totals.rows)),
    };
    let groups = (0..group_count).map(group).collect();
    let partition_rows = 1 + input.number() as u32 / 2;
    let filter = main.filter(|main| main.totals.rows > 0 && partition_rows % 4 > 0).map(|main| {
        let data_pages = main.totals.rows.div_ceil(partition_rows.into());
        FilterTree {
            tree: tree_of(input, main.totals.rows, data_pages),
            partition_rows,
            prefix_bytes: input.number() as u16,
            form: input.choose(&[FilterForm::Fuse, FilterForm::Blocks]),
        }
    });
    Meta {
        groups,
        filter,
        file_id: input.number(),
        file_bytes: input.number(),
        main,
        history: history.into(),
        range_erases: range_erases.into(),
        bounds: KeyBounds::cut(&input.key(), &input.key()),
        oldest: Version(input.number()),
        newest: Version(input.number()),
        value_bytes: input.number(),
        user_bytes: input.number(),
        has_origin: input.byte() % 2 == 0,
        has_samples: input.byte() % 2 == 0,
        has_zstd: input.byte() % 2 == 0,
        has_merges: false,
        expiry: None,
        unknown: Unknown { features: u32::from(input.byte()) << 8, extension: extension(input) },
    }
}

/// Returns fields of the extension that a reader may skip because it does not know them.
fn extension(input: &mut Input<'_>) -> Vec<u8> {
    let mut extension = Vec::new();
    for _ in 0..input.byte() % 3 {
        field::put(&mut extension, input.byte() | 128, input.bytes(9));
    }
    extension
}

/// A tree of `rows` rows. The tree either has one page, which is also its root, or it has a B-tree, a flat list or
/// both above its pages.
fn tree(input: &mut Input<'_>, rows: u64) -> Tree {
    let data_pages = input.number();
    tree_of(input, rows, data_pages)
}

/// Like [`tree`], with `data_pages` pages.
fn tree_of(input: &mut Input<'_>, rows: u64, data_pages: u64) -> Tree {
    let totals = Totals { rows, bytes: input.number(), group_bytes: input.number(), erased: input.number() };
    let height = if data_pages == 1 { 0 } else { input.byte().max(1) };
    let mut root = |height: u8| Root {
        address: Address { offset: input.number(), bytes: input.number() as u32, crc: input.number() as u32 },
        height,
        index_bytes: input.number(),
    };
    let btree = root(height);
    let flat = if height == 0 { btree } else { root(1) };
    let which = 1 + input.byte() % 3;
    let (btree, flat) = ((which & 1 != 0).then_some(btree), (which & 2 != 0).then_some(flat));
    Tree { totals, data_pages, btree, flat }
}
