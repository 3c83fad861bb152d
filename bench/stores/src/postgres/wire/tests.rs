//! Compares our messages with those of `postgres-protocol`, and tests bytes that no server should send.

use super::*;
use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

#[test]
fn a_request_is_what_another_client_would_send() {
    let values: [&[u8]; 3] = [b"user1", b"", b"\x00\xff"];
    let mut ours = vec![b'x'];
    let mut binding = Statement::new("read", 3).bind(&mut ours);
    values.iter().for_each(|value| binding.bytes(value));
    binding.finish();
    ours.extend_from_slice(&SYNC);

    let mut theirs = BytesMut::from(&b"x"[..]);
    frontend::bind("", "read", [1], values, put_value, [1], &mut theirs).map_err(|_| "bind").expect("it fits");
    frontend::execute("", 0, &mut theirs).expect("it fits");
    frontend::sync(&mut theirs);
    assert_eq!(ours, theirs);
}

fn put_value(value: &[u8], out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
    out.extend_from_slice(value);
    Ok(IsNull::No)
}

#[test]
fn an_array_of_keys_is_one_parameter() {
    let mut out = Vec::new();
    let mut binding = Statement::new("s", 2).bind(&mut out);
    binding.texts([b"ab".as_slice(), b""].into_iter());
    binding.number(-2);
    binding.finish();
    let array = b"\0\0\0\x1e\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x02\0\0\0\x01\0\0\0\x02ab\0\0\0\0";
    let number = b"\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe";
    let mut expected = b"B\0\0\0\x3f\0s\0\0\x01\0\x01\0\x02".to_vec();
    expected.extend_from_slice(array);
    expected.extend_from_slice(number);
    expected.extend_from_slice(&BIND_END_AND_EXECUTE);
    assert_eq!(out, expected);
}

fn receive(inbox: &mut Inbox, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let room = inbox.room();
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        inbox.filled(count);
        bytes = &bytes[count..];
    }
}

#[test]
fn messages_come_out_whole_however_they_came_in() {
    let mut sent = Vec::new();
    let sizes = [0_usize, 1, 3, 100, 20_000, 70_000, 5, 300_000, 0];
    for (index, size) in sizes.into_iter().enumerate() {
        sent.push(b'a' + u8::try_from(index).expect("few messages"));
        sent.extend_from_slice(&u32::try_from(size + 4).expect("small messages").to_be_bytes());
        sent.extend((0..size).map(|at| (at % 251) as u8));
    }
    for piece in [1, 7, 4_096, 65_536, sent.len()] {
        let mut inbox = Inbox::default();
        let mut seen = Vec::new();
        for bytes in sent.chunks(piece) {
            receive(&mut inbox, bytes);
            while let Some(frame) = inbox.next_frame().expect("all lengths are right") {
                assert!(frame.body.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
                seen.push((frame.tag, frame.body.len()));
            }
        }
        let expected: Vec<(u8, usize)> = (b'a'..).zip(sizes).collect();
        assert_eq!(seen, expected, "in pieces of {piece}");
    }
}

#[test]
fn an_impossible_length_is_told() {
    for length in [0_u32, 3, 1 << 30, u32::MAX] {
        let mut inbox = Inbox::default();
        let mut bytes = vec![b'D'];
        bytes.extend_from_slice(&length.to_be_bytes());
        receive(&mut inbox, &bytes);
        assert!(inbox.next_frame().is_err(), "{length}");
    }
}

#[test]
fn a_row_gives_its_values_and_nothing_beyond_its_end() {
    let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
    let mut values = Values::new(row).expect("it has a number of columns");
    assert_eq!(values.value(), Ok(Some(b"ab".as_slice())));
    assert_eq!(values.value(), Ok(None));
    assert_eq!(values.left(), 1);
    assert_eq!(values.value(), Ok(Some(b"".as_slice())));
    assert!(values.value().is_err());

    for bytes in 0..row.len() {
        let all = Values::new(&row[..bytes]).and_then(|mut values| (0..3).try_for_each(|_| values.value().map(|_| ())));
        assert!(all.is_err(), "{bytes} bytes of it");
    }
    let mut negative = Values::new(b"\0\x01\xff\xff\xff\xfe").expect("it has a number of columns");
    assert!(negative.value().is_err());
}

#[test]
fn touched_rows_are_the_last_word_of_a_command() {
    for (words, rows) in [
        ("UPDATE 1\0", 1),
        ("INSERT 0 12\0", 12),
        ("COPY 100000\0", 100_000),
        ("CREATE TABLE\0", 0),
        ("DELETE 0\0", 0),
        ("", 0),
        ("SELECT 99999999999999999999999\0", 99_999_999_999_999_999_999_999_u128 as u64),
    ] {
        assert_eq!(rows_touched(words.as_bytes()), rows, "{words}");
    }
}

#[test]
fn an_error_is_read_by_its_fields() {
    let body = b"SFEHLER\0VERROR\0C23505\0Mno\0Dmore\0Hdo this\0Fx.c\0\0";
    let error = server_error(body);
    assert_eq!(error.severity, "ERROR");
    assert_eq!(error.sqlstate, SqlState(*b"23505"));
    assert_eq!(error.to_string(), "ERROR: no (23505); more; do this");
    assert_eq!(server_error(b"").sqlstate, SqlState::UNKNOWN);
    assert_eq!(server_error(b"C123\0").sqlstate, SqlState::UNKNOWN);
    assert!(server_error(b"SFATAL\0").ends_session());
}
