//! What stored pages promise: they are read as they were written, and nothing else is read as a page.

use super::*;
use crate::flaky::SplitMix;

const FILE_ID: u64 = 0x1234_5678_9ABC_DEF0;

fn random_bytes(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = SplitMix(seed);
    (0..bytes).map(|_| random.next() as u8).collect()
}

fn page_of(payload: &[u8]) -> Vec<u8> {
    [&[0; HEADER_BYTES], payload].concat()
}

fn check_comes_back(payload: &[u8], compression: Compression, packing: Packing, offset: u64, stored_bytes: usize) {
    let mut page = page_of(payload);
    let at = encode_page(&mut page, (PageKind::Index, 3), compression, packing, FILE_ID, offset);
    assert_eq!((at.offset, at.bytes as usize, page.len()), (offset, stored_bytes, stored_bytes));
    let (decoded, header) = decode_page(&page, PageKind::Index, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed)
        .expect("the page is whole");
    assert_eq!(&decoded[HEADER_BYTES..], payload);
    assert_eq!((header.kind, header.level), (PageKind::Index, 3));
    assert_eq!(PageHeader::decode(&decoded), Ok(header));
    let (adopted, _) =
        adopt_page(Buffer::copied(&page), PageKind::Index, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed)
            .expect("the page is whole");
    assert_eq!(&adopted[..decoded.len()], &*decoded);
}

#[test]
fn a_page_comes_back_as_it_went() {
    let plain = random_bytes(1, 5000);
    check_comes_back(&plain, Compression::None, Packing::Block, 0, 8192);
    check_comes_back(&plain, Compression::None, Packing::Block, 12288, 8192);
    check_comes_back(&plain, Compression::None, Packing::Tight, 64, 5056);
    check_comes_back(&[], Compression::None, Packing::Tight, 64, 64);
    check_comes_back(&plain[..BLOCK_BYTES - HEADER_BYTES], Compression::None, Packing::Block, 0, BLOCK_BYTES);
}

#[test]
fn a_plain_page_between_blocks_is_packed_tight() {
    check_comes_back(&random_bytes(1, 5000), Compression::None, Packing::Block, 64, 5056);
}

#[test]
fn a_compressed_page_comes_back_as_it_went() {
    let rows: Vec<u8> = (0..1000u32).flat_map(|row| format!("row {row} of the table;").into_bytes()).collect();
    let mut packer = Packer::default();
    let zstd = Compression::ZSTD_LEVELS.map(|level| (Compression::Zstd { level }, Codec::Zstd));
    for (compression, codec) in [(Compression::Lz4, Codec::Lz4)].into_iter().chain(zstd) {
        let mut page = page_of(&rows);
        assert_eq!(pack_page(&mut page, (PageKind::Data, 0), compression, Packing::Block, &mut packer), codec);
        let stored_bytes = page.len().next_multiple_of(64);
        assert!(stored_bytes < rows.len() / 2, "{compression}: {stored_bytes}");
        check_comes_back(&rows, compression, Packing::Block, 4096, stored_bytes);
        check_comes_back(&rows, compression, Packing::Tight, 192, stored_bytes);
    }
}

#[test]
fn a_page_is_compressed_only_if_that_saves_an_eighth_of_its_room() {
    for (compression, codec) in [(Compression::Lz4, Codec::Lz4), (Compression::ZSTD, Codec::Zstd)] {
        check_comes_back(&random_bytes(2, 5000), compression, Packing::Tight, 64, 5056);
        // These pages of 16 KiB end with zeros, which compression removes. 448 bytes of zeros are not worth it; 4
        // KiB are.
        for (zeros, codec) in [(448, Codec::None), (4096, codec)] {
            let mut page = page_of(&random_bytes(3, 16384 - HEADER_BYTES));
            page[16384 - zeros..].fill(0);
            let packed = pack_page(&mut page, (PageKind::Data, 0), compression, Packing::Block, &mut Packer::default());
            assert_eq!(packed, codec, "{zeros} zeros");
        }
    }
}

