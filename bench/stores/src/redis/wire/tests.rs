use super::*;

#[test]
fn a_command_is_its_words_with_their_lengths() {
    let mut commands = Commands::default();
    commands.begin(3).word(b"SET").words(&[b"t", b":", b"k"]).number(-7);
    commands.command(&[b"PING"]);
    assert_eq!(commands.bytes, b"*3\r\n$3\r\nSET\r\n$3\r\nt:k\r\n$2\r\n-7\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!((commands.take_count(), commands.take_count()), (2, 0));
    commands.begin(1).number(i64::MIN);
    assert!(commands.bytes.ends_with(b"$20\r\n-9223372036854775808\r\n"));
}

#[test]
fn an_answer_is_read_once_it_is_whole() {
    let texts = |answer: &Answer<'_>| match answer {
        Answer::List(texts) => texts.map(|text| text.map(<[u8]>::to_vec)).collect::<Vec<_>>(),
        other => panic!("{other:?} is no list"),
    };
    let list = b"*3\r\n$2\r\na\n\r\n$-1\r\n$0\r\n\r\n".as_slice();
    for whole in [b"+OK\r\n".as_slice(), b"-ERR no\r\n", b":-12\r\n", b"$3\r\nx\r\n\r\n", b"$-1\r\n", b"*-1\r\n", list]
    {
        for end in 0..whole.len() {
            assert_eq!(Answer::read(&whole[..end]), Ok(None), "{end} bytes of {whole:?}");
        }
        let followed = [whole, b"+next\r\n"].concat();
        let (_, len) = Answer::read(&followed).expect("good bytes").expect("it is whole");
        assert_eq!(len, whole.len(), "{whole:?}");
    }
    let read = |bytes| Answer::read(bytes).expect("good bytes").expect("it is whole").0;
    assert_eq!(read(b"+OK\r\n"), Answer::Status(b"OK"));
    assert_eq!(read(b"-ERR no\r\n"), Answer::Error(b"ERR no"));
    assert_eq!(read(b":-12\r\n"), Answer::Number(-12));
    assert_eq!(read(b"$3\r\nx\r\n\r\n"), Answer::Text(Some(b"x\r\n")));
    assert_eq!(read(b"$-1\r\n"), Answer::Text(None));
    assert_eq!(texts(&read(list)), [Some(b"a\n".to_vec()), None, Some(Vec::new())]);
    assert_eq!(texts(&read(b"*-1\r\n")), []);
}

#[test]
fn bytes_that_are_no_answer_are_refused() {
    for bytes in
        [b"!3\r\nabc\r\n".as_slice(), b":x\r\n", b"$2\r\nabc\r\n", b"*1\r\n:1\r\n", b"$9223372036854775807\r\n"]
    {
        assert!(Answer::read(bytes).is_err(), "{bytes:?}");
    }
}
