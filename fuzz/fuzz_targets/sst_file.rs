//! Takes any bytes as an SST that is opened by its footer. The file is dumped, verified and read. None of this may
//! panic.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Access, BLOCK_BYTES, Disk};
use pages::page::checksum;
use pages::{Address, Flaky, PageKind, PagedFile, Resident, retry};
use sst::format::data_page::{self, Layout};
use sst::format::group_page::{self, GroupLayout};
use sst::format::node::{self, IndexNode};
use sst::format::{OutsideValue, PageRows};
use sst::precharge::{self, ReadPlan, Shares};
use sst::stats::{self, Histogram, HistogramSource, Metric};
use sst::{
    AtMost, BuildOptions, Compression, Direction, DumpDetail, EraseCursor, FilterKind, GroupTrees, Groups, KeyRange,
    Meta, PageIndexKind, Root, RowKind, RowRanges, Seek, Slice, Sst, SstBuilder, SstCursor, Version,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::{Bound, Range};
use std::path::Path;

const PATH: &str = "file.sst";

/// The offset in a node at which the checksums of the node's children begin; see the picture in `format/node.rs`.
const CHECKSUMS_AT: usize = 136;

/// The largest number of rows that the target reads, and of pages whose checksums it corrects. If a file names one
/// page a million times, reading all of it would take too long.
const MOST: usize = 2_000;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    match input.byte() % 4 {
        0 => drop(read(input.rest())),
        1 => {
            // The file is changed, and its checksums are not corrected. A check must notice the change, unless no
            // byte really changed.
            let whole = built(&mut input).0;
            let mut file = whole.clone();
            input.change(&mut file, 2);
            assert_eq!(read(&file), file == whole, "a check finds every changed byte");
        }
        _ => {
            let (mut file, mut meta) = built(&mut input);
            let footer_at = file.len() - BLOCK_BYTES;
            input.change(&mut file[..footer_at], 6);
            seal(&mut file, &mut meta);
            file[footer_at..].copy_from_slice(&meta.footer(b""));
            input.change(&mut file[footer_at..], 3);
            let (footer, crc) = file[footer_at..].split_last_chunk_mut::<4>().expect("a block is longer");
            crc.copy_from_slice(&crc_fast::crc32_iscsi(footer).to_le_bytes());
            read(&file);
        }
    }
});

/// Builds a small file with everything in it: several pages and levels, older versions, range erases, large values.
fn built(input: &mut Input<'_>) -> (Vec<u8>, Meta) {
    let shape = input.byte();
    let options = BuildOptions {
        page_bytes: 256,
        node_bytes: 256,
        index: [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both, PageIndexKind::Btree]
            [usize::from(shape & 3)],
        compression: match shape & 12 {
            12 => Compression::Lz4,
            8 => Compression::ZSTD,
            _ => Compression::None,
        },
        max_node_children: 3 + usize::from(shape >> 6),
        max_page_rows: if shape & 16 == 0 { usize::MAX } else { 2 },
        groups: if shape & 32 == 0 { 0 } else { 2 },
        filter: [FilterKind::None, FilterKind::Bits12, FilterKind::Bits20][usize::from(input.byte()) % 3],
        filter_prefix_bytes: u16::from(input.byte() & 3),
        features: sst::FEATURES,
    };
    let rows: BTreeMap<Vec<u8>, (u64, u8, usize)> =
        (0..input.below(20)).map(|_| (input.key(), (1 + input.number() / 2, input.byte(), input.below(100)))).collect();
    let starts: BTreeSet<Vec<u8>> = (0..input.below(5)).map(|_| input.key()).collect();

    let disk = SimDisk::new(0);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    let mut builder = SstBuilder::new(file, PATH.into(), input.number(), options);
    for (key, (version, flags, value_bytes)) in rows {
        let kind = if flags & 3 == 0 { RowKind::Erase } else { RowKind::Put };
        let value = vec![flags; value_bytes];
        let parts_of_row = if kind == RowKind::Erase { Vec::new() } else { parts(&value, options.groups) };
        builder.add(&key, Version(version), kind, &parts_of_row).expect("the disk has room");
        for older in (version.saturating_sub(u64::from(flags >> 6))..version).rev() {
            builder
                .add(&key, Version(older), RowKind::Put, &parts(b"older", options.groups))
                .expect("the disk has room");
        }
    }
    let ends = starts.iter().skip(1).map(|end| Some(end.as_slice())).chain([None]);
    for (start, end) in starts.iter().zip(ends) {
        builder
            .add_range_erase(&KeyRange { start: start.as_slice(), end }, &[Version(9), Version(4)])
            .expect("the disk has room");
    }
    let meta = builder.finish().expect("the disk has room");
    (disk.read_all(Path::new(PATH)).expect("the disk works"), meta)
}