#[test]
fn a_plain_page_is_used_where_it_was_read() {
    let mut page = page_of(&random_bytes(4, 5000));
    let at = encode_page(&mut page, (PageKind::Data, 0), Compression::None, Packing::Block, FILE_ID, 0);
    let buffer = Buffer::copied(&page);
    let address = buffer.as_ptr();
    let (adopted, _) = adopt_page(buffer, PageKind::Data, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed)
        .expect("the page is whole");
    assert_eq!(adopted.as_ptr(), address);
}

/// A stored page has at least a 255th of its length in memory, so the stored bytes of a value's chunks limit the
/// memory for the value.
#[test]
fn a_page_that_zstd_makes_too_dense_is_stored_by_lz4() {
    for bytes in [1000, 8000, 16_000, 100_000, (1 << 20) + HEADER_BYTES, MAX_PAGE_BYTES] {
        let mut page = page_of(&vec![7; bytes - HEADER_BYTES]);
        let at = encode_page(&mut page, (PageKind::Value, 0), Compression::ZSTD, Packing::Tight, FILE_ID, 64);
        assert!(bytes as u64 <= u64::from(at.bytes) * MOST_UNPACKED, "{bytes} bytes in {}", at.bytes);
        let unpacker = Unpacker::default();
        let (decoded, header) = decode_page(&page, PageKind::Value, &at, FILE_ID, &unpacker, Buffer::zeroed)
            .unwrap_or_else(|why| panic!("{bytes} bytes: {why:?}"));
        assert_eq!(header.codec, if bytes <= 8000 { Codec::Zstd } else { Codec::Lz4 }, "{bytes} bytes");
        assert!(decoded.len() == bytes && decoded[HEADER_BYTES..].iter().all(|byte| *byte == 7));
    }
}

#[test]
fn a_page_that_unpacks_to_another_length_than_it_says_is_refused_in_words() {
    let mut page = page_of(&[7; 5000]);
    let mut at = encode_page(&mut page, (PageKind::Data, 0), Compression::ZSTD, Packing::Tight, FILE_ID, 64);
    let mut refused = |memory_bytes: u32| {
        page[4..8].copy_from_slice(&memory_bytes.to_le_bytes());
        at.crc = checksum(FILE_ID, 64, &page);
        decode_page(&page, PageKind::Data, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed).err()
    };
    assert_eq!(refused(5016), None);
    let damaged = |why: &str| Some(Undecoded::Damaged(why.to_owned()));
    assert_eq!(refused(5015), damaged("does not unpack: destination buffer is too small"));
    assert_eq!(refused(5017), damaged("unpacks to 5000 bytes instead of 5001"));
    let most = MAX_PAGE_BYTES as u32;
    let refused = refused(most);
    let why = "compressed page of 8388608 bytes";
    assert!(matches!(&refused, Some(Undecoded::Damaged(words)) if words.starts_with(why)), "{refused:?}");
}

