//! Checks the promises of a store of any kind, which must be empty.

use os::Store;
use std::io::{self, ErrorKind};
use std::sync::mpsc;

fn kind<T>(outcome: io::Result<T>) -> ErrorKind {
    outcome.map(drop).expect_err("this fails").kind()
}

/// The byte at an offset.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn object(bytes: u64) -> Vec<u8> {
    (0..bytes).map(byte).collect()
}

/// Checks all promises.
pub fn check(store: &dyn Store) {
    for (name, bytes) in [("sst/small", 100_000), ("sst/large", (20 << 20) + 17)] {
        let object = object(bytes);
        let mut upload = store.create(name).expect("the store works");
        object.chunks(1_000_003).for_each(|part| upload.write(part).expect("the store works"));
        assert_eq!(kind(store.len(name)), ErrorKind::NotFound, "it is not there before it is finished");
        upload.finish().expect("the store works");
        assert_eq!(store.len(name).expect("it is there"), bytes);
        let mut buffer = vec![0; 10_000];
        assert_eq!(store.read_at(name, &mut buffer, 50_000).expect("it is there"), 10_000);
        assert_eq!(buffer, object[50_000..60_000]);
        assert_eq!(store.read_at(name, &mut buffer, bytes - 100).expect("it is there"), 100);
        assert_eq!(buffer[..100], object[object.len() - 100..]);
        for beyond in [bytes, bytes + 1, bytes + 100_000] {
            assert_eq!(store.read_at(name, &mut buffer, beyond).expect("it is there"), 0, "at {beyond} of {bytes}");
        }
    }
    let (sender, receiver) = mpsc::channel();
    for number in 0..200_u64 {
        let (start, sender) = (number * 100_000, sender.clone());
        let done = move |read: io::Result<&[&[u8]]>| {
            let read = read.expect("it is there").concat();
            let is_right = read.len() == 4096 && read.iter().zip(start..).all(|(found, at)| *found == byte(at));
            sender.send(is_right).expect("the test waits");
        };
        store.begin_read("sst/large", start..start + 4096, Box::new(done));
    }
    drop(sender);
    assert_eq!(receiver.iter().filter(|is_right| *is_right).count(), 200);
    let mut dropped = store.create("sst/dropped").expect("the store works");
    dropped.write(&object(9 << 20)).expect("the store works");
    drop(dropped);
    assert_eq!(kind(store.get("sst/dropped")), ErrorKind::NotFound);
    store.put_if_absent("journal/1", b"one").expect("the name is free");
    assert_eq!(kind(store.put_if_absent("journal/1", b"two")), ErrorKind::AlreadyExists);
    assert_eq!(store.get("journal/1").expect("it is there"), b"one");
    let names = |folder| -> Vec<(String, u64)> {
        let listed = store.list(folder).expect("the store works");
        listed.into_iter().map(|object| (object.name, object.bytes)).collect()
    };
    assert_eq!(names("journal"), [("journal/1".to_owned(), 3)]);
    assert_eq!(names("sst"), [("sst/large".to_owned(), (20 << 20) + 17), ("sst/small".to_owned(), 100_000)]);
    store.remove("journal/1").expect("it is there");
    store.remove("journal/1").expect("that there is none is no error");
    assert!(names("journal").is_empty());
}