/// The parts of a row with `groups` groups beside the main one.
fn parts(value: &[u8], groups: usize) -> Vec<&[u8]> {
    [value, b"cold", value].into_iter().take(1 + groups).collect()
}

/// Corrects the checksum of every page that can be reached from a root. Children come before their parents.
fn seal(file: &mut [u8], meta: &mut Meta) {
    let (id, mut left) = (meta.file_id, MOST);
    let groups = meta.groups.iter_mut().flat_map(|GroupTrees { newest, older }| [newest, older]);
    let keyed = [meta.main.as_mut(), meta.history.tree_mut(), meta.range_erases.tree_mut()].into_iter().flatten();
    let filter = meta.filter.iter_mut().map(|filter| &mut filter.tree);
    for tree in keyed.chain(groups.flatten()).chain(filter) {
        for Root { address, height, .. } in [&mut tree.btree, &mut tree.flat].into_iter().flatten() {
            address.crc = seal_page(file, id, *address, *height, &mut left).unwrap_or_default();
        }
    }
}

fn seal_page(file: &mut [u8], id: u64, at: Address, height: u8, left: &mut usize) -> Option<u32> {
    *left = left.checked_sub(1)?;
    let start = usize::try_from(at.offset).ok()?;
    let range = start..start.checked_add(at.bytes as usize).filter(|&end| end <= file.len())?;
    // If the stored bytes are a valid page, they say where the children of the page are. For a compressed page,
    // the stored bytes are mostly not a valid page, so its children are not found.
    let memory_bytes = u32::from_le_bytes(*file[range.clone()].get(4..)?.first_chunk()?) as usize;
    let page = file[range.clone()].get(..memory_bytes).unwrap_or_default().to_vec();
    let mut children: Vec<(usize, Address, u8)> = Vec::new();
    if height > 0 && node::validate(&page).is_ok() {
        let node = IndexNode::new(&page);
        children.extend((0..node.children()).map(|i| (CHECKSUMS_AT + i * 4, node.address(i), height - 1)));
    } else if height == 0 {
        for stored in references(&page) {
            let end = stored.end;
            let reference = OutsideValue::new(&page[stored]).expect("it is valid");
            let first = end - reference.chunks().count() * Address::ENCODED_BYTES;
            let crc_at = |i: usize| first + i * Address::ENCODED_BYTES + 12;
            children.extend(reference.chunks().enumerate().map(|(i, at)| (crc_at(i), at, 0)));
        }
    }
    for (crc_at, child, height) in children {
        if let Some(crc) = seal_page(file, id, child, height, left) {
            file[start + crc_at..][..4].copy_from_slice(&crc.to_le_bytes());
        }
    }
    Some(checksum(id, at.offset, &file[range]))
}

/// The places of references to values outside their pages, in a data page or a group page.
fn references(page: &[u8]) -> Vec<Range<usize>> {
    let is_group =
        page.first().is_some_and(|&kind| kind == PageKind::Group as u8 || kind == PageKind::GroupHistory as u8);
    if is_group && group_page::validate(page).is_ok() {
        let layout = GroupLayout::of(page);
        let parts = (0..layout.rows()).map(|i| layout.part(page, i));
        parts.filter(|part| part.outside).map(|part| part.at..part.at + part.bytes).collect()
    } else if !is_group && data_page::validate(page).is_ok() {
        let layout = Layout::of(page);
        let records = (0..layout.rows()).map(|i| layout.record(page, i));
        records.filter(|row| row.outside).map(|row| row.value_at..row.value_at + row.value_bytes).collect()
    } else {
        Vec::new()
    }
}

/// Reads the file in every way. Returns whether a check found no damage in the file.
fn read(bytes: &[u8]) -> bool {
    let disk = SimDisk::new(0);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    file.write_at(bytes, 0).expect("the disk has room");
    let Ok(meta) = sst::read_footer(&*file, Path::new(PATH)) else { return false };
    let mut is_whole = false;
    for prefer_flat in [false, true] {
        let paged = PagedFile::alone(PATH, meta.file_id, disk.clone() as Arc<dyn Disk>);
        let sst = Arc::new(Sst::new(paged, meta.clone(), 0, prefer_flat));
        let source = Resident::new(sst::validate);
        is_whole = sst::verify(&sst, &source, &*file, &mut |_| {}).is_ok();
        for detail in [DumpDetail::Pages, DumpDetail::Rows] {
            drop(sst::dump(&sst, &source, detail, &mut Sink { room: 1 << 20 }));
        }
        scan(&sst, &source);
        look_up(&sst, &source);
        precharge(&sst);
        statistics(&sst, &source);
    }
    is_whole
}