#[cfg(not(feature = "zstd"))]
#[test]
fn a_page_of_a_codec_that_the_build_lacks_is_refused_by_the_feature_and_none_is_written() {
    use crate::numbered::accept;
    use crate::{Admit, Error, PageCache, PageLender, Reason, Resident, Session, retry};
    use os::sim::SimDisk;
    use os::{Access, Disk};
    use std::path::Path;

    for (codec, compression, feature) in
        [(Codec::Lz4, Compression::Lz4, "lz4"), (Codec::Zstd, Compression::ZSTD, "zstd")]
    {
        if compression.missing_feature().is_none() {
            continue;
        }
        let plain = page_of(&[7; 5000]);
        let mut page = plain.clone();
        assert_eq!(
            pack_page(&mut page, (PageKind::Data, 0), compression, Packing::Tight, &mut Packer::default()),
            Codec::None
        );
        assert_eq!(page[HEADER_BYTES..], plain[HEADER_BYTES..]);
        // The header of a page that another build has compressed.
        let lengths = (5016, page.len() as u32);
        let header =
            PageHeader { kind: PageKind::Data, codec, level: 0, memory_bytes: lengths.0, stored_bytes: lengths.1 };
        page[..HEADER_BYTES].copy_from_slice(&header.encode());
        let at = seal_page(&mut page, Packing::Tight, FILE_ID, 64);
        let refused = decode_page(&page, PageKind::Data, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed);
        assert_eq!(refused.err(), Some(Undecoded::MissingFeature(feature)));
        let disk = SimDisk::new(0);
        let file = disk.open(Path::new("packed"), Access::Create).expect("the disk is empty");
        file.append(&[0; 64]).and_then(|_| file.append(&page)).expect("the disk has room");
        let cache = PageCache::new(1 << 20, 8, accept);
        let file = cache.register("packed", FILE_ID, disk);
        let session = Session::new(&cache, Reason::Point, Admit::Keep);
        let by_cache = retry(&session, || session.page(file.at(&at, PageKind::Data))).map(drop);
        let resident = Resident::new(accept);
        let alone = retry(&session, || resident.page(file.at(&at, PageKind::Data))).map(drop);
        for outcome in [by_cache, alone] {
            let is_named = matches!(&outcome, Err(Error::MissingFeature { feature: named, .. }) if *named == feature);
            assert!(is_named, "{outcome:?}");
        }
    }
}

#[test]
fn a_packer_has_one_context_for_all_its_pages_and_says_what_it_takes() {
    let mut packer = Packer::default();
    let mut pack = |bytes: usize, level: u8| {
        let mut page = page_of(&random_bytes(4, bytes));
        pack_page(&mut page, (PageKind::Data, 0), Compression::Zstd { level }, Packing::Tight, &mut packer);
        packer.memory_bytes()
    };
    let first = pack(16_000, 3);
    assert!((10_000..1 << 20).contains(&first), "{first}");
    assert_eq!([pack(16_000, 3), pack(300, 3), pack(16_000, 3)], [first; 3]);
    let most = pack(1 << 20, 19);
    assert!((1 << 20..=40 << 20).contains(&most), "{most}");
    println!("{first} bytes for pages of 16 KiB at level 3, {most} for 1 MiB at level 19");
}

fn check_every_flipped_bit_is_refused(compression: Compression, packing: Packing, payload: &[u8]) {
    let mut page = page_of(payload);
    let at = encode_page(&mut page, (PageKind::Data, 0), compression, packing, FILE_ID, 4096);
    assert_eq!(page.len(), at.bytes as usize);
    for bit in 0..page.len() * 8 {
        page[bit / 8] ^= 1 << (bit % 8);
        let outcome = decode_page(&page, PageKind::Data, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed);
        assert!(outcome.is_err(), "bit {bit} of {compression:?}, {packing:?}");
        page[bit / 8] ^= 1 << (bit % 8);
    }
    decode_page(&page, PageKind::Data, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed).expect("all bits are back");
}

#[test]
fn every_flipped_bit_is_refused_padding_included() {
    check_every_flipped_bit_is_refused(Compression::None, Packing::Tight, &random_bytes(5, 200));
    check_every_flipped_bit_is_refused(Compression::None, Packing::Block, &random_bytes(5, 200));
    check_every_flipped_bit_is_refused(Compression::Lz4, Packing::Tight, &[7; 5000]);
    check_every_flipped_bit_is_refused(Compression::ZSTD, Packing::Tight, &[7; 5000]);
}

/// crc32c by its definition, one bit at a time. `sum` is the sum of the preceding bytes.
fn crc32c(sum: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!sum, |state, byte| {
        (0..8).fold(state ^ u32::from(*byte), |state, _| state >> 1 ^ (0x82f6_3b78 & 0u32.wrapping_sub(state & 1)))
    })
}

