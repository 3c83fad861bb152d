//! Tests of packing and unpacking.

use super::*;

const BOTH: [Compression; 2] = [Compression::Gzip, Compression::Zstd];

/// Some hundred thousand bytes that do not repeat at once.
fn text() -> Vec<u8> {
    (0..40_000_u64).flat_map(|number| format!("{:x}\n", number.wrapping_mul(0x9E37_79B9)).into_bytes()).collect()
}

fn pack(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    let mut writer = Packed::new(Vec::new(), Some(compression));
    bytes.chunks(777).for_each(|piece| writer.write_all(piece).expect("memory takes every write"));
    writer.finish().expect("memory takes every write")
}

fn unpack(compression: Compression, packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Unpacked::new(io::Cursor::new(packed.to_vec()), Some(compression)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn what_was_packed_is_unpacked_also_in_several_streams() {
    for compression in BOTH {
        for bytes in [&b""[..], b"a", &text()] {
            let packed = pack(compression, bytes);
            assert!(bytes.len() < 100 || packed.len() < bytes.len() * 3 / 4, "{compression}: {} bytes", packed.len());
            assert_eq!(unpack(compression, &packed).expect("it is whole"), bytes, "{compression}");
            let twice = unpack(compression, &[&packed[..], &packed].concat()).expect("it is whole");
            assert_eq!(twice, [bytes, bytes].concat(), "{compression}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_an_error() {
    let text = text();
    for compression in BOTH {
        let packed = pack(compression, &text);
        for length in [0, 1, 4, 11, packed.len() / 2, packed.len() - 5, packed.len() - 1] {
            let error = unpack(compression, &packed[..length]).expect_err("it is cut");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{compression} {length}: {error}");
            assert_eq!(error.to_string(), format!("the {compression} data end before their end"));
        }
    }
}

#[test]
fn other_bytes_and_damage_are_errors() {
    for compression in BOTH {
        let mut packed = pack(compression, &text());
        let middle = packed.len() / 2;
        packed[middle] ^= 0x55;
        for bytes in [&packed[..], b"id,name\n1,Ada\n"] {
            let error = unpack(compression, bytes).expect_err("it is damaged");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{compression}: {error}");
        }
    }
}