/// Reads every row with its versions, forward and backward, until an error comes.
fn scan(sst: &Arc<Sst>, source: &Resident) {
    let mut cursor = SstCursor::new(sst.clone());
    let mut there = cursor.seek_first(source);
    for _ in 0..MOST {
        let Ok(true) = there else { break };
        let newest = cursor.newest().expect("the cursor is somewhere");
        drop(newest.value.load(source, &sst.file));
        drop(cursor.parts(source, Groups::first(1 + sst.meta.groups.len()), newest.place, &mut Vec::new()));
        drop(cursor.visible(source, Version(newest.version.0 / 2)));
        let mut older = cursor.first_older(source);
        for _ in 0..MOST {
            let Ok(true) = older else { break };
            let row = cursor.older().expect("there is one");
            drop(cursor.parts(source, Groups::first(1 + sst.meta.groups.len()), row.place, &mut Vec::new()));
            older = cursor.next_older(source);
        }
        there = cursor.next(source);
    }
    let mut there = cursor.seek_last(source);
    for _ in 0..MOST {
        let Ok(true) = there else { break };
        there = cursor.prev(source);
    }
}

fn look_up(sst: &Arc<Sst>, source: &Resident) {
    let mut cursor = SstCursor::new(sst.clone());
    for key in [b"".as_slice(), b"k", b"kkka", b"kkkkkk\0", b"\xff", &[b'k'; 200]] {
        for at in [Version(0), Version(5), Version::MAX] {
            drop(retry(source, || sst.get(source, key, at)));
            drop(retry(source, || sst.cover(source, key, at)));
        }
        for seek in [Seek::Exact, Seek::Lower, Seek::Upper] {
            drop(cursor.seek(source, key, seek));
            drop(cursor.seek_back(source, key, seek));
        }
    }
    let mut erases = EraseCursor::new(sst.clone());
    drop(erases.seek_first(source));
    for key in [b"".as_slice(), b"k", b"kkka", b"\xff"] {
        drop(erases.seek(source, key));
        drop(erases.next(source));
        drop(erases.seek_back(source, key));
    }
}

/// Loads some ranges with some limits, through a page source that forgets pages.
fn precharge(sst: &Sst) {
    let source = Flaky::forgetful(Resident::new(sst::validate), 1);
    for (low, high) in
        [(Bound::Unbounded, Bound::Unbounded), (Bound::Excluded(&b"k"[..]), Bound::Included(&b"kkkb"[..]))]
    {
        for rows in [1, 7, u64::MAX] {
            for direction in [Direction::Forward, Direction::Backward] {
                let groups = Groups::first(1 + sst.meta.groups.len());
                let limits = AtMost { rows, bytes: 9 * 4096 };
                let wanted = ReadPlan { low, high, direction, limits, groups, at: Version(5), ..ReadPlan::ALL };
                drop(precharge::run(&source, 20, |asked| {
                    let mut shares = Shares::new(limits.bytes, 1 << 20);
                    precharge::pass(sst, &source, &wanted, &mut shares, asked)
                }));
            }
        }
    }
}

/// Computes totals, rows at a distance and histograms, for the whole file and for a slice.
fn statistics(sst: &Arc<Sst>, source: &Resident) {
    let rows = RowRanges::new([1..3, 5..u64::MAX]).within(0..sst.meta.rows());
    let slice = Slice { rows, bounds: sst.meta.bounds.clone(), bytes: 0 };
    let part = sst.sliced(Some(slice));
    for sst in [&**sst, &part] {
        for (low, high) in
            [(Bound::Unbounded, Bound::Unbounded), (Bound::Excluded(&b"k"[..]), Bound::Included(&b"kkkb"[..]))]
        {
            drop(retry(source, || sst.totals_between(source, low, high)));
            drop(retry(source, || sst.exact_between(source, low, high)));
            drop(retry(source, || sst.rows_between(source, low, high)));
            // A histogram looks into each part of the tree that has more than `resolution` rows or bytes. If a
            // file claims to have very many rows, a histogram with a small resolution would take too long.
            let total = sst.meta.main.map_or(0, |tree| tree.totals.rows);
            for (metric, resolution) in [(Metric::Rows, total / 50 + 1), (Metric::Bytes, 4096)] {
                let found = stats::histogram(source, &[HistogramSource::File(sst)], low, high, metric, resolution);
                let is_sorted = |found: &Histogram| found.buckets.is_sorted_by(|a, b| a.value < b.value);
                assert!(found.is_err() || found.is_ok_and(|found| is_sorted(&found)), "values grow");
            }
        }
        for (from, n) in [(0, 0), (2, 7), (u64::MAX, u64::MAX)] {
            drop(retry(source, || sst.nth_put(source, from, n)));
        }
        drop(retry(source, || sst.bytes_by_group(source, 1..7)));
        if sst.meta.rows() > 0 {
            drop(retry(source, || sst.key_of(source, sst.meta.rows() - 1, &mut Vec::new())));
        }
    }
}

/// Takes a limited number of bytes. Writing more is an error.
struct Sink {
    room: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room = self.room.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
