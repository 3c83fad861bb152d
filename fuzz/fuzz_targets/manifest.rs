//! Reads any bytes as a manifest. This gives an error, or a file set that can be written and read again.
#![no_main]

use larch::fuzz::{
    EDIT_FIELDS, Edit, FileOpener, Framing, HEADER_BYTES, Header, Leftovers, LogKind, ManifestLog, NewFile,
    RecordWriter, TableId,
};
use larch::options::{Expiry, FilterKind, Filters};
use larch::{Compression, TableOptions};
use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use os::{Access, Machine};
use pages::PageCache;
use sst::{KeyBounds, Meta, Root, Totals, Tree, Version};
use std::path::Path;
use std::time::Duration;

const PATH: &str = "MANIFEST-00000001";
const LOG_ID: u64 = 7;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    match input.byte() % 3 {
        0 => read(input.rest()),
        1 => {
            let mut payloads = Vec::new();
            while !input.is_empty() {
                payloads.push(input.bytes(200).to_vec());
            }
            read(&written(&payloads));
        }
        _ => {
            let mut payloads = Vec::new();
            while !input.is_empty() && payloads.len() < 20 {
                let mut payload = Vec::new();
                for _ in 0..1 + input.below(3) {
                    edit(&mut input).encode(&mut payload);
                }
                if input.byte() % 8 == 0 {
                    input.change(&mut payload, 4);
                }
                payloads.push(payload);
            }
            read(&written(&payloads));
        }
    }
});

/// Writes a manifest that has these records.
fn written(payloads: &[Vec<u8>]) -> Vec<u8> {
    let (machine, _) = Machine::simulated(0);
    let header = Header { features: EDIT_FIELDS, ..Header::new(LogKind::Manifest, LOG_ID, 1, None) };
    let mut writer = RecordWriter::create(&*machine.disk, Path::new(PATH), &header).expect("the disk works");
    for payload in payloads {
        writer.append(&[payload]).expect("the disk works");
    }
    let bytes = machine.disk.read_all(Path::new(PATH)).expect("the disk works");
    // A full record has 24 bytes before its payload.
    assert!(bytes.len() >= HEADER_BYTES + payloads.iter().map(|payload| 24 + payload.len()).sum::<usize>());
    bytes
}

fn read(manifest: &[u8]) {
    let (machine, _) = Machine::simulated(0);
    let put = |path: &str, bytes: &[u8]| {
        let file = machine.disk.open(Path::new(path), Access::Create).expect("the name is free");
        file.write_at(bytes, 0).expect("the disk has room");
    };
    put(PATH, manifest);
    let opener = FileOpener {
        directory: "".into(),
        machine: machine.clone(),
        cache: PageCache::new(0, 1, sst::validate),
        prefer_flat: false,
        early: Default::default(),
        known: Default::default(),
        leftovers: Leftovers::new(machine.disk.clone()),
    };
    let Ok(set) = ManifestLog::read(&machine, Path::new(PATH), &opener) else { return };
    for table in set.tables.values() {
        for (level, file) in table.files() {
            assert!(level < table.levels.len());
            file.age();
            file.path();
        }
    }
    let edits: Vec<Edit> = set.edits().collect();
    let mut payload = Vec::new();
    edits.iter().for_each(|edit| edit.encode(&mut payload));
    let mut rest = payload.as_slice();
    for edit in &edits {
        assert_eq!(Edit::decode(&mut rest, Framing::Fields), Ok(Some(edit.clone())));
    }
    put("MANIFEST-00000002", &written(&[payload]));
    let again = ManifestLog::read(&machine, Path::new("MANIFEST-00000002"), &opener).expect("a set describes itself");
    assert!(again.edits().eq(edits), "a set describes itself");
}

fn edit(input: &mut Input<'_>) -> Edit {
    let table = table_id(input);
    match input.byte() % 12 {
        0 => Edit::Database(input.number()),
        1 => Edit::Epoch(input.number()),
        2 | 3 => Edit::Table {
            id: table,
            name: String::from_utf8_lossy(input.bytes(6)).into_owned(),
            options: table_options(input),
        },
        4..8 => Edit::AddFile(NewFile {
            table,
            level: input.byte() % 7,
            number: input.number(),
            epoch: input.number(),
            version_offset: input.number(),
            meta: meta(input),
        }),
        8 => Edit::RemoveFile { table, level: input.byte() % 7, number: input.number() },
        9 => match input.byte() % 4 {
            0 => Edit::OldestLog(input.number()),
            1 => Edit::NextNumber(input.number()),
            2 => Edit::LastVersion(Version(input.number())),
            _ => Edit::FlushedVersion(Version(input.number())),
        },
        10 => Edit::AlterTable { id: table, since: input.number(), options: table_options(input) },
        _ => Edit::DropTable(table),
    }
}

fn table_options(input: &mut Input<'_>) -> TableOptions {
    let groups = (0..input.byte() % 3).map(|i| format!("group{i}")).collect();
    let filters = Filters { upper: input.choose(&FilterKind::ALL), deepest: input.choose(&FilterKind::ALL) };
    let filter_prefix_bytes = u16::from(input.byte());
    let compression = input.choose(&[Compression::None, Compression::Lz4, Compression::Zstd { level: 19 }]);
    let metadata = input.bytes(4).to_vec();
    let expiry = match input.byte() % 3 {
        0 => Expiry::Never,
        1 => Expiry::After(Duration::new(input.number(), 1_000_000)),
        _ => Expiry::By([b"d", input.bytes(4)].concat()),
    };
    TableOptions { metadata, groups, filters, filter_prefix_bytes, compression, expiry, ..TableOptions::default() }
}

/// Returns one of a few small ids, or the greatest possible id.
fn table_id(input: &mut Input<'_>) -> TableId {
    TableId(input.choose(&[0, 1, 2, 3, u32::MAX]))
}

fn meta(input: &mut Input<'_>) -> Meta {
    let address = pages::Address { offset: input.number(), bytes: 64, crc: 0 };
    let data_pages = input.number();
    let height = if data_pages == 1 { 0 } else { input.byte().max(1) };
    let root = Root { address, height, index_bytes: input.number() };
    let totals = Totals { rows: input.number(), ..Totals::default() };
    Meta {
        file_id: input.number(),
        file_bytes: input.number(),
        main: Some(Tree { totals, data_pages, btree: Some(root), flat: None }),
        history: None.into(),
        range_erases: None.into(),
        filter: None,
        bounds: KeyBounds::cut(&input.key(), &input.key()),
        oldest: Version(input.number()),
        newest: Version(input.number()),
        value_bytes: 0,
        user_bytes: input.number(),
        groups: Vec::new(),
        has_origin: false,
        has_samples: false,
        has_zstd: false,
        has_merges: false,
        expiry: None,
        unknown: Default::default(),
    }
}
