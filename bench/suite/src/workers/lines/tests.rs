use super::{CHUNK, Lines};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};

fn connected() -> (TcpStream, Lines) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let stream = TcpStream::connect(address).expect("it listens");
    let (accepted, _) = listener.accept().expect("it was connected to");
    (stream, Lines::new(accepted).expect("options are taken"))
}

#[test]
fn values_come_one_by_one_however_they_are_cut() {
    let (mut stream, mut lines) = connected();
    let long = "x".repeat(3 * CHUNK);
    stream.write_all(b"\"one\"\n\"tw").expect("it is open");
    assert_eq!(lines.read::<String>(10, None).as_deref(), Ok("one"));
    stream.write_all(b"o\"\n").expect("it is open");
    assert_eq!(lines.read::<String>(10, None).as_deref(), Ok("two"));
    stream.write_all(format!("\"{long}\"\n3\n").as_bytes()).expect("it is open");
    assert_eq!(lines.read::<String>(4 * CHUNK, None), Ok(long));
    assert_eq!(lines.read::<u8>(1, None), Ok(3));
    drop(stream);
    assert_eq!(lines.read::<u8>(1, None), Err("the connection has ended".to_owned()));
}

#[test]
fn a_line_that_is_too_long_or_no_value_is_refused() {
    let (mut stream, mut lines) = connected();
    stream.write_all(&[b'x'; 5_000]).expect("it is open");
    assert_eq!(lines.read::<String>(4_096, None), Err("it sent a line of more than 4096 bytes".to_owned()));
    for wrong in ["", "{", "\u{0}", "[[[[", "\"a\" \"b\"", "99999999999999999999"] {
        let (mut stream, mut lines) = connected();
        stream.write_all(format!("{wrong}\n").as_bytes()).expect("it is open");
        assert_eq!(lines.read::<u8>(100, None), Err("it does not speak the protocol".to_owned()), "{wrong:?}");
    }
    let (mut stream, mut lines) = connected();
    stream.write_all(&[0xff, 0xfe, b'\n']).expect("it is open");
    assert!(lines.read::<String>(100, None).is_err());
}