#[test]
fn a_checksum_is_crc32c_of_file_id_offset_and_bytes_whatever_their_length_and_place() {
    assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
    let bytes = random_bytes(8, if cfg!(miri) { 1200 } else { 70_000 });
    let (mut length, mut start) = (0, 0);
    // The library has several algorithms, depending on the length, so try many lengths.
    while start + length <= bytes.len() {
        let part = &bytes[start..start + length];
        let seed = [FILE_ID.to_le_bytes(), 4096u64.to_le_bytes()].concat();
        assert_eq!(checksum(FILE_ID, 4096, part), crc32c(crc32c(0, &seed), part), "{length} bytes from {start}");
        length += 1 + length / 16;
        start = (start + 5) % 64;
    }
}

#[test]
fn the_right_bytes_in_the_wrong_place_are_refused() {
    let mut page = page_of(&random_bytes(6, 200));
    let at = encode_page(&mut page, (PageKind::Data, 0), Compression::None, Packing::Tight, FILE_ID, 4096);
    let elsewhere = Address { offset: 8192, ..at };
    for (at, kind, file_id) in
        [(elsewhere, PageKind::Data, FILE_ID), (at, PageKind::Data, FILE_ID + 1), (at, PageKind::Index, FILE_ID)]
    {
        assert!(
            decode_page(&page, kind, &at, file_id, &Unpacker::default(), Buffer::zeroed).is_err(),
            "{at:?} {kind:?} {file_id}"
        );
    }
    assert!(
        decode_page(&page[..192], PageKind::Data, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed).is_err(),
        "cut off"
    );
}

#[test]
fn headers_that_lie_under_a_right_checksum_are_refused_without_a_panic() {
    let seed = 7;
    println!("seed {seed}");
    let mut random = SplitMix(seed);
    let mut refused = 0;
    for compression in [Compression::None, Compression::Lz4, Compression::ZSTD] {
        for _ in 0..20_000 {
            let mut page = page_of(&[7; 1000]);
            let mut at = encode_page(&mut page, (PageKind::Data, 0), compression, Packing::Tight, FILE_ID, 64);
            let place = (random.next() % page.len().min(40) as u64) as usize;
            page[place] = random.next() as u8;
            at.crc = checksum(FILE_ID, 64, &page);
            match decode_page(&page, PageKind::Data, &at, FILE_ID, &Unpacker::default(), Buffer::zeroed) {
                Ok((buffer, header)) => assert_eq!(buffer.len(), header.memory_bytes as usize),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 10_000, "{refused}");
}

#[test]
fn a_header_says_what_is_wrong_with_it() {
    let right = PageHeader { kind: PageKind::Data, codec: Codec::None, level: 9, memory_bytes: 99, stored_bytes: 99 };
    let check = |place: usize, byte: u8, expected: &str| {
        let mut bytes = right.encode();
        bytes[place] = byte;
        assert_eq!(PageHeader::decode(&bytes), Err(expected.to_owned()));
    };
    assert_eq!(PageHeader::decode(&right.encode()), Ok(right));
    check(0, 0, "unknown page kind 0");
    check(0, 11, "unknown page kind 11");
    check(1, 3, "unknown codec 3");
    check(3, 1, "reserved bytes of the page header are not zero");
    check(15, 1, "reserved bytes of the page header are not zero");
    check(4, 15, "page of 15 bytes, 99 stored");
    check(11, 1, "page of 99 bytes, 16777315 stored");
    check(8, 98, "plain page of 99 bytes, 98 stored");
    for codec in [Codec::Lz4, Codec::Zstd] {
        let dense = |memory_bytes| PageHeader { codec, memory_bytes, stored_bytes: 64, ..right };
        assert_eq!(PageHeader::decode(&dense(64 * 255).encode()), Ok(dense(64 * 255)));
        let expected = "compressed page of 16321 bytes, 64 stored".to_owned();
        assert_eq!(PageHeader::decode(&dense(64 * 255 + 1).encode()), Err(expected));
    }
    assert_eq!(PageHeader::decode(&[]), Err("0 bytes are too few for a page header".to_owned()));
}

#[test]
fn kinds_are_their_numbers() {
    for (index, kind) in PageKind::ALL.into_iter().enumerate() {
        assert_eq!((PageKind::from_u8(kind as u8), kind.index()), (Some(kind), index));
    }
}
